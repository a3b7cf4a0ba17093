//! A command given to a thread does what it says, once. One that says nothing, or names what does
//! not exist, is refused before anything changes.

use crate::world::{
    Log, World, assert_says, checkpoints, done, failed, in_memory, log, look, next,
};
use superstep::CompiledGraph;
use superstep::prelude::*;

fn two_nodes(world: &World) -> CompiledGraph<Log> {
    let graph = StateGraph::<Log>::new()
        .add_node("a", |Ctx(world): Ctx<World>| {
            world.ran("a");
            log("a")
        })
        .add_node("b", |Ctx(world): Ctx<World>| {
            world.ran("b");
            log("b")
        })
        .add_edge(START, "a")
        .set_finish_point("b")
        .lenient()
        .compile()
        .expect("a graph");
    in_memory(graph, world)
}

/// F8: the reference crashes on an unbound variable.
#[tokio::test(start_paused = true)]
async fn an_empty_command_is_refused() {
    let world = World::new();
    let thread = two_nodes(&world).thread("1");
    for begun in [false, true] {
        if begun {
            done(thread.invoke(log("in")).await);
        }
        let made = checkpoints(&thread).await;
        let (error, text) = failed(thread.invoke(Command::<Log>::new()).await);
        assert!(matches!(error, RunError::EmptyInput(_)), "{error:?}");
        assert_says(&text, &["empty", "an answer, an update or a place to go to"]);
        assert_eq!(checkpoints(&thread).await, made);
    }
}

/// F22: on a new thread the reference applies the update of a command twice, first as a command and then as input.
#[tokio::test(start_paused = true)]
async fn an_update_on_a_new_thread_is_applied_once() {
    let world = World::new();
    let thread = two_nodes(&world).thread("1");
    assert_eq!(done(thread.invoke(Command::update(log("in"))).await).log, ["in", "a"]);
    assert_eq!(world.take(), ["a"]);
}

/// F22, with a place to go to, which runs beside the first node.
#[tokio::test(start_paused = true)]
async fn a_place_to_go_to_on_a_new_thread_is_reached_once() {
    let world = World::new();
    let thread = two_nodes(&world).thread("1");
    let log = done(thread.invoke(Command::update(log("in")).goto("b")).await).log;
    let mut ran = world.take();
    ran.sort();
    assert_eq!(ran, ["a", "b"]);
    assert_eq!(log.iter().filter(|line| *line == "in").count(), 1, "{log:?}");
}

/// F36: updates of commands on a finished thread wait beside its checkpoint. In the reference two of them to one channel that
/// keeps its last value are a conflict, and from then on the thread can neither run nor be read.
#[tokio::test(start_paused = true)]
async fn updates_that_wait_are_applied_one_after_another() {
    let world = World::new();
    let thread = two_nodes(&world).thread("1");
    done(thread.invoke(log("in")).await);
    done(thread.invoke(Command::<Log>::update(Log::update().n(9))).await);
    let state = done(thread.invoke(Command::<Log>::update(Log::update().n(10))).await);
    assert_eq!(state.n, 10, "the last one wins");
    assert_eq!(look(&thread).await.state().n, 10);
    assert_eq!(done(thread.invoke(()).await).n, 10);
    let state = done(thread.invoke(log("more")).await);
    assert_eq!((state.n, state.log), (10, ["in", "a", "more", "a"].map(str::to_owned).to_vec()));
}

/// F15: a thread that is stopped in a superstep is sent somewhere. The reference's snapshot shows neither that this is next
/// nor, once it has run, what it wrote.
#[tokio::test(start_paused = true)]
async fn where_a_command_leads_is_shown() {
    let world = World::new();
    let graph = StateGraph::<Log>::new()
        .add_node("ask", |task: Task| async move { log(task.interrupt::<String>("go?").await) })
        .add_node("ok", || log("ok"))
        .add_node(
            "flaky",
            |Ctx(world): Ctx<World>| {
                if world.is_broken() { Err("no") } else { Ok(log("flaky")) }
            },
        )
        .add_edge(START, "ask")
        .lenient()
        .compile()
        .expect("a graph");
    let app = in_memory(graph, &world);

    let thread = app.thread("finishes");
    thread.invoke(log("in")).await.expect("a question");
    thread.invoke(Command::<Log>::new().goto("ok")).await.expect("the question again");
    let state = look(&thread).await;
    assert_eq!(next(&state), ["ask"]);
    assert_eq!(state.state().log, ["in", "ok"], "what it wrote");
    assert_eq!(done(thread.resume("yes").await).log, ["in", "yes", "ok"]);

    let broken = World::broken();
    let thread = app.thread("fails");
    thread.invoke(log("in")).await.expect("a question");
    let run = thread.invoke(Command::<Log>::new().goto("flaky")).context(broken.clone());
    failed(run.await);
    let state = look(&thread).await;
    assert_eq!(next(&state), ["ask", "flaky"], "it is still to run");
    assert_eq!(done(thread.resume("yes").await).log, ["in", "yes", "flaky"]);
}
