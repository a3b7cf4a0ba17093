use std::marker::PhantomData;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts as _, Request};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize as _, Deserializer};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::access::Caller;
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::store::Asked;

/// How deep the values in a body may be nested. What is stored of them is nested a little deeper, and must be readable again.
const DEPTH_MAX: usize = 100;

/// A body that must be JSON of this form.
pub(crate) struct Body<T>(pub(crate) T);

/// A body that its handler reads itself, because refusals have a form of their own. It should have the form of `T`.
pub(crate) struct RawBody<T>(pub(crate) Bytes, pub(crate) PhantomData<T>);

impl<T> FromRequest<Arc<App>> for RawBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> ApiResult<Self> {
        Ok(Self(bytes(request, app).await?, PhantomData))
    }
}

/// A body as [`Body`], of a request that is carried out once if it has an idempotency key.
pub(crate) struct Keyed<T>(pub(crate) T, pub(crate) Option<Asked>);

/// The longest idempotency key.
const KEY_MAX: usize = 255;

impl<T: DeserializeOwned + JsonSchema> FromRequest<Arc<App>> for Keyed<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> ApiResult<Self> {
        let (mut head, body) = request.into_parts();
        let Some(key) = head.headers.get("idempotency-key") else {
            let request = Request::from_parts(head, body);
            return Ok(Self(read(&bytes(request, app).await?)?, None));
        };
        let key = key.to_str().ok().filter(|key| !key.is_empty() && key.len() <= KEY_MAX);
        let key = key.ok_or_else(|| {
            ApiError::invalid(format!("`Idempotency-Key` is 1 to {KEY_MAX} visible characters"))
        })?;
        let key = key.to_owned();
        // Others may have chosen the same key.
        let caller = Caller::from_request_parts(&mut head, app).await?;
        let (tenant, who) = (caller.tenant(), caller.id().unwrap_or_default());
        let mut hash = Sha256::new();
        hash.update(format!("{} {}\n", head.method, head.uri));
        let bytes = bytes(Request::from_parts(head, body), app).await?;
        hash.update(&bytes);
        let fingerprint = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let asked = Asked { key: format!("{tenant}\n{who}\n{key}"), fingerprint };
        Ok(Self(read(&bytes)?, Some(asked)))
    }
}

async fn bytes(request: Request, app: &Arc<App>) -> ApiResult<Bytes> {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > app.body_max) {
        return Err(too_large(app));
    }
    Bytes::from_request(request, app).await.map_err(|rejected| match rejected.status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_large(app),
        status => ApiError::new(status, "the body could not be read"),
    })
}

fn too_large(app: &App) -> ApiError {
    let detail = format!("the body is larger than the {} bytes that are taken", app.body_max);
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
}

/// How deep lists and objects are nested, if this is JSON.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_text, mut escaped) = (0_usize, 0, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_text,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn read<T: DeserializeOwned + JsonSchema>(bytes: &[u8]) -> ApiResult<T> {
    if depth(bytes) > DEPTH_MAX {
        return Err(ApiError::invalid(format!(
            "the body is nested deeper than {DEPTH_MAX} levels"
        )));
    }
    let wrong = |error: serde_json::Error| {
        let what = if error.is_data() {
            "the body does not have the right form"
        } else {
            "the body is not JSON"
        };
        ApiError::invalid(format!("{what}: {error}"))
    };
    let read = serde_json::from_slice(bytes).map_err(wrong)?;
    // A struct would also be read from a list of its fields.
    let is_list = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    if is_list && !takes_list::<T>() {
        return Err(ApiError::invalid("the body is a list; it must be an object"));
    }
    Ok(read)
}

fn takes_list<T: JsonSchema>() -> bool {
    let schema = T::json_schema(&mut SchemaGenerator::default());
    schema.get("type").is_some_and(|kind| kind == "array")
}

/// Reads an object as a struct, which would otherwise also be read from a list of its fields.
pub(crate) fn object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let given = Option::<super::Object>::deserialize(deserializer)?;
    let read = given.map(|object| serde_json::from_value(Json::Object(object)));
    read.transpose().map_err(serde::de::Error::custom)
}

impl<T: DeserializeOwned + JsonSchema> FromRequest<Arc<App>> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> ApiResult<Self> {
        Ok(Self(read(&bytes(request, app).await?)?))
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
