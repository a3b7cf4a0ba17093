//! Shows that a reducer that panics ends the run with an error that names the channel and the nodes that wrote it; that
//! nothing of the superstep is applied; and that it can be run again. It would break if a panic left a half-folded state,
//! in memory or in storage.

use crate::common::{Counter, says};
use superstep::Durability;
use superstep::prelude::*;

/// Adds, but cannot stand a seven.
fn add(value: &mut i64, update: i64) {
    *value += update;
    assert!(update != 7, "sevens are bad luck");
}

#[derive(State, Clone, Debug, Default, PartialEq, Eq)]
struct Sums {
    #[channel(reduce = Append)]
    lines: Vec<String>,
    #[channel(reduce_with = add)]
    sum: i64,
    #[channel(reduce = Sum)]
    zeal: i64,
}

/// `a` writes a seven the first time.
fn graph(ran: &Counter) -> StateGraph<Sums> {
    let (tries, ran) = (Counter::default(), ran.clone());
    StateGraph::new()
        .add_node("a", move || {
            let number = if tries.add() == 0 { 7 } else { 1 };
            Sums::update().lines(["a".to_owned()]).sum(number).zeal(1)
        })
        .add_node("b", || Sums::update().lines(["b".to_owned()]).sum(2).zeal(1))
        .add_node("c", move || {
            ran.add();
            Sums::update().lines(["c".to_owned()])
        })
        .add_edge(START, "a")
        .add_edge(START, "b")
        .add_edge(START, "c")
}

fn failed(error: &RunError) {
    assert!(matches!(error, RunError::Reducer { .. }), "{error:?}");
    says(error, &["channel `sum`", "`a`", "`b`", "panicked", "sevens are bad luck"]);
}

async fn check(durability: Durability) {
    let ran = Counter::default();
    let app = graph(&ran).compile().expect("a graph").with_checkpointer(MemorySaver::new());
    let thread = app.thread("t");
    let input = Sums::update().lines(["in".to_owned()]);
    let error = thread.invoke(input).durability(durability).await.expect_err("a panic");
    failed(&error);
    let snapshot = thread.get_state().await.expect("a look");
    let state = snapshot.state();
    assert_eq!((state.sum, state.zeal), (0, 0), "nothing is half applied");
    assert_eq!(state.lines, ["in", "c"]);
    let done = thread.invoke(()).durability(durability).await.expect("no panic").done();
    let lines = ["in", "a", "b", "c"].map(str::to_owned).to_vec();
    assert_eq!(done, Some(Sums { lines, sum: 3, zeal: 2 }));
    assert_eq!(ran.get(), 1, "`c` had nothing to do with it");
}

#[tokio::test]
async fn when_each_superstep_is_stored() {
    check(Durability::Sync).await;
}

#[tokio::test]
async fn when_only_the_end_is_stored() {
    check(Durability::Exit).await;
}

#[tokio::test]
async fn without_a_checkpointer() {
    let graph = graph(&Counter::default()).compile().expect("a graph that compiles");
    failed(&graph.invoke(Sums::update()).await.expect_err("a panic"));
    assert!(graph.invoke(Sums::update()).await.is_ok(), "the graph is none the worse for it");
}

#[tokio::test]
async fn on_the_input() {
    let thread = graph(&Counter::default()).compile().expect("a graph");
    let thread = thread.with_checkpointer(MemorySaver::new()).thread("t");
    let error = thread.invoke(Sums::update().sum(7)).await.expect_err("a panic");
    says(&error, &["channel `sum`", "panicked", "sevens are bad luck"]);
    assert_eq!(thread.get_state().await.expect("a look").state().sum, 0);
}

#[tokio::test]
async fn before_a_router() {
    // The router sees the state with what its node wrote, so the reducer runs inside the task.
    let tries = Counter::default();
    let graph = StateGraph::<Sums>::new()
        .add_node("lone", move || Sums::update().zeal(1).sum(if tries.add() == 0 { 7 } else { 1 }))
        .add_edge(START, "lone")
        .add_conditional_edges("lone", [END], |_: &Sums| END);
    let thread =
        graph.compile().expect("a graph").with_checkpointer(MemorySaver::new()).thread("t");
    let error = thread.invoke(Sums::update()).await.expect_err("a panic");
    says(&error, &["`lone`", "sevens are bad luck"]);
    let state = thread.get_state().await.expect("a look").state().clone();
    assert_eq!((state.sum, state.zeal), (0, 0));
    let done = thread.invoke(()).await.expect("no panic").done().expect("the end");
    assert_eq!((done.sum, done.zeal), (1, 1));
}
