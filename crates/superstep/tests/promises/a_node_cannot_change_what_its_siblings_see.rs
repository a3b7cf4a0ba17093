//! A node holds a share of the state, which it cannot change; it changes a copy, or returns an update.

use std::time::Duration;

use crate::world::{Log, World, done, in_memory, log};
use superstep::prelude::*;

/// F20: in the reference the state is an object that all tasks share, and changing it in place is seen by siblings and
/// stays in the channel. Here `state.log.push(..)` does not compile, and every way around it ends at a copy.
#[tokio::test(start_paused = true)]
async fn of_the_same_superstep() {
    let graph = StateGraph::<Log>::new()
        .add_node("a_sneaky", |mut state: Arc<Log>| {
            assert!(Arc::get_mut(&mut state).is_none(), "nobody has the state for himself");
            Arc::make_mut(&mut state).log.push("sneaky".to_owned());
            let mut own = Arc::unwrap_or_clone(state);
            own.log.push("sneaky too".to_owned());
            Log::update().n(1)
        })
        .add_node("b_honest", |state: Arc<Log>| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            log(format!("saw {:?}", state.log))
        })
        .add_edge(START, "a_sneaky")
        .add_edge(START, "b_honest")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &World::new()).thread("1");
    assert_eq!(done(thread.invoke(log("in")).await).log, ["in", "saw [\"in\"]"]);
}

/// F20: a task that is alone in its superstep has no more rights, also when a router looks at the state after it.
#[tokio::test(start_paused = true)]
async fn when_it_is_alone() {
    let graph = StateGraph::<Log>::new()
        .add_node("a", |mut state: Arc<Log>| {
            assert!(Arc::get_mut(&mut state).is_none(), "nobody has the state for himself");
            Arc::make_mut(&mut state).log.push("sneaky".to_owned());
        })
        .add_node("b", |state: Arc<Log>| log(format!("saw {:?}", state.log)))
        .add_edge(START, "a")
        .add_conditional_edges("a", ["b"], |state: &Log| {
            assert_eq!(state.log, ["in"]);
            "b"
        })
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &World::new()).thread("1");
    assert_eq!(done(thread.invoke(log("in")).await).log, ["in", "saw [\"in\"]"]);
}

/// F20: nor does what a failed attempt did to its copy reach the next one.
#[tokio::test(start_paused = true)]
async fn in_its_next_attempt() {
    let graph = StateGraph::<Log>::new()
        .add_node("a", |mut state: Arc<Log>, task: Task| {
            Arc::make_mut(&mut state).log.push("sneaky".to_owned());
            if task.attempt() == 1 { Err("a hiccup") } else { Ok(log(state.log.join(" "))) }
        })
        .retry(RetryPolicy::attempts(2))
        .add_edge(START, "a")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &World::new()).thread("1");
    assert_eq!(done(thread.invoke(log("in")).await).log, ["in", "in sneaky"]);
}
