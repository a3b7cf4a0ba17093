//! A workflow is one superstep, so a drain that waited for its boundary would wait for all that is
//! left to do. It stops before the next recorded call begins, keeps what calls have done, and
//! continues with no input.
//!
//! The reference runs on to the end of the function (`docs/divergences.md`).

use crate::world::{World, asked, done};
use superstep::func::Entrypoint;
use superstep::prelude::*;
use superstep::{CompiledGraph, Durability, RunControl, Thread};

const MODES: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

/// Says that it ran, and has the run drained if it is told to.
async fn step(task: Task, name: &'static str, drains: bool) -> Result<String, NodeError> {
    task.context::<World>().expect("a world").ran(name);
    if drains {
        task.control().request_drain("deploy");
    }
    Ok(name.to_owned())
}

/// Three calls in a row; the first has the run drained when it runs.
fn row() -> Entrypoint<(), String> {
    Entrypoint::new("row", |(): (), task: Task| async move {
        let mut all = Vec::new();
        for (name, drains) in [("a", true), ("b", false), ("c", false)] {
            let call = task.call_with(name, move |task| step(task, name, drains));
            all.push(call.await?);
        }
        Ok::<_, NodeError>(all.join(" "))
    })
}

fn on_thread<S: State, O>(graph: CompiledGraph<S, O>, world: &World) -> Thread<S, O> {
    graph.with_checkpointer(MemorySaver::new()).with_context(world.clone()).thread("1")
}

#[track_caller]
fn drained<O: std::fmt::Debug>(outcome: Result<Outcome<O>, RunError>) -> String {
    match outcome {
        Ok(Outcome::Drained(reason)) => reason.to_string(),
        other => panic!("the run should be drained, but ended with {other:?}"),
    }
}

#[tokio::test]
async fn and_goes_on_after_what_was_recorded() {
    for durability in MODES {
        let world = World::new();
        let thread = on_thread(row().compile(), &world);
        let run = thread.start(()).durability(durability);
        assert_eq!(drained(run.await), "deploy", "{durability:?}");
        assert_eq!(world.take(), ["a"], "{durability:?}");
        let seen = thread.get_state().await.expect("a look");
        assert_eq!(&*seen.next[0], "row");
        let ended = thread.invoke(()).durability(durability).await;
        assert_eq!(done(ended), "a b c", "{durability:?}");
        assert_eq!(world.take(), ["b", "c"], "{durability:?}");
    }
}

/// What runs beside completes; what waits for its turn does not begin.
#[tokio::test]
async fn when_calls_run_beside_each_other() {
    let world = World::new();
    let workflow = Entrypoint::new("beside", |(): (), task: Task| async move {
        let calls = ["a", "b", "c"].map(|name| {
            task.call_with(name, move |task| async move {
                // All that may run have begun when the first of them continues.
                task.context::<World>().expect("a world").ran(name);
                tokio::task::yield_now().await;
                task.control().request_drain("deploy");
                Ok::<_, NodeError>(name.to_owned())
            })
            .spawn()
        });
        let mut all = Vec::new();
        for call in calls {
            all.push(call.await?);
        }
        Ok::<_, NodeError>(all.join(" "))
    });
    let thread = on_thread(workflow.compile(), &world);
    assert_eq!(drained(thread.start(()).max_concurrency(2).await), "deploy");
    assert_eq!(world.take(), ["a", "b"]);
    assert_eq!(done(thread.invoke(()).await), "a b c");
    assert_eq!(world.take(), ["c"]);
}

/// A call that makes calls of its own has not finished, so it runs again, and finds those that are recorded.
#[tokio::test]
async fn inside_a_call() {
    let world = World::new();
    let workflow = Entrypoint::new("outer", |(): (), task: Task| async move {
        let call = task.call_with("inner", |task| async move {
            let first = task.call_with("a", |task| step(task, "a", true)).await?;
            let second = task.call_with("b", |task| step(task, "b", false)).await?;
            Ok::<_, NodeError>(first + &second)
        });
        call.await
    });
    let thread = on_thread(workflow.compile(), &world);
    assert_eq!(drained(thread.start(()).await), "deploy");
    assert_eq!(done(thread.invoke(()).await), "ab");
    assert_eq!(world.take(), ["a", "b"]);
}

#[derive(State, Clone, Debug, Default)]
struct Around {
    said: String,
}

/// The node around a workflow stops with it.
#[tokio::test]
async fn inside_a_graph() {
    let world = World::new();
    let inner = row().compile();
    let graph = StateGraph::<Around>::new()
        .add_node("call", move |task: Task| {
            let inner = inner.clone();
            async move {
                let said = task.invoke(&inner, inner.input(())).await?;
                Ok::<_, NodeError>(Around::update().said(said))
            }
        })
        .add_edge(START, "call")
        .compile()
        .expect("a graph");
    let thread = on_thread(graph, &world);
    assert_eq!(drained(thread.invoke(Around::update()).await), "deploy");
    assert_eq!(world.take(), ["a"]);
    assert_eq!(done(thread.invoke(()).await).said, "a b c");
    assert_eq!(world.take(), ["b", "c"]);
}

/// A question that is open is told before a drain, as in every graph.
#[tokio::test]
async fn but_a_question_comes_first() {
    let world = World::new();
    let workflow = Entrypoint::new("asks", |(): (), task: Task| async move {
        let a = task.call_with("a", |task| step(task, "a", true)).await?;
        let b: String = task.interrupt("b?").await;
        Ok::<_, NodeError>(a + &b)
    });
    let thread = on_thread(workflow.compile(), &world);
    assert_eq!(asked(thread.start(()).await), ["b?"]);
    assert_eq!(done(thread.resume("b").await), "ab");
}

/// The superstep of a graph completes, with all the calls that its nodes make.
#[tokio::test]
async fn while_a_node_of_a_graph_makes_all_its_calls() {
    let world = World::new();
    let graph = StateGraph::<Around>::new()
        .add_node("calls", |task: Task| async move {
            let a = task.call_with("a", |task| step(task, "a", true)).await?;
            let b = task.call_with("b", |task| step(task, "b", false)).await?;
            Ok::<_, NodeError>(Around::update().said(a + &b))
        })
        .add_node("after", Around::update)
        .add_edge(START, "calls")
        .add_edge("calls", "after")
        .compile()
        .expect("a graph");
    let thread = on_thread(graph, &world);
    assert_eq!(drained(thread.invoke(Around::update()).await), "deploy");
    assert_eq!(world.take(), ["a", "b"]);
}

#[tokio::test]
async fn a_drain_before_it_begins_leaves_everything_to_do() {
    let (world, control) = (World::new(), RunControl::new());
    let thread = on_thread(row().compile(), &world);
    control.request_drain("deploy");
    assert_eq!(drained(thread.start(()).control(control).await), "deploy");
    assert!(world.take().is_empty());
}
