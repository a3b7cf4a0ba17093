//! Who may use the server: every client that can reach it, or those that have a key.
//!
//! Knows what kind of operation it stands before (`routes`), and nothing of what the operation does.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::routes::{Access, Action};

/// What stands before an operation.
#[derive(Clone)]
pub(crate) struct Gate {
    pub(crate) app: Arc<App>,
    pub(crate) access: Access,
}

pub(crate) async fn check(
    State(Gate { app, access }): State<Gate>,
    request: Request,
    next: Next,
) -> ApiResult<Response> {
    let open = access.action == Action::Open;
    if !open && !app.api_keys.is_empty() && !has_key(&app.api_keys, request.headers()) {
        return Err(ApiError::new(
            StatusCode::UNAUTHORIZED,
            "no valid API key; send one as `x-api-key` or as `authorization: Bearer`",
        ));
    }
    Ok(next.run(request).await)
}

fn has_key(keys: &[String], headers: &HeaderMap) -> bool {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| value.strip_prefix("Bearer "));
    let own = headers.get("x-api-key").and_then(|value| value.to_str().ok());
    let given = [own, bearer];
    // All keys are compared, so that the time does not say which one was nearly right.
    let each =
        given.into_iter().flatten().flat_map(|given| keys.iter().map(move |key| same(given, key)));
    each.fold(false, |any, same| any | same)
}

/// Compares in a time that depends only on the length of what was given.
fn same(given: &str, key: &str) -> bool {
    let (given, key) = (given.as_bytes(), key.as_bytes());
    let padded = key.iter().chain(std::iter::repeat(&0));
    let differ = given.iter().zip(padded).fold(0, |differ, (a, b)| differ | (a ^ b));
    std::hint::black_box(differ) == 0 && given.len() == key.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_must_be_the_whole_key() {
        assert!(same("secret", "secret"));
        for wrong in ["", "secre", "secret2", "Secret", "secret\0"] {
            assert!(!same(wrong, "secret"), "{wrong:?}");
        }
    }
}
