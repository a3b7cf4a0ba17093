//! However the modes of a stream are given, every event says which mode it belongs to.

use std::collections::HashSet;

use crate::world::{Log, World, in_memory, log};
use superstep::RunStream;
use superstep::prelude::*;

async fn modes(mut run: RunStream<Log>) -> Vec<&'static str> {
    let mut seen = Vec::new();
    while let Some(event) = run.next().await {
        seen.extend(event.expect("an event").mode().map(Mode::as_str));
    }
    seen
}

/// F18: in the reference a tuple of modes gives payloads without a tag.
#[tokio::test(start_paused = true)]
async fn and_tag_every_event() {
    let graph = StateGraph::<Log>::new()
        .add_node("a", |task: Task| {
            task.emit("hello");
            log("a")
        })
        .add_edge(START, "a")
        .compile()
        .expect("a graph");
    let app = in_memory(graph, &World::new());
    let run = |name: &str| app.thread(name.to_owned()).invoke(log("in"));

    let expected = ["custom", "updates"];
    assert_eq!(modes(run("array").stream([Mode::Updates, Mode::Custom])).await, expected);
    assert_eq!(modes(run("list").stream(vec![Mode::Custom, Mode::Updates])).await, expected);
    let set = HashSet::from([Mode::Updates, Mode::Custom]);
    assert_eq!(modes(run("set").stream(set)).await, expected);
    let named = ["custom", "updates"].into_iter().filter_map(Mode::from_name);
    assert_eq!(modes(run("names").stream(named)).await, expected);
    let twice = [Mode::Updates, Mode::Custom, Mode::Updates];
    assert_eq!(modes(run("twice").stream(twice)).await, expected, "a mode asked for twice is one");
    assert_eq!(modes(run("one").stream(Some(Mode::Custom))).await, ["custom"]);
    assert!(modes(run("none").stream([])).await.is_empty());
}
