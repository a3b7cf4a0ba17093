//! Shows that a value that has no stored form fails the task that gave it, with an error that names node and channel: what
//! its siblings have finished is kept, and what is being stored meanwhile is stored.
//!
//! It could break because values are encoded when the task has ended, beside everything else that is on its way to storage.

use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};
use superstep::prelude::*;
use superstep::{CompiledGraph, Durability, Failure};

use crate::world::{World, assert_says, done, failed, in_memory, look, next};

/// Larger than any whole number that can be stored.
const TOO_LARGE: u128 = 1 << 64;

const MODES: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

/// Says no to whoever wants to store it, or panics.
#[derive(Clone, Copy, Default, Debug, PartialEq, Deserialize)]
enum Stubborn {
    #[default]
    No,
    Refuses,
    Panics,
}

impl Serialize for Stubborn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::No => serializer.serialize_str("No"),
            Self::Refuses => Err(serde::ser::Error::custom("it is a secret")),
            Self::Panics => panic!("it is a secret"),
        }
    }
}

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Values {
    big: u128,
    #[channel(reduce = Sum)]
    sum: u128,
    stubborn: Stubborn,
    #[channel(reduce = Append)]
    log: Vec<String>,
}

fn log(line: &str) -> ValuesUpdate {
    Values::update().log([line.to_owned()])
}

type Write = fn() -> ValuesUpdate;

/// `before`, then `good` and `bad` side by side, then `after`. `good` ends first or last.
fn app(world: &World, write: Write, good_ends_first: bool) -> CompiledGraph<Values> {
    let (good, bad) = if good_ends_first { (1, 2) } else { (2, 1) };
    let graph = StateGraph::<Values>::new()
        .add_node("before", |Ctx(world): Ctx<World>| {
            world.ran("before");
            log("before")
        })
        .add_node("good", move |Ctx(world): Ctx<World>| async move {
            world.ran("good");
            tokio::time::sleep(Duration::from_secs(good)).await;
            log("good")
        })
        .add_node("bad", move |Ctx(world): Ctx<World>| async move {
            world.ran("bad");
            tokio::time::sleep(Duration::from_secs(bad)).await;
            if world.is_broken() { write() } else { log("bad") }
        })
        .add_node("after", || log("after"))
        .add_edge(START, "before")
        .add_edge("before", "good")
        .add_edge("before", "bad")
        .add_edge(["good", "bad"], "after");
    in_memory(graph.compile().expect("a graph"), world)
}

async fn fails_its_task(write: Write, says: &[&str]) {
    for durability in MODES {
        let world = World::broken();
        let thread = app(&world, write, true).thread("1");
        let (error, text) = failed(thread.invoke(log("in")).durability(durability).await);
        assert!(matches!(&error, RunError::Node { node, .. } if &**node == "bad"), "{error:?}");
        assert_says(&text, &["`bad`"]);
        assert_says(&text, says);
        assert_eq!(world.take().len(), 3, "`before` and both of the superstep");
        let state = look(&thread).await;
        assert_eq!(next(&state), ["bad"], "{durability:?}: the sibling is kept");

        world.mend();
        let end = done(thread.invoke(()).durability(durability).await);
        assert_eq!(end.log, ["in", "before", "bad", "good", "after"]);
        assert_eq!(world.take(), ["bad"], "{durability:?}: nothing else runs again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_number_that_is_too_large() {
    fails_its_task(|| Values::update().big(TOO_LARGE), &["channel `big`", "cannot be stored"])
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_type_that_refuses() {
    let write: Write = || Values::update().stubborn(Stubborn::Refuses);
    fails_its_task(write, &["channel `stubborn`", "cannot be stored", "it is a secret"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_type_that_panics() {
    let write: Write = || Values::update().stubborn(Stubborn::Panics);
    fails_its_task(write, &["panicked", "it is a secret"]).await;
}

/// The node is alone, and so is polled in place.
#[tokio::test(start_paused = true)]
async fn in_a_superstep_of_one() {
    for durability in MODES {
        let world = World::broken();
        let graph = StateGraph::<Values>::new()
            .add_node("bad", |Ctx(world): Ctx<World>| {
                if world.is_broken() { Values::update().big(TOO_LARGE) } else { log("bad") }
            })
            .add_edge(START, "bad");
        let thread = in_memory(graph.compile().expect("a graph"), &world).thread("1");
        let (_, text) = failed(thread.invoke(log("in")).durability(durability).await);
        assert_says(&text, &["`bad`", "channel `big`", "cannot be stored"]);
        assert_eq!(next(&look(&thread).await), ["bad"]);
        world.mend();
        assert_eq!(done(thread.invoke(()).durability(durability).await).log, ["in", "bad"]);
    }
}

/// What is given with a dispatch, and what a recorded call returns.
#[tokio::test(start_paused = true)]
async fn an_argument_or_a_result() {
    let graph = StateGraph::<Values>::new()
        .add_node("send", || vec![Dispatch::new("take", TOO_LARGE)])
        .destinations(["take"])
        .add_node("take", |Arg(_): Arg<u128>| log("taken"))
        .add_edge(START, "send");
    let thread = in_memory(graph.compile().expect("a graph"), &World::new()).thread("1");
    let (_, text) = failed(thread.invoke(log("in")).await);
    assert_says(&text, &["`send`", "argument for node `take`", "cannot be stored"]);

    let graph = StateGraph::<Values>::new()
        .add_node("pay", |task: Task| async move {
            let charged = task.call("charge", || async { Ok::<_, NodeError>(TOO_LARGE) }).await?;
            Ok::<_, NodeError>(log(&charged.to_string()))
        })
        .add_edge(START, "pay");
    let thread = in_memory(graph.compile().expect("a graph"), &World::new()).thread("1");
    let (_, text) = failed(thread.invoke(log("in")).await);
    assert_says(&text, &["`pay`", "`charge`", "cannot be stored"]);
}

/// An error handler gets it like any other failure of the node, and a further attempt may do better.
#[tokio::test(start_paused = true)]
async fn as_any_other_failure() {
    let graph = StateGraph::<Values>::new()
        .add_node("bad", || Values::update().big(TOO_LARGE))
        .on_error(|failure: Failure| log(&failure.error.to_string()))
        .add_edge(START, "bad");
    let thread = in_memory(graph.compile().expect("a graph"), &World::new()).thread("1");
    let end = done(thread.invoke(log("in")).await);
    assert_says(&end.log[1], &["`bad`", "channel `big`", "cannot be stored"]);
}

/// Each write can be stored, but not their sum: then those who wrote to the channel run again, and nobody else.
#[tokio::test(start_paused = true)]
async fn what_writes_come_to() {
    for durability in [Durability::Sync, Durability::Async] {
        let world = World::broken();
        let thread = app(&world, || Values::update().sum(TOO_LARGE / 2), true).thread("1");
        let input = Values::update().sum(TOO_LARGE / 2);
        let (error, text) = failed(thread.invoke(input).durability(durability).await);
        assert!(matches!(error, RunError::Reducer { .. }), "{error:?}");
        assert_says(&text, &["channel `sum`", "`bad`", "cannot be stored"]);
        assert_eq!(next(&look(&thread).await), ["bad"], "{durability:?}: the sibling is kept");
        world.mend();
        world.take();
        let end = done(thread.invoke(()).durability(durability).await);
        assert_eq!((end.sum, world.take()), (TOO_LARGE / 2, vec!["bad".to_owned()]));
    }
}

/// Whoever gives such a value from outside is told, and nothing is changed.
#[tokio::test(start_paused = true)]
async fn from_outside() {
    let world = World::new();
    let thread = app(&world, || log("bad"), true).thread("1");
    let says = ["channel `big`", "cannot be stored"];
    assert_says(&failed(thread.invoke(Values::update().big(TOO_LARGE)).await).1, &says);
    assert!(look(&thread).await.metadata.is_none(), "the thread has not begun");
    done(thread.invoke(log("in")).await);
    let before = look(&thread).await.config.id;
    let change = thread.update_state(Values::update().big(TOO_LARGE)).as_node("after");
    assert_says(&failed(change.await).1, &says);
    let command = Command::update(Values::update().big(TOO_LARGE)).goto("after");
    assert_says(&failed(thread.invoke(command).await).1, &says);
    assert_eq!(look(&thread).await.config.id, before);
}
