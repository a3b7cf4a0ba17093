use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::{Answer, State, json};
use crate::wire::Query;

pub(super) async fn ok(state: State, query: Query) -> Answer {
    if query.flag("check_db")? {
        state.store.ping().await?;
    }
    Ok(json(json!({ "ok": true, "services": {} })))
}

pub(super) async fn info() -> Response {
    json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "langgraph_py_version": null,
        "flags": { "assistants": true, "crons": false, "langsmith": false },
        "host": {
            "kind": "superstep",
            "project_id": null,
            "host_revision_id": null,
            "revision_id": null,
            "tenant_id": null,
        },
    }))
}

pub(super) async fn metrics(state: State, query: Query) -> Answer {
    let (pending, running) = state.store.load().await?;
    if query.get("format") == Some("json") {
        return Ok(json(json!({ "queue": { "n_pending": pending, "n_running": running } })));
    }
    let text = format!(
        "# HELP superstep_runs_pending Runs that wait for a worker.\n\
         # TYPE superstep_runs_pending gauge\n\
         superstep_runs_pending {pending}\n\
         # HELP superstep_runs_running Runs that a worker drives.\n\
         # TYPE superstep_runs_running gauge\n\
         superstep_runs_running {running}\n"
    );
    let mut response = text.into_response();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}
