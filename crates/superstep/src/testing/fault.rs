use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use superstep_checkpoint::{
    AnyCheckpointer, CheckpointId, Checkpointer, DeltaHistory, Error, Prune, Put, Query, Stored,
    TaskWrites, ThreadPage, ThreadQuery,
};

/// Which of the things that are stored fails, and how. Operations are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// None.
    Never,
    /// This operation fails, and stores nothing.
    Before(usize),
    /// This operation fails although it has taken effect: its answer was lost.
    After(usize),
    /// This operation stores nothing, because another writer was first. One that compares nothing just fails.
    Conflict(usize),
}

impl Fault {
    /// Every fault that can befall this many operations.
    pub fn points(operations: usize) -> impl Iterator<Item = Self> {
        (1..=operations).flat_map(|at| [Self::Before(at), Self::After(at), Self::Conflict(at)])
    }
}

/// A saver that fails once, and is well before and afterwards.
///
/// It stores one thing after the other, and counts them. A run that is not disturbed says how many there are, so that a test
/// can go through all of them:
///
/// ```
/// use superstep::prelude::*;
/// use superstep::CompiledGraph;
/// use superstep::testing::{Fault, FaultSaver, virtual_time};
///
/// #[derive(State, Clone, Debug, Default, PartialEq)]
/// struct Count {
///     #[channel(reduce = Sum)]
///     n: i64,
/// }
///
/// fn app(saver: &FaultSaver) -> CompiledGraph<Count> {
///     let graph = StateGraph::new()
///         .add_node("one", || Count::update().n(1))
///         .add_node("two", || Count::update().n(2))
///         .add_edge(START, "one")
///         .add_edge("one", "two");
///     graph.compile().expect("a graph").with_checkpointer(saver.clone())
/// }
///
/// virtual_time(async {
///     let undisturbed = FaultSaver::new(MemorySaver::new(), Fault::Never);
///     let thread = app(&undisturbed).thread("1");
///     let expected = thread.invoke(Count::update()).await.expect("a run").done();
///
///     for fault in Fault::points(undisturbed.operations()) {
///         let saver = FaultSaver::new(MemorySaver::new(), fault);
///         let thread = app(&saver).thread("1");
///         thread.invoke(Count::update()).await.expect_err("storage failed");
///
///         let begun = thread.get_state().await.expect("a look").metadata.is_some();
///         let run = if begun { thread.invoke(()) } else { thread.invoke(Count::update()) };
///         assert_eq!(run.await.expect("a run").done(), expected, "{fault:?}");
///     }
/// });
/// ```
#[derive(Clone)]
pub struct FaultSaver {
    inner: AnyCheckpointer,
    fault: Fault,
    operations: Arc<AtomicUsize>,
    /// Held by the operation that is being done.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl FaultSaver {
    /// A saver that fails when `fault` says.
    pub fn new(saver: impl Checkpointer, fault: Fault) -> Self {
        Self::over(AnyCheckpointer::new(saver), fault)
    }

    /// As [`new`](Self::new), for a saver whose type was erased.
    pub fn over(saver: AnyCheckpointer, fault: Fault) -> Self {
        Self { inner: saver, fault, operations: Arc::default(), turn: Arc::default() }
    }

    /// How many operations were begun that store something.
    pub fn operations(&self) -> usize {
        self.operations.load(Ordering::SeqCst)
    }

    /// Whether an operation has failed.
    pub fn has_failed(&self) -> bool {
        match self.fault {
            Fault::Never => false,
            Fault::Before(at) | Fault::After(at) | Fault::Conflict(at) => self.operations() >= at,
        }
    }

    /// Something that is stored. Whoever compares something may find that somebody else was first.
    async fn stores<T>(
        &self,
        conflict: Option<Error>,
        operation: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let _turn = self.turn.lock().await;
        let nth = self.operations.fetch_add(1, Ordering::SeqCst) + 1;
        if self.fault == Fault::Conflict(nth) {
            return Err(conflict.unwrap_or_else(|| failed(nth)));
        }
        if self.fault == Fault::Before(nth) {
            return Err(failed(nth));
        }
        let done = operation.await;
        if self.fault == Fault::After(nth) { Err(failed(nth)) } else { done }
    }
}

fn failed(nth: usize) -> Error {
    Error::backend(format!("cannot store operation {nth}"), "the test has it fail")
}

fn conflict(put: &Put) -> Error {
    let (thread, ns) = (put.thread.to_string(), put.ns.to_string());
    Error::Conflict { thread, ns, expected: put.head, found: Some(put.checkpoint.id) }
}

impl fmt::Debug for FaultSaver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultSaver")
            .field("fault", &self.fault)
            .field("operations", &self.operations())
            .finish_non_exhaustive()
    }
}

impl Checkpointer for FaultSaver {
    async fn put(&self, put: Put) -> Result<(), Error> {
        self.stores(Some(conflict(&put)), self.inner.put(put)).await
    }

    async fn put_all(&self, puts: Vec<Put>) -> Result<(), Error> {
        self.stores(puts.first().map(conflict), self.inner.put_all(puts)).await
    }

    /// Whatever the saver inside does: operations are done one after the other.
    fn in_order(&self) -> bool {
        true
    }

    fn relaxed(&self) -> Option<Self> {
        Some(Self { inner: self.inner.clone().relaxed(), ..self.clone() })
    }

    async fn put_writes(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        writes: Vec<TaskWrites>,
    ) -> Result<(), Error> {
        let compares = writes.iter().find(|task| task.expected.is_some());
        let overtaken = compares.map(|task| Error::Overtaken {
            thread: thread.to_owned(),
            ns: ns.to_owned(),
            checkpoint,
            task: task.task,
            channel: String::new(),
        });
        self.stores(overtaken, self.inner.put_writes(thread, ns, checkpoint, writes)).await
    }

    async fn get(
        &self,
        thread: &str,
        ns: &str,
        id: Option<CheckpointId>,
    ) -> Result<Option<Stored>, Error> {
        self.inner.get(thread, ns, id).await
    }

    async fn list(&self, query: Query) -> Result<Vec<Stored>, Error> {
        self.inner.list(query).await
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), Error> {
        self.stores(None, self.inner.delete_thread(thread)).await
    }

    async fn delta_history(
        &self,
        thread: &str,
        ns: &str,
        id: CheckpointId,
        channels: &[Arc<str>],
    ) -> Result<BTreeMap<Arc<str>, DeltaHistory>, Error> {
        self.inner.delta_history(thread, ns, id, channels).await
    }

    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), Error> {
        self.stores(None, self.inner.copy_thread(from, to)).await
    }

    async fn delete_for_runs(&self, runs: &[String]) -> Result<(), Error> {
        self.stores(None, self.inner.delete_for_runs(runs)).await
    }

    async fn prune(&self, prune: Prune) -> Result<usize, Error> {
        self.stores(None, self.inner.prune(prune)).await
    }

    async fn threads(&self, query: ThreadQuery) -> Result<ThreadPage, Error> {
        self.inner.threads(query).await
    }
}
