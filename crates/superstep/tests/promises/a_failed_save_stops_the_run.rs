//! What a superstep did is stored before the next one starts. If that fails the run ends there, and the thread can be taken
//! up from what is stored.

use crate::world;

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::world::{Log, Watched, World, assert_says, done, failed, log, look, next};
use superstep::prelude::*;
use superstep::{CompiledGraph, Durability, Memory, RunError};

/// `a` and `b` side by side, then `after`.
fn app(checkpointer: &Watched, world: &World) -> CompiledGraph<Log> {
    let note = |name: &'static str, seconds: u64| {
        move |Ctx(world): Ctx<World>| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            world.ran(name);
            log(name)
        }
    };
    let graph = StateGraph::<Log>::new()
        .add_node("a", note("a", 1))
        .add_node("b", note("b", 2))
        .add_node("after", note("after", 0))
        .add_edge(START, "a")
        .add_edge(START, "b")
        .add_edge(["a", "b"], "after")
        .compile()
        .expect("a graph");
    graph.with_checkpointer(checkpointer.clone()).with_context(world.clone())
}

fn disk_is_full(outcome: Result<Outcome<Log>, RunError>) {
    let (error, text) = failed(outcome);
    assert!(matches!(error, RunError::Checkpoint(_)), "{error:?}");
    assert_says(&text, &["the disk is full"]);
}

/// F30: the reference does not wait for the writes of tasks; it tells of the failure when all nodes have run.
#[tokio::test(start_paused = true)]
async fn of_what_a_task_wrote() {
    let (checkpointer, world) = (Watched::default(), World::new());
    let thread = app(&checkpointer, &world).thread("1");
    checkpointer.writes_fail.store(true, Ordering::SeqCst);
    disk_is_full(thread.invoke(log("in")).await);
    assert!(!world.take().contains(&"after".to_owned()), "the next superstep does not start");
    assert_eq!(look(&thread).await.state().log, ["in"]);

    checkpointer.writes_fail.store(false, Ordering::SeqCst);
    assert_eq!(done(thread.invoke(()).await).log, ["in", "a", "b", "after"]);
    assert_eq!(world.take(), ["a", "b", "after"], "what was not stored runs again");
}

/// F30: the checkpoint itself.
#[tokio::test(start_paused = true)]
async fn of_a_checkpoint() {
    let (checkpointer, world) = (Watched::default(), World::new());
    let thread = app(&checkpointer, &world).thread("1");
    thread.invoke(log("in")).interrupt_before(["a"]).await.expect("a breakpoint");
    checkpointer.checkpoints_fail.store(true, Ordering::SeqCst);
    disk_is_full(thread.invoke(()).await);
    assert_eq!(world.take(), ["a", "b"]);

    checkpointer.checkpoints_fail.store(false, Ordering::SeqCst);
    assert_eq!(
        next(&look(&thread).await),
        ["b"],
        "the writes of the last task go with the checkpoint"
    );
    assert_eq!(done(thread.invoke(()).await).log, ["in", "a", "b", "after"]);
    assert_eq!(world.take(), ["b", "after"]);
}

/// F30: the input; nothing runs.
#[tokio::test(start_paused = true)]
async fn of_the_input() {
    let (checkpointer, world) = (Watched::default(), World::new());
    let thread = app(&checkpointer, &world).thread("1");
    checkpointer.checkpoints_fail.store(true, Ordering::SeqCst);
    disk_is_full(thread.invoke(log("in")).await);
    assert!(world.take().is_empty());
    checkpointer.checkpoints_fail.store(false, Ordering::SeqCst);
    assert_eq!(done(thread.invoke(log("in")).await).log, ["in", "a", "b", "after"]);
}

/// A subgraph with a memory counts how often it was called, and the outermost graph is stored at
/// its end.
fn remembers(checkpointer: &Watched) -> CompiledGraph<Log> {
    let inner = StateGraph::<Log>::new()
        .add_node("count", |state: Arc<Log>| Log::update().n(state.n + 1))
        .add_node("rest", || ())
        .add_edge(START, "count")
        .add_edge("count", "rest")
        .memory(Memory::PerThread)
        .compile()
        .expect("a graph");
    let leave = |inner: Log| log(format!("called {} times", inner.n));
    let graph = StateGraph::<Log>::new()
        .add_node("inner", inner.as_node(|_: &Log| Log::update(), leave))
        .add_edge(START, "inner");
    graph.compile().expect("a graph").with_checkpointer(checkpointer.clone())
}

/// It is the end of the run that cannot be stored, and with it what subgraphs remember.
#[tokio::test(start_paused = true)]
async fn of_a_graph_with_a_memory_at_the_end() {
    let checkpointer = Watched::default();
    let thread = remembers(&checkpointer).thread("1");
    let run = |line: &str| thread.invoke(log(line)).durability(Durability::Exit);
    checkpointer.checkpoints_fail.store(true, Ordering::SeqCst);
    disk_is_full(run("lost").await);
    checkpointer.checkpoints_fail.store(false, Ordering::SeqCst);
    assert_eq!(done(run("first").await).log, ["first", "called 1 times"]);
    checkpointer.checkpoints_fail.store(true, Ordering::SeqCst);
    disk_is_full(run("lost").await);
    checkpointer.checkpoints_fail.store(false, Ordering::SeqCst);
    let end = done(run("second").await);
    assert_eq!(end.log, ["first", "called 1 times", "second", "called 2 times"]);
}

/// Two runs of different processes that store at their end: the one that comes last is told, and leaves nothing behind.
#[tokio::test(start_paused = true)]
async fn of_a_graph_with_a_memory_that_another_run_has_used() {
    let checkpointer = Watched::default();
    // The checkpointer does not say where it keeps things, so the two do not know of each other.
    let thread = remembers(&checkpointer).thread("1");
    let run = |line: &str| thread.invoke(log(line)).durability(Durability::Exit);
    let other =
        remembers(&checkpointer).thread("1").invoke(log("other")).durability(Durability::Exit);
    let mut other = other.stream([Mode::Updates]).subgraphs(true);
    // A run waits for the reader of its stream, so this one is now in the middle of the subgraph.
    let update = other.next().await.expect("an event").expect("`count` has run");
    assert!(!update.ns.is_empty(), "{update:?}");
    done(run("first").await);
    let error = loop {
        match other.next().await.expect("an end") {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(&error, RunError::Conflict { thread, .. } if &**thread == "1"), "{error:?}");
    assert_eq!(done(run("second").await).log.last().expect("a line"), "called 2 times");
}

/// What a subgraph has stored cannot be read.
#[tokio::test(start_paused = true)]
async fn or_of_a_look_at_a_graph_with_a_memory() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let checkpointer = Watched::default();
        let thread = remembers(&checkpointer).thread("1");
        let run = |line: &str| thread.invoke(log(line)).durability(durability);
        done(run("first").await);
        checkpointer.looks_inside_fail.store(true, Ordering::SeqCst);
        disk_is_full(run("second").await);
        checkpointer.looks_inside_fail.store(false, Ordering::SeqCst);
        let end = done(thread.invoke(()).durability(durability).await);
        assert_eq!(end.log, ["first", "called 1 times", "second", "called 2 times"]);
    }
}

/// F30: a question that could not be stored was not asked.
#[tokio::test(start_paused = true)]
async fn of_a_question() {
    let checkpointer = Watched::default();
    let graph = StateGraph::<Log>::new()
        .add_node("ask", |task: Task| async move { log(task.interrupt::<String>("go?").await) })
        .add_edge(START, "ask")
        .compile()
        .expect("a graph");
    let thread = graph.with_checkpointer(checkpointer.clone()).thread("1");
    checkpointer.writes_fail.store(true, Ordering::SeqCst);
    disk_is_full(thread.invoke(log("in")).await);
    checkpointer.writes_fail.store(false, Ordering::SeqCst);
    assert!(look(&thread).await.interrupts.is_empty());
    assert_eq!(world::asked(thread.invoke(()).await), ["go?"]);
    assert_eq!(done(thread.resume("yes").await).log, ["in", "yes"]);
}

/// F30: the result of a recorded call. Handling errors of the call does not hide it.
#[tokio::test(start_paused = true)]
async fn of_a_recorded_call() {
    let (checkpointer, world) = (Watched::default(), World::new());
    let graph = StateGraph::<Log>::new()
        .add_node("pay", |task: Task| async move {
            let charged = task.call("charge", || async { Ok::<i64, NodeError>(42) }).await;
            log(charged.map_or_else(|_| "swallowed".to_owned(), |n| n.to_string()))
        })
        .add_node("after", |Ctx(world): Ctx<World>| world.ran("after"))
        .add_edge(START, "pay")
        .add_edge("pay", "after")
        .compile()
        .expect("a graph");
    let app = graph.with_checkpointer(checkpointer.clone()).with_context(world.clone());
    let thread = app.thread("1");
    checkpointer.writes_fail.store(true, Ordering::SeqCst);
    disk_is_full(thread.invoke(log("in")).await);
    assert!(world.take().is_empty());
    checkpointer.writes_fail.store(false, Ordering::SeqCst);
    assert_eq!(done(thread.invoke(()).await).log, ["in", "42"]);
}
