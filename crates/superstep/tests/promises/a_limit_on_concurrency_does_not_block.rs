//! One task at a time means one task of a graph at a time: what a task waits for does not need a place of its own.

use std::time::Duration;

use crate::world::{Log, World, asked, done, in_memory, log, settles};
use superstep::Data;
use superstep::func::Entrypoint;
use superstep::prelude::*;

/// F12: in the reference whoever waits for events holds the only place.
#[tokio::test(start_paused = true)]
async fn a_stream_of_custom_events() {
    let node = |name: &'static str| {
        move |task: Task| async move {
            task.emit(name);
            tokio::time::sleep(Duration::from_secs(1)).await;
            task.emit(format!("{name} again"));
            log(name)
        }
    };
    let graph = StateGraph::<Log>::new()
        .add_node("a", node("a"))
        .add_node("b", node("b"))
        .add_edge(START, "a")
        .add_edge(START, "b")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &World::new()).thread("1");
    let mut run = thread.invoke(log("in")).max_concurrency(1).stream([Mode::Custom]);
    let mut events = Vec::new();
    let outcome = loop {
        match settles(run.next()).await.expect("an event").expect("no error").data {
            Data::Custom(value) => events.push(value.to_string()),
            Data::Outcome(outcome) => break outcome,
            other => panic!("an event nobody asked for: {other:?}"),
        }
    };
    assert_eq!(events.len(), 4, "{events:?}");
    assert_eq!(outcome.done().expect("done").log, ["in", "a", "b"]);
}

/// F12: in the reference a workflow holds the only place while it waits for its calls.
#[tokio::test(start_paused = true)]
async fn a_workflow_that_waits_for_its_calls() {
    let flow = Entrypoint::new("flow", |n: i64, task: Task| async move {
        let double = |n: i64| {
            move || async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok::<i64, NodeError>(n * 2)
            }
        };
        let n = task.call("double", double(n)).await?;
        let (a, b) = (task.call("a", double(n)).spawn(), task.call("b", double(n)).spawn());
        Ok::<_, NodeError>(b.await? + a.await?)
    });
    let thread = in_memory(flow.compile(), &World::new()).thread("1");
    let run = thread.start(1).max_concurrency(1);
    assert_eq!(done(settles(run).await), 8);
}

/// F12: a call that makes calls.
#[tokio::test(start_paused = true)]
async fn a_call_that_makes_calls() {
    let flow = Entrypoint::new("flow", |(): (), task: Task| async move {
        let outer = task.call_with("outer", |call: Task| async move {
            let inner = call.call("inner", || async { Ok::<i64, NodeError>(1) }).await?;
            Ok::<i64, NodeError>(inner + 1)
        });
        outer.await
    });
    let thread = in_memory(flow.compile(), &World::new()).thread("1");
    let run = thread.start(()).max_concurrency(1);
    assert_eq!(done(settles(run).await), 2);
}

/// F12: nodes that run graphs with several nodes at once.
#[tokio::test(start_paused = true)]
async fn nodes_that_run_graphs() {
    let inner = StateGraph::<Log>::new()
        .add_node("x", || log("x"))
        .add_node("y", |task: Task| async move { log(task.interrupt::<String>("y?").await) })
        .add_edge(START, "x")
        .add_edge(START, "y")
        .compile()
        .expect("a graph");
    let leave = |inner: Log| Log::update().log(inner.log);
    let sub = || inner.as_node(|_: &Log| Log::update(), leave);
    let graph = StateGraph::<Log>::new()
        .add_node("a", sub())
        .add_node("b", sub())
        .add_edge(START, "a")
        .add_edge(START, "b")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &World::new()).thread("1");
    let run = thread.invoke(log("in")).max_concurrency(1);
    assert_eq!(asked(settles(run).await), ["y?", "y?"]);
    let open = thread.get_state().await.expect("a look").interrupts.clone();
    let answers = open.into_iter().map(|question| (question.id, "yes"));
    let run = thread.resume_all(answers).max_concurrency(1);
    assert_eq!(done(settles(run).await).log, ["in", "x", "yes", "x", "yes"]);
}
