//! Shows that a thread stored in an older format continues where it stopped, and is refused by name
//! where it cannot.
//!
//! It could break because channels had other names then: a node that was to run would be silently skipped.

use superstep::checkpoint::{
    Blob, Checkpointer, Put, SharedMap, Stored, TaskId, TaskWrites, Version,
};
use superstep::prelude::*;
use superstep::{CompiledGraph, Thread};

use crate::world::{Log, assert_says, done, failed, log};

fn graph(checkpointer: &MemorySaver) -> CompiledGraph<Log> {
    let graph = StateGraph::<Log>::new()
        .add_node("a", || log("a"))
        .add_node("b", || log("b"))
        .add_node("c", || log("c"))
        .add_edge(START, "a")
        .add_edge("a", "b")
        .add_edge("b", "c");
    graph.compile().expect("a graph").with_checkpointer(checkpointer.clone())
}

/// The same with another name for a channel.
fn renamed<V: Clone + Send + Sync>(map: &SharedMap<V>, from: &str, to: &str) -> SharedMap<V> {
    let name = |name: &Arc<str>| if &**name == from { to.into() } else { name.clone() };
    map.iter().map(|(key, value)| (name(key), value.clone())).collect()
}

/// A thread that stopped before `b`, whose head is stored again in an older format, in which the channel that triggers `b` had
/// another name.
async fn stored_before(checkpointer: &MemorySaver, v: u32, trigger: &str) -> (Thread<Log>, Stored) {
    let thread = graph(checkpointer).thread("new");
    thread.invoke(log("in")).interrupt_before(["b"]).await.expect("a breakpoint");
    let mut head = checkpointer.get("new", "", None).await.expect("read").expect("a head");
    let checkpoint = &mut head.checkpoint;
    checkpoint.v = v;
    checkpoint.updated_channels = None;
    checkpoint.channel_values = renamed(&checkpoint.channel_values, "branch:to:b", trigger);
    checkpoint.channel_versions = renamed(&checkpoint.channel_versions, "branch:to:b", trigger);
    // The list is stored whole, as it was then.
    let lines = Blob::encode(&["in", "a"]).expect("a list");
    checkpoint.channel_values.insert_mut("log".into(), lines);
    let put = Put {
        thread: "old".into(),
        ns: "".into(),
        parent: None,
        head: None,
        writes: Vec::new(),
        changed: checkpoint.channel_versions.keys().cloned().collect(),
        checkpoint: checkpoint.clone(),
        metadata: head.metadata.clone(),
    };
    checkpointer.put(put).await.expect("stored");
    (graph(checkpointer).thread("old"), head)
}

#[tokio::test(start_paused = true)]
async fn a_node_runs_by_whatever_name_it_was_triggered() {
    for v in [1, 2] {
        for trigger in ["start:b", "branch:a:choose:b", "a", "branch:to:b"] {
            let checkpointer = MemorySaver::new();
            let (thread, _) = stored_before(&checkpointer, v, trigger).await;
            let next = thread.get_state().await.expect("a state").next.clone();
            assert_eq!(next, ["b".into()], "format {v}, `{trigger}`");
            assert_eq!(
                done(thread.invoke(()).await).log,
                ["in", "a", "b", "c"],
                "format {v}, `{trigger}`"
            );
            let head = checkpointer.get("old", "", None).await.expect("read").expect("a head");
            assert_eq!(head.checkpoint.v, 4);
            assert_eq!(head.checkpoint.version(trigger).is_some(), trigger == "branch:to:b");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_has_seen_its_trigger_does_not_run_again() {
    let checkpointer = MemorySaver::new();
    let (thread, head) = stored_before(&checkpointer, 2, "start:b").await;
    let seen: SharedMap<Version> = std::iter::once((
        "start:b".into(),
        head.checkpoint.version("start:b").expect("a version").clone(),
    ))
    .collect();
    let mut checkpoint = head.checkpoint.clone();
    checkpoint.versions_seen.insert_mut("b".into(), seen);
    let put = Put {
        thread: "old".into(),
        ns: "".into(),
        parent: None,
        head: Some(head.checkpoint.id),
        writes: Vec::new(),
        changed: Vec::new(),
        checkpoint,
        metadata: head.metadata.clone(),
    };
    checkpointer.put(put).await.expect("stored");
    assert_eq!(done(thread.invoke(()).await).log, ["in", "a"]);
}

#[tokio::test(start_paused = true)]
async fn what_tasks_of_the_first_format_left_is_refused_by_name() {
    let checkpointer = MemorySaver::new();
    let (thread, head) = stored_before(&checkpointer, 1, "start:b").await;
    let id = head.checkpoint.id;
    let left = vec![("log".into(), Blob::encode(&["b"]).expect("a list"))];
    let left = TaskWrites::new(TaskId::from_bytes([7; 16]), "~__pregel_pull, b", left);
    checkpointer.put_writes("old", "", id, vec![left]).await.expect("stored");
    let (_, text) = failed(thread.invoke(()).await);
    assert_says(&text, &["thread `old`", &id.to_string(), "format 1", "LangGraph"]);
}
