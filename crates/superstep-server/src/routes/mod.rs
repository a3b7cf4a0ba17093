//! The endpoints, by what they are about.

mod assistants;
mod items;
mod runs;
mod state;
mod streams;
mod system;
mod threads;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::Value as Json;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowHeaders, AllowMethods, Any, CorsLayer};

use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::store::Page;

type State = axum::extract::State<Arc<App>>;
type Answer = ApiResult<Response>;

fn json(json: Json) -> Response {
    crate::wire::json(&json)
}

fn no_content() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// A page of a list, with the headers that say how to go on.
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

/// All endpoints.
pub(crate) fn router(app: Arc<App>, body_max: usize) -> Router {
    let routes = Router::new()
        .route("/", get(system::ok))
        .route("/ok", get(system::ok))
        .route("/info", get(system::info))
        .route("/metrics", get(system::metrics))
        .route("/assistants", post(assistants::create))
        .route("/assistants/search", post(assistants::search))
        .route("/assistants/count", post(assistants::count))
        .route(
            "/assistants/{id}",
            get(assistants::find).patch(assistants::update).delete(assistants::delete),
        )
        .route("/assistants/{id}/versions", post(assistants::versions))
        .route("/assistants/{id}/latest", post(assistants::latest))
        .route("/assistants/{id}/graph", get(assistants::graph))
        .route("/assistants/{id}/schemas", get(assistants::schemas))
        .route("/assistants/{id}/subgraphs", get(assistants::subgraphs))
        .route("/assistants/{id}/subgraphs/{namespace}", get(assistants::subgraphs_in))
        .route("/threads", post(threads::create))
        .route("/threads/search", post(threads::search))
        .route("/threads/count", post(threads::count))
        .route("/threads/prune", post(threads::prune))
        .route(
            "/threads/{thread}",
            get(threads::find).patch(threads::update).delete(threads::delete),
        )
        .route("/threads/{thread}/copy", post(threads::copy))
        .route("/threads/{thread}/state", get(state::latest).post(state::update))
        .route("/threads/{thread}/state/checkpoint", post(state::at_checkpoint))
        .route("/threads/{thread}/state/{checkpoint}", get(state::by_id))
        .route("/threads/{thread}/history", get(state::history_by_query).post(state::history))
        .route("/threads/{thread}/runs", get(runs::list).post(runs::create))
        .route("/threads/{thread}/runs/stream", post(streams::stream))
        .route("/threads/{thread}/runs/wait", post(streams::wait))
        .route("/threads/{thread}/runs/{run}", get(runs::find).delete(runs::delete))
        .route("/threads/{thread}/runs/{run}/join", get(streams::join))
        .route("/threads/{thread}/runs/{run}/stream", get(streams::join_stream))
        .route("/threads/{thread}/runs/{run}/cancel", post(runs::cancel))
        .route("/runs", post(runs::create_stateless))
        .route("/runs/stream", post(streams::stream_stateless))
        .route("/runs/wait", post(streams::wait_stateless))
        .route("/runs/batch", post(runs::batch))
        .route("/runs/cancel", post(runs::cancel_many))
        .route("/runs/{run}/stream", get(streams::join_stream_stateless))
        .route("/runs/{run}/join", get(streams::join_stateless))
        .route("/store/items", get(items::find).put(items::put).delete(items::delete))
        .route("/store/items/search", post(items::search))
        .route("/store/namespaces", post(items::namespaces));
    missing(routes)
        .fallback(async || ApiError::not_found("there is no such endpoint"))
        .method_not_allowed_fallback(async || {
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "this endpoint has other methods")
        })
        .layer(axum::middleware::from_fn_with_state(app.clone(), crate::auth::check))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(DefaultBodyLimit::max(body_max))
        .layer(cors())
        .with_state(app)
}

/// Endpoints of the reference that this server does not have yet. They say so.
fn missing(router: Router<Arc<App>>) -> Router<Arc<App>> {
    const MISSING: [(&str, &str); 9] = [
        ("/runs/crons", "cron jobs"),
        ("/runs/crons/search", "cron jobs"),
        ("/runs/crons/count", "cron jobs"),
        ("/runs/crons/{cron}", "cron jobs"),
        ("/threads/{thread}/runs/crons", "cron jobs"),
        ("/threads/{thread}/stream", "the stream of a whole thread"),
        ("/threads/{thread}/stream/events", "the thread protocol"),
        ("/threads/{thread}/commands", "the thread protocol"),
        ("/openapi.json", "the OpenAPI document"),
    ];
    MISSING.into_iter().fold(router, |router, (path, what)| {
        router
            .route(path, axum::routing::any(move || async move { ApiError::not_implemented(what) }))
    })
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
