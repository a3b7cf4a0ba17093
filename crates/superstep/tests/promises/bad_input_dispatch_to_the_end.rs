//! Shows that a dispatch to END, where nothing runs that could take its argument, is a failed task that says so, with
//! nothing kept of what the node wrote, and that the thread can be run again.

use crate::common::{Counter, Notes, done, kept, line, next, says};
use superstep::prelude::*;

async fn check(graph: StateGraph<Notes>) {
    let thread = kept(graph).thread("t");
    let error = thread.invoke(line("in")).await.expect_err("nothing runs there");
    let RunError::Node { node, .. } = &error else { panic!("{error:?}") };
    assert_eq!(&**node, "spread");
    says(&error, &["`spread`", "end of the graph"]);
    let snapshot = thread.get_state().await.expect("a look");
    assert_eq!(snapshot.state().lines, ["in"]);
    assert_eq!(next(&snapshot), ["spread"]);
    assert_eq!(done(thread.invoke(()).await).lines, ["in", "spread", "work"]);
}

fn work(graph: StateGraph<Notes>) -> StateGraph<Notes> {
    graph.add_node("work", |Arg(_): Arg<i64>| line("work")).add_edge(START, "spread")
}

#[tokio::test]
async fn by_a_node() {
    let tries = Counter::default();
    let graph = StateGraph::new()
        .add_node("spread", move || {
            let to = if tries.add() == 0 { END } else { "work" };
            Command::update(line("spread")).goto(Dispatch::new(to, 1_i64))
        })
        .destinations(["work"]);
    check(work(graph)).await;
}

#[tokio::test]
async fn by_a_router() {
    let tries = Counter::default();
    let graph = StateGraph::new()
        .add_node("spread", || line("spread"))
        .destinations(["work"])
        .add_conditional_edges("spread", ["work"], move |_: &Notes| {
            Dispatch::new(if tries.add() == 0 { END } else { "work" }, 1_i64)
        });
    check(work(graph)).await;
}
