use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use superstep_checkpoint::{
    AnyCheckpointer, CheckpointId, Checkpointer, CheckpointerLayer, Error, Operation, Put,
    StorageId, TaskWrites,
};

/// Which storage operation fails, and how. Operations are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// None.
    Never,
    /// This operation fails, and stores nothing.
    Before(usize),
    /// This operation takes effect, but its result is lost.
    After(usize),
    /// This operation stores nothing, because another writer was first. An operation without a
    /// comparison just fails.
    Conflict(usize),
}

impl Fault {
    /// Every fault of this many operations.
    pub fn points(operations: usize) -> impl Iterator<Item = Self> {
        (1..=operations).flat_map(|at| [Self::Before(at), Self::After(at), Self::Conflict(at)])
    }
}

/// A checkpointer that fails once.
///
/// It stores one thing after the other, and counts them. An undisturbed run counts them, so that a
/// test can try all of them:
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
/// fn app(checkpointer: &FaultSaver) -> CompiledGraph<Count> {
///     let graph = StateGraph::new()
///         .add_node("one", || Count::update().n(1))
///         .add_node("two", || Count::update().n(2))
///         .add_edge(START, "one")
///         .add_edge("one", "two");
///     graph.compile().expect("a graph").with_checkpointer(checkpointer.clone())
/// }
///
/// virtual_time(async {
///     let undisturbed = FaultSaver::new(MemorySaver::new(), Fault::Never);
///     let thread = app(&undisturbed).thread("1");
///     let expected = thread.invoke(Count::update()).await.expect("a run").done();
///
///     for fault in Fault::points(undisturbed.operations()) {
///         let checkpointer = FaultSaver::new(MemorySaver::new(), fault);
///         let thread = app(&checkpointer).thread("1");
///         thread.invoke(Count::update()).await.expect_err("storage failed");
///
///         let is_new = thread.get_state().await.expect("a snapshot").is_new();
///         let run = if is_new { thread.invoke(Count::update()) } else { thread.invoke(()) };
///         assert_eq!(run.await.expect("a run").done(), expected, "{fault:?}");
///     }
/// });
/// ```
#[derive(Clone)]
pub struct FaultSaver {
    inner: AnyCheckpointer,
    fault: Fault,
    operations: Arc<AtomicUsize>,
    /// Held by the running operation.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl FaultSaver {
    /// A checkpointer that fails at `fault`.
    pub fn new(checkpointer: impl Checkpointer, fault: Fault) -> Self {
        Self::over(AnyCheckpointer::new(checkpointer), fault)
    }

    /// As [`new`](Self::new), with a type-erased checkpointer.
    pub fn over(checkpointer: AnyCheckpointer, fault: Fault) -> Self {
        Self { inner: checkpointer, fault, operations: Arc::default(), turn: Arc::default() }
    }

    /// The number of storage operations so far.
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

    /// A storage operation. One with a comparison may fail because another writer was first.
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

impl CheckpointerLayer for FaultSaver {
    fn inner(&self) -> &AnyCheckpointer {
        &self.inner
    }

    async fn around<T: Send>(
        &self,
        operation: Operation,
        work: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        if operation.stores() { self.stores(None, work).await } else { work.await }
    }

    async fn put(&self, put: Put) -> Result<(), Error> {
        self.stores(Some(conflict(&put)), self.inner.put(put)).await
    }

    async fn put_all(&self, puts: Vec<Put>) -> Result<(), Error> {
        self.stores(puts.first().map(conflict), self.inner.put_all(puts)).await
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

    fn relaxed(&self) -> Option<Self> {
        Some(Self { inner: self.inner.clone().relaxed(), ..self.clone() })
    }

    /// Whatever the checkpointer below does: operations are done one after the other.
    fn in_order(&self) -> bool {
        true
    }

    /// Each saver stands for a process of its own, which knows nothing of the runs of others.
    fn storage(&self) -> Option<StorageId> {
        None
    }
}
