//! Steps and versions come out of storage, where anything may stand. A number that cannot be counted on from is damage that is
//! named, whatever is done with the thread; other threads do not notice. A limit that cannot be reached is none.

use superstep::checkpoint::{AnyCheckpointer, Put, Stored, Version};
use superstep::prelude::*;

use crate::world::{Log, World, assert_says, done, failed, in_memory, log};

/// Stores the head of the good thread as that of another one, changed.
async fn damaged(checkpointer: &AnyCheckpointer, thread: &str, change: impl FnOnce(&mut Stored)) {
    let mut stored = checkpointer.get("good", "", None).await.expect("a look").expect("a thread");
    change(&mut stored);
    let Stored { ns, checkpoint, metadata, .. } = stored;
    let changed = checkpoint.channel_values.keys().cloned().collect();
    let put = Put {
        thread: thread.into(),
        ns,
        parent: None,
        head: None,
        writes: Vec::new(),
        checkpoint,
        metadata,
        changed,
    };
    checkpointer.put(put).await.expect("stored");
}

#[tokio::test]
async fn in_steps_and_versions() {
    let graph = StateGraph::<Log>::new().add_node("a", || log("a")).add_edge(START, "a");
    let checkpointer = AnyCheckpointer::new(MemorySaver::new());
    let graph = graph.compile().expect("a graph").with_any_checkpointer(checkpointer.clone());
    done(graph.thread("good").invoke(log("in")).await);
    damaged(&checkpointer, "late", |stored| stored.metadata.step = i64::MAX).await;
    damaged(&checkpointer, "early", |stored| stored.metadata.step = i64::MIN).await;
    for (thread, version) in [
        ("great", "18446744073709551615.5"),
        ("greater", "99999999999999999999999999999999.5"),
        ("no number", "newest"),
    ] {
        damaged(&checkpointer, thread, |stored| {
            let version = Version::from_text(version);
            stored.checkpoint.channel_versions.insert_mut("log".into(), version);
        })
        .await;
    }
    for thread in ["late", "early", "great", "greater", "no number"] {
        let at = graph.thread(thread);
        let named = [&*format!("`{thread}`"), "cannot be read"];
        assert_says(&failed(at.invoke(log("more")).await).1, &named);
        assert_says(&failed(at.invoke(()).await).1, &named);
        assert_says(&failed(at.get_state().await).1, &named);
        assert_says(&failed(at.update_state(log("more")).await).1, &named);
    }
    assert_eq!(done(graph.thread("good").invoke(log("more")).await).log.len(), 4);
}

#[tokio::test]
async fn but_not_in_the_recursion_limit() {
    let graph = StateGraph::<Log>::new()
        .add_node("a", |task: Task| {
            assert!(task.remaining_steps() > 1_000_000 && !task.is_last_step());
            log("a")
        })
        .add_edge(START, "a")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &World::new()).thread("1");
    for limit in [i64::MAX as u64 - 1, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX] {
        done(thread.invoke(log("in")).recursion_limit(limit).await);
    }
    assert_eq!(thread.get_state().await.expect("a look").state().log.len(), 8);
}
