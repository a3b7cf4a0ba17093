use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{Html, IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::operation::{Action, Content, Operation, Resource, get};
use super::{Answer, State, docs, json, openapi};
use crate::error::ApiError;
use crate::metrics::Now;
use crate::wire::{Object, Query, json_response};

pub(super) fn operations() -> Vec<Operation> {
    let kind = Resource::System;
    let healthy = |operation: Operation| {
        operation
            .summary("Whether the server is there")
            .query::<bool>("check_db", "Ask the database, too")
            .json::<Health>()
    };
    vec![
        healthy(get("/", kind, Action::Read, ok)),
        healthy(get("/ok", kind, Action::Open, ok)),
        get("/info", kind, Action::Open, info)
            .summary("What this server is and can do")
            .json::<Info>(),
        get("/metrics", kind, Action::Operate, metrics)
            .summary("Figures for Prometheus")
            .query::<Format>("format", "`json` for JSON")
            .answers(200, Content::Text("text/plain"))
            .json::<Object>(),
        get("/openapi.json", kind, Action::Open, document)
            .summary("This document")
            .json::<Object>(),
        get("/docs", kind, Action::Open, docs_page)
            .summary("This document as a page")
            .answers(200, Content::Text("text/html")),
    ]
}

/// The server answers.
#[derive(Serialize, JsonSchema)]
struct Health {
    ok: bool,
    services: Object,
}

pub(super) async fn ok(state: State, query: Query) -> Answer {
    if query.flag("check_db")? {
        state.store.ping().await?;
    }
    Ok(json(json!(Health { ok: true, services: Object::new() })))
}

/// What this server is and can do.
#[derive(Serialize, JsonSchema)]
struct Info {
    version: &'static str,
    /// Clients look for the key.
    langgraph_py_version: Option<&'static str>,
    flags: Flags,
    host: Host,
}

#[derive(Serialize, JsonSchema)]
struct Flags {
    assistants: bool,
    crons: bool,
    langsmith: bool,
}

#[derive(Serialize, JsonSchema)]
struct Host {
    kind: &'static str,
    project_id: Option<&'static str>,
    host_revision_id: Option<&'static str>,
    revision_id: Option<&'static str>,
    tenant_id: Option<&'static str>,
}

pub(super) async fn info() -> Response {
    json(json!(Info {
        version: env!("CARGO_PKG_VERSION"),
        langgraph_py_version: None,
        flags: Flags { assistants: true, crons: true, langsmith: false },
        host: Host {
            kind: "superstep",
            project_id: None,
            host_revision_id: None,
            revision_id: None,
            tenant_id: None,
        },
    }))
}

pub(super) async fn document() -> Response {
    json_response(openapi::document().to_string())
}

pub(super) async fn docs_page() -> Response {
    Html(docs::page()).into_response()
}

#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "it is a schema")]
enum Format {
    Prometheus,
    Json,
}

pub(super) async fn metrics(state: State, query: Query) -> Answer {
    let as_json = match query.get("format") {
        None | Some("" | "prometheus") => false,
        Some("json") => true,
        Some(other) => {
            let detail = format!("`format` is `{other}`; it can be prometheus or json");
            return Err(ApiError::invalid(detail));
        }
    };
    let (pending, running) = state.store.load().await?;
    let webhooks = state.store.count_webhooks().await?;
    let now = Now {
        pending,
        running,
        streams: state.streams_open(),
        webhooks_waiting: webhooks.waiting,
        webhooks_given_up: webhooks.given_up,
        store: state.store.timing(),
    };
    if as_json {
        return Ok(json(state.metrics.json(&now)));
    }
    let text = state.metrics.text(&now);
    let mut response = text.into_response();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}
