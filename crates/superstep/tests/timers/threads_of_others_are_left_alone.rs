//! Shows that a graph runs what is due on its own threads, and fails nobody because of one thread that fails.
//!
//! It could break where graphs share a checkpointer, and where alarms that nobody takes away stand before others.

use superstep::checkpoint::AnyCheckpointer;
use superstep::prelude::*;
use superstep::{CompiledGraph, RunError};

use crate::common::{HOUR, Notes, kept_in, line};

fn napping(node: &'static str, memory: &AnyCheckpointer) -> CompiledGraph<Notes> {
    let graph = StateGraph::new().add_edge(START, node).add_node(node, |task: Task| async move {
        task.sleep(HOUR).await;
        match task.name() {
            "fails" => Err(NodeError::permanent("it fails")),
            name => Ok(line(name)),
        }
    });
    kept_in(graph, memory.clone()).0
}

#[tokio::test]
async fn graphs_that_share_a_checkpointer() {
    let memory = AnyCheckpointer::new(MemorySaver::new());
    let clock = superstep::testing::Clock::new();
    let app = |node| napping(node, &memory).with_context(clock.clone());
    let (one, two, fails) = (app("one"), app("two"), app("fails"));
    for nth in 0..150 {
        two.thread(format!("two-{nth:03}")).invoke(Notes::update()).await.expect("a run");
    }
    one.thread("one").invoke(Notes::update()).await.expect("a run");
    fails.thread("fails").invoke(Notes::update()).await.expect("a run");
    clock.advance(HOUR);
    let ran = one.run_due().await.expect("one thread is due");
    assert_eq!(ran.iter().map(|due| &*due.thread).collect::<Vec<_>>(), ["one"]);
    assert_eq!(two.run_due().concurrency(8).await.expect("all are due").len(), 150);
    let failed = fails.run_due().await.expect("one fails");
    assert!(matches!(failed[0].outcome, Err(RunError::Node { .. })), "{failed:?}");
    // Somebody has to look at it first.
    assert!(fails.run_due().await.expect("nothing").is_empty());
}

#[tokio::test]
async fn threads_are_told_apart_by_their_metadata() {
    let memory = AnyCheckpointer::new(MemorySaver::new());
    let clock = superstep::testing::Clock::new();
    let app = |team| {
        let app = napping("nap", &memory).with_context(clock.clone());
        app.with_metadata("team", team)
    };
    for team in ["red", "blue"] {
        app(team).thread(team).invoke(Notes::update()).await.expect("a run");
    }
    clock.advance(HOUR);
    let ran = app("red").run_due().metadata("team", "red").await.expect("one is due");
    assert_eq!(ran.iter().map(|due| &*due.thread).collect::<Vec<_>>(), ["red"]);
}
