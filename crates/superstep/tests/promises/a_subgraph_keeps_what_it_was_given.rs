//! A graph that was given a checkpointer or a store of its own uses them where its parent graph has
//! none.

use crate::world::{Log, World, asked, done, log};
use superstep::checkpoint::{AnyCheckpointer, AnyStore, MemoryStore, Query};
use superstep::prelude::*;
use superstep::{CompiledGraph, Memory};

fn within(inner: &CompiledGraph<Log>) -> CompiledGraph<Log> {
    let enter = |_: &Log| log("again");
    let leave = |inner: Log| Log::update().log([inner.log.join(" ")]);
    StateGraph::<Log>::new()
        .add_node("sub", inner.as_node(enter, leave))
        .add_edge(START, "sub")
        .compile()
        .expect("a graph")
        .with_context(World::new())
}

/// F37: in the reference a subgraph silently loses its checkpointer inside a graph that has none.
#[tokio::test(start_paused = true)]
async fn a_checkpointer() {
    let inner = StateGraph::<Log>::new()
        .add_node("count", |state: Arc<Log>| log(state.log.len().to_string()))
        .add_edge(START, "count")
        .memory(Memory::PerThread)
        .compile()
        .expect("a graph")
        .with_checkpointer(MemorySaver::new());
    let thread = within(&inner).thread("1");
    assert_eq!(done(thread.invoke(Log::update()).await).log, ["again 1"]);
    assert_eq!(done(thread.invoke(Log::update()).await).log, ["again 1 again 3"], "it remembers");
    let other = within(&inner).thread("2");
    assert_eq!(done(other.invoke(Log::update()).await).log, ["again 1"]);
}

/// F37, for a store.
#[tokio::test(start_paused = true)]
async fn a_store() {
    let store = MemoryStore::new();
    let inner = StateGraph::<Log>::new()
        .add_node("remember", |task: Task| async move {
            let store = task.store().ok_or("the store is lost")?;
            store.put(&["memories".to_owned()], "key", Value::from("kept")).await?;
            Ok::<_, NodeError>(log("remembered"))
        })
        .add_edge(START, "remember")
        .compile()
        .expect("a graph")
        .with_store(store.clone());
    assert_eq!(done(within(&inner).invoke(Log::update()).await).log, ["again remembered"]);
    let item = AnyStore::new(store).get(&["memories".to_owned()], "key").await;
    assert!(item.expect("a look").is_some());
}

/// The other way round its parent graph decides, as in the reference: one run has one checkpointer,
/// so that a question inside is kept where the thread is.
#[tokio::test(start_paused = true)]
async fn unless_the_graph_around_it_has_one() {
    let own = MemorySaver::new();
    let inner = StateGraph::<Log>::new()
        .add_node("ask", |task: Task| async move { log(task.interrupt::<String>("go?").await) })
        .add_edge(START, "ask")
        .compile()
        .expect("a graph")
        .with_checkpointer(own.clone());
    let thread = within(&inner).with_checkpointer(MemorySaver::new()).thread("1");
    assert_eq!(asked(thread.invoke(Log::update()).await), ["go?"]);
    let stored = AnyCheckpointer::new(own).list(Default::default()).await;
    assert!(stored.expect("a list").is_empty());
    assert_eq!(done(thread.resume("yes").await).log, ["again yes"]);
}

/// A graph with another memory is otherwise the same graph.
#[tokio::test]
async fn its_metadata_with_another_memory() {
    let graph = StateGraph::<Log>::new().add_node("a", || log("a")).add_edge(START, "a");
    let graph = graph.compile().expect("a graph").with_checkpointer(MemorySaver::new());
    let graph = graph.with_metadata("user", "ada").with_memory(Memory::PerThread);
    let thread = graph.thread("1");
    done(thread.invoke(log("in")).await);
    let metadata = thread.get_state().await.expect("a look").metadata.clone().expect("metadata");
    assert_eq!(metadata.extra.get("user"), Some(&"ada".into()));
}

/// F29: a graph without a memory starts over, so nothing could find again what a subgraph had
/// stored.
#[tokio::test(start_paused = true)]
async fn nothing_inside_a_graph_without_a_memory() {
    let checkpointer = MemorySaver::new();
    let inner = StateGraph::<Log>::new()
        .add_node("count", |state: Arc<Log>| log(state.log.len().to_string()))
        .add_edge(START, "count")
        .compile()
        .expect("a graph");
    let around = within(&within(&inner).with_memory(Memory::Nothing));
    let thread = around.with_checkpointer(checkpointer.clone()).thread("1");
    assert_eq!(done(thread.invoke(Log::update()).await).log, ["again again 1"]);
    let stored = AnyCheckpointer::new(checkpointer).list(Query::default()).await.expect("a list");
    assert!(stored.len() > 1 && stored.iter().all(|stored| stored.ns.is_empty()), "{stored:?}");
}
