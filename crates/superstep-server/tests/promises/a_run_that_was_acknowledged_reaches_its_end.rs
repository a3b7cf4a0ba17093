//! Shows that a run is stored before it is acknowledged: whether the server dies or is told to end, the next one goes on with
//! it under the same id, and readers that come back see every event once. It would break if anything were kept in memory only.

use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::world::{Dir, World};

fn slow(ticks: i64) -> Json {
    json!({
        "assistant_id": "slow",
        "input": { "ticks": ticks, "delay": 0.002 },
        "stream_mode": ["values"],
        "stream_resumable": true,
    })
}

/// Waits until the run has done something, and returns how far it was.
async fn underway(world: &World, thread: &str) -> i64 {
    let state = world
        .until(&format!("/threads/{thread}/state"), |state| {
            state["values"]["done"].as_i64() > Some(3)
        })
        .await;
    state["values"]["done"].as_i64().expect("a number")
}

/// The run goes on in a new server, and its stream has no gap.
async fn goes_on(world: &World, thread: &str, run: &str, ticks: i64, attempts: &[i64]) {
    let result = world.get(&format!("/threads/{thread}/runs/{run}/join")).await.json();
    assert_eq!(result["done"], ticks, "{result}");
    let stream = format!("/threads/{thread}/runs/{run}/stream");
    let all = world.send("GET", &stream, &[("last-event-id", "-1")], "").await.events();
    let numbers: Vec<u64> = all
        .iter()
        .map(|(id, ..)| id.split_once('-').expect("an id").1.parse().expect("a number"))
        .collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "every event has a higher number: {numbers:?}");
    let begun: Vec<i64> = all
        .iter()
        .filter(|(_, event, _)| event == "metadata")
        .map(|(_, _, data)| data["attempt"].as_i64().expect("an attempt"))
        .collect();
    assert_eq!(begun, attempts);
    // A superstep that was not stored when the process died is run again, and one that was stored may have had no events.
    let done: Vec<i64> = all.iter().filter_map(|(_, _, data)| data["done"].as_i64()).collect();
    assert_eq!(done, (0..=ticks).collect::<Vec<_>>(), "each superstep is seen once");
}

#[tokio::test]
async fn after_a_crash() {
    let dir = Dir::new();
    let file = dir.file("server.db");
    let world = World::on(&file).await;
    let thread = world.thread().await;
    let run = world.run(&thread, slow(60)).await;
    let waiting = world
        .run(&thread, json!({ "assistant_id": "slow", "input": { "ticks": 62, "delay": 0 } }))
        .await;
    underway(&world, &thread).await;
    // All tasks of the server are dropped where they are.
    drop(world);
    let world = World::on(&file).await;
    goes_on(&world, &thread, &run, 60, &[1, 2]).await;
    let result = world.get(&format!("/threads/{thread}/runs/{waiting}/join")).await.json();
    assert_eq!(result["done"], 62, "the run that waited ran after it: {result}");
}

#[tokio::test]
async fn after_a_shutdown_which_is_no_attempt() {
    let dir = Dir::new();
    let file = dir.file("server.db");
    let world = World::on(&file).await;
    let thread = world.thread().await;
    let run = world.run(&thread, slow(60)).await;
    let before = underway(&world, &thread).await;
    assert!(before < 60);
    let World { running, router } = world;
    running.shutdown(Duration::from_secs(30)).await;
    drop(router);
    let world = World::on(&file).await;
    goes_on(&world, &thread, &run, 60, &[1, 1]).await;
}

#[tokio::test]
async fn an_answer_is_not_given_twice() {
    let dir = Dir::new();
    let file = dir.file("server.db");
    let world = World::on(&file).await;
    let thread = world.thread().await;
    let ask = json!({ "assistant_id": "approval", "input": { "topic": "x" } });
    world.post(&format!("/threads/{thread}/runs/wait"), ask).await;
    let answer = json!({ "assistant_id": "approval", "command": { "resume": "yes" } });
    let run = world.run(&thread, answer).await;
    drop(world);
    // Wherever the answer was when the server died, it counts once.
    let world = World::on(&file).await;
    let result = world.get(&format!("/threads/{thread}/runs/{run}/join")).await.json();
    assert_eq!(result["log"], json!(["write", "review", "publish:yes"]), "{result}");
}
