//! Shows that a graph that keeps a memory across calls begins each call with its input, also if the node around it is tried
//! again or the thread is taken up before the call had begun.
//!
//! It could break because such a graph has been begun before: it looks like one that stopped in the middle.

use superstep::Memory;
use superstep::prelude::*;

use crate::common::{Counter, Notes, done, kept, line};

/// A graph with a memory in a node that fails at its `fails_at`th attempt, before it comes to the graph.
fn around(fails_at: u32, retries: bool) -> StateGraph<Notes> {
    let inner = StateGraph::<Notes>::new()
        .add_node("x", |notes: Arc<Notes>| line(format!("x after {}", notes.lines.len())))
        .add_edge(START, "x")
        .memory(Memory::PerThread)
        .compile()
        .expect("a graph");
    let tried = Counter::default();
    let called = inner.clone();
    let node = move |notes: Arc<Notes>, task: Task| {
        let (inner, tried) = (called.clone(), tried.clone());
        async move {
            if tried.add() + 1 == fails_at {
                return Err(NodeError::from("not now"));
            }
            let input = line(format!("call {}", notes.total));
            let inner = task.invoke(&inner, input).await?;
            Ok(Notes::update().lines([inner.lines.join(", ")]).total(1))
        }
    };
    let mut graph = StateGraph::new().add_node("node", node).calls(&inner);
    if retries {
        graph = graph.retry(3);
    }
    graph.add_edge(START, "node")
}

const BOTH: &str = "call 0, x after 1, call 1, x after 3";

#[tokio::test(start_paused = true)]
async fn when_the_node_around_it_is_tried_again() {
    let thread = kept(around(2, true)).thread("t");
    assert_eq!(done(thread.invoke(Notes::update()).await).lines, ["call 0, x after 1"]);
    assert_eq!(done(thread.invoke(Notes::update()).await).lines[1], BOTH);
}

#[tokio::test(start_paused = true)]
async fn when_the_thread_is_taken_up_before_the_call() {
    let thread = kept(around(2, false)).thread("t");
    assert_eq!(done(thread.invoke(Notes::update()).await).lines, ["call 0, x after 1"]);
    thread.invoke(Notes::update()).await.expect_err("not now");
    assert_eq!(done(thread.invoke(()).await).lines[1], BOTH);
}
