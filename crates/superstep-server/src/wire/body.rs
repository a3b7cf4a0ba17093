use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use uuid::Uuid;

use crate::error::{ApiError, ApiResult};

/// A body that must be JSON of this form.
pub(crate) struct Body<T>(pub(crate) T);

async fn bytes<S: Send + Sync>(request: Request, state: &S) -> ApiResult<Bytes> {
    Bytes::from_request(request, state).await.map_err(|rejected| {
        let status = rejected.status();
        let detail = match status {
            StatusCode::PAYLOAD_TOO_LARGE => "the body is larger than this server takes",
            _ => "the body could not be read",
        };
        ApiError::new(status, detail)
    })
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> ApiResult<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        let what = if error.is_data() {
            "the body does not have the right form"
        } else {
            "the body is not JSON"
        };
        ApiError::invalid(format!("{what}: {error}"))
    })
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> ApiResult<Self> {
        Ok(Self(read(&bytes(request, state).await?)?))
    }
}

/// An id in a path, which must be a UUID.
pub(crate) fn id_in_path(what: &str, id: &str) -> ApiResult<String> {
    match Uuid::try_parse(id) {
        Ok(id) => Ok(id.to_string()),
        Err(_) => Err(ApiError::invalid(format!("the {what} id `{id}` is not a UUID"))),
    }
}

/// An answer in JSON.
pub(crate) fn json_response(body: impl Into<axum::body::Body>) -> Response {
    let mut response = Response::new(body.into());
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// A value as the answer.
pub(crate) fn json(json: &Json) -> Response {
    json_response(json.to_string())
}
