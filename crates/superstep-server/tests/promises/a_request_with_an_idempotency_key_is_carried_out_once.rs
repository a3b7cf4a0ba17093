//! Shows that what a request with an `Idempotency-Key` makes is made once: repeated, at the same time or after a restart, it
//! gets the same answer, and another request with the key is refused. It would break if the key and what it made were not stored
//! together, or if a run without a thread were gone when its answer is asked for again.

use axum::http::StatusCode;
use serde_json::{Value as Json, json};
use superstep_server::{Database, KeyRing, Role, Server};

use crate::world::{Answered, Dir, World};

async fn keyed(world: &World, path: &str, key: &str, body: &Json) -> Answered {
    world.send("POST", path, &[("idempotency-key", key)], body.to_string()).await
}

#[tokio::test]
async fn whatever_it_creates() {
    let dir = Dir::new();
    let file = dir.file("server.db");
    let world = World::on(&file).await;
    let thread = world.thread().await;
    let count = json!({ "assistant_id": "counter", "input": { "count": 1 } });
    let hourly = json!({ "assistant_id": "counter", "schedule": "0 * * * *" });
    let requests = [
        ("/threads".to_owned(), json!({ "metadata": { "n": 1 } }), json!({ "metadata": {} })),
        ("/assistants".to_owned(), json!({ "graph_id": "chat" }), json!({ "graph_id": "slow" })),
        (
            "/runs/crons".to_owned(),
            hourly.clone(),
            json!({ "assistant_id": "chat", "schedule": "0 * * * *" }),
        ),
        (
            format!("/threads/{thread}/runs/crons"),
            hourly.clone(),
            json!({ "assistant_id": "chat", "schedule": "0 * * * *" }),
        ),
        (format!("/threads/{thread}/runs"), count.clone(), json!({ "assistant_id": "chat" })),
        (format!("/threads/{thread}/runs/wait"), count.clone(), json!({ "assistant_id": "chat" })),
        ("/runs".to_owned(), count.clone(), json!({ "assistant_id": "chat" })),
        ("/runs/wait".to_owned(), count.clone(), json!({ "assistant_id": "chat" })),
        ("/runs/batch".to_owned(), json!([count, count]), json!([count])),
    ];
    let mut first = Vec::new();
    for (n, (path, body, other)) in requests.iter().enumerate() {
        let key = format!("key-{n}");
        let (a, b) = tokio::join!(keyed(&world, path, &key, body), keyed(&world, path, &key, body));
        assert_eq!(a.status, StatusCode::OK, "{path}: {}", a.text);
        assert_eq!(a.json(), b.json(), "{path} at the same time");
        assert_eq!(keyed(&world, path, &key, body).await.json(), a.json(), "{path} again");
        let refused = keyed(&world, path, &key, other).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{path}: {}", refused.text);
        assert!(refused.text.contains(&format!("`{key}`")), "{}", refused.text);
        first.push(a.json());
    }
    let other_path = keyed(&world, "/threads", "key-1", &json!({ "graph_id": "chat" })).await;
    assert_eq!(other_path.status, StatusCode::UNPROCESSABLE_ENTITY, "a key is for one request");
    let runs = world.get(&format!("/threads/{thread}/runs?limit=100")).await.json();
    assert_eq!(runs.as_array().map(Vec::len), Some(2), "each run was admitted once");
    assert_eq!(world.post("/runs/crons/count", json!({})).await.json(), 2);

    drop(world);
    let world = World::on(&file).await;
    for (n, ((path, body, _), first)) in requests.iter().zip(&first).enumerate() {
        let again = keyed(&world, path, &format!("key-{n}"), body).await;
        assert_eq!(again.json(), *first, "{path} after a restart");
    }
}

#[tokio::test]
async fn a_stream_shows_the_same_run_again() {
    let world = World::new().await;
    let thread = world.thread().await;
    for (path, resumable) in
        [(format!("/threads/{thread}/runs/stream"), true), ("/runs/stream".to_owned(), false)]
    {
        let body = json!({ "assistant_id": "counter", "input": {}, "stream_resumable": resumable });
        let key = format!("stream {resumable}");
        let first = keyed(&world, &path, &key, &body).await;
        let again = keyed(&world, &path, &key, &body).await;
        assert_eq!(first.headers["content-location"], again.headers["content-location"]);
        let (first, again) = (first.events(), again.events());
        assert_eq!(first[0].2["run_id"], again[0].2["run_id"]);
        assert_eq!(first.last().map(|event| &event.2), again.last().map(|event| &event.2));
        if resumable {
            assert_eq!(first, again, "its events are kept");
        }
    }
}

#[tokio::test]
async fn but_not_what_was_refused_nor_what_others_ask_for() {
    let dir = Dir::new();
    let database = Database::Sqlite(dir.file("server.db"));
    let ring = KeyRing::open(&database).await.expect("keys");
    let (_, ada) = ring.add("ada", "", Role::User).await.expect("a key");
    let (_, bob) = ring.add("bob", "", Role::User).await.expect("a key");
    let world = World::start(Server::new().database(database)).await;
    let ask = async |who: &str, key: &str, body: &str| {
        let headers = [("x-api-key", who), ("idempotency-key", key)];
        world.send("POST", "/threads", &headers, body.to_owned()).await
    };
    let id = uuid::Uuid::new_v4();
    let body = json!({ "thread_id": id }).to_string();
    assert_eq!(ask(&ada, "1", "{}").await.status, StatusCode::OK);
    let theirs = ask(&bob, "1", &body).await;
    assert_eq!(theirs.status, StatusCode::OK, "it is a key of somebody else: {}", theirs.text);
    assert_eq!(ask(&ada, "2", &body).await.status, StatusCode::CONFLICT);
    let headers = [("x-api-key", &*bob)];
    world.send("DELETE", &format!("/threads/{id}"), &headers, "").await;
    assert_eq!(ask(&ada, "2", &body).await.status, StatusCode::OK, "a refusal is not kept");
    for bad in ["", &"x".repeat(256)] {
        assert_eq!(ask(&ada, bad, "{}").await.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
}
