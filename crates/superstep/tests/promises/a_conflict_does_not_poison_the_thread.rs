//! Writes that cannot be applied fail their superstep, not the thread. It can be looked at, and
//! continuing runs the writers again.

use crate::world;

use crate::world::{World, assert_says, failed};
use superstep::prelude::*;
use superstep::{CompiledGraph, Durability, Thread};

fn no_thirteen(value: &mut i64, update: i64) {
    assert_ne!(update, 13, "unlucky");
    *value += update;
}

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Values {
    n: i64,
    #[channel(reduce = Append)]
    list: Vec<i64>,
    #[channel(reduce_with = no_thirteen)]
    sum: i64,
}

/// `before`, then `a` and `b` side by side, which write what they should not while the world is broken.
fn app(world: &World, write: fn(bool) -> ValuesUpdate) -> CompiledGraph<Values> {
    let node = move |name: &'static str| {
        move |Ctx(world): Ctx<World>| {
            world.ran(name);
            write(name == "b" || world.is_broken())
        }
    };
    let graph = StateGraph::<Values>::new()
        .add_node("before", || Values::update().list([0]))
        .add_node("a", node("a"))
        .add_node("b", node("b"))
        .add_edge(START, "before")
        .add_edge("before", "a")
        .add_edge("before", "b")
        .compile()
        .expect("a graph");
    world::in_memory(graph, world)
}

/// In the reference continuing fails forever without running anything, and the head cannot be
/// looked at.
async fn goes_on(
    world: World,
    thread: Thread<Values>,
    durability: Durability,
    says: &[&str],
) -> Values {
    let run = thread.invoke(Values::update().n(1)).durability(durability);
    assert_says(&failed(run.await).1, says);
    let state = world::look(&thread).await;
    assert_eq!(world::next(&state), ["a", "b"]);
    assert_eq!(**state.state(), Values { n: 1, list: vec![0], sum: 0 }, "as before the superstep");
    assert!(state.tasks.iter().all(|task| task.error.is_some()), "{:?}", state.tasks);

    world.take();
    assert_says(&failed(thread.invoke(()).durability(durability).await).1, says);
    assert_eq!(world.take().len(), 2, "the writers ran again");

    world.mend();
    let values = world::done(thread.invoke(()).durability(durability).await);
    assert_eq!(world.take().len(), 2);
    values
}

async fn check(write: fn(bool) -> ValuesUpdate, says: &[&str], then: Values) {
    for durability in [Durability::Sync, Durability::Exit] {
        let world = World::broken();
        let thread = app(&world, write).thread("1");
        assert_eq!(goes_on(world, thread, durability, says).await, then, "{durability:?}");
    }
}

/// F36.
#[tokio::test(start_paused = true)]
async fn two_writes_of_one_value() {
    let write = |writes: bool| if writes { Values::update().n(2) } else { Values::update() };
    let says = ["`n`", "`a` and `b`", "reducer"];
    check(write, &says, Values { n: 2, list: vec![0], sum: 0 }).await;
}

/// F36.
#[tokio::test(start_paused = true)]
async fn two_overwrites() {
    let write = |overwrites: bool| {
        if overwrites { Values::update().overwrite_list([9]) } else { Values::update() }
    };
    let says = ["`list`", "overwritten", "`a` and `b`"];
    check(write, &says, Values { n: 1, list: vec![9], sum: 0 }).await;
}

/// F36: a reducer that panics.
#[tokio::test(start_paused = true)]
async fn a_reducer_that_panics() {
    let world = World::broken();
    let graph = StateGraph::<Values>::new()
        .add_node("a", |Ctx(world): Ctx<World>| {
            world.ran("a");
            Values::update().sum(if world.is_broken() { 13 } else { 1 })
        })
        .add_edge(START, "a")
        .compile()
        .expect("a graph");
    let thread = world::in_memory(graph, &world).thread("1");
    for _ in 0..2 {
        let (_, text) = failed(thread.invoke(Values::update().n(1)).await);
        assert_says(&text, &["`sum`", "`a`", "unlucky"]);
        assert_eq!(world::next(&world::look(&thread).await), ["a"]);
    }
    world.mend();
    world.take();
    assert_eq!(world::done(thread.invoke(()).await).sum, 1);
    assert_eq!(world.take(), ["a"]);
}
