//! Shows that the end of a run is told to the address that its request names, signed, until it is received: over failures, a
//! restart, and not for ever. The receiver is a real listener; time is an argument.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::json;
use tower::ServiceExt as _;

use super::*;
use crate::demo;
use crate::server::{Database, Running, Server};
use crate::store::webhooks::WebhookCounts;

const SECRET: &str = "a secret";

/// What a receiver gets, and refuses at first.
#[derive(Default)]
struct Inbox {
    refuse: AtomicUsize,
    got: Mutex<Vec<(HeaderMap, String)>>,
}

impl Inbox {
    fn got(&self) -> Vec<(HeaderMap, String)> {
        self.got.lock().expect("nobody panicked").clone()
    }
}

async fn receiver(refuse: usize) -> (Arc<Inbox>, String) {
    let inbox = Arc::new(Inbox { refuse: refuse.into(), ..Inbox::default() });
    let kept = inbox.clone();
    let hook = async move |headers: HeaderMap, body: Bytes| {
        let text = String::from_utf8(body.to_vec()).expect("text");
        kept.got.lock().expect("nobody panicked").push((headers, text));
        let left = kept
            .refuse
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left.is_ok() { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK }
    };
    let router = axum::Router::new().route("/hook", post(hook));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address: SocketAddr = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    (inbox, format!("http://{address}/hook"))
}

async fn server(database: Database) -> Running {
    let graphs = demo::graphs().expect("the demo's graphs");
    let server = Server::new().database(database).webhook_secret(SECRET).private_webhooks(true);
    let server = graphs.into_iter().fold(server, |server, (name, graph)| server.graph(name, graph));
    server.start().await.expect("a server")
}

async fn call(running: &Running, method: &str, path: &str, body: Json) -> (StatusCode, Json) {
    let request = axum::http::Request::builder().method(method).uri(path);
    let request = request.body(axum::body::Body::from(body.to_string())).expect("a request");
    let answer = running.router().oneshot(request).await.expect("an answer");
    let status = answer.status();
    let bytes = axum::body::to_bytes(answer.into_body(), 1 << 20).await.expect("a body");
    (status, serde_json::from_slice(&bytes).unwrap_or(Json::Null))
}

async fn run_with(running: &Running, url: &str, graph: &str, path: &str) -> Json {
    let body = json!({ "assistant_id": graph, "input": { "topic": "cats" }, "webhook": url });
    let (status, result) = call(running, "POST", path, body).await;
    assert_eq!(status, StatusCode::OK, "{result}");
    result
}

/// Waits until so many have been received.
async fn until(inbox: &Inbox, count: usize) -> Vec<(HeaderMap, String)> {
    loop {
        let got = inbox.got();
        if got.len() >= count {
            return got;
        }
        tokio::task::yield_now().await;
    }
}

async fn until_counts(running: &Running, wanted: WebhookCounts) {
    while running.app().store.count_webhooks().await.expect("an answer") != wanted {
        tokio::task::yield_now().await;
    }
}

/// Waits until the first failure is stored: then the webhook is due in some seconds, but not in a minute.
async fn until_failed(running: &Running) {
    loop {
        let never = Micros(0);
        let (_, due) = running.app().store.take_webhooks(never, never, 1).await.expect("an answer");
        let now = Micros::now();
        if due.is_some_and(|due| due > now && due < now.plus_seconds(30.0)) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_end_of_every_run_is_told_with_a_signature() {
    let (inbox, url) = receiver(0).await;
    let running = server(Database::Memory).await;
    for (graph, path, status) in [
        ("counter", "/runs/wait", "success"),
        ("failing", "/runs/wait", "error"),
        ("approval", "/runs/wait", "success"),
    ] {
        run_with(&running, &url, graph, path).await;
        let told = inbox.got().len();
        let (headers, text) = until(&inbox, told.max(1)).await.pop().expect("a webhook");
        let mut body: Json = serde_json::from_str(&text).expect("JSON");
        // The one of the run before may be the last still.
        while body["metadata"]["graph_id"] != graph {
            let (_, text) = until(&inbox, inbox.got().len()).await.pop().expect("a webhook");
            body = serde_json::from_str(&text).expect("JSON");
            tokio::task::yield_now().await;
        }
        assert_eq!(body["status"], status, "{body}");
        for field in ["run_id", "run_started_at", "run_ended_at", "webhook_sent_at"] {
            assert!(body[field].is_string(), "{field}: {body}");
        }
        match graph {
            "counter" => assert_eq!(body["values"]["count"], 3),
            "failing" => assert_eq!(body["error"]["error"], "ValueError"),
            _ => assert_eq!(body["values"]["draft"], "draft about cats"),
        }
        let signed = headers["superstep-signature"].to_str().expect("text");
        let seconds = signed.strip_prefix("t=").and_then(|rest| rest.split(',').next());
        let seconds: i64 = seconds.and_then(|seconds| seconds.parse().ok()).expect("a time");
        assert_eq!(signed, super::super::client::signature(SECRET, seconds, &text));
    }
    until_counts(&running, WebhookCounts::default()).await;
}

#[tokio::test]
async fn it_is_sent_again_until_it_is_received_also_by_the_next_process() {
    let file: PathBuf =
        std::env::temp_dir().join(format!("superstep-webhooks-{}.db", uuid::Uuid::new_v4()));
    let (inbox, url) = receiver(2).await;
    let running = server(Database::Sqlite(file.clone())).await;
    run_with(&running, &url, "counter", "/runs/wait").await;
    until(&inbox, 1).await;
    until_counts(&running, WebhookCounts { waiting: 1, given_up: 0 }).await;
    running.shutdown(Duration::from_secs(9)).await;

    let running = server(Database::Sqlite(file.clone())).await;
    let mut now = Micros::now();
    while inbox.got().len() < 3 {
        now = now.plus_seconds(100.0);
        deliver_due(&running.app_handle(), now).await.expect("an answer");
    }
    assert_eq!(
        running.app().store.count_webhooks().await.expect("an answer"),
        WebhookCounts::default()
    );
    let ids: Vec<_> =
        inbox.got().iter().map(|(headers, _)| headers["superstep-webhook-id"].clone()).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "the receiver can tell that it is the same");
    drop(running);
    for end in ["", "-wal", "-shm"] {
        // Not every one of them is there.
        let _ = std::fs::remove_file(format!("{}{end}", file.display()));
    }
}

#[tokio::test]
async fn it_is_given_up_at_last_and_stays_visible() {
    let (inbox, url) = receiver(usize::MAX).await;
    let running = server(Database::Memory).await;
    run_with(&running, &url, "counter", "/runs/wait").await;
    until(&inbox, 1).await;
    until_failed(&running).await;
    let mut now = Micros::now();
    for _ in 0..=ATTEMPTS_MAX {
        now = now.plus_seconds(10_000.0);
        deliver_due(&running.app_handle(), now).await.expect("an answer");
    }
    let counts = running.app().store.count_webhooks().await.expect("an answer");
    assert_eq!(counts, WebhookCounts { waiting: 0, given_up: 1 });
    assert_eq!(inbox.got().len(), usize::try_from(ATTEMPTS_MAX).expect("small"));
    let request = axum::http::Request::get("/metrics").body(axum::body::Body::empty());
    let answer = running.router().oneshot(request.expect("a request")).await.expect("an answer");
    let bytes = axum::body::to_bytes(answer.into_body(), 1 << 20).await.expect("a body");
    let text = String::from_utf8(bytes.to_vec()).expect("text");
    assert!(text.contains("superstep_webhooks_given_up 1"), "{text}");
}

#[tokio::test]
async fn no_run_is_created_for_an_address_that_webhooks_may_not_go_to() {
    let graphs = demo::graphs().expect("the demo's graphs");
    let server =
        graphs.into_iter().fold(Server::new(), |server, (name, graph)| server.graph(name, graph));
    let running = server.start().await.expect("a server");
    let (_, thread) = call(&running, "POST", "/threads", json!({})).await;
    let runs = format!("/threads/{}/runs", thread["thread_id"].as_str().expect("an id"));
    for url in ["http://127.0.0.1:1/", "/hook", "ftp://example.com/", "http://169.254.169.254/"] {
        let body = json!({ "assistant_id": "counter", "input": {}, "webhook": url });
        let cron = json!({ "assistant_id": "counter", "schedule": "0 * * * *", "webhook": url });
        for (path, body) in [(runs.as_str(), &body), ("/runs/wait", &body), ("/runs/crons", &cron)]
        {
            let (status, detail) = call(&running, "POST", path, body.clone()).await;
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{path} {url}");
            assert!(
                detail["detail"].as_str().is_some_and(|detail| detail.contains(url)),
                "{detail}"
            );
        }
    }
    let (_, found) = call(&running, "GET", &runs, json!({})).await;
    assert_eq!(found, json!([]));
}
