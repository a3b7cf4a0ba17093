//! Shows that the target of a join runs once when all members have run, whenever they did; that a join starts over after
//! that; that a join which is declared twice is one join; and that what a join has seen survives a stop. It would break if
//! a join were kept only in memory, or if its place in storage were taken by another.

use crate::common::{Counter, Notes, done, kept, line};
use superstep::prelude::*;

/// `a` is one superstep ahead of `c`; `end` fails the first time.
fn graph(joins: usize, ran: &Counter) -> StateGraph<Notes> {
    let ran = ran.clone();
    let graph = StateGraph::new()
        .add_node("a", || line("a"))
        .add_node("b", || line("b"))
        .add_node("c", || line("c"))
        .add_node("end", move || match ran.add() {
            0 => Err("not today"),
            _ => Ok(line("end")),
        })
        .add_edge(START, "a")
        .add_edge(START, "b")
        .add_edge("b", "c");
    (0..joins).fold(graph, |graph, _| graph.add_edge(["a", "c"], "end"))
}

async fn check(joins: usize) {
    let ran = Counter::default();
    let thread = kept(graph(joins, &ran)).thread("t");
    thread.invoke(Notes::update()).await.expect_err("not today");
    let first = ["a", "b", "c", "end"];
    assert_eq!(done(thread.invoke(()).await).lines, first);
    assert_eq!(done(thread.invoke(Notes::update()).await).lines, [first, first].concat());
    assert_eq!(ran.get(), 3);
}

#[tokio::test]
async fn declared_once() {
    check(1).await;
}

#[tokio::test]
async fn declared_twice() {
    check(2).await;
}

#[tokio::test]
async fn a_half_filled_join_survives_a_stop_at_every_superstep() {
    let thread = kept(graph(1, &Counter::default())).thread("t");
    let mut run = thread.invoke(Notes::update()).interrupt_before(superstep::BreakAt::all()).await;
    for _ in 0..8 {
        match run {
            Ok(Outcome::Done(notes)) => {
                assert_eq!(notes.lines, ["a", "b", "c", "end"]);
                return;
            }
            Ok(_) | Err(RunError::Node { .. }) => {}
            other => panic!("{other:?}"),
        }
        run = thread.invoke(()).interrupt_before(superstep::BreakAt::all()).await;
    }
    panic!("the run does not end");
}
