//! Shows what an update as a node does to the superstep that is open: what finished is applied as
//! the superstep would have folded it, what else was to run still is, and the node itself has had
//! its turn.
//!
//! It could break because an update is made from stored writes, while a superstep ends with what is in memory, and
//! because what was stored for the open superstep is still there when the new checkpoint is read.

use crate::common::{Notes, NotesUpdate, kept, line};
use superstep::prelude::*;
use superstep::{CompiledGraph, Thread};

async fn ask(task: Task) -> NotesUpdate {
    let answer: String = task.interrupt("?").await;
    line(answer)
}

/// `first`, then the others side by side.
fn fan(others: &[&'static str]) -> StateGraph<Notes> {
    let mut graph = StateGraph::new().add_node("first", || line("first")).add_edge(START, "first");
    for name in others.iter().copied() {
        graph = match name {
            "ask" => graph.add_node(name, ask),
            _ => graph.add_node(name, move || line(name)),
        };
        graph = graph.add_edge("first", name);
    }
    graph
}

async fn begun(app: CompiledGraph<Notes>) -> Thread<Notes> {
    let thread = app.thread("t");
    let asked = thread.invoke(Notes::update()).await.expect("a run").interrupted();
    assert_eq!(asked.expect("a question").len(), 1);
    thread
}

async fn updated(thread: &Thread<Notes>, node: &str) -> (Vec<String>, Vec<String>) {
    thread.update_state(line("updated")).as_node(node).await.expect("an update");
    let state = thread.get_state().await.expect("a state");
    (state.state().lines.clone(), state.next.iter().map(ToString::to_string).collect())
}

#[tokio::test]
async fn what_finished_is_folded_in_before_the_update() {
    let thread = begun(kept(fan(&["ask", "z"]))).await;
    let (lines, next) = updated(&thread, "ask").await;
    assert_eq!(lines, ["first", "z", "updated"]);
    assert!(next.is_empty(), "{next:?}");
}

#[tokio::test]
async fn what_finished_is_folded_in_by_name() {
    let thread = begun(kept(fan(&["c", "b", "ask"]))).await;
    let (lines, _) = updated(&thread, "ask").await;
    assert_eq!(lines, ["first", "b", "c", "updated"]);
}

#[tokio::test]
async fn a_node_that_waited_for_a_join_has_had_its_turn() {
    let graph = StateGraph::new()
        .add_node("a", || line("a"))
        .add_node("b", || line("b"))
        .add_node("ask", ask)
        .add_edge(START, "a")
        .add_edge(START, "b")
        .add_edge(["a", "b"], "ask");
    let thread = begun(kept(graph)).await;
    let (lines, next) = updated(&thread, "ask").await;
    assert_eq!(lines, ["a", "b", "updated"]);
    assert!(next.is_empty(), "{next:?}");
}

#[tokio::test]
async fn what_was_still_to_run_is_still_to_run() {
    let graph = fan(&["ask", "z"]).add_node("other", ask).add_edge("first", "other");
    let thread = kept(graph).thread("t");
    thread.invoke(Notes::update()).await.expect("a run");
    let (lines, next) = updated(&thread, "ask").await;
    assert_eq!(lines, ["first", "z", "updated"]);
    assert_eq!(next, ["other"]);
}
