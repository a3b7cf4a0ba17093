//! Shows that two writes to a channel that keeps one value are an error that names both nodes, the
//! channel and the superstep, and that the thread is none the worse for it: it can be looked at,
//! and run again (F36). In the reference the thread is poisoned: the same writes are handed back
//! forever, and even looking at it fails.

use crate::common::{Counter, Notes, done, kept, line, next, says, tasks};
use superstep::error::Code;
use superstep::prelude::*;

#[derive(Clone, Default)]
struct Ran {
    a: Counter,
    b: Counter,
    c: Counter,
}

/// `a` and `b` both write `last`, but `b` only the first time. `c` writes something else.
fn graph(ran: &Ran) -> StateGraph<Notes> {
    let Ran { a, b, c } = ran.clone();
    StateGraph::new()
        .add_node("first", || line("first"))
        .add_node("a", move || {
            a.add();
            line("a").last("from a".to_owned())
        })
        .add_node("b", move || match b.add() {
            0 => line("b").last("from b".to_owned()),
            _ => line("b"),
        })
        .add_node("c", move || {
            c.add();
            line("c")
        })
        .add_edge(START, "first")
        .add_edge("first", "a")
        .add_edge("first", "b")
        .add_edge("first", "c")
}

#[tokio::test]
async fn the_error_names_both_nodes_the_channel_and_the_superstep() {
    let graph = graph(&Ran::default()).compile().expect("a graph that compiles");
    let error = graph.invoke(Notes::update()).await.expect_err("two writers");
    assert!(matches!(error, RunError::InvalidUpdate { .. }), "{error:?}");
    assert_eq!(error.code(), Some(Code::InvalidConcurrentGraphUpdate));
    says(&error, &["channel `last`", "`a`", "`b`", "superstep 2", "reducer"]);
    assert!(!error.to_string().contains("`c`"), "{error}");
}

#[tokio::test]
async fn the_thread_can_be_looked_at_and_nothing_is_half_applied() {
    let thread = kept(graph(&Ran::default())).thread("t");
    thread.invoke(Notes::update()).await.expect_err("two writers");
    let snapshot = thread.get_state().await.expect("a look never fails");
    assert_eq!(snapshot.state().last, None);
    // The task that has nothing to do with the conflict is finished; the two others are not.
    assert_eq!(snapshot.state().lines, ["first", "c"]);
    assert_eq!(next(&snapshot), ["a", "b"]);
    for (name, error) in tasks(&snapshot) {
        match &*name {
            "c" => assert_eq!(error, None),
            _ => says(error.expect("why it is to run again"), &["channel `last`"]),
        }
    }
}

#[tokio::test]
async fn the_two_run_again_and_the_thread_goes_on() {
    let ran = Ran::default();
    let thread = kept(graph(&ran)).thread("t");
    thread.invoke(Notes::update()).await.expect_err("two writers");
    let notes = done(thread.invoke(()).await);
    assert_eq!(notes.lines, ["first", "a", "b", "c"]);
    assert_eq!(notes.last.as_deref(), Some("from a"));
    assert_eq!((ran.a.get(), ran.b.get(), ran.c.get()), (2, 2, 1));
}

#[tokio::test]
async fn storing_only_at_the_end_makes_no_difference() {
    let ran = Ran::default();
    let thread = kept(graph(&ran)).thread("t");
    let run = thread.invoke(Notes::update()).durability(superstep::Durability::Exit);
    run.await.expect_err("two writers");
    let snapshot = thread.get_state().await.expect("a look never fails");
    assert_eq!(snapshot.state().lines, ["first", "c"]);
    assert_eq!(next(&snapshot), ["a", "b"]);
    let notes = done(thread.invoke(()).durability(superstep::Durability::Exit).await);
    assert_eq!(notes.lines, ["first", "a", "b", "c"]);
    assert_eq!((ran.a.get(), ran.b.get(), ran.c.get()), (2, 2, 1));
}

#[tokio::test]
async fn new_input_leaves_the_conflict_behind() {
    let thread = kept(graph(&Ran::default())).thread("t");
    thread.invoke(Notes::update()).await.expect_err("two writers");
    let notes = done(thread.invoke(line("again")).await);
    // Nothing of the superstep that failed is left, also not what its third task wrote.
    assert_eq!(notes.lines, ["first", "again", "first", "a", "b", "c"]);
    let stored = thread.get_state().await.expect("a stored state");
    assert_eq!(stored.state().lines, notes.lines);
}
