use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};

use superstep_checkpoint::{
    AnyCheckpointer, Checkpointer, CheckpointerLayer, Error, Operation, StorageId,
};
use tokio::sync::{MutexGuard, Notify};

use crate::engine::lock;

/// When the process crashes, in terms of its storage operations, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// It does not.
    Never,
    /// Before this operation takes effect.
    Before(usize),
    /// After this operation took effect, and before the caller gets its result.
    After(usize),
}

impl Crash {
    /// Every crash point of a process with this many operations.
    pub fn points(operations: usize) -> impl Iterator<Item = Self> {
        (1..=operations).flat_map(|at| [Self::Before(at), Self::After(at)])
    }
}

/// A checkpointer that simulates a crash.
///
/// It executes operations one after the other, and counts them. At the operation that [`Crash`]
/// names the process ends: the operation never returns, [`run`](Self::run) drops its future, and
/// all other operations of this handle fail. What was stored by then is in the
/// [survivor](Self::survivor).
///
/// An undisturbed run counts the operations, so that a test can try all of them:
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
///         let checkpointer = CrashSaver::new(MemorySaver::new(), crash);
///         let thread = app().with_checkpointer(checkpointer.clone()).thread("1");
///         let ended = checkpointer.run(thread.invoke(Count::update())).await;
///         assert!(ended.is_none(), "the process ended in the middle");
///
///         // Another process finds what survived.
///         let thread = app().with_any_checkpointer(checkpointer.survivor()).thread("1");
///         let is_new = thread.get_state().await.expect("a snapshot").is_new();
///         let run = if is_new { thread.invoke(Count::update()) } else { thread.invoke(()) };
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
    /// Held by the running operation. Operations behind it do not start when the process ends.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Life {
    operations: usize,
    over: bool,
}

impl CrashSaver {
    /// A checkpointer that crashes at `crash`.
    pub fn new(checkpointer: impl Checkpointer, crash: Crash) -> Self {
        Self::over(AnyCheckpointer::new(checkpointer), crash)
    }

    /// As [`new`](Self::new), with a type-erased checkpointer.
    pub fn over(checkpointer: AnyCheckpointer, crash: Crash) -> Self {
        let (life, over, turn) = (Mutex::default(), Notify::new(), tokio::sync::Mutex::default());
        let process = Process { crash, life, over, turn };
        Self { inner: checkpointer, process: Arc::new(process) }
    }

    /// The number of storage operations so far.
    pub fn operations(&self) -> usize {
        lock(&self.process.life).operations
    }

    /// Whether the simulated process has crashed.
    pub fn has_crashed(&self) -> bool {
        lock(&self.process.life).over
    }

    /// The storage, for the next process.
    pub fn survivor(&self) -> AnyCheckpointer {
        self.inner.clone()
    }

    /// Runs the work of the process. Returns `None` if it crashed: then the work is dropped.
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
            // The result is lost if the process crashed at that moment.
            output = work.into_future() => (!self.has_crashed()).then_some(output),
        }
    }

    /// A storage operation: executed before or after the crash, or without one.
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

    /// Ends the process. Operations that wait for their turn find it ended.
    async fn end<T>(&self, turn: MutexGuard<'_, ()>) -> T {
        lock(&self.process.life).over = true;
        drop(turn);
        self.process.over.notify_waiters();
        std::future::pending().await
    }
}

fn ended() -> Error {
    Error::backend("cannot be used any more", "the process of this checkpointer has ended")
}

impl fmt::Debug for CrashSaver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrashSaver")
            .field("crash", &self.process.crash)
            .field("operations", &self.operations())
            .finish_non_exhaustive()
    }
}

impl CheckpointerLayer for CrashSaver {
    fn inner(&self) -> &AnyCheckpointer {
        &self.inner
    }

    async fn around<T: Send>(
        &self,
        operation: Operation,
        work: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        if operation.stores() {
            self.stores(work).await
        } else if self.has_crashed() {
            Err(ended())
        } else {
            work.await
        }
    }

    fn relaxed(&self) -> Option<Self> {
        Some(Self { inner: self.inner.clone().relaxed(), process: self.process.clone() })
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
