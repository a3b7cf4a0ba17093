//! Errors of the API: a status, and `{"detail"}`.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use superstep::RunError;

use crate::store::StoreError;

/// What a request is answered with instead of what it asked for.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) detail: String,
}

pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.detail)
    }
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into() }
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    /// The request does not have the form that it must have.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// Too much to do. Nothing was created; clients try again.
    pub(crate) fn overloaded() -> Self {
        let detail = "too many runs wait on this server; try again in a second";
        Self::new(StatusCode::TOO_MANY_REQUESTS, detail)
    }

    /// Too many clients wait for runs. Nothing was created; clients try again.
    pub(crate) fn too_many_streams() -> Self {
        let detail =
            "too many streams are open on this server; close some, or try again in a second";
        Self::new(StatusCode::TOO_MANY_REQUESTS, detail)
    }

    pub(crate) fn no_thread(id: &str) -> Self {
        Self::not_found(format!("there is no thread `{id}`; create it with POST /threads"))
    }

    pub(crate) fn no_run(id: &str) -> Self {
        Self::not_found(format!("the thread has no run `{id}`"))
    }
}

/// The store is down: nothing was changed, and clients try again.
impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "a request failed");
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the server's database does not answer; try again",
        )
    }
}

/// What went wrong with a look at a thread, or a change of it.
impl From<RunError> for ApiError {
    fn from(error: RunError) -> Self {
        match &error {
            RunError::Conflict { .. } | RunError::Busy { .. } => Self::conflict(
                "the thread was changed by another writer; look at its state and try again",
            ),
            RunError::Checkpoint(cause) => {
                tracing::error!(%cause, "a request failed");
                let detail =
                    "the database of threads does not answer, or holds something unreadable";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
            }
            RunError::UnknownCheckpoint { .. } => Self::not_found(error.to_string()),
            _ => Self::bad_request(format!("{error:#}")),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = crate::wire::json(&json!({ "detail": self.detail }));
        *response.status_mut() = self.status;
        if self.status == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
