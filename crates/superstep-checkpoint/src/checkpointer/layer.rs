use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::SystemTime;

use super::{AlarmPage, AnyCheckpointer, Checkpointer, DeltaHistory};
use crate::{
    CheckpointId, Error, Inventory, Prune, Put, Query, StorageId, Stored, TaskWrites, ThreadPage,
    ThreadQuery,
};

/// A checkpointer on top of another one: it measures, limits, encrypts or delays what that one does.
///
/// Every layer is a [`Checkpointer`]. Each method forwards to [`inner`](Self::inner) unless the layer replaces it, so a
/// layer names only what it changes, and methods that `Checkpointer` gains later are forwarded too. What concerns every
/// operation goes into [`around`](Self::around).
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use superstep_checkpoint::{
///     AnyCheckpointer, CheckpointerLayer, Error, MemorySaver, Operation,
/// };
///
/// struct Counted {
///     inner: AnyCheckpointer,
///     changes: AtomicUsize,
/// }
///
/// impl CheckpointerLayer for Counted {
///     fn inner(&self) -> &AnyCheckpointer {
///         &self.inner
///     }
///
///     async fn around<T: Send>(
///         &self,
///         operation: Operation,
///         work: impl Future<Output = Result<T, Error>> + Send,
///     ) -> Result<T, Error> {
///         if operation.stores() {
///             self.changes.fetch_add(1, Ordering::Relaxed);
///         }
///         work.await
///     }
/// }
///
/// let inner = AnyCheckpointer::new(MemorySaver::new());
/// let checkpointer = AnyCheckpointer::new(Counted { inner, changes: AtomicUsize::new(0) });
/// # let _ = checkpointer;
/// ```
///
/// # What to watch for
///
/// - `put_all` does not call `put`. A layer that replaces one of them usually replaces both.
/// - [`relaxed`](Self::relaxed) forwards nothing: only the layer knows how to wrap another checkpointer. A layer that leaves it out
///   works, but runs that store in the background do not get the faster form of the checkpointer below.
/// - [`in_order`](Self::in_order) holds for a layer only if it asks the checkpointer below when it is first polled.
pub trait CheckpointerLayer: Send + Sync + 'static {
    /// The checkpointer below.
    fn inner(&self) -> &AnyCheckpointer;

    /// Runs `work`, which is one operation of the checkpointer below. Every method that the layer does not replace goes
    /// through here.
    fn around<T: Send>(
        &self,
        operation: Operation,
        work: impl Future<Output = Result<T, Error>> + Send,
    ) -> impl Future<Output = Result<T, Error>> + Send {
        let _ = operation;
        work
    }

    /// See [`Checkpointer::put`].
    fn put(&self, put: Put) -> impl Future<Output = Result<(), Error>> + Send {
        self.around(Operation::Put, self.inner().put(put))
    }

    /// See [`Checkpointer::put_all`].
    fn put_all(&self, puts: Vec<Put>) -> impl Future<Output = Result<(), Error>> + Send {
        self.around(Operation::PutAll, self.inner().put_all(puts))
    }

    /// See [`Checkpointer::put_writes`].
    fn put_writes(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        writes: Vec<TaskWrites>,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        self.around(Operation::PutWrites, self.inner().put_writes(thread, ns, checkpoint, writes))
    }

    /// See [`Checkpointer::get`].
    fn get(
        &self,
        thread: &str,
        ns: &str,
        id: Option<CheckpointId>,
    ) -> impl Future<Output = Result<Option<Stored>, Error>> + Send {
        self.around(Operation::Get, self.inner().get(thread, ns, id))
    }

    /// See [`Checkpointer::list`].
    fn list(&self, query: Query) -> impl Future<Output = Result<Vec<Stored>, Error>> + Send {
        self.around(Operation::List, self.inner().list(query))
    }

    /// See [`Checkpointer::delete_thread`].
    fn delete_thread(&self, thread: &str) -> impl Future<Output = Result<(), Error>> + Send {
        self.around(Operation::DeleteThread, self.inner().delete_thread(thread))
    }

    /// See [`Checkpointer::delta_history`].
    fn delta_history(
        &self,
        thread: &str,
        ns: &str,
        id: CheckpointId,
        channels: &[Arc<str>],
    ) -> impl Future<Output = Result<BTreeMap<Arc<str>, DeltaHistory>, Error>> + Send {
        self.around(Operation::DeltaHistory, self.inner().delta_history(thread, ns, id, channels))
    }

    /// See [`Checkpointer::relaxed`]. `None` unless the layer replaces it.
    fn relaxed(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// See [`Checkpointer::in_order`].
    fn in_order(&self) -> bool {
        self.inner().in_order()
    }

    /// See [`Checkpointer::storage`].
    fn storage(&self) -> Option<StorageId> {
        Some(self.inner().storage())
    }

    /// See [`Checkpointer::copy_thread`].
    fn copy_thread(&self, from: &str, to: &str) -> impl Future<Output = Result<(), Error>> + Send {
        self.around(Operation::CopyThread, self.inner().copy_thread(from, to))
    }

    /// See [`Checkpointer::delete_for_runs`].
    fn delete_for_runs(&self, runs: &[String]) -> impl Future<Output = Result<(), Error>> + Send {
        self.around(Operation::DeleteForRuns, self.inner().delete_for_runs(runs))
    }

    /// See [`Checkpointer::prune`].
    fn prune(&self, prune: Prune) -> impl Future<Output = Result<usize, Error>> + Send {
        self.around(Operation::Prune, self.inner().prune(prune))
    }

    /// See [`Checkpointer::threads`].
    fn threads(
        &self,
        query: ThreadQuery,
    ) -> impl Future<Output = Result<ThreadPage, Error>> + Send {
        self.around(Operation::Threads, self.inner().threads(query))
    }

    /// See [`Checkpointer::alarms`].
    fn alarms(
        &self,
        until: SystemTime,
        limit: usize,
    ) -> impl Future<Output = Result<AlarmPage, Error>> + Send {
        self.around(Operation::Alarms, self.inner().alarms(until, limit))
    }

    /// See [`Checkpointer::inventory`].
    fn inventory(&self) -> impl Future<Output = Result<Inventory, Error>> + Send {
        self.around(Operation::Inventory, self.inner().inventory())
    }
}

/// An operation of a [layer](CheckpointerLayer).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// [`Checkpointer::put`].
    Put,
    /// [`Checkpointer::put_all`].
    PutAll,
    /// [`Checkpointer::put_writes`].
    PutWrites,
    /// [`Checkpointer::get`].
    Get,
    /// [`Checkpointer::list`].
    List,
    /// [`Checkpointer::delete_thread`].
    DeleteThread,
    /// [`Checkpointer::delta_history`].
    DeltaHistory,
    /// [`Checkpointer::copy_thread`].
    CopyThread,
    /// [`Checkpointer::delete_for_runs`].
    DeleteForRuns,
    /// [`Checkpointer::prune`].
    Prune,
    /// [`Checkpointer::threads`].
    Threads,
    /// [`Checkpointer::alarms`].
    Alarms,
    /// [`Checkpointer::inventory`].
    Inventory,
}

impl Operation {
    /// Whether it changes what is stored.
    pub fn stores(self) -> bool {
        match self {
            Self::Put
            | Self::PutAll
            | Self::PutWrites
            | Self::DeleteThread
            | Self::CopyThread
            | Self::DeleteForRuns
            | Self::Prune => true,
            Self::Get
            | Self::List
            | Self::DeltaHistory
            | Self::Threads
            | Self::Alarms
            | Self::Inventory => false,
        }
    }
}

// A method that is missing here would be the default of `Checkpointer` in every layer, instead of what the checkpointer below
// does.
#[deny(clippy::missing_trait_methods)]
impl<L: CheckpointerLayer> Checkpointer for L {
    fn put(&self, put: Put) -> impl Future<Output = Result<(), Error>> + Send {
        CheckpointerLayer::put(self, put)
    }

    fn put_all(&self, puts: Vec<Put>) -> impl Future<Output = Result<(), Error>> + Send {
        CheckpointerLayer::put_all(self, puts)
    }

    fn put_writes(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        writes: Vec<TaskWrites>,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        CheckpointerLayer::put_writes(self, thread, ns, checkpoint, writes)
    }

    fn get(
        &self,
        thread: &str,
        ns: &str,
        id: Option<CheckpointId>,
    ) -> impl Future<Output = Result<Option<Stored>, Error>> + Send {
        CheckpointerLayer::get(self, thread, ns, id)
    }

    fn list(&self, query: Query) -> impl Future<Output = Result<Vec<Stored>, Error>> + Send {
        CheckpointerLayer::list(self, query)
    }

    fn delete_thread(&self, thread: &str) -> impl Future<Output = Result<(), Error>> + Send {
        CheckpointerLayer::delete_thread(self, thread)
    }

    fn delta_history(
        &self,
        thread: &str,
        ns: &str,
        id: CheckpointId,
        channels: &[Arc<str>],
    ) -> impl Future<Output = Result<BTreeMap<Arc<str>, DeltaHistory>, Error>> + Send {
        CheckpointerLayer::delta_history(self, thread, ns, id, channels)
    }

    fn relaxed(&self) -> Option<Self> {
        CheckpointerLayer::relaxed(self)
    }

    fn in_order(&self) -> bool {
        CheckpointerLayer::in_order(self)
    }

    fn storage(&self) -> Option<StorageId> {
        CheckpointerLayer::storage(self)
    }

    fn copy_thread(&self, from: &str, to: &str) -> impl Future<Output = Result<(), Error>> + Send {
        CheckpointerLayer::copy_thread(self, from, to)
    }

    fn delete_for_runs(&self, runs: &[String]) -> impl Future<Output = Result<(), Error>> + Send {
        CheckpointerLayer::delete_for_runs(self, runs)
    }

    fn prune(&self, prune: Prune) -> impl Future<Output = Result<usize, Error>> + Send {
        CheckpointerLayer::prune(self, prune)
    }

    fn threads(
        &self,
        query: ThreadQuery,
    ) -> impl Future<Output = Result<ThreadPage, Error>> + Send {
        CheckpointerLayer::threads(self, query)
    }

    fn alarms(
        &self,
        until: SystemTime,
        limit: usize,
    ) -> impl Future<Output = Result<AlarmPage, Error>> + Send {
        CheckpointerLayer::alarms(self, until, limit)
    }

    fn inventory(&self) -> impl Future<Output = Result<Inventory, Error>> + Send {
        CheckpointerLayer::inventory(self)
    }
}
