//! A subgraph is looked for in the checkpointer only if it may be there: a call that is made for
//! the first time finds nothing, and asking costs a round trip for each task.

use crate::world::{Log, Watched, World, asked, done, log};
use superstep::prelude::*;
use superstep::{CompiledGraph, Durability};

/// Two nodes; the second asks if the world is not broken, and breaks down once if it is.
fn inner() -> CompiledGraph<Log> {
    StateGraph::<Log>::new()
        .add_node("one", || log("one"))
        .add_node("two", |Ctx(world): Ctx<World>, task: Task| async move {
            if world.is_broken() {
                world.mend();
                return Err(NodeError::from("a hiccup"));
            }
            let answer: String = task.interrupt("well?").await;
            Ok(log(answer))
        })
        .add_edge(START, "one")
        .add_edge("one", "two")
        .compile()
        .expect("a graph")
}

/// The graph as a node, behind another one.
fn outer(checkpointer: &Watched) -> CompiledGraph<Log> {
    let node = inner().as_node(|_: &Log| Log::update(), |inner: Log| Log::update().log(inner.log));
    let graph = StateGraph::<Log>::new()
        .add_node("first", || log("first"))
        .add_node("sub", node)
        .add_edge(START, "first")
        .add_edge("first", "sub");
    graph.compile().expect("a graph").with_checkpointer(checkpointer.clone())
}

#[tokio::test]
async fn until_it_may_be_there() {
    let checkpointer = Watched::default();
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let graph = outer(&checkpointer).with_context(World::new());
        let thread = graph.thread(format!("{durability:?}"));
        assert_eq!(asked(thread.invoke(log("in")).durability(durability).await), ["well?"]);
        assert_eq!(
            checkpointer.take_looked_for(),
            [""],
            "{durability:?}: nobody has called the graph"
        );
        let state = done(thread.resume("yes").durability(durability).await);
        assert_eq!(state.log, ["in", "first", "one", "yes"]);
        assert_eq!(
            checkpointer.take_looked_for(),
            ["", "sub"],
            "{durability:?}: it goes on where it was"
        );
    }
}

/// The second attempt of a node makes its calls again, and the graph in one of them has stored
/// something in the first.
#[tokio::test(start_paused = true)]
async fn unless_an_attempt_before_this_one_was_there() {
    let checkpointer = Watched::default();
    let inner = inner();
    let graph = StateGraph::<Log>::new()
        .add_node("sub", move |task: Task| {
            let inner = inner.clone();
            async move {
                let call = task.call_with("call", move |task| {
                    let inner = inner.clone();
                    async move { Ok::<_, NodeError>(task.invoke(&inner, Log::update()).await?.log) }
                });
                Ok::<_, NodeError>(Log::update().log(call.await?))
            }
        })
        .retry(RetryPolicy::attempts(2))
        .add_edge(START, "sub")
        .compile()
        .expect("a graph")
        .with_checkpointer(checkpointer.clone())
        .with_context(World::broken());
    let thread = graph.thread("1");
    assert_eq!(asked(thread.invoke(log("in")).await), ["well?"]);
    assert_eq!(
        checkpointer.take_looked_for(),
        ["", "sub"],
        "the second attempt looks for the graph"
    );
}
