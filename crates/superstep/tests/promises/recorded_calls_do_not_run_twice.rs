//! What a recorded call returned is kept for the task that made it, over attempts, pauses and failures.

use std::time::Duration;

use crate::world::{Log, World, asked, done, failed, in_memory, log};
use superstep::CompiledGraph;
use superstep::Durability;
use superstep::func::{Entrypoint, Workflow};
use superstep::prelude::*;

async fn charge(world: &World) -> Result<i64, NodeError> {
    world.ran("charge");
    Ok(42)
}

/// Charges, fails in its first attempt, and then asks.
fn flow(world: &World) -> CompiledGraph<Workflow<bool>, i64> {
    let flow = Entrypoint::new("flow", |asks: bool, task: Task| async move {
        let world: World = task.context().expect("a world");
        world.ran("flow");
        let charged = task.call("charge", || charge(&world)).await?;
        if task.attempt() == 1 && world.is_broken() {
            world.mend();
            return Err(NodeError::from("a hiccup"));
        }
        if asks && !task.interrupt::<bool>("ship?").await {
            return Err(NodeError::permanent("not to be shipped"));
        }
        Ok(charged)
    });
    in_memory(flow.retry(RetryPolicy::attempts(2)).compile(), world)
}

/// F5: in the reference the count of calls continues over attempts, so the second attempt's call is
/// another one and runs too.
#[tokio::test(start_paused = true)]
async fn in_a_further_attempt_of_a_workflow() {
    let world = World::broken();
    let thread = flow(&world).thread("1");
    assert_eq!(done(thread.start(false).await), 42);
    assert_eq!(world.take(), ["flow", "charge", "flow"]);
}

/// F5: and a resume then takes the results of the first attempt for the calls of the second.
#[tokio::test(start_paused = true)]
async fn in_a_resume_after_a_further_attempt() {
    let world = World::broken();
    let thread = flow(&world).thread("1");
    assert_eq!(asked(thread.start(true).await), ["ship?"]);
    assert_eq!(done(thread.resume(true).await), 42);
    assert_eq!(world.take(), ["flow", "charge", "flow", "flow"]);
}

/// F5, in a run that stores only at its end.
#[tokio::test(start_paused = true)]
async fn when_storing_only_at_the_end() {
    let world = World::broken();
    let thread = flow(&world).thread("1");
    let run = thread.start(true).durability(Durability::Exit);
    assert_eq!(asked(run.await), ["ship?"]);
    assert_eq!(done(thread.resume(true).durability(Durability::Exit).await), 42);
    assert_eq!(world.take(), ["flow", "charge", "flow", "flow"]);
}

/// F5, without anything being stored.
#[tokio::test(start_paused = true)]
async fn without_a_checkpointer() {
    let world = World::broken();
    let flow = Entrypoint::new("flow", |(): (), task: Task| async move {
        let world: World = task.context().expect("a world");
        let charged = task.call("charge", || charge(&world)).await?;
        if task.attempt() == 1 { Err(NodeError::from("a hiccup")) } else { Ok(charged) }
    });
    let app = flow.retry(RetryPolicy::attempts(2)).compile().with_context(world.clone());
    assert_eq!(done(app.start(()).await), 42);
    assert_eq!(world.take(), ["charge"]);
}

/// F5, for calls of a node in a graph.
#[tokio::test(start_paused = true)]
async fn in_a_further_attempt_of_a_node() {
    let world = World::new();
    let graph = StateGraph::<Log>::new()
        .add_node("pay", |Ctx(world): Ctx<World>, task: Task| async move {
            let first = task.call("charge", || charge(&world)).await?;
            let second = task.call("charge", || charge(&world)).await?;
            if task.attempt() < 3 {
                return Err(NodeError::from("a hiccup"));
            }
            Ok(log(format!("charged {}", first + second)))
        })
        .retry(RetryPolicy::attempts(3))
        .add_edge(START, "pay")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &world).thread("1");
    assert_eq!(done(thread.invoke(log("in")).await).log, ["in", "charged 84"]);
    assert_eq!(world.take(), ["charge", "charge"], "two calls, each once, in three attempts");
}

/// A node that failed after its calls does not make them again when the thread continues.
#[tokio::test(start_paused = true)]
async fn when_the_thread_goes_on_after_a_failure() {
    let world = World::broken();
    let graph = StateGraph::<Log>::new()
        .add_node("pay", |Ctx(world): Ctx<World>, task: Task| async move {
            let charged = task.call("charge", || charge(&world)).await?;
            if world.is_broken() {
                return Err(NodeError::permanent("no paper for the receipt"));
            }
            Ok(log(format!("charged {charged}")))
        })
        .add_edge(START, "pay")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &world).thread("1");
    failed(thread.invoke(log("in")).await);
    world.mend();
    assert_eq!(done(thread.invoke(()).await).log, ["in", "charged 42"]);
    assert_eq!(world.take(), ["charge"]);
}

/// Of two calls at the same time one asks; the other is not lost with the caller.
#[tokio::test(start_paused = true)]
async fn when_a_call_beside_it_asks() {
    let world = World::new();
    let graph = StateGraph::<Log>::new()
        .add_node("pay", |Ctx(world): Ctx<World>, task: Task| async move {
            let slow = {
                let world = world.clone();
                task.call("charge", move || {
                    let world = world.clone();
                    async move {
                        tokio::time::sleep(Duration::from_secs(9)).await;
                        charge(&world).await
                    }
                })
            };
            let sure = task.call_with("sure", |call: Task| async move {
                Ok::<bool, NodeError>(call.interrupt("sure?").await)
            });
            let (slow, sure) = (slow.spawn(), sure.spawn());
            Ok::<_, NodeError>(log(format!("{} {}", slow.await?, sure.await?)))
        })
        .add_edge(START, "pay")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &world).thread("1");
    assert_eq!(asked(thread.invoke(log("in")).await), ["sure?"]);
    assert_eq!(world.take(), ["charge"], "the run waits for it");
    assert_eq!(done(thread.resume(true).await).log, ["in", "42 true"]);
    assert!(world.take().is_empty());
}
