//! Shows what is left when a run is stopped where it stands: what tasks and recorded calls have
//! finished is kept, what was running is dropped and runs again, and the thread continues with no
//! input.
//!
//! It could break because a lone task holds the state while it runs, a router looks at writes that are not to be kept, and
//! what was finished a moment ago is not stored yet.

use std::sync::Arc;

use crate::common::{Counter, Notes, done, kept, line, ms, next, sleep};
use superstep::prelude::*;
use superstep::{CompiledGraph, Durability, Memory, RunControl, Thread};

const MODES: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

/// Runs the thread and stops it after a while.
async fn stopped_after(thread: &Thread<Notes>, durability: Durability, time: u64) {
    let control = RunControl::new();
    let run = thread.invoke(line("in")).durability(durability).control(control.clone());
    let stop = async {
        sleep(time).await;
        control.stop_now("now");
    };
    let began = tokio::time::Instant::now();
    let (ended, ()) = tokio::join!(run, stop);
    assert!(matches!(&ended, Ok(Outcome::Drained(reason)) if &**reason == "now"), "{ended:?}");
    assert_eq!(began.elapsed(), ms(time), "it does not wait for what runs");
}

/// Waits forever the first time.
async fn stuck_once(ran: &Counter) {
    if ran.add() == 0 {
        sleep(1_000_000).await;
    }
}

#[tokio::test(start_paused = true)]
async fn of_siblings() {
    for durability in MODES {
        let (fast, slow) = (Counter::default(), Counter::default());
        let (counted, stuck) = (fast.clone(), slow.clone());
        let graph = StateGraph::new()
            .add_node("fast", move || {
                counted.add();
                line("fast").total(1)
            })
            .add_node("slow", move || {
                let stuck = stuck.clone();
                async move {
                    stuck_once(&stuck).await;
                    line("slow").total(10)
                }
            })
            .add_node("after", |notes: Arc<Notes>| line(format!("after {}", notes.total)))
            .add_edge(START, "fast")
            .add_edge(START, "slow")
            .add_edge(["fast", "slow"], "after");
        let thread = kept(graph).thread("t");
        stopped_after(&thread, durability, 100).await;
        assert_eq!(next(&thread.get_state().await.expect("a look")), ["slow"], "{durability:?}");
        let notes = done(thread.invoke(()).durability(durability).await);
        assert_eq!(notes.lines, ["in", "fast", "slow", "after 11"]);
        assert_eq!((fast.get(), slow.get()), (1, 2), "{durability:?}");
    }
}

/// A lone task has the state for itself; it must come back.
#[tokio::test(start_paused = true)]
async fn of_supersteps_before_a_lone_task() {
    for durability in MODES {
        let (first, slow) = (Counter::default(), Counter::default());
        let (counted, stuck) = (first.clone(), slow.clone());
        let graph = StateGraph::new()
            .add_node("first", move || {
                counted.add();
                line("first")
            })
            .add_node("slow", move |notes: Arc<Notes>| {
                let stuck = stuck.clone();
                async move {
                    stuck_once(&stuck).await;
                    line(format!("slow after {}", notes.lines.len()))
                }
            })
            .add_edge(START, "first")
            .add_edge("first", "slow");
        let thread = kept(graph).thread("t");
        stopped_after(&thread, durability, 100).await;
        assert_eq!(thread.get_state().await.expect("a look").state().lines, ["in", "first"]);
        let notes = done(thread.invoke(()).durability(durability).await);
        assert_eq!(notes.lines, ["in", "first", "slow after 2"]);
        assert_eq!(first.get(), 1, "{durability:?}");
    }
}

/// What a router looked at is not what the node has written: the task has not end.
#[tokio::test(start_paused = true)]
async fn but_not_of_a_node_whose_router_runs() {
    for durability in MODES {
        for siblings in [false, true] {
            let (routed, beside) = (Counter::default(), Counter::default());
            let (stuck, counted) = (routed.clone(), beside.clone());
            let router = move |notes: Arc<Notes>| {
                let stuck = stuck.clone();
                async move {
                    assert_eq!(notes.total, 1, "a router sees what its node wrote, once");
                    stuck_once(&stuck).await;
                    "next"
                }
            };
            let mut graph = StateGraph::new()
                .add_node("node", || line("node").total(1))
                .add_node("next", || line("next"))
                .add_edge(START, "node")
                .add_conditional_edges("node", ["next"], router);
            if siblings {
                let beside = move || {
                    counted.add();
                    line("beside")
                };
                graph = graph.add_node("beside", beside).add_edge(START, "beside");
            }
            let thread = kept(graph).thread("t");
            stopped_after(&thread, durability, 100).await;
            let seen = thread.get_state().await.expect("a look");
            assert_eq!(seen.state().total, 0);
            assert_eq!(next(&seen), ["node"]);
            let notes = done(thread.invoke(()).durability(durability).await);
            let expected: &[_] =
                if siblings { &["in", "beside", "node", "next"] } else { &["in", "node", "next"] };
            assert_eq!(
                (&*notes.lines, notes.total),
                (&expected.iter().map(ToString::to_string).collect::<Vec<_>>()[..], 1)
            );
            assert_eq!((routed.get(), beside.get()), (2, u32::from(siblings)), "{durability:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn of_calls_in_a_node_that_is_dropped() {
    for durability in MODES {
        let (called, slow) = (Counter::default(), Counter::default());
        let (counted, stuck) = (called.clone(), slow.clone());
        let node = move |task: Task| {
            let (called, stuck) = (counted.clone(), stuck.clone());
            async move {
                let charge = || {
                    called.add();
                    async { Ok::<_, NodeError>(42_i64) }
                };
                let paid = task.call("charge", charge).await?;
                stuck_once(&stuck).await;
                Ok::<_, NodeError>(line(format!("paid {paid}")))
            }
        };
        let graph = StateGraph::new().add_node("node", node).add_edge(START, "node");
        let thread = kept(graph).thread("t");
        stopped_after(&thread, durability, 100).await;
        assert_eq!(done(thread.invoke(()).durability(durability).await).lines, ["in", "paid 42"]);
        assert_eq!((called.get(), slow.get()), (1, 2), "{durability:?}");
    }
}

fn around(inner: &CompiledGraph<Notes>) -> StateGraph<Notes> {
    let leave = |inner: Notes| Notes::update().lines(inner.lines);
    StateGraph::new()
        .add_node("inner", inner.as_node(|_: &Notes| Notes::update(), leave))
        .add_edge(START, "inner")
}

/// A subgraph is dropped with its task: what it has stored is kept. Storing only at the end, it has
/// not.
#[tokio::test(start_paused = true)]
async fn of_supersteps_of_a_graph_inside() {
    for durability in MODES {
        for memory in [Memory::PerCall, Memory::PerThread] {
            let (first, slow) = (Counter::default(), Counter::default());
            let (counted, stuck) = (first.clone(), slow.clone());
            let inner = StateGraph::<Notes>::new()
                .add_node("first", move || {
                    counted.add();
                    line("first")
                })
                .add_node("slow", move || {
                    let stuck = stuck.clone();
                    async move {
                        stuck_once(&stuck).await;
                        line("slow")
                    }
                })
                .add_edge(START, "first")
                .add_edge("first", "slow")
                .memory(memory)
                .compile()
                .expect("a graph");
            let thread = kept(around(&inner)).thread("t");
            stopped_after(&thread, durability, 100).await;
            let notes = done(thread.invoke(()).durability(durability).await);
            assert_eq!(notes.lines, ["in", "first", "slow"]);
            let again = if durability == Durability::Exit { 2 } else { 1 };
            assert_eq!(first.get(), again, "{durability:?}, {memory:?}");
        }
    }
}

/// Also a run that begins after it was asked for.
#[tokio::test(start_paused = true)]
async fn of_the_input() {
    for durability in MODES {
        let control = RunControl::new();
        control.stop_now("now");
        let graph = StateGraph::new().add_node("node", || line("node")).add_edge(START, "node");
        let thread = kept(graph).thread("t");
        let ended = thread.invoke(line("in")).durability(durability).control(control).await;
        assert!(matches!(ended, Ok(Outcome::Drained(_))), "{ended:?}");
        assert_eq!(done(thread.invoke(()).durability(durability).await).lines, ["in", "node"]);
    }
}
