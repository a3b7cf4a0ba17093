mod alarm;
mod any;
mod delta;
mod layer;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::SystemTime;

use crate::{
    CheckpointId, Error, Inventory, Prune, Put, Query, StorageId, Stored, TaskWrites, ThreadPage,
    ThreadQuery,
};

pub use alarm::{Alarm, AlarmPage};
pub use any::AnyCheckpointer;
pub use delta::{DeltaHistory, WritePlace};
pub use layer::{CheckpointerLayer, Operation};

use alarm::walk_alarms;
use delta::walk_deltas;

/// Stores the checkpoints of threads.
///
/// A thread is a tree of checkpoints under one id; each namespace of a thread is a tree of its own.
/// The *head* of a namespace is its checkpoint with the greatest id. Between two checkpoints, the
/// writes of tasks are stored with the older one.
///
/// # What every implementation promises
///
/// 1. **Atomic.** [`put`](Self::put) stores the checkpoint and the writes it carries together or not at all,
///    [`put_all`](Self::put_all) all checkpoints it was given or none, whatever their threads and namespaces;
///    [`put_writes`](Self::put_writes) stores all writes it was given or none.
/// 2. **Durable.** When a method that stores something returns `Ok`, the data survives the end of the process (for
///    checkpointers that outlive it) and is seen by every later call, from any handle.
/// 3. **One writer.** `put` compares [`Put::head`] with the current head. If they differ it stores
///    nothing and returns [`Error::Conflict`], so that a thread never forks by accident.
/// 4. **Ordered.** Writes come back ordered by path, then task id, then slot, compared as text and number.
/// 5. **Idempotent writes.** The slot of a write is [`reserved_index`](crate::reserved_index) of
///    its channel, or else its position in the list. A filled slot keeps its first value, so a task
///    that runs again changes nothing; reserved slots are overwritten.
/// 6. **Exact.** A blob is returned with the same tag and bytes.
/// 7. **Isolated reads.** Reading a thread never fails because of another thread's data.
/// 8. **One answer.** Every [`TaskWrites::expected`] of a call is compared with what is stored
///    before anything of the call is. If one of them differs, nothing is stored and the call
///    returns [`Error::Overtaken`]. So one of several writers with the same expectation succeeds.
///
/// Futures of a checkpointer may be dropped at any time. The operation then has taken effect or
/// not, but never partly.
///
/// Implementors write `async fn`; the engine and other callers use [`AnyCheckpointer`].
#[doc(alias = "BaseCheckpointSaver")]
pub trait Checkpointer: Send + Sync + 'static {
    /// Stores a checkpoint that follows [`Put::parent`], with the writes that led to it.
    ///
    /// A checkpoint with an id that is already stored is replaced, and is not compared with the head.
    ///
    /// # Errors
    /// [`Error::Conflict`] if [`Put::head`] is no longer the head, [`Error::Overtaken`] if another
    /// writer has written a slot that its writes name.
    fn put(&self, put: Put) -> impl Future<Output = Result<(), Error>> + Send;

    /// Stores checkpoints in this order, each as [`put`](Self::put) does, and all of them or none.
    ///
    /// Used for checkpoints that belong together: the input of a run with its first superstep, or
    /// the end of a run with the state of its subgraphs. The default stores one after the other,
    /// which is not atomic: if the process dies in between, or a later one is refused, the earlier
    /// ones stay. Override it if the backend has transactions.
    ///
    /// # Errors
    /// Those of `put` for the first that cannot be stored. Then none is.
    fn put_all(&self, puts: Vec<Put>) -> impl Future<Output = Result<(), Error>> + Send {
        async move {
            for put in puts {
                self.put(put).await?;
            }
            Ok(())
        }
    }

    /// Stores writes of tasks with a checkpoint, whether or not it is still the head.
    ///
    /// # Errors
    /// [`Error::Unknown`] if the checkpoint is not stored, [`Error::Overtaken`] if another writer
    /// has written a slot that the writes name.
    fn put_writes(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        writes: Vec<TaskWrites>,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// The checkpoint with this id, or the head; `None` if it does not exist.
    fn get(
        &self,
        thread: &str,
        ns: &str,
        id: Option<CheckpointId>,
    ) -> impl Future<Output = Result<Option<Stored>, Error>> + Send;

    /// The checkpoints that match, newest first.
    ///
    /// # Errors
    /// A matching checkpoint cannot be read: the error names its thread and id. To read the others,
    /// query one thread, or one checkpoint after the other by the ids that
    /// [`inventory`](Self::inventory) lists.
    fn list(&self, query: Query) -> impl Future<Output = Result<Vec<Stored>, Error>> + Send;

    /// Deletes a thread with all its namespaces. An unknown thread is not an error.
    fn delete_thread(&self, thread: &str) -> impl Future<Output = Result<(), Error>> + Send;

    /// For each of `channels`: what was written to it before checkpoint `id`, back to the last whole value.
    ///
    /// The walk ends at a checkpoint without a parent. The default goes from parent to parent with
    /// [`get`](Self::get).
    ///
    /// # Errors
    /// [`Error::Codec`] if a checkpoint on the way is missing: without it the value would be wrong.
    fn delta_history(
        &self,
        thread: &str,
        ns: &str,
        id: CheckpointId,
        channels: &[Arc<str>],
    ) -> impl Future<Output = Result<BTreeMap<Arc<str>, DeltaHistory>, Error>> + Send {
        walk_deltas(self, thread, ns, id, channels)
    }

    /// The same storage with relaxed durability: what it stores survives a crash of the process,
    /// but perhaps not a power loss. A power loss then loses only the most recent operations, never
    /// one without all later ones.
    ///
    /// Runs under `Durability::Async` use it. The default is `None`: the storage has no relaxed
    /// form.
    fn relaxed(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Whether operations take effect in the order in which their futures are first polled, even if
    /// the caller does not await one before it polls the next.
    ///
    /// If so, a run under `Durability::Async` submits a checkpoint before its parent is stored,
    /// which keeps the checkpointer busy. If the first cannot be stored, the second fails with
    /// [`Conflict`](Error::Conflict). The default is `false`: calls may overtake each other.
    fn in_order(&self) -> bool {
        false
    }

    /// Identifies the storage. Checkpointers on the same storage return the same id, as far as this
    /// process can tell.
    ///
    /// The process uses it to refuse a second run on a thread. The default is `None`: each
    /// [`AnyCheckpointer::new`] has its own id, which its clones share.
    fn storage(&self) -> Option<StorageId> {
        None
    }

    /// Copies all namespaces, checkpoints and writes of a thread to a new thread, atomically.
    ///
    /// If `from` is unknown, nothing happens.
    ///
    /// # Errors
    /// [`Error::Invalid`] if `to` has checkpoints already.
    fn copy_thread(&self, from: &str, to: &str) -> impl Future<Output = Result<(), Error>> + Send {
        let _ = (from, to);
        std::future::ready(Err(Error::Unsupported("copy threads")))
    }

    /// Deletes the checkpoints whose metadata has one of these as `run_id`, with their writes,
    /// atomically.
    ///
    /// A remaining checkpoint whose parent is deleted has no parent from then on.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a remaining checkpoint needs writes of a deleted one to rebuild a
    /// channel.
    fn delete_for_runs(&self, runs: &[String]) -> impl Future<Output = Result<(), Error>> + Send {
        let _ = runs;
        std::future::ready(Err(Error::Unsupported("delete the checkpoints of runs")))
    }

    /// Prunes threads, each atomically. Returns the number of deleted checkpoints.
    ///
    /// - Heads stay with their writes, so an open question stays open.
    /// - Everything that stays can still be read. A checkpoint from which a channel of a remaining
    ///   one is rebuilt (see [`delta_history`](Self::delta_history)) stays too.
    /// - A remaining checkpoint whose parent is deleted has no parent from then on.
    /// - The namespace of one call of a subgraph (with a `:`) is deleted with the checkpoint from
    ///   which it was called.
    fn prune(&self, prune: Prune) -> impl Future<Output = Result<usize, Error>> + Send {
        let _ = prune;
        std::future::ready(Err(Error::Unsupported("prune threads")))
    }

    /// Lists a page of threads, the most recently changed first.
    ///
    /// A thread that changes while pages are read may be listed twice; a thread that does not
    /// change is never missed.
    fn threads(
        &self,
        query: ThreadQuery,
    ) -> impl Future<Output = Result<ThreadPage, Error>> + Send {
        let _ = query;
        std::future::ready(Err(Error::Unsupported("list threads")))
    }

    /// The alarms that have gone off until this time, the earliest first, at most `limit`; and when the next one does.
    ///
    /// An [`Alarm`] is a write of [`TaskId::ALARM`](crate::TaskId::ALARM) in the namespace of the outermost graph whose path is
    /// a time. A backend finds them by an index, so that threads that sleep cost nothing but their rows. Alarms of
    /// checkpoints that are not heads any more may be left out. When [`delete_for_runs`](Self::delete_for_runs) brings back
    /// an older head, its alarm is on again.
    ///
    /// The default looks at every thread that is not done.
    fn alarms(
        &self,
        until: SystemTime,
        limit: usize,
    ) -> impl Future<Output = Result<AlarmPage, Error>> + Send {
        walk_alarms(self, until, limit)
    }

    /// Lists the ids of everything that is stored. Damaged data does not make it fail, so that a
    /// check can read one checkpoint after the other.
    fn inventory(&self) -> impl Future<Output = Result<Inventory, Error>> + Send {
        std::future::ready(Err(Error::Unsupported("name everything that is stored")))
    }
}
