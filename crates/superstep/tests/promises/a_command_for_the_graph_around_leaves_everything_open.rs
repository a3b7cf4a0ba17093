//! Shows that a command for the graph around the one it is given in leaves that graph, whatever its siblings are at.

use crate::world::{Log, World, done, in_memory, log, look};
use superstep::Thread;
use superstep::prelude::*;

/// A subgraph, with this node beside two that give commands for the graph around.
fn thread<M: 'static>(world: &World, beside: impl superstep::IntoNode<Log, M>) -> Thread<Log> {
    let leave = |text: &'static str| {
        move |Ctx(world): Ctx<World>| {
            world.ran(text);
            Command::<Log>::update(log(text)).goto("after").to_parent()
        }
    };
    let inner = StateGraph::<Log>::new()
        .add_node("beside", beside)
        .add_node("second", leave("second"))
        .add_node("first", leave("first"))
        .add_edge(START, "beside")
        .add_edge(START, "second")
        .add_edge(START, "first")
        .compile()
        .expect("a graph");
    let leave = |inner: Log| Log::update().log(inner.log);
    let graph = StateGraph::<Log>::new()
        .add_node("sub", inner.as_node(|_: &Log| Log::update(), leave))
        .destinations(["after"])
        .add_node("after", || log("after"))
        .add_edge(START, "sub")
        .compile()
        .expect("a graph");
    in_memory(graph, world).thread("1")
}

/// As in the reference: the question is not answered by anybody, and nothing waits for it.
#[tokio::test(start_paused = true)]
async fn beside_a_question() {
    let world = World::new();
    let ask = |task: Task| async move { log(task.interrupt::<String>("well?").await) };
    let thread = thread(&world, ask);
    // Of two commands the first by path counts, whichever task was quicker.
    assert_eq!(done(thread.invoke(log("in")).await).log, ["in", "first", "after"]);
    assert!(look(&thread).await.interrupts.is_empty());
    assert_eq!(world.take().len(), 2);
}

/// A sibling that takes longer is waited for, and what it writes stays inside.
#[tokio::test(start_paused = true)]
async fn beside_a_node_that_takes_longer() {
    let world = World::new();
    let slow = |Ctx(world): Ctx<World>| async move {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        world.ran("slow");
        Log::update()
    };
    let thread = thread(&world, slow);
    assert_eq!(done(thread.invoke(log("in")).await).log, ["in", "first", "after"]);
    assert_eq!(world.take().len(), 3);
}
