//! A question is kept by a checkpointer, on a thread. Without these the run fails and says what to add, instead of ending as
//! if all were well.

use crate::world::{Log, World, asked, assert_says, done, failed, log};
use superstep::prelude::*;
use superstep::{Durability, Memory};

fn asks() -> StateGraph<Log> {
    let node = |task: Task| async move {
        // Whatever the node makes of it, the run is told.
        let ask = tokio::time::timeout(std::time::Duration::ZERO, task.interrupt::<String>("go?"));
        log(ask.await.unwrap_or_else(|_| "swallowed".to_owned()))
    };
    StateGraph::<Log>::new().add_node("ask", node).add_edge(START, "ask")
}

/// F27: in the reference the run ends with the question in its output, and can never be resumed.
#[tokio::test(start_paused = true)]
async fn without_a_checkpointer() {
    let app = asks().compile().expect("a graph");
    let (error, text) = failed(app.invoke(log("in")).await);
    assert!(matches!(error, RunError::Node { .. }), "{error:?}");
    assert_says(&text, &["`ask`", "no checkpointer", "`with_checkpointer`"]);
    let (_, text) = failed(app.thread("1").invoke(log("in")).await);
    assert_says(&text, &["no checkpointer", "`with_checkpointer`"]);
}

/// F27: inside a subgraph.
#[tokio::test(start_paused = true)]
async fn in_a_subgraph_without_a_checkpointer() {
    for memory in [Memory::PerCall, Memory::PerThread, Memory::Nothing] {
        let inner = asks().memory(memory).compile().expect("a graph");
        let leave = |inner: Log| Log::update().log(inner.log);
        let graph = StateGraph::<Log>::new()
            .add_node("sub", inner.as_node(|_: &Log| Log::update(), leave))
            .add_edge(START, "sub")
            .compile()
            .expect("a graph");
        let (_, text) = failed(graph.invoke(log("in")).await);
        assert_says(&text, &["`ask`", "no checkpointer", "`with_checkpointer`"]);
    }
}

/// F27: an answer without a checkpointer.
#[tokio::test(start_paused = true)]
async fn and_so_is_an_answer() {
    let app = asks().compile().expect("a graph");
    let (error, text) = failed(app.thread("1").resume("yes").await);
    assert!(matches!(error, RunError::Resume { .. }), "{error:?}");
    assert_says(&text, &["checkpointer", "`with_checkpointer`"]);
}

/// F27: with a checkpointer, but on no thread.
#[tokio::test(start_paused = true)]
async fn and_so_is_a_run_on_no_thread() {
    let app = asks().compile().expect("a graph").with_checkpointer(MemorySaver::new());
    let (_, text) = failed(app.invoke(log("in")).await);
    assert_says(&text, &["checkpointer", "`thread(id)`"]);
    assert_eq!(asked(app.thread("1").invoke(log("in")).await), ["go?"]);
}

/// F9: the reference crashes after the first superstep. What nobody stores is not waited for.
#[tokio::test(start_paused = true)]
async fn but_durability_without_a_checkpointer_is_no_error() {
    let graph = StateGraph::<Log>::new()
        .add_node("a", || log("a"))
        .add_node("b", || log("b"))
        .add_edge(START, "a")
        .add_edge("a", "b")
        .compile()
        .expect("a graph")
        .with_context(World::new());
    for durability in [Durability::Sync, Durability::Exit] {
        assert_eq!(
            done(graph.invoke(log("in")).durability(durability).await).log,
            ["in", "a", "b"]
        );
    }
}
