//! F35: a graph that a node runs on another thread has the context, the control, the storage and the stream of the run it is
//! part of. In the reference a thread id given by the node cuts it off from all of them.

use superstep::prelude::*;
use superstep::{CompiledGraph, Data, Mode};

use crate::world::{Log, World, asked, assert_says, done, failed, in_memory, log};

fn child() -> CompiledGraph<Log> {
    let work = |Ctx(world): Ctx<World>, task: Task| async move {
        world.ran("child");
        task.emit("from the child");
        let answer: String = task.interrupt("well?").await;
        log(answer)
    };
    let then = |Ctx(world): Ctx<World>, task: Task| async move {
        world.ran("then");
        task.control().request_drain("enough");
        log("then")
    };
    StateGraph::<Log>::new()
        .add_node("work", work)
        .add_node("then", then)
        .add_node("last", |Ctx(world): Ctx<World>| async move {
            world.ran("last");
            log("last")
        })
        .add_edge(START, "work")
        .add_edge("work", "then")
        .add_edge("then", "last")
        .compile()
        .expect("a graph")
}

fn parent(world: &World, checkpointer: &MemorySaver, thread: &'static str) -> CompiledGraph<Log> {
    let child = child();
    let node = move |task: Task| {
        let child = child.clone();
        async move {
            let input = superstep::Input::value(Value::Map(superstep::checkpoint::Map::new()));
            let outcome = match task.step() {
                1 => task.invoke_on(&child, thread, input).await?,
                _ => task.invoke_on(&child, thread, superstep::Input::answer("yes".into())).await?,
            };
            Ok::<_, RunError>(match outcome {
                Outcome::Interrupted(asked) => log(format!("asks {}", asked[0].value)),
                Outcome::Drained(reason) => log(format!("drained: {reason}")),
                other => panic!("{other:?}"),
            })
        }
    };
    let graph = StateGraph::<Log>::new()
        .add_node("first", node.clone())
        .add_node("second", node)
        .add_node("third", || log("third"))
        .add_edge(START, "first")
        .add_edge("first", "second")
        .add_edge("second", "third")
        .compile()
        .expect("a graph");
    graph.with_checkpointer(checkpointer.clone()).with_context(world.clone())
}

#[tokio::test(start_paused = true)]
async fn with_its_context_its_storage_and_its_control() {
    let world = World::new();
    let checkpointer = MemorySaver::new();
    let thread = parent(&world, &checkpointer, "other").thread("1");
    let outcome = thread.invoke(log("in")).await.expect("a run");
    // The child saw the drain at its boundary, and the parent at its own.
    assert!(matches!(outcome, Outcome::Drained(reason) if &*reason == "enough"));
    assert_eq!(world.take(), ["child", "child", "then"]);
    let asks = "asks \"well?\"";
    assert_eq!(done(thread.invoke(()).await).log, ["in", asks, "drained: enough", "third"]);
    // The other thread is a thread like any other.
    let other = child().with_checkpointer(checkpointer);
    let other = other.with_context(world.clone()).thread("other");
    assert_eq!(done(other.invoke(()).await).log, ["yes", "then", "last"]);
    assert_eq!(world.take(), ["last"]);
}

#[tokio::test(start_paused = true)]
async fn with_its_stream() {
    let world = World::new();
    let thread = parent(&world, &MemorySaver::new(), "other").thread("1");
    let mut stream = thread.invoke(log("in")).stream([Mode::Custom]).subgraphs(true);
    let mut seen = Vec::new();
    while let Some(event) = stream.next().await {
        let event = event.expect("an event");
        if let Data::Custom(value) = event.data {
            seen.push((event.ns[0].split(':').next().unwrap_or_default().to_owned(), value));
        }
    }
    let said = Value::from("from the child");
    assert_eq!(seen, [("first".to_owned(), said.clone()), ("second".to_owned(), said)]);
}

#[tokio::test(start_paused = true)]
async fn but_not_on_its_own_thread() {
    let world = World::new();
    let (_, text) =
        failed(parent(&world, &MemorySaver::new(), "1").thread("1").invoke(log("in")).await);
    assert_says(&text, &["`first`", "thread `1` itself", "`invoke`"]);
    assert_eq!(asked(in_memory(child(), &world).thread("1").invoke(log("in")).await), ["well?"]);
}
