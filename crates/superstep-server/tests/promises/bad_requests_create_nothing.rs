//! Shows that a request that makes no sense is answered with its status and a `detail`, never with 500, and leaves nothing behind.

use axum::body::Body;
use axum::http::StatusCode;
use serde_json::{Value as Json, json};
use superstep::prelude::*;
use superstep_server::Server;

use crate::world::World;

#[tokio::test]
async fn each_with_its_status() {
    let world = World::new().await;
    let thread = world.thread().await;
    let runs = format!("/threads/{thread}/runs");
    let state = format!("/threads/{thread}/state");
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let missing = "00000000-0000-0000-0000-000000000000";
    let post = |path: &str, body: Json| ("POST", path.to_owned(), body.to_string());
    let requests = [
        (422, ("POST", runs.clone(), "{bad".to_owned())),
        (422, ("POST", runs.clone(), String::new())),
        (422, ("POST", runs.clone(), deep.clone())),
        (422, post(&runs, json!([1]))),
        (422, post(&runs, json!(["counter"]))),
        (422, post(&runs, json!({ "assistant_id": "counter", "config": [["a tag"]] }))),
        (422, post(&runs, json!({ "assistant_id": "counter", "command": [1] }))),
        (422, ("POST", runs.clone(), format!(r#"{{"assistant_id":"counter","input":{deep}}}"#))),
        (422, ("GET", "/threads/%ff%fe".to_owned(), String::new())),
        (422, ("GET", "/metrics?format=xml".to_owned(), String::new())),
        (422, post(&runs, json!({ "input": {} }))),
        (422, post(&runs, json!({ "assistant_id": 7 }))),
        (422, post(&runs, json!({ "assistant_id": "nope" }))),
        (404, post(&runs, json!({ "assistant_id": missing }))),
        (422, post(&runs, json!({ "assistant_id": "counter", "stream_mode": "bogus" }))),
        (422, post(&runs, json!({ "assistant_id": "counter", "multitask_strategy": "hope" }))),
        (422, post(&runs, json!({ "assistant_id": "counter", "durability": 1 }))),
        (422, post(&runs, json!({ "assistant_id": "counter", "checkpoint_id": "x" }))),
        (
            422,
            post(
                &runs,
                json!({ "assistant_id": "counter", "checkpoint": { "checkpoint_id": "x" } }),
            ),
        ),
        (422, post(&runs, json!({ "assistant_id": "counter", "after_seconds": -1 }))),
        (422, post(&runs, json!({ "assistant_id": "counter", "webhook": "http://localhost/" }))),
        (
            400,
            post(
                &runs,
                json!({
                    "assistant_id": "counter", "context": { "a": 1 }, "config": { "configurable": { "a": 1 } },
                }),
            ),
        ),
        (404, post(&format!("/threads/{missing}/runs"), json!({ "assistant_id": "counter" }))),
        (422, post("/threads/abc/runs", json!({ "assistant_id": "counter" }))),
        (400, post("/runs", json!({ "assistant_id": "counter", "command": { "resume": 1 } }))),
        (422, post("/runs/batch", json!([]))),
        (
            404,
            post(
                "/runs/batch",
                json!([{ "assistant_id": "counter" }, { "assistant_id": missing }]),
            ),
        ),
        (422, post("/runs/cancel", json!({}))),
        (404, post("/runs/cancel", json!({ "status": "all" }))),
        (400, post(&state, json!({ "values": { "count": 1 } }))),
        (422, post("/threads", json!({ "thread_id": "x" }))),
        (409, post("/threads", json!({ "thread_id": thread }))),
        (422, post("/threads/search", json!({ "limit": 0 }))),
        (422, post("/threads/search", json!({ "limit": 1_001 }))),
        (422, post("/threads/search", json!({ "status": "asleep" }))),
        (422, post("/threads/search", json!({ "sort_by": "1; DROP TABLE server_threads" }))),
        (422, post("/threads/search", json!({ "select": ["nothing"] }))),
        (404, post("/assistants", json!({ "graph_id": "nope" }))),
        (422, post("/assistants", json!({}))),
        (
            400,
            (
                "DELETE",
                "/assistants/09d6caf4-2ef3-5a8b-b1a7-114690ed5d45".to_owned(),
                String::new(),
            ),
        ),
        (422, ("GET", "/assistants/counter/graph?xray=-1".to_owned(), String::new())),
        (422, ("GET", "/assistants/counter".to_owned(), String::new())),
        (422, ("GET", format!("{runs}?status=odd"), String::new())),
        (422, ("GET", format!("{runs}?limit=x"), String::new())),
        (404, ("GET", format!("{runs}/{missing}"), String::new())),
        (404, ("GET", format!("{runs}/{missing}/join"), String::new())),
        (404, ("GET", format!("{runs}/{missing}/stream"), String::new())),
        (404, ("POST", format!("{runs}/{missing}/cancel"), String::new())),
        (422, ("GET", format!("{state}/xyz"), String::new())),
        (404, ("POST", format!("/threads/{missing}/copy"), String::new())),
        (
            400,
            (
                "PUT",
                "/store/items".to_owned(),
                json!({ "namespace": [], "key": "k", "value": {} }).to_string(),
            ),
        ),
        (
            400,
            (
                "PUT",
                "/store/items".to_owned(),
                json!({ "namespace": ["a.b"], "key": "k", "value": {} }).to_string(),
            ),
        ),
        (
            422,
            (
                "PUT",
                "/store/items".to_owned(),
                json!({ "namespace": ["a"], "key": "k", "value": 1 }).to_string(),
            ),
        ),
        (422, ("GET", "/store/items?key=k".to_owned(), String::new())),
        (405, ("PATCH", runs.clone(), String::new())),
        (404, ("GET", "/nothing/here".to_owned(), String::new())),
        (422, ("POST", "/runs/crons".to_owned(), String::new())),
    ];
    for (status, (method, path, body)) in requests {
        let shown: String = body.chars().take(80).collect();
        let answered = world.send(method, &path, &[], body).await;
        let what = format!("{method} {path} {shown}: {}", answered.text);
        assert_eq!(answered.status.as_u16(), status, "{what}");
        let detail = answered.json()["detail"].as_str().map(str::to_owned);
        assert!(detail.is_some_and(|detail| !detail.is_empty()), "{what}");
    }
    assert_eq!(world.get(&runs).await.json(), json!([]), "no run was created");
    assert_eq!(world.post("/threads/count", json!({})).await.json(), 1, "no thread was created");
}

/// What a body holds is stored inside of something, and is read again.
#[tokio::test]
async fn what_is_deep_and_taken_is_stored_and_read_again() {
    let world = World::new().await;
    let thread = world.thread().await;
    let levels = 97;
    let (open, close) = ("[".repeat(levels), "]".repeat(levels));
    let body = format!(
        r#"{{"assistant_id":"counter","input":{{}},"metadata":{{"deep":{open}1{close}}}}}"#
    );
    let ran = world.send("POST", &format!("/threads/{thread}/runs/wait"), &[], body.clone()).await;
    assert_eq!(ran.json()["count"], 3, "{}", ran.text);
    let runs = world.get(&format!("/threads/{thread}/runs")).await.json();
    assert_eq!(runs[0]["status"], "success");
    let history = world.get(&format!("/threads/{thread}/history?limit=10")).await;
    assert_eq!(history.json().as_array().map(Vec::len), Some(5), "{}", history.text);
    let deeper =
        body.replace(&open, &"[".repeat(levels + 3)).replace(&close, &"]".repeat(levels + 3));
    let refused = world.send("POST", &format!("/threads/{thread}/runs"), &[], deeper).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text.contains("100 levels"), "{}", refused.text);
}

/// A body that says how long it is need not be read to be refused; one that does not is read up to the limit.
#[tokio::test]
async fn a_body_of_100_megabytes_is_refused_before_it_is_read() {
    let world = World::new().await;
    let unread = Body::from_stream(futures_util::stream::poll_fn(
        |_| -> std::task::Poll<Option<Result<Vec<u8>, std::io::Error>>> { panic!("it is read") },
    ));
    let length = [("content-length", "104857600")];
    let refused = world.send("POST", "/threads", &length, unread).await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(refused.text.contains("16777216 bytes"), "{}", refused.text);
    let mut sent = 0_usize;
    let endless = futures_util::stream::repeat_with(move || {
        sent += 1;
        assert!(sent < 1_000, "no more than the limit is read");
        Ok::<_, std::io::Error>(vec![b' '; 1 << 16])
    });
    let refused = world.send("POST", "/threads", &[], Body::from_stream(endless)).await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    let not_text = b"{\"metadata\": {\"\xff\xfe\": 1}}".to_vec();
    let refused = world.send("POST", "/threads", &[], not_text).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
    assert_eq!(world.post("/threads/count", json!({})).await.json(), 0);
}

#[tokio::test]
async fn too_much_is_refused_before_anything_is_created() {
    let world = World::start(Server::new().body_max(1_000).pending_max(2).workers(1)).await;
    let thread = world.thread().await;
    let long = json!({ "metadata": { "long": "x".repeat(2_000) } });
    assert_eq!(world.post("/threads", long).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    let runs = format!("/threads/{thread}/runs");
    let slow = json!({ "assistant_id": "slow", "input": { "delay": 1_000 } });
    world.run(&thread, slow).await;
    world.until(&runs, |runs| runs[0]["status"] == "running").await;
    let waiting = json!({ "assistant_id": "counter", "input": {} });
    for _ in 0..2 {
        world.run(&thread, waiting.clone()).await;
    }
    let refused = world.post(&runs, waiting).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(world.get(&runs).await.json().as_array().map(Vec::len), Some(3));
}

#[tokio::test]
async fn what_a_graph_refuses_is_a_failed_run() {
    let world = World::new().await;
    let thread = world.thread().await;
    let wait = format!("/threads/{thread}/runs/wait");
    for (body, error) in [
        (json!({ "assistant_id": "counter", "input": { "count": "many" } }), "InvalidUpdateError"),
        (json!({ "assistant_id": "counter" }), "EmptyInputError"),
        (
            json!({ "assistant_id": "configured", "input": {}, "context": { "temperature": "x" } }),
            "ValueError",
        ),
        (
            json!({ "assistant_id": "slow", "input": { "ticks": 9, "delay": 0 }, "config": { "recursion_limit": 2 } }),
            "GraphRecursionError",
        ),
    ] {
        let answered = world.post(&wait, body.clone()).await;
        assert_eq!(answered.status, StatusCode::OK);
        assert_eq!(answered.json()["__error__"]["error"], error, "{body}: {}", answered.text);
    }
    assert_eq!(world.get(&format!("/threads/{thread}")).await.json()["status"], "error");
}

#[tokio::test]
async fn what_cannot_be_done_now_is_a_conflict() {
    let world = World::new().await;
    let thread = world.thread().await;
    let state = format!("/threads/{thread}/state");
    let run =
        world.run(&thread, json!({ "assistant_id": "slow", "input": { "delay": 1_000 } })).await;
    let second = json!({ "assistant_id": "slow", "input": {}, "multitask_strategy": "reject" });
    for (path, body) in [
        (state.clone(), json!({ "values": { "done": 1 } })),
        (format!("/threads/{thread}/runs"), second),
        ("/threads".to_owned(), json!({ "thread_id": thread })),
    ] {
        let refused = world.post(&path, body).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{path}: {}", refused.text);
        assert!(refused.json()["detail"].is_string(), "{path}: {}", refused.text);
    }
    assert_eq!(
        world.get(&format!("/threads/{thread}/runs")).await.json().as_array().map(Vec::len),
        Some(1)
    );
    world.post(&format!("/threads/{thread}/runs/{run}/cancel?wait=1"), json!(null)).await;
    let changed = world.post(&state, json!({ "values": { "done": 1 } })).await;
    assert_eq!(changed.status, StatusCode::OK, "{}", changed.text);
}

#[derive(State, Clone, Default)]
struct Broken {
    count: i64,
}

async fn broken() {
    panic!("this node is broken");
}

#[tokio::test]
async fn a_graph_that_panics_fails_its_run_and_nothing_else() {
    let graph = StateGraph::<Broken>::new()
        .add_node("broken", broken)
        .add_edge(START, "broken")
        .compile()
        .expect("a graph");
    let world = World::start(Server::new().graph("broken", graph).workers(1)).await;
    let thread = world.thread().await;
    let wait = format!("/threads/{thread}/runs/wait");
    for _ in 0..2 {
        let answered = world.post(&wait, json!({ "assistant_id": "broken", "input": {} })).await;
        assert_eq!(answered.status, StatusCode::OK);
        let error = answered.json()["__error__"]["message"].as_str().map(str::to_owned);
        assert!(
            error.is_some_and(|error| error.contains("this node is broken")),
            "{}",
            answered.text
        );
    }
    assert_eq!(world.get(&format!("/threads/{thread}")).await.json()["status"], "error");
    let other = world.thread().await;
    let run = json!({ "assistant_id": "counter", "input": {} });
    let answered = world.post(&format!("/threads/{other}/runs/wait"), run).await;
    assert_eq!(answered.json()["count"], 3, "the worker lives: {}", answered.text);
}
