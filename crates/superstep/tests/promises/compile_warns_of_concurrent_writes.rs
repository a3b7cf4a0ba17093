//! Shows that `compile()` warns of two nodes that say they write one last-value channel and may run in the same superstep,
//! and is silent where they cannot: one after the other, either-or, or with a reducer.

use crate::common;

use crate::common::{Notes, line, says};
use superstep::prelude::*;

/// `a` and `b` both say that they write this channel; neither is connected yet.
fn both_write(channel: &'static str) -> StateGraph<Notes> {
    StateGraph::new()
        .add_node("first", || line("first"))
        .add_node("a", || line("a"))
        .writes([channel])
        .add_node("b", || line("b"))
        .writes([channel])
        .add_edge(START, "first")
}

fn warnings(graph: StateGraph<Notes>) -> Vec<String> {
    graph.compile().expect("a graph that compiles").warnings().to_vec()
}

#[test]
fn side_by_side() {
    let warnings = warnings(both_write("last").add_edge("first", "a").add_edge("first", "b"));
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    says(&warnings[0], &["`a`", "`b`", "channel `last`", "same superstep", "reducer"]);
}

#[test]
fn side_by_side_further_down() {
    let graph = both_write("last")
        .add_node("c", || line("c"))
        .add_node("d", || line("d"))
        .add_edge("first", "c")
        .add_edge("first", "d")
        .add_edge("c", "a")
        .add_edge("d", "b");
    assert_eq!(warnings(graph).len(), 1);
}

#[test]
fn by_an_edge_and_a_router_or_a_command() {
    let graph = both_write("last").add_edge("first", "a").add_conditional_edges(
        "first",
        ["b", END],
        |_: &Notes| END,
    );
    assert_eq!(warnings(graph).len(), 1);
    let graph = StateGraph::<Notes>::new()
        .add_node("first", || Command::<Notes>::new().goto("b"))
        .destinations(["b"])
        .add_node("a", || line("a"))
        .writes(["last"])
        .add_node("b", || line("b"))
        .writes(["last"])
        .add_edge(START, "first")
        .add_edge("first", "a");
    assert_eq!(warnings(graph).len(), 1);
}

#[test]
fn one_after_the_other_is_fine() {
    let graph = both_write("last").add_edge("first", "a").add_edge("a", "b");
    assert_eq!(warnings(graph), Vec::<String>::new());
}

#[test]
fn either_or_is_fine() {
    let graph = both_write("last").add_conditional_edges("first", ["a", "b"], |notes: &Notes| {
        if notes.total > 0 { "a" } else { "b" }
    });
    assert_eq!(warnings(graph), Vec::<String>::new());
}

#[test]
fn a_reducer_is_fine() {
    let graph = both_write("total").add_edge("first", "a").add_edge("first", "b");
    assert_eq!(warnings(graph), Vec::<String>::new());
}

#[test]
fn beside_a_join() {
    // `a` runs when the join is complete, and so may `b`, which follows one of its members.
    let graph = both_write("last")
        .add_node("c", || line("c"))
        .add_node("d", || line("d"))
        .add_edge("first", "c")
        .add_edge("first", "d")
        .add_edge(["c", "d"], "a")
        .add_edge("d", "b");
    assert_eq!(warnings(graph).len(), 1);
}

#[tokio::test]
async fn a_warned_graph_still_runs() {
    let graph = both_write("last").add_edge("first", "a").add_edge("first", "b");
    let graph = graph.compile().expect("a warning is no error");
    let notes = common::done(graph.invoke(Notes::update()).await);
    assert_eq!(notes.lines, ["first", "a", "b"]);
}
