//! A task is finished when its node and its routers are. If a router fails, nothing of the task is
//! kept, and continuing runs node and router again.

use crate::world::{Log, LogUpdate, World, assert_says, done, failed, in_memory, log, look, next};
use superstep::node::IntoRouter;
use superstep::prelude::*;
use superstep::{CompiledGraph, Targets};

async fn a(Ctx(world): Ctx<World>) -> LogUpdate {
    world.ran("a");
    log("a")
}

async fn b(Ctx(world): Ctx<World>) -> LogUpdate {
    world.ran("b");
    log("b")
}

fn routed<M>(
    targets: impl Into<Targets>,
    router: impl IntoRouter<Log, M>,
    world: &World,
) -> CompiledGraph<Log> {
    let graph = StateGraph::<Log>::new()
        .add_node("a", a)
        .add_node("b", b)
        .add_edge(START, "a")
        .add_conditional_edges("a", targets, router)
        .compile()
        .expect("a graph");
    in_memory(graph, world)
}

/// In the reference the write of `a` is stored before the router is asked, so the task counts as
/// finished: `next` is empty, and continuing ends the run without `b`.
async fn fails_and_goes_on(app: CompiledGraph<Log>, world: World, says: &[&str]) {
    let thread = app.thread("1");
    let (_, text) = failed(thread.invoke(log("in")).await);
    assert_says(&text, says);
    let state = look(&thread).await;
    assert_eq!(next(&state), ["a"], "the task is not finished");
    assert_eq!(state.state().log, ["in"], "nothing of the task is kept");
    assert!(state.tasks[0].error.is_some(), "its error is kept");

    world.mend();
    assert_eq!(done(thread.invoke(()).await).log, ["in", "a", "b"]);
    assert_eq!(world.take(), ["a", "a", "b"]);
}

/// F1.
#[tokio::test(start_paused = true)]
async fn a_router_that_fails_is_asked_again() {
    let world = World::broken();
    let broken = world.clone();
    let app = routed(
        ["b"],
        move |_: &Log| if broken.is_broken() { Err("no way") } else { Ok("b") },
        &world,
    );
    fails_and_goes_on(app, world, &["`a`", "no way"]).await;
}

/// F1, for a router that is awaited.
#[tokio::test(start_paused = true)]
async fn an_awaited_router_that_fails_is_asked_again() {
    let world = World::broken();
    let route = |_: Arc<Log>, task: Task| async move {
        tokio::task::yield_now().await;
        let world: World = task.context().expect("a world");
        if world.is_broken() { Err("no way") } else { Ok("b") }
    };
    fails_and_goes_on(routed(["b"], route, &world), world, &["`a`", "no way"]).await;
}

/// F1, for a panic.
#[tokio::test(start_paused = true)]
async fn a_router_that_panics_is_asked_again() {
    let world = World::broken();
    let broken = world.clone();
    let route = move |_: &Log| {
        assert!(!broken.is_broken(), "lost the way");
        "b"
    };
    fails_and_goes_on(routed(["b"], route, &world), world, &["`a`", "lost the way"]).await;
}

/// F1, for a panic of a router that is awaited, after its first await.
#[tokio::test(start_paused = true)]
async fn an_awaited_router_that_panics_is_asked_again() {
    let world = World::broken();
    let route = |_: Arc<Log>, task: Task| async move {
        tokio::task::yield_now().await;
        let world: World = task.context().expect("a world");
        assert!(!world.is_broken(), "lost the way");
        "b"
    };
    fails_and_goes_on(routed(["b"], route, &world), world, &["`a`", "lost the way"]).await;
}

/// F1, for an answer that stands for no node.
#[tokio::test(start_paused = true)]
async fn a_router_whose_answer_is_not_in_the_map_is_asked_again() {
    let world = World::broken();
    let broken = world.clone();
    let route = move |_: &Log| if broken.is_broken() { "maybe" } else { "yes" };
    let app = routed(Targets::map([("yes", "b")]), route, &world);
    fails_and_goes_on(app, world, &["`a`", "maybe"]).await;
}

/// F1, for no answer.
#[tokio::test(start_paused = true)]
async fn a_router_without_an_answer_is_asked_again() {
    let world = World::broken();
    let broken = world.clone();
    let route = move |_: &Log| (!broken.is_broken()).then_some("b");
    fails_and_goes_on(routed(["b"], route, &world), world, &["`a`", "no destination"]).await;
}

/// F1, for a dispatch to where nothing runs.
#[tokio::test(start_paused = true)]
async fn a_router_that_dispatches_to_the_end_is_asked_again() {
    let world = World::broken();
    let broken = world.clone();
    let route =
        move |_: &Log| Dispatch::new(if broken.is_broken() { END } else { "b" }, "argument");
    fails_and_goes_on(routed(["b", END], route, &world), world, &["`a`", "the end"]).await;
}

/// F1, beside a task that did finish: only the failed one runs again.
#[tokio::test(start_paused = true)]
async fn a_sibling_that_finished_does_not_run_again() {
    let world = World::broken();
    let broken = world.clone();
    let graph =
        StateGraph::<Log>::new()
            .add_node("a", |Ctx(world): Ctx<World>| async move {
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                world.ran("a");
                log("a")
            })
            .add_node("b", b)
            .add_node("c", |Ctx(world): Ctx<World>| {
                world.ran("c");
                log("c")
            })
            .add_edge(START, "a")
            .add_edge(START, "c")
            .add_conditional_edges("a", ["b"], move |_: &Log| {
                if broken.is_broken() { Err("no way") } else { Ok("b") }
            })
            .compile()
            .expect("a graph");
    let thread = in_memory(graph, &world).thread("1");
    failed(thread.invoke(log("in")).await);
    assert_eq!(next(&look(&thread).await), ["a"]);
    world.mend();
    assert_eq!(done(thread.invoke(()).await).log, ["in", "a", "c", "b"]);
    assert_eq!(world.take(), ["c", "a", "a", "b"]);
}
