//! Naming the newest checkpoint of a thread is the same as naming the thread; naming one that does
//! not exist is an error.

use std::time::Duration;

use crate::world::{
    Log, World, assert_says, checkpoints, done, failed, in_memory, log, look, next,
};
use superstep::Thread;
use superstep::checkpoint::CheckpointId;
use superstep::prelude::*;

/// Two nodes side by side, of which the slower can break.
fn thread(world: &World) -> Thread<Log> {
    let graph = StateGraph::<Log>::new()
        .add_node("fast", |Ctx(world): Ctx<World>| {
            world.ran("fast");
            log("fast")
        })
        .add_node("slow", |Ctx(world): Ctx<World>| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            world.ran("slow");
            if world.is_broken() { Err("no") } else { Ok(log("slow")) }
        })
        .add_edge(START, "fast")
        .add_edge(START, "slow")
        .compile()
        .expect("a graph");
    in_memory(graph, world).thread("1")
}

/// F11: the reference takes the id of the head of a failed run for time travel: it adds a fork, and tasks that had finished
/// run again.
#[tokio::test(start_paused = true)]
async fn of_a_failed_run() {
    let world = World::broken();
    let thread = thread(&world);
    failed(thread.invoke(log("in")).await);
    assert_eq!(world.take(), ["fast", "slow"]);
    let head = look(&thread).await;
    let made = checkpoints(&thread).await;

    world.mend();
    assert_eq!(done(thread.at(&head).invoke(()).await).log, ["in", "fast", "slow"]);
    assert_eq!(world.take(), ["slow"], "what had finished does not run again");
    assert_eq!(checkpoints(&thread).await, made + 1, "one superstep, and no fork");
}

/// F11: also when there is nothing left to run.
#[tokio::test(start_paused = true)]
async fn of_a_finished_run() {
    let world = World::new();
    let thread = thread(&world);
    let state = done(thread.invoke(log("in")).await);
    let head = look(&thread).await;
    let made = checkpoints(&thread).await;
    world.take();
    assert_eq!(done(thread.at(&head).invoke(()).await), state);
    assert!(world.take().is_empty());
    assert_eq!(checkpoints(&thread).await, made);
}

/// F11: an answer at the head, likewise.
#[tokio::test(start_paused = true)]
async fn of_a_run_that_asks() {
    let graph = StateGraph::<Log>::new()
        .add_node("ask", |task: Task| async move { log(task.interrupt::<String>("go?").await) })
        .add_edge(START, "ask")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &World::new()).thread("1");
    thread.invoke(log("in")).await.expect("a question");
    let head = look(&thread).await;
    let made = checkpoints(&thread).await;
    assert_eq!(done(thread.at(&head).resume("yes").await).log, ["in", "yes"]);
    assert_eq!(checkpoints(&thread).await, made + 1);
}

/// F25: with an id that does not exist, the reference begins with an empty state and keeps the id
/// as a parent.
#[tokio::test(start_paused = true)]
async fn and_an_unknown_id_is_an_error() {
    let world = World::new();
    let thread = thread(&world);
    done(thread.invoke(log("in")).await);
    let (before, made) = (look(&thread).await, checkpoints(&thread).await);
    world.take();

    let id = CheckpointId::from_bytes([7; 16]);
    let lost = thread.at(id);
    let errors = [
        failed(lost.invoke(log("input")).await.map(drop)),
        failed(lost.invoke(()).await.map(drop)),
        failed(lost.resume("yes").await.map(drop)),
        failed(lost.get_state().await.map(drop)),
        failed(lost.update_state(log("update")).as_node("fast").await.map(drop)),
    ];
    for (error, text) in errors {
        assert!(matches!(error, RunError::UnknownCheckpoint { .. }), "{error:?}");
        assert_says(&text, &["`1`", "no checkpoint", &id.to_string()]);
    }
    assert!(world.take().is_empty());
    assert_eq!(checkpoints(&thread).await, made);
    let after = look(&thread).await;
    assert_eq!((after.state(), next(&after)), (before.state(), next(&before)));
}
