//! The endpoints, by what they are about.
//!
//! The outermost room: knows all others but the server that starts it, and only the server and the gate in front of each
//! operation (`auth`) know it.

mod assistants;
mod crons;
mod docs;
mod inspect;
mod items;
mod openapi;
mod operation;
mod protocol;
mod runs;
mod state;
mod streams;
mod system;
mod thread_stream;
mod threads;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any};
use serde_json::Value as Json;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowHeaders, AllowMethods, Any, CorsLayer};

use crate::app::App;
use crate::auth;
use crate::error::{ApiError, ApiResult};
use crate::metrics;
use crate::store::Page;

pub(crate) use operation::{Access, Action, Operation, Resource};

type State = axum::extract::State<Arc<App>>;
type Answer = ApiResult<Response>;

fn json(json: Json) -> Response {
    crate::wire::json(&json)
}

fn no_content() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// A page of a list, with the headers that lead to the next one.
fn page<T>(page: &Page<T>, offset: usize, one: impl Fn(&T) -> ApiResult<Json>) -> Answer {
    let rows = page.rows.iter().map(one).collect::<ApiResult<Vec<_>>>()?;
    let end = offset.saturating_add(rows.len());
    let mut response = json(Json::Array(rows));
    let headers = response.headers_mut();
    let total = end.saturating_add(usize::from(page.more));
    headers.insert("x-pagination-total", HeaderValue::from(total));
    if page.more {
        headers.insert("x-pagination-next", HeaderValue::from(end));
    }
    Ok(response)
}

/// Every operation of the API.
pub(crate) fn operations() -> Vec<Operation> {
    [
        system::operations(),
        assistants::operations(),
        threads::operations(),
        state::operations(),
        inspect::operations(),
        runs::operations(),
        streams::operations(),
        thread_stream::operations(),
        protocol::operations(),
        items::operations(),
        crons::operations(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// All endpoints.
pub(crate) fn router(app: Arc<App>) -> Router {
    let routes = operations().into_iter().fold(Router::new(), |router, operation| {
        let counted = app.metrics.operation(operation.method.as_str(), operation.path);
        let handler = guarded(&app, operation.access, operation.handler);
        router.route(operation.path, handler.layer(from_fn_with_state(counted, metrics::measure)))
    });
    let unknown =
        any(async || ApiError::not_found("there is no such endpoint; GET /docs lists them"));
    routes
        .fallback_service(guarded(&app, UNKNOWN, unknown).with_state(app.clone()))
        .method_not_allowed_fallback(async || {
            ApiError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "this endpoint has other methods; GET /docs lists them",
            )
        })
        .layer(CatchPanicLayer::custom(panicked))
        .layer(DefaultBodyLimit::max(app.body_max))
        .layer(cors())
        .with_state(app)
        .merge(superstep_studio::router())
}

/// What is needed to learn that there is no such endpoint.
const UNKNOWN: Access = Access { resource: Resource::System, action: Action::Read };

/// A handler that only those get to who may use it.
fn guarded(
    app: &Arc<App>,
    access: Access,
    handler: MethodRouter<Arc<App>>,
) -> MethodRouter<Arc<App>> {
    handler.layer(from_fn_with_state(auth::Gate { app: app.clone(), access }, auth::check))
}

/// A defect of ours. The client is told nothing of it.
fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    tracing::error!("a request panicked");
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "the server failed; its log says more")
        .into_response()
}

fn cors() -> CorsLayer {
    let exposed = ["x-pagination-total", "x-pagination-next", "content-location", "location"];
    CorsLayer::new()
        .allow_origin(Any)
        .allow_methods(AllowMethods::mirror_request())
        .allow_headers(AllowHeaders::mirror_request())
        .allow_private_network(true)
        .expose_headers(exposed.map(HeaderName::from_static))
        .max_age(std::time::Duration::from_secs(600))
}

/// Says where the run is, and where its answer can be had again.
fn with_locations(mut response: Response, content: &str, again: Option<&str>) -> Response {
    let mut put = |name, path: &str| {
        if let Ok(path) = HeaderValue::from_str(path) {
            response.headers_mut().insert(name, path);
        }
    };
    put(header::CONTENT_LOCATION, content);
    if let Some(again) = again {
        put(header::LOCATION, again);
    }
    response
}
