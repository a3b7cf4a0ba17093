use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::{Blob, CheckpointId, Error, PendingWrite, Put, Query, Stored, TaskWrites};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Keeps the checkpoints of threads.
///
/// A thread is a tree of checkpoints under one id; each namespace of a thread is a tree of its own. The *head* of
/// a namespace is its checkpoint with the greatest id. Between two checkpoints, the writes of tasks are stored
/// beside the older one.
///
/// # What every implementation promises
///
/// 1. **Atomic.** [`put`](Self::put) stores the checkpoint and the writes it carries together or not at all;
///    [`put_writes`](Self::put_writes) stores all writes it was given or none.
/// 2. **Durable.** When a method that stores something returns `Ok`, the data survives the end of the process (for
///    savers that outlive it) and is seen by every later call, from any handle.
/// 3. **One writer.** `put` compares [`Put::head`] with the head that is there. If they differ it stores nothing and
///    returns [`Error::Conflict`]. So a thread never forks by accident.
/// 4. **Ordered.** Writes come back ordered by path, then task id, then slot, compared as text and number.
/// 5. **Idempotent writes.** The slot of a write is [`reserved_index`](crate::reserved_index) of its channel, or else its
///    position in the list. A slot that is already filled keeps its first value, so a task that runs again changes
///    nothing; reserved slots are replaced instead.
/// 6. **Faithful.** A blob comes back with the same tag and bytes.
/// 7. **Total reads.** Reading never fails because of what another thread holds.
///
/// Futures of a saver may be dropped at any time. What was asked may then be done or not be done, but is never half
/// done.
///
/// Implementors write `async fn`; the engine and everyone else passes savers around as [`AnyCheckpointer`].
pub trait Checkpointer: Send + Sync + 'static {
    /// Stores a checkpoint that follows [`Put::parent`], with the writes that led to it.
    ///
    /// A checkpoint with an id that is already stored is replaced, and is not compared with the head.
    ///
    /// # Errors
    /// [`Error::Conflict`] if [`Put::head`] is no longer the head.
    fn put(&self, put: Put) -> impl Future<Output = Result<(), Error>> + Send;

    /// Stores writes of tasks beside a checkpoint.
    ///
    /// # Errors
    /// [`Error::Unknown`] if the checkpoint is not stored.
    fn put_writes(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        writes: Vec<TaskWrites>,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// The checkpoint with this id, or the head; nothing if it is not there.
    fn get(
        &self,
        thread: &str,
        ns: &str,
        id: Option<CheckpointId>,
    ) -> impl Future<Output = Result<Option<Stored>, Error>> + Send;

    /// The checkpoints that match, newest first.
    fn list(&self, query: Query) -> impl Future<Output = Result<Vec<Stored>, Error>> + Send;

    /// Forgets a thread with all its namespaces. An unknown thread is no error.
    fn delete_thread(&self, thread: &str) -> impl Future<Output = Result<(), Error>> + Send;

    /// For each of `channels`: what was written to it before checkpoint `id`, back to the last whole value.
    ///
    /// The default walks from parent to parent with [`get`](Self::get).
    fn delta_history(
        &self,
        thread: &str,
        ns: &str,
        id: CheckpointId,
        channels: &[Arc<str>],
    ) -> impl Future<Output = Result<BTreeMap<Arc<str>, DeltaHistory>, Error>> + Send {
        walk_deltas(self, thread, ns, id, channels)
    }
}

/// How the value of a delta channel came to be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeltaHistory {
    /// The last whole value that was stored, if there is one.
    pub seed: Option<Blob>,
    /// What was written since, oldest first.
    pub writes: Vec<Blob>,
}

async fn walk_deltas<C: Checkpointer + ?Sized>(
    saver: &C,
    thread: &str,
    ns: &str,
    id: CheckpointId,
    channels: &[Arc<str>],
) -> Result<BTreeMap<Arc<str>, DeltaHistory>, Error> {
    let mut found: BTreeMap<_, DeltaHistory> =
        channels.iter().map(|name| (name.clone(), DeltaHistory::default())).collect();
    let mut open: Vec<Arc<str>> = channels.to_vec();
    let mut parent = saver.get(thread, ns, Some(id)).await?.and_then(|stored| stored.parent);
    while let (Some(at), false) = (parent, open.is_empty()) {
        let Some(stored) = saver.get(thread, ns, Some(at)).await? else { break };
        open.retain(|channel| {
            let history = found.entry(channel.clone()).or_default();
            let here = stored.writes.iter().filter(|write| write.channel == *channel);
            history.writes.extend(here.rev().map(|PendingWrite { value, .. }| value.clone()));
            history.seed = stored.checkpoint.value(channel).cloned();
            history.seed.is_none()
        });
        parent = stored.parent;
    }
    for history in found.values_mut() {
        history.writes.reverse();
    }
    Ok(found)
}

/// Any saver, cheap to clone.
#[derive(Clone)]
pub struct AnyCheckpointer(Arc<dyn Erased>);

impl AnyCheckpointer {
    /// Wraps a saver.
    pub fn new(saver: impl Checkpointer) -> Self {
        Self(Arc::new(saver))
    }

    /// See [`Checkpointer::put`].
    pub async fn put(&self, put: Put) -> Result<(), Error> {
        self.0.put(put).await
    }

    /// See [`Checkpointer::put_writes`].
    pub async fn put_writes(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        writes: Vec<TaskWrites>,
    ) -> Result<(), Error> {
        self.0.put_writes(thread, ns, checkpoint, writes).await
    }

    /// See [`Checkpointer::get`].
    pub async fn get(
        &self,
        thread: &str,
        ns: &str,
        id: Option<CheckpointId>,
    ) -> Result<Option<Stored>, Error> {
        self.0.get(thread, ns, id).await
    }

    /// See [`Checkpointer::list`].
    pub async fn list(&self, query: Query) -> Result<Vec<Stored>, Error> {
        self.0.list(query).await
    }

    /// See [`Checkpointer::delete_thread`].
    pub async fn delete_thread(&self, thread: &str) -> Result<(), Error> {
        self.0.delete_thread(thread).await
    }

    /// See [`Checkpointer::delta_history`].
    pub async fn delta_history(
        &self,
        thread: &str,
        ns: &str,
        id: CheckpointId,
        channels: &[Arc<str>],
    ) -> Result<BTreeMap<Arc<str>, DeltaHistory>, Error> {
        self.0.delta_history(thread, ns, id, channels).await
    }
}

impl fmt::Debug for AnyCheckpointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyCheckpointer")
    }
}

/// The object-safe twin of [`Checkpointer`].
trait Erased: Send + Sync {
    fn put(&self, put: Put) -> BoxFuture<'_, Result<(), Error>>;
    fn put_writes<'a>(
        &'a self,
        thread: &'a str,
        ns: &'a str,
        checkpoint: CheckpointId,
        writes: Vec<TaskWrites>,
    ) -> BoxFuture<'a, Result<(), Error>>;
    fn get<'a>(
        &'a self,
        thread: &'a str,
        ns: &'a str,
        id: Option<CheckpointId>,
    ) -> BoxFuture<'a, Result<Option<Stored>, Error>>;
    fn list(&self, query: Query) -> BoxFuture<'_, Result<Vec<Stored>, Error>>;
    fn delete_thread<'a>(&'a self, thread: &'a str) -> BoxFuture<'a, Result<(), Error>>;
    fn delta_history<'a>(
        &'a self,
        thread: &'a str,
        ns: &'a str,
        id: CheckpointId,
        channels: &'a [Arc<str>],
    ) -> BoxFuture<'a, Result<BTreeMap<Arc<str>, DeltaHistory>, Error>>;
}

impl<C: Checkpointer> Erased for C {
    fn put(&self, put: Put) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(Checkpointer::put(self, put))
    }

    fn put_writes<'a>(
        &'a self,
        thread: &'a str,
        ns: &'a str,
        checkpoint: CheckpointId,
        writes: Vec<TaskWrites>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(Checkpointer::put_writes(self, thread, ns, checkpoint, writes))
    }

    fn get<'a>(
        &'a self,
        thread: &'a str,
        ns: &'a str,
        id: Option<CheckpointId>,
    ) -> BoxFuture<'a, Result<Option<Stored>, Error>> {
        Box::pin(Checkpointer::get(self, thread, ns, id))
    }

    fn list(&self, query: Query) -> BoxFuture<'_, Result<Vec<Stored>, Error>> {
        Box::pin(Checkpointer::list(self, query))
    }

    fn delete_thread<'a>(&'a self, thread: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(Checkpointer::delete_thread(self, thread))
    }

    fn delta_history<'a>(
        &'a self,
        thread: &'a str,
        ns: &'a str,
        id: CheckpointId,
        channels: &'a [Arc<str>],
    ) -> BoxFuture<'a, Result<BTreeMap<Arc<str>, DeltaHistory>, Error>> {
        Box::pin(Checkpointer::delta_history(self, thread, ns, id, channels))
    }
}
