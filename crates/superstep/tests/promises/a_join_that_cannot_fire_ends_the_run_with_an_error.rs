//! Shows that a run does not end as done while a join waits for nodes that nothing leads to any more: the error names the
//! node, who has arrived and who has not. What ran is stored; new input begins a new round; a change from outside can
//! stand in for the missing node; and a join across runs, or any join of a lenient graph, waits for the next run instead.
//! The reference calls such a run done (F23).

use superstep::error::UnfilledJoin;
use superstep::prelude::*;
use superstep::{Join, Memory, Thread};

use crate::common::{Notes, NotesUpdate, done, kept, line, says};

/// `n` says which of the two nodes run: the first, the second, or both.
fn graph(join: Join) -> StateGraph<Notes> {
    StateGraph::<Notes>::new()
        .add_node("a", || line("a"))
        .add_node("b", || line("b"))
        .add_node("both", || line("both"))
        .add_conditional_edges(START, ["a", "b"], |notes: &Notes| match notes.last.as_deref() {
            Some("a") => vec!["a"],
            Some("b") => vec!["b"],
            _ => vec!["a", "b"],
        })
        .add_edge(join, "both")
}

fn all() -> Join {
    Join::all(["a", "b"])
}

fn only(name: &str) -> NotesUpdate {
    Notes::update().last(name.to_owned())
}

async fn unfilled(
    thread: &Thread<Notes>,
    input: impl superstep::IntoInput<Notes>,
) -> Vec<UnfilledJoin> {
    match thread.invoke(input).await {
        Err(RunError::UnfilledJoin { joins }) => joins,
        other => panic!("the join was not found to be unfilled: {other:?}"),
    }
}

#[tokio::test]
async fn the_error_names_the_join() {
    let thread = kept(graph(all())).thread("t");
    let error = thread.invoke(only("a")).await.expect_err("`b` never ran");
    says(&error, &["`both` still waits", "`a` and `b`", "only `a` ran", "Join::across_runs"]);
    assert_eq!(error.kind(), "UnfilledJoinError");
    let RunError::UnfilledJoin { joins } = error else { panic!("{error:?}") };
    let [join] = &joins[..] else { panic!("{joins:?}") };
    assert_eq!((&*join.node, join.needed), ("both", 2));
    assert_eq!((&*join.arrived[0], &*join.missing[0]), ("a", "b"));
    // What ran is stored.
    let snapshot = thread.get_state().await.expect("a thread");
    assert_eq!(snapshot.state().lines, ["a"]);
}

#[tokio::test]
async fn going_on_finds_the_same() {
    let thread = kept(graph(all())).thread("t");
    let first = unfilled(&thread, only("a")).await;
    assert_eq!(unfilled(&thread, ()).await, first);
}

#[tokio::test]
async fn new_input_begins_a_new_round() {
    let thread = kept(graph(all())).thread("t");
    unfilled(&thread, only("a")).await;
    let joins = unfilled(&thread, only("b")).await;
    assert_eq!((&*joins[0].arrived[0], &*joins[0].missing[0]), ("b", "a"));
    assert_eq!(done(thread.invoke(only("both")).await).lines, ["a", "b", "a", "b", "both"]);
}

#[tokio::test]
async fn a_change_from_outside_can_fill_it() {
    let thread = kept(graph(all())).thread("t");
    unfilled(&thread, only("a")).await;
    thread.update_state(line("by hand")).as_node("b").await.expect("a change");
    assert_eq!(done(thread.invoke(()).await).lines, ["a", "by hand", "both"]);
}

#[tokio::test]
async fn across_runs_it_waits() {
    for join in [all(), Join::at_least(2, ["a", "b"])] {
        let thread = kept(graph(join.across_runs())).thread("t");
        assert_eq!(done(thread.invoke(only("a")).await).lines, ["a"]);
        assert_eq!(done(thread.invoke(only("a")).await).lines, ["a", "a"]);
        assert_eq!(done(thread.invoke(only("b")).await).lines, ["a", "a", "b", "both"]);
        assert_eq!(done(thread.invoke(only("b")).await).lines.len(), 5, "the next round");
    }
}

#[tokio::test]
async fn a_join_of_some_waits_across_runs_too() {
    let graph = StateGraph::<Notes>::new()
        .add_node("a", || line("a"))
        .add_node("b", || line("b"))
        .add_node("c", || line("c"))
        .add_node("end", || line("end"))
        .add_conditional_edges(START, ["a", "b", "c"], |notes: &Notes| {
            notes.last.clone().unwrap_or_default()
        })
        .add_edge(Join::at_least(2, ["a", "b", "c"]).across_runs(), "end");
    let thread = kept(graph).thread("t");
    assert_eq!(done(thread.invoke(only("a")).await).lines, ["a"]);
    assert_eq!(done(thread.invoke(only("c")).await).lines, ["a", "c", "end"]);
    assert_eq!(done(thread.invoke(only("b")).await).lines, ["a", "c", "end", "b"]);
    assert_eq!(done(thread.invoke(only("a")).await).lines.len(), 6, "`b` and `a` are enough");
}

#[tokio::test]
async fn in_a_lenient_graph_every_join_waits() {
    let thread = kept(graph(all()).lenient()).thread("t");
    assert_eq!(done(thread.invoke(only("a")).await).lines, ["a"]);
    assert_eq!(done(thread.invoke(only("b")).await).lines, ["a", "b", "both"]);
}

/// A stop is no end: the join waits on.
#[tokio::test]
async fn a_stop_is_no_end() {
    let thread = kept(graph(all())).thread("t");
    let run = thread.invoke(only("a")).interrupt_after(["a"]).await;
    assert!(matches!(run, Ok(Outcome::Interrupted(_))), "{run:?}");
    unfilled(&thread, ()).await;
}

#[tokio::test]
async fn the_error_of_a_graph_inside_fails_its_node() {
    for memory in [Memory::PerCall, Memory::PerThread, Memory::Nothing] {
        let inner = graph(all()).memory(memory).compile().expect("a graph");
        let outer = StateGraph::<Notes>::new().add_node("inner", inner).add_edge(START, "inner");
        let error = kept(outer).thread("t").invoke(only("a")).await.expect_err("`b` never ran");
        says(&error, &["`inner` failed", "`both` still waits"]);
    }
}
