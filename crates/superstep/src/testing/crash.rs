use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};

use superstep_checkpoint::{
    AnyCheckpointer, CheckpointId, Checkpointer, DeltaHistory, Error, Prune, Put, Query, Stored,
    TaskWrites, ThreadPage, ThreadQuery,
};
use tokio::sync::{MutexGuard, Notify};

use crate::engine::lock;

/// When the process ends, in terms of what it stores. Operations are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// It does not.
    Never,
    /// Before this operation takes effect.
    Before(usize),
    /// After this operation took effect, and before anybody is told.
    After(usize),
}

impl Crash {
    /// Every moment at which a process that makes this many operations can end.
    pub fn points(operations: usize) -> impl Iterator<Item = Self> {
        (1..=operations).flat_map(|at| [Self::Before(at), Self::After(at)])
    }
}

/// A saver through which a process stores until it ends.
///
/// It stores one thing after the other, and counts them. At the operation that [`Crash`] names it ends the process: the
/// operation never returns, [`run`](Self::run) drops whatever ran, and everything else that is asked of this handle fails. What
/// was stored by then is in the [survivor](Self::survivor).
///
/// A run that is not disturbed says how many operations there are, so that a test can go through all of them:
///
/// ```
/// use superstep::prelude::*;
/// use superstep::CompiledGraph;
/// use superstep::testing::{Crash, CrashSaver, virtual_time};
///
/// #[derive(State, Clone, Debug, Default, PartialEq)]
/// struct Count {
///     #[channel(reduce = Sum)]
///     n: i64,
/// }
///
/// fn app() -> CompiledGraph<Count> {
///     let graph = StateGraph::new()
///         .add_node("one", || Count::update().n(1))
///         .add_node("two", || Count::update().n(2))
///         .add_edge(START, "one")
///         .add_edge("one", "two");
///     graph.compile().expect("a graph")
/// }
///
/// virtual_time(async {
///     let undisturbed = CrashSaver::new(MemorySaver::new(), Crash::Never);
///     let thread = app().with_checkpointer(undisturbed.clone()).thread("1");
///     let expected = thread.invoke(Count::update()).await.expect("a run").done();
///
///     for crash in Crash::points(undisturbed.operations()) {
///         let saver = CrashSaver::new(MemorySaver::new(), crash);
///         let thread = app().with_checkpointer(saver.clone()).thread("1");
///         let ended = saver.run(thread.invoke(Count::update())).await;
///         assert!(ended.is_none(), "the process ended in the middle");
///
///         // Another process finds what survived.
///         let thread = app().with_any_checkpointer(saver.survivor()).thread("1");
///         let begun = thread.get_state().await.expect("a look").metadata.is_some();
///         let run = if begun { thread.invoke(()) } else { thread.invoke(Count::update()) };
///         assert_eq!(run.await.expect("a run").done(), expected, "{crash:?}");
///     }
/// });
/// ```
#[derive(Clone)]
pub struct CrashSaver {
    inner: AnyCheckpointer,
    process: Arc<Process>,
}

struct Process {
    crash: Crash,
    life: Mutex<Life>,
    over: Notify,
    /// Held by the operation that is being done. What was asked for behind it is not begun when the process ends.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Life {
    operations: usize,
    over: bool,
}

impl CrashSaver {
    /// A saver for a process that ends when `crash` says.
    pub fn new(saver: impl Checkpointer, crash: Crash) -> Self {
        Self::over(AnyCheckpointer::new(saver), crash)
    }

    /// As [`new`](Self::new), for a saver whose type was erased.
    pub fn over(saver: AnyCheckpointer, crash: Crash) -> Self {
        let (life, over, turn) = (Mutex::default(), Notify::new(), tokio::sync::Mutex::default());
        let process = Process { crash, life, over, turn };
        Self { inner: saver, process: Arc::new(process) }
    }

    /// How many operations were begun that store something.
    pub fn operations(&self) -> usize {
        lock(&self.process.life).operations
    }

    /// Whether the process has ended.
    pub fn has_crashed(&self) -> bool {
        lock(&self.process.life).over
    }

    /// What was stored, for the next process.
    pub fn survivor(&self) -> AnyCheckpointer {
        self.inner.clone()
    }

    /// Does the work of the process. Nothing comes back if the process ended in the middle: then the work is dropped.
    pub async fn run<W: IntoFuture>(&self, work: W) -> Option<W::Output> {
        let over = async {
            let mut told = std::pin::pin!(self.process.over.notified());
            told.as_mut().enable();
            if !self.has_crashed() {
                told.await;
            }
        };
        tokio::select! {
            biased;
            () = over => None,
            // What the work came to in the moment in which the process ended is nobody's to know.
            output = work.into_future() => (!self.has_crashed()).then_some(output),
        }
    }

    /// Something that is stored: done before or after the process ends, or as if there were no end.
    async fn stores<T>(
        &self,
        operation: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let turn = self.process.turn.lock().await;
        let nth = {
            let mut life = lock(&self.process.life);
            if life.over {
                return Err(ended());
            }
            life.operations += 1;
            life.operations
        };
        if self.process.crash == Crash::Before(nth) {
            return self.end(turn).await;
        }
        let done = operation.await;
        if self.process.crash == Crash::After(nth) {
            return self.end(turn).await;
        }
        done
    }

    /// Ends the process. Whoever waits for a turn finds it over.
    async fn end<T>(&self, turn: MutexGuard<'_, ()>) -> T {
        lock(&self.process.life).over = true;
        drop(turn);
        self.process.over.notify_waiters();
        std::future::pending().await
    }

    fn reads(&self) -> Result<&AnyCheckpointer, Error> {
        if self.has_crashed() { Err(ended()) } else { Ok(&self.inner) }
    }
}

fn ended() -> Error {
    Error::backend("cannot be used any more", "the process of this saver has ended")
}

impl fmt::Debug for CrashSaver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrashSaver")
            .field("crash", &self.process.crash)
            .field("operations", &self.operations())
            .finish_non_exhaustive()
    }
}

impl Checkpointer for CrashSaver {
    async fn put(&self, put: Put) -> Result<(), Error> {
        self.stores(self.inner.put(put)).await
    }

    async fn put_all(&self, puts: Vec<Put>) -> Result<(), Error> {
        self.stores(self.inner.put_all(puts)).await
    }

    /// Whatever the saver inside does: operations are done one after the other.
    fn in_order(&self) -> bool {
        true
    }

    fn relaxed(&self) -> Option<Self> {
        Some(Self { inner: self.inner.clone().relaxed(), process: self.process.clone() })
    }

    async fn put_writes(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        writes: Vec<TaskWrites>,
    ) -> Result<(), Error> {
        self.stores(self.inner.put_writes(thread, ns, checkpoint, writes)).await
    }

    async fn get(
        &self,
        thread: &str,
        ns: &str,
        id: Option<CheckpointId>,
    ) -> Result<Option<Stored>, Error> {
        self.reads()?.get(thread, ns, id).await
    }

    async fn list(&self, query: Query) -> Result<Vec<Stored>, Error> {
        self.reads()?.list(query).await
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), Error> {
        self.stores(self.inner.delete_thread(thread)).await
    }

    async fn delta_history(
        &self,
        thread: &str,
        ns: &str,
        id: CheckpointId,
        channels: &[Arc<str>],
    ) -> Result<BTreeMap<Arc<str>, DeltaHistory>, Error> {
        self.reads()?.delta_history(thread, ns, id, channels).await
    }

    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), Error> {
        self.stores(self.inner.copy_thread(from, to)).await
    }

    async fn delete_for_runs(&self, runs: &[String]) -> Result<(), Error> {
        self.stores(self.inner.delete_for_runs(runs)).await
    }

    async fn prune(&self, prune: Prune) -> Result<usize, Error> {
        self.stores(self.inner.prune(prune)).await
    }

    async fn threads(&self, query: ThreadQuery) -> Result<ThreadPage, Error> {
        self.reads()?.threads(query).await
    }
}
