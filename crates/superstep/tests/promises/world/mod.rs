//! What the tests of the promises share: a small state, a world that nodes act on, and a checkpointer that fails on demand.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use superstep::checkpoint::{
    AnyCheckpointer, CheckpointId, CheckpointerLayer, Error, Interrupt, Put, StorageId, Stored,
    TaskWrites,
};
use superstep::prelude::*;
use superstep::{CompiledGraph, Snapshot, Thread};

/// A list that grows, and a number that keeps its last value.
#[derive(State, Clone, Default, Debug, PartialEq)]
pub(crate) struct Log {
    #[channel(reduce = Append)]
    pub(crate) log: Vec<String>,
    pub(crate) n: i64,
}

/// An update that adds a line.
pub(crate) fn log(line: impl Into<String>) -> LogUpdate {
    Log::update().log([line.into()])
}

/// What nodes act on: it counts what ran, and says whether what can break is broken.
#[derive(Clone, Debug, Default)]
pub(crate) struct World(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    ran: Mutex<Vec<String>>,
    broken: AtomicBool,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn broken() -> Self {
        let world = Self::new();
        world.0.broken.store(true, Ordering::SeqCst);
        world
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.0.broken.load(Ordering::SeqCst)
    }

    pub(crate) fn break_again(&self) {
        self.0.broken.store(true, Ordering::SeqCst);
    }

    pub(crate) fn mend(&self) {
        self.0.broken.store(false, Ordering::SeqCst);
    }

    /// Notes that something ran.
    pub(crate) fn ran(&self, what: impl Into<String>) {
        self.0.ran.lock().unwrap_or_else(PoisonError::into_inner).push(what.into());
    }

    /// What has run since this was last asked, in order.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.ran.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The graph with a checkpointer in memory and the world as context.
pub(crate) fn in_memory<S: State, O>(
    graph: CompiledGraph<S, O>,
    world: &World,
) -> CompiledGraph<S, O> {
    graph.with_checkpointer(MemorySaver::new()).with_context(world.clone())
}

/// The outcome of a run that must end: one that waits forever, or is woken forever, is a failure.
pub(crate) async fn settles<T>(run: impl IntoFuture<Output = T>) -> T {
    let mut run = std::pin::pin!(run.into_future());
    let mut polls = 0;
    let counted = std::future::poll_fn(|cx| {
        polls += 1;
        assert!(polls < 10_000, "the run is woken again and again and gets nowhere");
        run.as_mut().poll(cx)
    });
    let limit = std::time::Duration::from_secs(86_400);
    tokio::time::timeout(limit, counted).await.expect("the run waits for ever")
}

/// The result, if the run is done.
pub(crate) fn done<O: std::fmt::Debug>(outcome: Result<Outcome<O>, RunError>) -> O {
    match outcome {
        Ok(Outcome::Done(output)) => output,
        other => panic!("the run should be done, but ended with {other:?}"),
    }
}

/// The questions of a run that stopped; none at a breakpoint.
pub(crate) fn questions<O: std::fmt::Debug>(
    outcome: Result<Outcome<O>, RunError>,
) -> Vec<Interrupt> {
    match outcome {
        Ok(Outcome::Interrupted(asked)) => asked.to_vec(),
        other => panic!("the run should have stopped, but ended with {other:?}"),
    }
}

/// What a run that stopped asks.
pub(crate) fn asked<O: std::fmt::Debug>(outcome: Result<Outcome<O>, RunError>) -> Vec<String> {
    texts(&questions(outcome))
}

/// What is asked, as text.
pub(crate) fn texts(questions: &[Interrupt]) -> Vec<String> {
    questions.iter().map(|question| text(&question.value)).collect()
}

fn text(value: &Value) -> String {
    match value {
        Value::Str(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The error of a run that failed, with its causes.
pub(crate) fn failed<O: std::fmt::Debug>(outcome: Result<O, RunError>) -> (RunError, String) {
    let error = outcome.expect_err("the run should have failed");
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    (error, text)
}

/// Asserts that a text has all these parts.
pub(crate) fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{text:?} should say {part:?}");
    }
}

/// The nodes that come next.
pub(crate) fn next<S>(snapshot: &Snapshot<S>) -> Vec<String> {
    snapshot.next.iter().map(ToString::to_string).collect()
}

/// The thread as it is.
pub(crate) async fn look<S: State + std::fmt::Debug, O: Send + 'static>(
    thread: &Thread<S, O>,
) -> Snapshot<S> {
    thread.get_state().await.expect("a thread can always be looked at")
}

/// How often a checkpoint was made on the thread.
pub(crate) async fn checkpoints<S: State, O: Send + 'static>(thread: &Thread<S, O>) -> usize {
    thread.get_state_history().raw().await.expect("history").len()
}

/// A checkpointer in memory that stores nothing while it is told to fail, and notes what is looked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched {
    inner: AnyCheckpointer,
    pub(crate) writes_fail: Arc<AtomicBool>,
    pub(crate) checkpoints_fail: Arc<AtomicBool>,
    pub(crate) looks_inside_fail: Arc<AtomicBool>,
    looked_for: Arc<Mutex<Vec<String>>>,
    stored: Arc<Mutex<Vec<Vec<i64>>>>,
    relaxed: bool,
    stored_relaxed: Arc<AtomicUsize>,
}

impl Watched {
    /// The nodes whose graphs were looked for since this was last asked; the outermost graph has no name.
    pub(crate) fn take_looked_for(&self) -> Vec<String> {
        let mut looked_for = self.looked_for.lock().unwrap_or_else(PoisonError::into_inner);
        let names = std::mem::take(&mut *looked_for).into_iter();
        names.map(|ns| ns.split(':').next().unwrap_or_default().to_owned()).collect()
    }

    /// The steps of the checkpoints that were stored, those together that were stored in one operation.
    pub(crate) fn stored(&self) -> Vec<Vec<i64>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// In how many operations checkpoints were stored by somebody who does not wait for the disk.
    pub(crate) fn stored_relaxed(&self) -> usize {
        self.stored_relaxed.load(Ordering::SeqCst)
    }
}

fn full() -> Error {
    Error::backend("cannot store", "the disk is full")
}

impl CheckpointerLayer for Watched {
    fn inner(&self) -> &AnyCheckpointer {
        &self.inner
    }

    /// Each of them stands for another process.
    fn storage(&self) -> Option<StorageId> {
        None
    }

    fn in_order(&self) -> bool {
        false
    }

    async fn put(&self, put: Put) -> Result<(), Error> {
        self.put_all(vec![put]).await
    }

    async fn put_all(&self, puts: Vec<Put>) -> Result<(), Error> {
        if self.checkpoints_fail.load(Ordering::SeqCst) {
            return Err(full());
        }
        let steps = puts.iter().map(|put| put.metadata.step).collect();
        self.inner.put_all(puts).await?;
        self.stored_relaxed.fetch_add(usize::from(self.relaxed), Ordering::SeqCst);
        self.stored.lock().unwrap_or_else(PoisonError::into_inner).push(steps);
        Ok(())
    }

    fn relaxed(&self) -> Option<Self> {
        Some(Self { relaxed: true, ..self.clone() })
    }

    async fn put_writes(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        writes: Vec<TaskWrites>,
    ) -> Result<(), Error> {
        if self.writes_fail.load(Ordering::SeqCst) {
            return Err(full());
        }
        self.inner.put_writes(thread, ns, checkpoint, writes).await
    }

    async fn get(
        &self,
        thread: &str,
        ns: &str,
        id: Option<CheckpointId>,
    ) -> Result<Option<Stored>, Error> {
        if !ns.is_empty() && self.looks_inside_fail.load(Ordering::SeqCst) {
            return Err(full());
        }
        self.looked_for.lock().unwrap_or_else(PoisonError::into_inner).push(ns.to_owned());
        self.inner.get(thread, ns, id).await
    }
}
