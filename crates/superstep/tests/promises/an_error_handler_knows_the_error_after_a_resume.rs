//! An error handler that is taken up again, in another run or process, is told the same about the failure.

use crate::world::{Log, LogUpdate, World, asked, done, failed, in_memory, log, look};
use superstep::prelude::*;
use superstep::{CompiledGraph, Failure};

async fn work(Ctx(world): Ctx<World>) -> Result<LogUpdate, NodeError> {
    world.ran("work");
    Err(NodeError::from("try in a minute").named("RateLimited"))
}

/// By what a handler can decide: which node it was, and what kind of error.
fn told(failure: &Failure) -> String {
    format!("{} failed with {}", failure.node, failure.error.kind())
}

const TOLD: &str = "work failed with RateLimited";

/// F16: in the reference the error is an exception in the first run, and a text after it.
#[tokio::test(start_paused = true)]
async fn that_asked() {
    let world = World::new();
    let graph = StateGraph::<Log>::new()
        .add_node("work", work)
        .on_error(|failure: Failure, Ctx(world): Ctx<World>, task: Task| async move {
            world.ran(told(&failure));
            log(task.interrupt::<String>("what now?").await)
        })
        .add_edge(START, "work")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &world).thread("1");
    assert_eq!(asked(thread.invoke(log("in")).await), ["what now?"]);
    assert_eq!(done(thread.resume("give up").await).log, ["in", "give up"]);
    assert_eq!(world.take(), ["work", TOLD, TOLD], "the node itself does not run again");
}

/// F16: a handler that failed itself.
#[tokio::test(start_paused = true)]
async fn that_failed() {
    let world = World::broken();
    let graph = StateGraph::<Log>::new()
        .add_node("work", work)
        .on_error(|failure: Failure, Ctx(world): Ctx<World>| {
            world.ran(told(&failure));
            if world.is_broken() { Err("no help either") } else { Ok(log("helped")) }
        })
        .add_edge(START, "work")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &world).thread("1");
    failed(thread.invoke(log("in")).await);
    world.mend();
    assert_eq!(done(thread.invoke(()).await).log, ["in", "helped"]);
    assert_eq!(world.take(), ["work", TOLD, TOLD]);
    assert!(look(&thread).await.next.is_empty());
}

/// F16: in the reference a graph with a default handler can be compiled once, because compiling adds the handlers to it.
#[tokio::test(start_paused = true)]
async fn in_a_graph_that_is_declared_and_compiled_twice() {
    fn app(world: &World) -> CompiledGraph<Log> {
        let graph = StateGraph::<Log>::new()
            .add_node("work", work)
            .default_on_error(|failure: Failure| log(told(&failure)))
            .add_edge(START, "work");
        in_memory(graph.compile().expect("a graph"), world)
    }
    let world = World::new();
    for app in [app(&world), app(&world)] {
        assert_eq!(done(app.thread("1").invoke(log("in")).await).log, ["in", TOLD]);
    }
}

/// F16: the text too is the one of the error, not the form in which it was stored.
#[tokio::test(start_paused = true)]
async fn in_the_same_words() {
    let world = World::new();
    let graph = StateGraph::<Log>::new()
        .add_node("work", work)
        .on_error(|failure: Failure, Ctx(world): Ctx<World>, task: Task| async move {
            world.ran(failure.error.to_string());
            log(task.interrupt::<String>("what now?").await)
        })
        .add_edge(START, "work")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &world).thread("1");
    thread.invoke(log("in")).await.expect("a question");
    done(thread.resume("give up").await);
    assert_eq!(world.take(), ["work", "try in a minute", "try in a minute"]);
}
