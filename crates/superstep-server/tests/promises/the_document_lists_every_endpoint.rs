//! Shows that the OpenAPI document and the router agree: what the document lists is served, with exactly the methods that it
//! lists, and everything that LangGraph's clients call is in it.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use serde_json::{Value as Json, json};

use crate::world::World;

const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "TRACE"];

/// What the clients of the reference call.
const CALLED: [(&str, &str); 59] = [
    ("GET", "/"),
    ("GET", "/ok"),
    ("GET", "/info"),
    ("GET", "/metrics"),
    ("GET", "/openapi.json"),
    ("GET", "/docs"),
    ("POST", "/assistants"),
    ("POST", "/assistants/search"),
    ("POST", "/assistants/count"),
    ("GET", "/assistants/{assistant_id}"),
    ("PATCH", "/assistants/{assistant_id}"),
    ("DELETE", "/assistants/{assistant_id}"),
    ("POST", "/assistants/{assistant_id}/versions"),
    ("POST", "/assistants/{assistant_id}/latest"),
    ("GET", "/assistants/{assistant_id}/graph"),
    ("GET", "/assistants/{assistant_id}/schemas"),
    ("GET", "/assistants/{assistant_id}/subgraphs"),
    ("GET", "/assistants/{assistant_id}/subgraphs/{namespace}"),
    ("POST", "/threads"),
    ("POST", "/threads/search"),
    ("POST", "/threads/count"),
    ("POST", "/threads/prune"),
    ("GET", "/threads/{thread_id}"),
    ("PATCH", "/threads/{thread_id}"),
    ("DELETE", "/threads/{thread_id}"),
    ("POST", "/threads/{thread_id}/copy"),
    ("GET", "/threads/{thread_id}/state"),
    ("POST", "/threads/{thread_id}/state"),
    ("POST", "/threads/{thread_id}/state/checkpoint"),
    ("GET", "/threads/{thread_id}/state/{checkpoint_id}"),
    ("GET", "/threads/{thread_id}/history"),
    ("POST", "/threads/{thread_id}/history"),
    ("GET", "/threads/{thread_id}/runs"),
    ("POST", "/threads/{thread_id}/runs"),
    ("POST", "/threads/{thread_id}/runs/stream"),
    ("POST", "/threads/{thread_id}/runs/wait"),
    ("GET", "/threads/{thread_id}/runs/{run_id}"),
    ("DELETE", "/threads/{thread_id}/runs/{run_id}"),
    ("GET", "/threads/{thread_id}/runs/{run_id}/join"),
    ("GET", "/threads/{thread_id}/runs/{run_id}/stream"),
    ("POST", "/threads/{thread_id}/runs/{run_id}/cancel"),
    ("GET", "/threads/{thread_id}/stream"),
    ("POST", "/threads/{thread_id}/commands"),
    ("POST", "/threads/{thread_id}/stream/events"),
    ("GET", "/threads/{thread_id}/stream/events"),
    ("POST", "/runs"),
    ("POST", "/runs/crons"),
    ("POST", "/runs/crons/search"),
    ("POST", "/runs/crons/count"),
    ("GET", "/runs/crons/{cron_id}"),
    ("PATCH", "/runs/crons/{cron_id}"),
    ("DELETE", "/runs/crons/{cron_id}"),
    ("POST", "/threads/{thread_id}/runs/crons"),
    ("POST", "/runs/batch"),
    ("POST", "/runs/cancel"),
    ("PUT", "/store/items"),
    ("GET", "/store/items"),
    ("POST", "/store/items/search"),
    ("POST", "/store/namespaces"),
];

async fn document(world: &World) -> Json {
    world.get("/openapi.json").await.json()
}

fn listed(document: &Json) -> BTreeSet<(String, String)> {
    let paths = document["paths"].as_object().expect("paths").iter();
    let pairs = paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().expect("methods").keys();
        methods.map(|method| (method.to_uppercase(), path.clone()))
    });
    pairs.collect()
}

#[tokio::test]
async fn and_exactly_those_are_served() {
    let world = World::new().await;
    let listed = listed(&document(&world).await);
    for (method, path) in CALLED {
        assert!(listed.contains(&(method.to_owned(), path.to_owned())), "{method} {path}");
    }
    let paths: BTreeSet<_> = listed.iter().map(|(_, path)| path).collect();
    for path in paths {
        let place = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
        let place = place.collect::<Vec<_>>().join("/");
        for method in METHODS {
            let answered = world.send(method, &place, &[], "").await;
            let served = answered.status != StatusCode::METHOD_NOT_ALLOWED
                && !answered.text.contains("no such endpoint");
            let known = listed.contains(&(method.to_owned(), path.clone()));
            assert_eq!(served, known, "{method} {path}: {}", answered.text);
        }
    }
}

#[tokio::test]
async fn with_a_summary_and_schemas_that_are_there() {
    let world = World::new().await;
    let document = document(&world).await;
    assert_eq!(document["openapi"], "3.1.0");
    let mut ids = BTreeSet::new();
    for methods in document["paths"].as_object().expect("paths").values() {
        for operation in methods.as_object().expect("methods").values() {
            assert_ne!(operation["summary"], "", "{operation}");
            assert!(ids.insert(operation["operationId"].to_string()), "{operation}");
            let answers = operation["responses"].as_object().expect("answers");
            assert!(
                answers.keys().any(|status| status == "101" || status.starts_with('2')),
                "{operation}"
            );
        }
    }
    let text = document.to_string();
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    let named = text.split("\"#/components/schemas/").skip(1);
    let named: BTreeSet<_> = named.filter_map(|rest| rest.split('"').next()).collect();
    let known: BTreeSet<_> = schemas.keys().map(String::as_str).collect();
    assert_eq!(named, known, "every schema is used, and every used one is there");
    for wanted in ["Run", "Thread", "ThreadState", "Assistant", "RunRequest", "Detail"] {
        assert!(known.contains(wanted), "{wanted}");
    }
    assert!(known.iter().all(|name| !name.ends_with(char::is_numeric)), "two types, one name");
    assert_eq!(schemas["ThreadSearch"]["properties"]["limit"]["maximum"], json!(1_000));
}

#[tokio::test]
async fn and_people_read_it_as_a_page_that_needs_nothing_else() {
    let world = World::new().await;
    let page = world.get("/docs").await;
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    for (method, path) in CALLED {
        assert!(page.text.contains(&format!("<b>{method}</b><code>{path}</code>")), "{path}");
    }
    assert!(!page.text.contains("src=") && !page.text.contains("http"), "nothing is fetched");
}
