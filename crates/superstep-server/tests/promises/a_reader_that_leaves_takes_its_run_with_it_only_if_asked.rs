//! Shows that a run goes on when its reader leaves, unless the request said `on_disconnect: cancel`; and that several readers
//! see the same.

use axum::http::StatusCode;
use serde_json::{Value as Json, json};

use crate::world::World;

fn slow(ticks: i64, on_disconnect: &str) -> Json {
    json!({
        "assistant_id": "slow", "input": { "ticks": ticks, "delay": 0.002 }, "on_disconnect": on_disconnect,
    })
}

async fn leave(
    world: &World,
    thread: &str,
    endpoint: &str,
    ticks: i64,
    on_disconnect: &str,
) -> String {
    let path = format!("/threads/{thread}/runs/{endpoint}");
    let body = slow(ticks, on_disconnect).to_string();
    let response = world.open("POST", &path, &[], body).await;
    assert_eq!(response.status(), StatusCode::OK);
    let place = response.headers()["content-location"].to_str().expect("text").to_owned();
    // The connection is gone before anything was read.
    drop(response);
    place
}

#[tokio::test]
async fn the_run_goes_on_or_is_cancelled() {
    let world = World::new().await;
    for endpoint in ["stream", "wait"] {
        let thread = world.thread().await;
        let run = leave(&world, &thread, endpoint, 5, "continue").await;
        let ended =
            world.until(&run, |run| run["status"] != "pending" && run["status"] != "running").await;
        assert_eq!(ended["status"], "success", "{endpoint}");

        let run = leave(&world, &thread, endpoint, 1_000_000, "cancel").await;
        let ended =
            world.until(&run, |run| run["status"] != "pending" && run["status"] != "running").await;
        assert_eq!(ended["status"], "interrupted", "{endpoint}");
        let thread =
            world.until(&format!("/threads/{thread}"), |thread| thread["status"] != "busy").await;
        assert!(!thread["error"].is_null() || thread["status"] == "idle", "{thread}");
    }
}

#[tokio::test]
async fn readers_see_the_same() {
    let world = World::new().await;
    let thread = world.thread().await;
    let body = json!({
        "assistant_id": "slow", "input": { "ticks": 20, "delay": 0.001 },
        "stream_mode": ["values", "updates"], "stream_resumable": true,
    });
    let run = world.run(&thread, body).await;
    let path = format!("/threads/{thread}/runs/{run}/stream");
    let headers = [("last-event-id", "0-0")];
    let (a, b) = tokio::join!(
        world.send("GET", &path, &headers, ""),
        world.send("GET", &path, &headers, ""),
    );
    assert_eq!(a.text, b.text);
    assert_eq!(a.events().len(), 1 + 1 + 40, "the run, its input, and two events for each tick");
    let only = world.send("GET", &format!("{path}?stream_mode=updates"), &headers, "").await;
    assert!(only.events().iter().all(|(_, event, _)| event == "updates"));
    let (_, _, last) = a.events().pop().expect("an event");
    assert_eq!(last["done"], 20);
}
