//! Shows that streams tell of a failed task and of open questions what a look at the thread tells afterwards.
//!
//! It could break because events are made while a superstep runs, and a look is made from what was stored.

use crate::world::{Log, World, asked, in_memory, log, look, next, texts};
use superstep::prelude::*;
use superstep::{CompiledGraph, Data, RunControl, RunStream};

async fn told(mut run: RunStream<Log>) -> (Vec<Data<Log>>, Option<String>) {
    let (mut data, mut failure) = (Vec::new(), None);
    while let Some(event) = run.next().await {
        match event {
            Ok(event) => data.push(event.data),
            Err(error) => failure = Some(error.to_string()),
        }
    }
    (data, failure)
}

/// One node that asks, and fails once it is answered.
fn asks_and_fails() -> CompiledGraph<Log> {
    StateGraph::<Log>::new()
        .add_node("a", |task: Task| async move {
            let _: String = task.interrupt("which?").await;
            Err::<crate::world::LogUpdate, _>("not this one")
        })
        .add_edge(START, "a")
        .compile()
        .expect("a graph")
}

/// The reference streams an empty update of the task.
#[tokio::test(start_paused = true)]
async fn a_task_that_was_answered_and_failed_has_updated_nothing() {
    let thread = in_memory(asks_and_fails(), &World::new()).thread("1");
    asked(thread.invoke(log("in")).await);
    let (events, failure) = told(thread.resume("a").stream([Mode::Updates])).await;
    assert!(events.is_empty(), "{events:?}");
    assert!(failure.is_some_and(|text| text.contains("not this one")));
}

/// In the reference such an event has the error and no question, and a look has both.
#[tokio::test(start_paused = true)]
async fn an_event_about_a_checkpoint_shows_the_question_of_a_failed_task() {
    let graph = StateGraph::<Log>::new()
        .add_node("a", |task: Task, Ctx(world): Ctx<World>| async move {
            if world.is_broken() {
                return Err("no");
            }
            let answer: String = task.interrupt("which?").await;
            world.break_again();
            Ok(log(answer))
        })
        .add_edge(START, "a")
        .compile()
        .expect("a graph");
    let world = World::new();
    let thread = in_memory(graph, &world).thread("1");
    asked(thread.invoke(log("in")).await);
    world.break_again();
    let (_, failure) = told(thread.invoke(()).stream([Mode::Checkpoints])).await;
    assert!(failure.is_some());
    let state = look(&thread).await;
    let looked = (state.tasks[0].error.is_some(), texts(&state.tasks[0].interrupts));
    assert_eq!(looked, (true, vec!["which?".to_owned()]));

    let (events, _) = told(thread.invoke(()).stream([Mode::Checkpoints])).await;
    let tasks: Vec<_> = events
        .iter()
        .filter_map(|data| match data {
            Data::Checkpoint(snapshot) => snapshot.tasks.first(),
            _ => None,
        })
        .map(|task| (task.error.is_some(), texts(&task.interrupts)))
        .collect();
    assert!(tasks.contains(&looked), "{tasks:?}");
}

/// In the reference the run ends as drained and says nothing of the question.
#[tokio::test(start_paused = true)]
async fn a_question_beside_a_graph_that_was_drained_is_asked() {
    let control = RunControl::new();
    let drain = control.clone();
    let inner = StateGraph::<Log>::new()
        .add_node("one", move || {
            drain.request_drain("deploy");
            log("one")
        })
        .add_node("two", || log("two"))
        .add_edge(START, "one")
        .add_edge("one", "two")
        .compile()
        .expect("a graph");
    let leave = |inner: Log| Log::update().log(inner.log);
    let graph = StateGraph::<Log>::new()
        .add_node("sub", inner.as_node(|_: &Log| Log::update(), leave))
        .add_node("asks", |task: Task| async move {
            let answer: String = task.interrupt("which?").await;
            log(answer)
        })
        .add_edge(START, "sub")
        .add_edge(START, "asks")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &World::new()).thread("1");
    assert_eq!(asked(thread.invoke(log("in")).control(control).await), ["which?"]);
    let mut left = next(&look(&thread).await);
    left.sort();
    assert_eq!(left, ["asks", "sub"]);
}
