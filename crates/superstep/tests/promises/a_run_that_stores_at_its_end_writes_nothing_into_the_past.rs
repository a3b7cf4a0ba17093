//! Shows what a run that stores only at its end leaves behind when it ends before it is done, and
//! that what it was told is not stored with the checkpoint it began from.
//!
//! It could break because such a run has nowhere to put what it learns on its way.

use crate::world::{Log, LogUpdate, World, asked, done, failed, in_memory, log, look, next};
use superstep::prelude::*;
use superstep::{CompiledGraph, Durability, RunControl, Thread};

fn note(name: &'static str) -> impl Fn(Ctx<World>) -> std::future::Ready<LogUpdate> + Clone {
    move |Ctx(world): Ctx<World>| {
        world.ran(name);
        std::future::ready(log(name))
    }
}

fn line(names: &[&'static str]) -> StateGraph<Log> {
    let mut graph = StateGraph::<Log>::new();
    for name in names {
        graph = graph.add_node(*name, note(name));
    }
    names
        .windows(2)
        .fold(graph.add_edge(START, names[0]), |graph, pair| graph.add_edge(pair[0], pair[1]))
}

fn thread(graph: CompiledGraph<Log>, world: &World) -> Thread<Log> {
    in_memory(graph, world).thread("1")
}

/// A graph of one node that is a graph of four, the first of which asks for a drain.
fn around(world: &World, control: &RunControl) -> Thread<Log> {
    let control = control.clone();
    let inner = line(&["one", "two", "three"])
        .add_node("zero", move |Ctx(world): Ctx<World>| {
            world.ran("zero");
            control.request_drain("deploy");
            log("zero")
        })
        .add_edge("three", "zero")
        .add_node("last", note("last"))
        .add_edge("zero", "last")
        .compile()
        .expect("a graph");
    let leave = |inner: Log| Log::update().log(inner.log);
    let node = inner.as_node(|_: &Log| Log::update(), leave);
    let graph = StateGraph::<Log>::new().add_node("sub", node).add_edge(START, "sub");
    thread(graph.compile().expect("a graph"), world)
}

/// In the reference history shows the update before it was made, and running from there applies it.
#[tokio::test(start_paused = true)]
async fn a_command_belongs_to_the_run_it_was_given_to() {
    let world = World::new();
    let graph = line(&["a", "b"]).add_node("c", note("c")).interrupt_before(["b"]).lenient();
    let thread = thread(graph.compile().expect("a graph"), &world);
    asked(thread.invoke(log("in")).await);
    let before = look(&thread).await;
    let command = Command::update(log("command")).goto("c");
    let run = thread.invoke(command).durability(Durability::Exit).await;
    assert_eq!(done(run).log, ["in", "a", "command", "b", "c"]);
    let past = thread.at(&before);
    let shown = past.get_state().await.expect("the checkpoint");
    assert_eq!(shown.state().log, ["in", "a"]);
    world.take();
    assert_eq!(done(past.invoke(()).await).log, ["in", "a", "b"]);
    assert_eq!(world.take(), ["b"]);
}

/// It is kept if the run ends where it began.
#[tokio::test(start_paused = true)]
async fn a_command_is_kept_if_the_run_ends_where_it_began() {
    let world = World::broken();
    let graph = line(&["a"]).add_node("c", |Ctx(world): Ctx<World>| {
        world.ran("c");
        if world.is_broken() { Err("no") } else { Ok(log("c")) }
    });
    let thread = thread(graph.lenient().compile().expect("a graph"), &world);
    done(thread.invoke(log("in")).await);
    let command = Command::update(log("command")).goto("c");
    failed(thread.invoke(command).durability(Durability::Exit).await);
    let state = look(&thread).await;
    assert_eq!((state.state().log.len(), next(&state)), (3, vec!["c".to_owned()]));
    world.mend();
    assert_eq!(done(thread.invoke(()).await).log, ["in", "a", "command", "c"]);
    assert_eq!(world.take(), ["a", "c", "c"]);
}

/// In the reference the subgraph starts over.
#[tokio::test(start_paused = true)]
async fn a_drain_inside_a_graph_repeats_nothing() {
    let (world, control) = (World::new(), RunControl::new());
    let thread = around(&world, &control);
    let run = thread.invoke(log("in")).durability(Durability::Exit).control(control).await;
    assert!(matches!(run, Ok(Outcome::Drained(_))), "{run:?}");
    assert_eq!(world.take(), ["one", "two", "three", "zero"]);
    done(thread.invoke(()).durability(Durability::Exit).await);
    assert_eq!(world.take(), ["last"]);
}

/// In the reference the subgraph starts over.
#[tokio::test(start_paused = true)]
async fn a_graph_inside_that_is_out_of_steps_keeps_what_it_has_done() {
    let world = World::new();
    let thread = around(&world, &RunControl::new());
    let run = thread.invoke(log("in")).durability(Durability::Exit).recursion_limit(2).await;
    failed(run);
    let ran = world.take();
    assert_eq!(ran, ["one", "two"]);
    let run = thread.invoke(()).durability(Durability::Exit).await;
    drop(run);
    assert_eq!(world.take()[..2], ["three", "zero"]);
}

/// A call that has ended in a run that stores at its end does not run again when its caller asks
/// again. In the reference the question of the first call is asked forever.
#[tokio::test(start_paused = true)]
async fn a_graph_inside_that_was_answered_and_has_ended_does_not_run_again() {
    let world = World::new();
    let inner = StateGraph::<Log>::new()
        .add_node("asks", |Ctx(world): Ctx<World>, task: Task| async move {
            world.ran("asks");
            let answer: String = task.interrupt("which?").await;
            log(answer)
        })
        .add_node("charges", note("charges"))
        .add_edge(START, "asks")
        .add_edge("asks", "charges")
        .compile()
        .expect("a graph");
    let graph = StateGraph::<Log>::new()
        .add_node("sub", move |task: Task| {
            let inner = inner.clone();
            async move {
                let mut both = task.invoke(&inner, Log::update()).await?.log;
                both.extend(task.invoke(&inner, Log::update()).await?.log);
                Ok::<_, NodeError>(Log::update().log(both))
            }
        })
        .add_edge(START, "sub");
    let thread = thread(graph.compile().expect("a graph"), &world);
    asked(thread.invoke(log("in")).durability(Durability::Exit).await);
    asked(thread.resume("a").durability(Durability::Exit).await);
    assert_eq!(world.take(), ["asks", "asks", "charges", "asks"]);
    asked(thread.invoke(()).durability(Durability::Exit).await);
    assert_eq!(world.take(), ["asks"], "of the first call nothing runs again");
    let state = done(thread.resume("b").durability(Durability::Exit).await);
    assert_eq!(state.log, ["in", "a", "charges", "b", "charges"]);
    assert_eq!(world.take(), ["asks", "charges"]);
}
