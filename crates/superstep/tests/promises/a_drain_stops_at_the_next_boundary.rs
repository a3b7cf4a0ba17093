//! Shows what happens to a run that is asked to stop while it works: the superstep completes and is
//! stored, the run ends with the reason, and the thread continues with no input and without doing
//! anything twice.
//!
//! It could break if the request were looked at inside a superstep, if a subgraph or the
//! node around it made something else of it, or if what was done by then were not stored.

use crate::common::{Counter, Notes, done, kept, line, ms, next, sleep};
use superstep::prelude::*;
use superstep::{CompiledGraph, Durability, Memory, RunControl};

const MODES: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

/// The reason of a run that was drained.
#[track_caller]
fn drained(outcome: Result<Outcome<Notes>, RunError>) -> String {
    match outcome {
        Ok(Outcome::Drained(reason)) => reason.to_string(),
        other => panic!("the run should be drained, but ended with {other:?}"),
    }
}

/// Asks for a drain after a while.
async fn later(control: &RunControl, time: u64) {
    sleep(time).await;
    control.request_drain("deploy");
}

/// Each node of the chain takes 100 ms.
fn chain(ran: &Counter) -> StateGraph<Notes> {
    let node = |name: &'static str| {
        let ran = ran.clone();
        move || {
            ran.add();
            async move {
                sleep(100).await;
                line(name)
            }
        }
    };
    StateGraph::new()
        .add_node("a", node("a"))
        .add_node("b", node("b"))
        .add_node("c", node("c"))
        .add_edge(START, "a")
        .add_edge("a", "b")
        .add_edge("b", "c")
}

#[tokio::test(start_paused = true)]
async fn a_node_in_the_middle_runs_to_its_end() {
    for durability in MODES {
        let (ran, control) = (Counter::default(), RunControl::new());
        let thread = kept(chain(&ran)).thread("t");
        let run = thread.invoke(line("in")).durability(durability).control(control.clone());
        let (ended, ()) = tokio::join!(run, later(&control, 150));
        assert_eq!(drained(ended), "deploy");
        let seen = thread.get_state().await.expect("a look");
        assert_eq!(seen.state().lines, ["in", "a", "b"]);
        assert_eq!(next(&seen), ["c"]);

        let notes = done(thread.invoke(()).durability(durability).await);
        assert_eq!(notes.lines, ["in", "a", "b", "c"]);
        assert_eq!(ran.get(), 3, "nothing ran twice ({durability:?})");
    }
}

/// The control outlives the run, so whoever asked can tell that it came too late.
#[tokio::test(start_paused = true)]
async fn a_graph_that_comes_to_its_end_returns_normally() {
    for durability in MODES {
        let (ran, control) = (Counter::default(), RunControl::new());
        let thread = kept(chain(&ran)).thread("t");
        let run = thread.invoke(line("in")).durability(durability).control(control.clone());
        let (ended, ()) = tokio::join!(run, later(&control, 250));
        assert_eq!(done(ended).lines, ["in", "a", "b", "c"]);
        assert!(control.drain_requested());
        assert_eq!(control.drain_reason().as_deref(), Some("deploy"));
    }
}

#[tokio::test(start_paused = true)]
async fn before_anything_ran() {
    for durability in MODES {
        let (ran, control) = (Counter::default(), RunControl::new());
        control.request_drain("deploy");
        control.request_drain("another reason");
        let thread = kept(chain(&ran)).thread("t");
        let run = thread.invoke(line("in")).durability(durability).control(control.clone());
        assert_eq!(drained(run.await), "deploy", "the first reason stays");
        assert_eq!(ran.get(), 0);
        // What is asked for stays asked for.
        assert_eq!(drained(thread.invoke(()).control(control).await), "deploy");
        assert_eq!(ran.get(), 0);
        assert_eq!(done(thread.invoke(()).await).lines, ["in", "a", "b", "c"]);
    }
}

/// Fails until the third attempt, half a second each.
fn flaky(attempts: u32) -> CompiledGraph<Notes> {
    let graph = StateGraph::new()
        .add_node("flaky", |task: Task| async move {
            sleep(500).await;
            if task.attempt() < 3 { Err("not yet") } else { Ok(line("flaky")) }
        })
        .retry(RetryPolicy::attempts(attempts).initial_interval(ms(100)).jitter(false))
        .add_node("after", || line("after"))
        .add_edge(START, "flaky")
        .add_edge("flaky", "after");
    kept(graph)
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_tried_again_is_tried_until_it_succeeds() {
    let control = RunControl::new();
    let thread = flaky(5).thread("t");
    let run = thread.invoke(line("in")).control(control.clone());
    let (ended, ()) = tokio::join!(run, later(&control, 10));
    assert_eq!(drained(ended), "deploy");
    assert_eq!(thread.get_state().await.expect("a look").state().lines, ["in", "flaky"]);
    assert_eq!(done(thread.invoke(()).await).lines, ["in", "flaky", "after"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_tried_again_may_fail_for_good() {
    let control = RunControl::new();
    let thread = flaky(2).thread("t");
    let run = thread.invoke(line("in")).control(control.clone());
    let (ended, ()) = tokio::join!(run, later(&control, 10));
    assert!(matches!(ended, Err(RunError::Node { .. })), "{ended:?}");
    assert_eq!(next(&thread.get_state().await.expect("a look")), ["flaky"]);
}

/// What is asked in the superstep is not lost for the sake of the drain.
#[tokio::test(start_paused = true)]
async fn a_question_wins() {
    let control = RunControl::new();
    let graph = StateGraph::new()
        .add_node("ask", |task: Task| async move {
            task.control().request_drain("deploy");
            line(task.interrupt::<String>("go on?").await)
        })
        .add_edge(START, "ask");
    let thread = kept(graph).thread("t");
    let asked = thread.invoke(line("in")).control(control).await.expect("a run").interrupted();
    assert_eq!(asked.expect("a question").len(), 1);
}

/// A subgraph whose first node asks for a drain, and a node next to it that takes longer.
fn around(inner: CompiledGraph<Notes>, beside: &Counter) -> StateGraph<Notes> {
    let beside = beside.clone();
    let leave = |inner: Notes| Notes::update().lines(inner.lines);
    StateGraph::new()
        .add_node("inner", inner.as_node(|_: &Notes| Notes::update(), leave))
        .add_node("slow", move || {
            beside.add();
            async {
                sleep(1000).await;
                line("slow")
            }
        })
        .add_node("after", || line("after"))
        .add_edge(START, "inner")
        .add_edge(START, "slow")
        .add_edge(["inner", "slow"], "after")
}

fn draining(ran: &Counter) -> StateGraph<Notes> {
    let ran = ran.clone();
    StateGraph::new()
        .add_node("x", move |task: Task| {
            if ran.add() == 0 {
                task.control().request_drain("deploy");
            }
            line("x")
        })
        .add_node("y", || line("y"))
        .add_edge(START, "x")
        .add_edge("x", "y")
}

#[tokio::test(start_paused = true)]
async fn a_graph_inside_stops_the_graph_around_it() {
    for durability in MODES {
        for memory in [Memory::PerCall, Memory::PerThread, Memory::Nothing] {
            let (inner, beside) = (Counter::default(), Counter::default());
            let graph = draining(&inner).memory(memory).compile().expect("a graph");
            let thread = kept(around(graph, &beside)).thread("t");
            assert_eq!(drained(thread.invoke(line("in")).durability(durability).await), "deploy");
            let seen = thread.get_state().await.expect("a look");
            assert_eq!(next(&seen), ["inner"], "the node beside it has run to its end");

            let notes = done(thread.invoke(()).durability(durability).await);
            assert_eq!(notes.lines, ["in", "x", "y", "slow", "after"]);
            assert_eq!(beside.get(), 1, "{durability:?}, {memory:?}");
            let again = if memory == Memory::Nothing { 2 } else { 1 };
            assert_eq!(inner.get(), again, "{durability:?}, {memory:?}");
        }
    }
}

/// F39: in the reference a drain is an exception that the node around the graph can catch.
#[tokio::test(start_paused = true)]
async fn the_node_around_it_cannot_swallow_it() {
    let ran = Counter::default();
    let inner = draining(&ran).compile().expect("a graph");
    let called = inner.clone();
    let node = move |task: Task| {
        let inner = called.clone();
        async move {
            let limit = tokio::time::timeout(ms(50), task.invoke(&inner, Notes::update()));
            match limit.await {
                Ok(Ok(inner)) => Notes::update().lines(inner.lines),
                Ok(Err(_)) | Err(_) => line("swallowed"),
            }
        }
    };
    let graph = StateGraph::new()
        .add_node("node", node)
        .calls(&inner)
        .retry(RetryPolicy::attempts(3))
        .on_error(|| line("swallowed"))
        .add_node("after", || line("after"))
        .add_edge(START, "node")
        .add_edge("node", "after");
    let thread = kept(graph).thread("t");
    assert_eq!(drained(thread.invoke(line("in")).await), "deploy");
    assert_eq!(done(thread.invoke(()).await).lines, ["in", "x", "y", "after"]);
    assert_eq!(ran.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_control_serves_many_runs() {
    let (ran, control) = (Counter::default(), RunControl::new());
    let app = kept(chain(&ran));
    let run = |id: &str| app.thread(id).invoke(line(id)).control(control.clone());
    let (one, two, three, ()) = tokio::join!(run("1"), run("2"), run("3"), later(&control, 150));
    for ended in [one, two, three, run("4").await] {
        assert_eq!(drained(ended), "deploy");
    }
    for (id, lines) in [("1", 4), ("4", 4)] {
        assert_eq!(done(app.thread(id).invoke(()).await).lines.len(), lines);
    }
}

/// Without a checkpointer there is nothing to continue from, but the run stops all the same.
#[tokio::test(start_paused = true)]
async fn without_a_checkpointer() {
    let (ran, control) = (Counter::default(), RunControl::new());
    let app = chain(&ran).compile().expect("a graph");
    let run = app.invoke(line("in")).control(control.clone());
    let (ended, ()) = tokio::join!(run, later(&control, 50));
    assert_eq!(drained(ended), "deploy");
    assert_eq!(ran.get(), 1);
}

/// A stream gives all its events before it ends.
#[tokio::test(start_paused = true)]
async fn of_a_stream() {
    let (ran, control) = (Counter::default(), RunControl::new());
    let thread = kept(chain(&ran)).thread("t");
    let mut run = thread.invoke(line("in")).control(control.clone()).stream([Mode::Updates]);
    let (mut nodes, mut ended) = (Vec::new(), None);
    while let Some(event) = run.next().await {
        match event.expect("an event").data {
            superstep::Data::Updates(_) => {
                nodes.push(ran.get());
                control.request_drain("deploy");
            }
            superstep::Data::Outcome(outcome) => ended = Some(outcome),
            other => panic!("an event nobody asked for: {other:?}"),
        }
    }
    assert_eq!(nodes, [1], "the update of `a`, and nothing after it");
    assert!(matches!(ended, Some(Outcome::Drained(_))), "{ended:?}");
}
