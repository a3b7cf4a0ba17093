//! Shows that a reader beyond the limit is refused with 429 before a run is created for it, and that a place is free again when a
//! reader leaves. If it were not, readers that stall would take the memory of everybody.

use axum::http::StatusCode;
use serde_json::json;
use superstep_server::Server;

use crate::world::World;

#[tokio::test]
async fn and_a_place_is_free_again_when_one_leaves() {
    let world = World::start(Server::new().streams_max(2)).await;
    let thread = world.thread().await;
    let runs = format!("/threads/{thread}/runs");
    let slow = json!({ "assistant_id": "slow", "input": { "ticks": 1_000, "delay": 1 } });
    let run = world.run(&thread, slow.clone()).await;
    let join = format!("{runs}/{run}/stream");
    let first = world.open("GET", &join, &[], "").await;
    let second = world.open("GET", &join, &[], "").await;
    let figures = world.get("/metrics?format=json").await.json();
    assert_eq!(figures["streams_open"], 2);
    for path in [format!("{runs}/stream"), format!("{runs}/wait")] {
        let refused = world.post(&path, slow.clone()).await;
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "{}", refused.text);
        assert_eq!(refused.headers["retry-after"], "1");
        assert!(refused.text.contains("streams"), "{}", refused.text);
    }
    let created = world.get(&runs).await.json();
    assert_eq!(created.as_array().map(Vec::len), Some(1), "nothing was created: {created}");
    drop(first);
    let third = world.open("GET", &join, &[], "").await;
    assert_eq!(third.status(), StatusCode::OK);
    drop((second, third));
    world.until("/metrics?format=json", |figures| figures["streams_open"] == 0).await;
}
