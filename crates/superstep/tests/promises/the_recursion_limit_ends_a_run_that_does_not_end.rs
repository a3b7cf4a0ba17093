//! Shows that a loop ends with an error after as many supersteps as were allowed, that all of them
//! are kept, and that the thread continues from there. It would break if the limit were counted
//! from the beginning of the thread, or if the last superstep were lost.

use crate::common::{Notes, done, kept, line, next, says};
use superstep::error::Code;
use superstep::prelude::*;

fn endless() -> StateGraph<Notes> {
    StateGraph::new()
        .add_node("turn", |notes: Arc<Notes>| line(notes.lines.len().to_string()))
        .add_edge(START, "turn")
        .add_edge("turn", "turn")
}

#[tokio::test]
async fn the_error_names_the_limit_and_the_way_out() {
    let graph = endless().compile().expect("a graph that compiles");
    let error = graph.invoke(Notes::update()).recursion_limit(5).await.expect_err("no end");
    assert!(matches!(error, RunError::RecursionLimit { limit: 5 }), "{error:?}");
    assert_eq!(error.code(), Some(Code::GraphRecursionLimit));
    says(&error, &["5 supersteps", "recursion limit", "`recursion_limit`"]);
}

#[tokio::test]
async fn as_many_supersteps_as_allowed_are_kept() {
    for limit in [1, 2, 7] {
        let thread = kept(endless()).thread("t");
        thread.invoke(Notes::update()).recursion_limit(limit).await.expect_err("no end");
        let snapshot = thread.get_state().await.expect("a look");
        assert_eq!(snapshot.state().lines.len() as u64, limit);
        assert_eq!(next(&snapshot), ["turn"]);
    }
}

#[tokio::test]
async fn the_thread_goes_on_where_it_was() {
    let thread = kept(endless()).thread("t");
    thread.invoke(Notes::update()).recursion_limit(3).await.expect_err("no end");
    thread.invoke(()).recursion_limit(3).await.expect_err("no end");
    let lines = thread.get_state().await.expect("a look").state().lines.clone();
    assert!(lines.len() >= 6, "{lines:?}");
    let counted: Vec<String> = (0..lines.len()).map(|n| n.to_string()).collect();
    assert_eq!(lines, counted, "no superstep was lost or done twice");
}

#[tokio::test]
async fn a_run_that_ends_in_time_is_not_disturbed() {
    let graph =
        StateGraph::<Notes>::new()
            .add_node("turn", || Notes::update().total(1))
            .add_edge(START, "turn")
            .add_conditional_edges("turn", ["turn", END], |notes: &Notes| {
                if notes.total < 5 { "turn" } else { END }
            })
            .compile()
            .expect("a graph that compiles");
    assert_eq!(done(graph.invoke(Notes::update()).recursion_limit(6).await).total, 5);
    graph.invoke(Notes::update()).recursion_limit(4).await.expect_err("one too few");
}

#[tokio::test]
async fn the_limit_has_to_exceed_the_supersteps_by_one() {
    // What the reference does (its case `recursion_exact`): all work is done and kept, but the run is not seen to end.
    let graph = StateGraph::<Notes>::new()
        .add_node("one", || line("one"))
        .add_node("two", || line("two"))
        .add_edge(START, "one")
        .add_edge("one", "two");
    let thread = kept(graph).thread("t");
    let error = thread.invoke(Notes::update()).recursion_limit(2).await.expect_err("no end seen");
    assert!(matches!(error, RunError::RecursionLimit { limit: 2 }), "{error:?}");
    let snapshot = thread.get_state().await.expect("a look");
    assert!(snapshot.next.is_empty(), "{:?}", snapshot.next);
    assert_eq!(done(thread.invoke(()).recursion_limit(2).await).lines, ["one", "two"]);
}

#[tokio::test]
async fn a_node_knows_how_many_supersteps_are_left() {
    let graph = StateGraph::<Notes>::new()
        .add_node("turn", |task: Task| {
            line(format!("{} {}", task.remaining_steps(), task.is_last_step()))
        })
        .add_edge(START, "turn")
        .add_edge("turn", "turn");
    let thread = kept(graph).thread("t");
    thread.invoke(Notes::update()).recursion_limit(3).await.expect_err("no end");
    let lines = thread.get_state().await.expect("a look").state().lines.clone();
    assert_eq!(lines, ["2 false", "1 true", "0 false"]);
}
