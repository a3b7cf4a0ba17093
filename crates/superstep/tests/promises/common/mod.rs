//! What the promises share: a small state, and ways to watch what nodes do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use superstep::prelude::*;
use superstep::{CheckpointInfo, CompiledGraph, Snapshot};

#[derive(State, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// What nodes wrote, in the order in which it was folded.
    #[channel(reduce = Append)]
    pub(crate) lines: Vec<String>,
    #[channel(reduce = Sum)]
    pub(crate) total: i64,
    pub(crate) last: Option<String>,
}

pub(crate) fn line(text: impl Into<String>) -> NotesUpdate {
    Notes::update().lines([text.into()])
}

/// Counts something across nodes and runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counter(Arc<AtomicU32>);

impl Counter {
    /// Adds one and returns how many there were before.
    pub(crate) fn add(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    /// Counts from the beginning again.
    pub(crate) fn reset(&self) {
        self.0.store(0, Ordering::SeqCst);
    }

    /// Counts when the guard is dropped.
    pub(crate) fn on_drop(&self) -> CountDrop {
        CountDrop(self.clone())
    }
}

#[derive(Debug)]
pub(crate) struct CountDrop(Counter);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.add();
    }
}

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) async fn sleep(time: u64) {
    tokio::time::sleep(ms(time)).await;
}

/// The state of a run that is done.
pub(crate) fn done(outcome: Result<Outcome<Notes>, RunError>) -> Notes {
    match outcome {
        Ok(Outcome::Done(notes)) => notes,
        other => panic!("the run is not done: {other:?}"),
    }
}

/// The names of the tasks that a snapshot shows, each with its error.
pub(crate) fn tasks(snapshot: &CheckpointInfo) -> Vec<(String, Option<String>)> {
    snapshot.tasks.iter().map(|task| (task.name.to_string(), task.error.clone())).collect()
}

pub(crate) fn next<S>(snapshot: &Snapshot<S>) -> Vec<&str> {
    snapshot.next.iter().map(|name| &**name).collect()
}

/// Asserts that a text has all these parts.
#[track_caller]
pub(crate) fn says(text: impl ToString, parts: &[&str]) {
    let text = text.to_string();
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

/// The same graph with a checkpointer that keeps everything in memory.
pub(crate) fn kept(graph: StateGraph<Notes>) -> CompiledGraph<Notes> {
    graph.compile().expect("a graph that compiles").with_checkpointer(MemorySaver::new())
}

/// A small generator of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}
