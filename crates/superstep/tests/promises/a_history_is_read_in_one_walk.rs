//! Reading the history of a thread costs what the thread has, not that for each of its checkpoints. Values that are stored as
//! deltas are rebuilt from what stands beside older checkpoints, so reading each of them by itself would walk the same chain
//! again and again. What was read once must give the same values.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::TryStreamExt;
use superstep::checkpoint::{
    AnyCheckpointer, CheckpointId, CheckpointerLayer, DeltaHistory, Error,
};
use superstep::prelude::*;
use superstep::{CompiledGraph, Snapshot, Thread};

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Diary {
    #[channel(reduce = Append, delta = 100000)]
    lines: Vec<String>,
    #[channel(reduce = Append, delta = 7)]
    often: Vec<u64>,
    days: usize,
}

/// Counts the writes that are read to rebuild values.
struct Counted {
    inner: AnyCheckpointer,
    writes: Arc<AtomicUsize>,
}

impl CheckpointerLayer for Counted {
    fn inner(&self) -> &AnyCheckpointer {
        &self.inner
    }

    async fn delta_history(
        &self,
        thread: &str,
        ns: &str,
        id: CheckpointId,
        channels: &[Arc<str>],
    ) -> Result<BTreeMap<Arc<str>, DeltaHistory>, Error> {
        let found = self.inner.delta_history(thread, ns, id, channels).await?;
        let read: usize = found.values().map(|history| history.writes.len()).sum();
        self.writes.fetch_add(read, Ordering::Relaxed);
        Ok(found)
    }
}

fn diary(writes: &Arc<AtomicUsize>) -> CompiledGraph<Diary> {
    let inner = AnyCheckpointer::new(MemorySaver::new());
    StateGraph::<Diary>::new()
        .add_node("write", |diary: Arc<Diary>| {
            let day = diary.lines.len();
            Diary::update().lines([format!("day {day}")]).often([day as u64])
        })
        .add_edge(START, "write")
        .add_conditional_edges("write", ["write", END], |diary: &Diary| {
            if diary.lines.len() < diary.days { "write" } else { END }
        })
        .compile()
        .expect("a graph")
        .with_checkpointer(Counted { inner, writes: writes.clone() })
}

async fn history(thread: &Thread<Diary>) -> Vec<Snapshot<Diary>> {
    thread.get_state_history().try_collect().await.expect("a history")
}

/// Each checkpoint of the history has the values that it has when it is read by itself.
async fn assert_same_alone(thread: &Thread<Diary>, history: &[Snapshot<Diary>]) {
    for snapshot in history {
        let alone = thread.at(snapshot).get_state().await.expect("a checkpoint");
        assert_eq!(snapshot.state(), alone.state(), "step {:?}", snapshot.metadata);
    }
}

#[tokio::test]
async fn each_write_is_read_once() {
    for days in [20, 100, 300] {
        let writes = Arc::new(AtomicUsize::new(0));
        let thread = diary(&writes).thread("d");
        thread.invoke(Diary::update().days(days)).await.expect("a run");
        writes.store(0, Ordering::Relaxed);
        let all = history(&thread).await;
        let read = writes.load(Ordering::Relaxed);
        assert_eq!(all.len(), days + 2);
        assert!(read <= 2 * all.len(), "{read} writes were read for {} checkpoints", all.len());
        assert_same_alone(&thread, &all).await;
    }
}

#[tokio::test]
async fn branches_keep_their_values() {
    let thread = diary(&Arc::default()).thread("d");
    thread.invoke(Diary::update().days(12)).await.expect("a run");
    let before = history(&thread).await;
    for at in [3, 8] {
        let branch =
            thread.at(&before[at]).update_state(Diary::update().lines(["other".to_owned()]));
        let branch = branch.as_node("write").await.expect("a branch");
        thread.at(branch).invoke(()).await.expect("a run");
    }
    let all = history(&thread).await;
    assert!(all.len() > before.len() + 4);
    assert_same_alone(&thread, &all).await;
    let some: Vec<_> =
        thread.get_state_history().filter("source", "update").try_collect().await.expect("some");
    assert_eq!(some.len(), 2);
    assert_same_alone(&thread, &some).await;
}
