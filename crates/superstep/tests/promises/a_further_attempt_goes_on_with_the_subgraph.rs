//! A node that is tried again continues with the graph it called where the failed attempt left it.

use crate::world::{Log, World, done, in_memory, log};
use superstep::CompiledGraph;
use superstep::prelude::*;

/// Two nodes, the second of which can break.
fn inner() -> CompiledGraph<Log> {
    StateGraph::<Log>::new()
        .add_node("one", |Ctx(world): Ctx<World>| {
            world.ran("one");
            log("one")
        })
        .add_node("two", |Ctx(world): Ctx<World>| {
            world.ran("two");
            if world.is_broken() {
                world.mend();
                return Err("a hiccup");
            }
            Ok(log("two"))
        })
        .add_edge(START, "one")
        .add_edge("one", "two")
        .compile()
        .expect("a graph")
}

async fn two_attempts(graph: StateGraph<Log>) {
    let world = World::broken();
    let graph = graph.retry(RetryPolicy::attempts(2)).add_edge(START, "sub");
    let thread = in_memory(graph.compile().expect("a graph"), &world).thread("1");
    assert_eq!(done(thread.invoke(log("in")).await).log, ["in", "one", "two"]);
    assert_eq!(world.take(), ["one", "two", "two"], "the first node does not run again");
}

/// F6: in the reference the graph gets a namespace of its own in each attempt and starts over.
#[tokio::test(start_paused = true)]
async fn that_is_the_node() {
    let leave = |inner: Log| Log::update().log(inner.log);
    let node = inner().as_node(|_: &Log| Log::update(), leave);
    two_attempts(StateGraph::<Log>::new().add_node("sub", node)).await;
}

/// F6.
#[tokio::test(start_paused = true)]
async fn that_the_node_calls() {
    let inner = inner();
    let node = move |task: Task| {
        let inner = inner.clone();
        async move {
            Ok::<_, NodeError>(Log::update().log(task.invoke(&inner, Log::update()).await?.log))
        }
    };
    two_attempts(StateGraph::<Log>::new().add_node("sub", node)).await;
}

/// F6: a graph that had ended when the node failed is not run again either.
#[tokio::test(start_paused = true)]
async fn that_was_done() {
    let world = World::new();
    let inner = inner();
    let graph = StateGraph::<Log>::new()
        .add_node("sub", move |task: Task| {
            let inner = inner.clone();
            async move {
                let state = task.invoke(&inner, Log::update()).await?;
                if task.attempt() == 1 {
                    return Err(NodeError::from("a hiccup"));
                }
                Ok(Log::update().log(state.log))
            }
        })
        .retry(RetryPolicy::attempts(2))
        .add_edge(START, "sub")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &world).thread("1");
    assert_eq!(done(thread.invoke(log("in")).await).log, ["in", "one", "two"]);
    assert_eq!(world.take(), ["one", "two"]);
}

/// Another input is another call: what the graph made of the first one is not its answer to the second.
#[tokio::test(start_paused = true)]
async fn unless_it_is_called_with_another_input() {
    let world = World::new();
    let inner = inner();
    let graph = StateGraph::<Log>::new()
        .add_node("sub", move |task: Task| {
            let inner = inner.clone();
            async move {
                let first = task.invoke(&inner, log("same")).await?;
                let second = task.invoke(&inner, log(format!("try {}", task.attempt()))).await?;
                if task.attempt() == 1 {
                    return Err(NodeError::from("a hiccup"));
                }
                Ok(Log::update().log([first.log.join(" "), second.log.join(" ")]))
            }
        })
        .retry(RetryPolicy::attempts(2))
        .add_edge(START, "sub")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &world).thread("1");
    let log = done(thread.invoke(Log::update()).await).log;
    assert_eq!(log, ["same one two", "try 2 one two"]);
    assert_eq!(
        world.take(),
        ["one", "two", "one", "two", "one", "two"],
        "three calls, and not four"
    );
}
