use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::{
    Blob, CheckpointId, Error, Inventory, PendingWrite, Prune, Put, Query, StorageId, Stored,
    TaskId, TaskWrites, ThreadPage, ThreadQuery, Version, wire,
};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Keeps the checkpoints of threads.
///
/// A thread is a tree of checkpoints under one id; each namespace of a thread is a tree of its own. The *head* of
/// a namespace is its checkpoint with the greatest id. Between two checkpoints, the writes of tasks are stored
/// beside the older one.
///
/// # What every implementation promises
///
/// 1. **Atomic.** [`put`](Self::put) stores the checkpoint and the writes it carries together or not at all,
///    [`put_all`](Self::put_all) all checkpoints it was given or none, whatever their threads and namespaces;
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
/// 8. **One answer.** Every [`TaskWrites::expected`] of a call is compared with what is stored before anything of the
///    call is. If one of them differs, nothing is stored and the call returns [`Error::Overtaken`]. So of several
///    writers who saw the same, one succeeds.
///
/// Futures of a saver may be dropped at any time. What was asked may then be done or not be done, but is never half
/// done.
///
/// Implementors write `async fn`; the engine and everyone else passes savers around as [`AnyCheckpointer`].
#[doc(alias = "BaseCheckpointSaver")]
pub trait Checkpointer: Send + Sync + 'static {
    /// Stores a checkpoint that follows [`Put::parent`], with the writes that led to it.
    ///
    /// A checkpoint with an id that is already stored is replaced, and is not compared with the head.
    ///
    /// # Errors
    /// [`Error::Conflict`] if [`Put::head`] is no longer the head, [`Error::Overtaken`] if a slot its writes name has been
    /// written by somebody else.
    fn put(&self, put: Put) -> impl Future<Output = Result<(), Error>> + Send;

    /// Stores checkpoints in this order, each as [`put`](Self::put) does, and all of them or none.
    ///
    /// They belong together: the input of a run and what came of it, or the end of a run and what the graphs inside it
    /// remember. The default stores one after the other, and so does not keep the promise if a process ends in between or a
    /// later one is refused; every saver that can do better does.
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

    /// Stores writes of tasks beside a checkpoint, whether or not it is still the head.
    ///
    /// # Errors
    /// [`Error::Unknown`] if the checkpoint is not stored, [`Error::Overtaken`] if a slot the writes name has been written
    /// by somebody else.
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
    ///
    /// # Errors
    /// One that matches cannot be read: the error names its thread and id, and nothing is given. Ask for one thread, or for
    /// one checkpoint after the other by the names that [`inventory`](Self::inventory) gives, to have the rest.
    fn list(&self, query: Query) -> impl Future<Output = Result<Vec<Stored>, Error>> + Send;

    /// Forgets a thread with all its namespaces. An unknown thread is no error.
    fn delete_thread(&self, thread: &str) -> impl Future<Output = Result<(), Error>> + Send;

    /// For each of `channels`: what was written to it before checkpoint `id`, back to the last whole value.
    ///
    /// The walk ends at a checkpoint that continues none. The default goes from parent to parent with
    /// [`get`](Self::get).
    ///
    /// # Errors
    /// [`Error::Codec`] if a checkpoint on the way is missing: without it the value would be one that never was.
    fn delta_history(
        &self,
        thread: &str,
        ns: &str,
        id: CheckpointId,
        channels: &[Arc<str>],
    ) -> impl Future<Output = Result<BTreeMap<Arc<str>, DeltaHistory>, Error>> + Send {
        walk_deltas(self, thread, ns, id, channels)
    }

    /// The same storage for whoever would rather go on than wait for a disk: what a method of it has stored survives the end of
    /// the process, as ever, but perhaps not that of the machine. What is lost then is the end, never something in
    /// between, and nothing that was stored more than a moment ago.
    ///
    /// Runs that store meanwhile use it. `None`, which is the default, if there is nothing to be gained.
    fn relaxed(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Whether everything is stored in the order in which it is asked for, also by those who do not wait for one thing before
    /// they ask for the next. A thing is asked for when its future is first polled.
    ///
    /// A run that stores meanwhile then asks for a checkpoint before the one it continues is stored, and the saver has no
    /// time in which it waits for the run. If the first of them cannot be stored, the second is a
    /// [`Conflict`](Error::Conflict). `false`, which is the default, if calls may overtake each other.
    fn in_order(&self) -> bool {
        false
    }

    /// Where the threads are kept. Savers that keep the same threads say the same, as far as this process can tell.
    ///
    /// While a run works on a thread, the same process starts no other run on it. `None`, which is the default, stands for
    /// an id that only this saver has, once it is an [`AnyCheckpointer`], with the clones of that.
    fn storage(&self) -> Option<StorageId> {
        None
    }

    /// Copies all namespaces, checkpoints and writes of a thread to one that does not exist yet, in one go.
    ///
    /// An unknown `from` is no error and leaves `to` unknown.
    ///
    /// # Errors
    /// [`Error::Invalid`] if `to` has checkpoints already.
    fn copy_thread(&self, from: &str, to: &str) -> impl Future<Output = Result<(), Error>> + Send {
        let _ = (from, to);
        std::future::ready(Err(Error::Unsupported("copy threads")))
    }

    /// Forgets the checkpoints whose metadata has one of these as `run_id`, with their writes, in one go.
    ///
    /// A checkpoint that stays and continued one that goes continues none from then on.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a checkpoint that would stay needs writes of one that would go to rebuild a channel.
    fn delete_for_runs(&self, runs: &[String]) -> impl Future<Output = Result<(), Error>> + Send {
        let _ = runs;
        std::future::ready(Err(Error::Unsupported("delete the checkpoints of runs")))
    }

    /// Thins out threads, each in one go; says how many checkpoints went.
    ///
    /// - Heads stay, and with them the writes beside them: an open question stays open.
    /// - Everything that stays can still be read. A checkpoint from which a channel of one that stays is rebuilt
    ///   (see [`delta_history`](Self::delta_history)) stays too.
    /// - A checkpoint that stays and continued one that goes continues none from then on.
    /// - The namespace of one call of a graph (there is a `:` in it) goes with the checkpoint it was called from.
    fn prune(&self, prune: Prune) -> impl Future<Output = Result<usize, Error>> + Send {
        let _ = prune;
        std::future::ready(Err(Error::Unsupported("prune threads")))
    }

    /// A page of the list of threads, the one with the newest head first.
    ///
    /// A thread that changes while pages are read may be seen twice; none that does not change is missed.
    fn threads(
        &self,
        query: ThreadQuery,
    ) -> impl Future<Output = Result<ThreadPage, Error>> + Send {
        let _ = query;
        std::future::ready(Err(Error::Unsupported("list threads")))
    }

    /// The names of everything that is stored. Nothing that is stored can make this fail, so that whoever looks for damage
    /// can look at one thing after the other.
    fn inventory(&self) -> impl Future<Output = Result<Inventory, Error>> + Send {
        std::future::ready(Err(Error::Unsupported("name everything that is stored")))
    }
}

/// How the value of a delta channel came to be.
#[derive(Clone, Debug, Default)]
pub struct DeltaHistory {
    /// The last whole value that was stored, if there is one.
    pub seed: Option<Blob>,
    /// What was written since, oldest first.
    pub writes: Vec<Blob>,
    /// The version of the channel at the checkpoint that has the whole value.
    pub seed_version: Option<Version>,
    /// Where each of the writes is stored.
    pub places: Vec<WritePlace>,
}

/// Where a write of a thread and namespace is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WritePlace {
    /// The checkpoint beside which it stands.
    pub checkpoint: CheckpointId,
    /// Who wrote.
    pub task: TaskId,
    /// The slot of the write among those of its task.
    pub index: i64,
}

impl DeltaHistory {
    /// Takes the writes of one checkpoint to a channel, before those that were taken until now.
    ///
    /// Savers walk from the newest checkpoint to the oldest, and call [`turn`](Self::turn) at the end.
    pub fn take(&mut self, checkpoint: CheckpointId, channel: &str, writes: &[PendingWrite]) {
        for write in writes.iter().rev().filter(|write| &*write.channel == channel) {
            self.writes.push(write.value.clone());
            self.places.push(WritePlace { checkpoint, task: write.task, index: write.index });
        }
    }

    /// Puts what was taken newest first into its order.
    pub fn turn(&mut self) {
        self.writes.reverse();
        self.places.reverse();
    }
}

/// Histories are the same if they lead to the same value, wherever their parts are stored.
impl PartialEq for DeltaHistory {
    fn eq(&self, other: &Self) -> bool {
        (&self.seed, &self.writes) == (&other.seed, &other.writes)
    }
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
    // Parents are given by callers, and a ring of them must not be walked for ever.
    let mut visited = BTreeSet::from([id]);
    while let (Some(at), false) = (parent, open.is_empty()) {
        if !visited.insert(at) {
            break;
        }
        let stored = saver.get(thread, ns, Some(at)).await?;
        let stored = stored.ok_or_else(|| wire::broken_chain(thread, ns, at, id))?;
        open.retain(|channel| {
            let history = found.entry(channel.clone()).or_default();
            history.take(at, channel, &stored.writes);
            history.seed = stored.checkpoint.value(channel).cloned();
            history.seed_version = stored.checkpoint.version(channel).cloned();
            history.seed.is_none()
        });
        parent = stored.parent;
    }
    found.values_mut().for_each(DeltaHistory::turn);
    Ok(found)
}

/// Any saver, cheap to clone.
#[derive(Clone)]
pub struct AnyCheckpointer {
    saver: Arc<dyn Erased>,
    storage: StorageId,
}

impl AnyCheckpointer {
    /// Wraps a saver.
    pub fn new(saver: impl Checkpointer) -> Self {
        let storage = saver.storage().unwrap_or_else(StorageId::unique);
        Self { saver: Arc::new(saver), storage }
    }

    /// Where the threads are kept. See [`Checkpointer::storage`].
    pub fn storage(&self) -> StorageId {
        self.storage
    }

    /// See [`Checkpointer::put`].
    pub async fn put(&self, put: Put) -> Result<(), Error> {
        self.saver.put(put).await
    }

    /// See [`Checkpointer::put_all`].
    pub async fn put_all(&self, puts: Vec<Put>) -> Result<(), Error> {
        self.saver.put_all(puts).await
    }

    /// See [`Checkpointer::relaxed`]; itself, if there is nothing to be gained.
    #[must_use]
    pub fn relaxed(self) -> Self {
        match self.saver.relaxed() {
            Some(saver) => Self { saver, storage: self.storage },
            None => self,
        }
    }

    /// See [`Checkpointer::in_order`].
    pub fn in_order(&self) -> bool {
        self.saver.in_order()
    }

    /// See [`Checkpointer::put_writes`].
    pub async fn put_writes(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        writes: Vec<TaskWrites>,
    ) -> Result<(), Error> {
        self.saver.put_writes(thread, ns, checkpoint, writes).await
    }

    /// See [`Checkpointer::get`].
    pub async fn get(
        &self,
        thread: &str,
        ns: &str,
        id: Option<CheckpointId>,
    ) -> Result<Option<Stored>, Error> {
        self.saver.get(thread, ns, id).await
    }

    /// See [`Checkpointer::list`].
    pub async fn list(&self, query: Query) -> Result<Vec<Stored>, Error> {
        self.saver.list(query).await
    }

    /// See [`Checkpointer::delete_thread`].
    pub async fn delete_thread(&self, thread: &str) -> Result<(), Error> {
        self.saver.delete_thread(thread).await
    }

    /// See [`Checkpointer::delta_history`].
    pub async fn delta_history(
        &self,
        thread: &str,
        ns: &str,
        id: CheckpointId,
        channels: &[Arc<str>],
    ) -> Result<BTreeMap<Arc<str>, DeltaHistory>, Error> {
        self.saver.delta_history(thread, ns, id, channels).await
    }

    /// See [`Checkpointer::copy_thread`].
    pub async fn copy_thread(&self, from: &str, to: &str) -> Result<(), Error> {
        self.saver.copy_thread(from, to).await
    }

    /// See [`Checkpointer::delete_for_runs`].
    pub async fn delete_for_runs(&self, runs: &[String]) -> Result<(), Error> {
        self.saver.delete_for_runs(runs).await
    }

    /// See [`Checkpointer::prune`].
    pub async fn prune(&self, prune: Prune) -> Result<usize, Error> {
        self.saver.prune(prune).await
    }

    /// See [`Checkpointer::threads`].
    pub async fn threads(&self, query: ThreadQuery) -> Result<ThreadPage, Error> {
        self.saver.threads(query).await
    }

    /// See [`Checkpointer::inventory`].
    pub async fn inventory(&self) -> Result<Inventory, Error> {
        self.saver.inventory().await
    }
}

/// A clone of a saver keeps threads in the same place.
impl<C: Checkpointer + Clone> From<&C> for AnyCheckpointer {
    fn from(saver: &C) -> Self {
        Self::new(saver.clone())
    }
}

impl From<&AnyCheckpointer> for AnyCheckpointer {
    fn from(saver: &AnyCheckpointer) -> Self {
        saver.clone()
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
    fn put_all(&self, puts: Vec<Put>) -> BoxFuture<'_, Result<(), Error>>;
    fn relaxed(&self) -> Option<Arc<dyn Erased>>;
    fn in_order(&self) -> bool;
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
    fn copy_thread<'a>(&'a self, from: &'a str, to: &'a str) -> BoxFuture<'a, Result<(), Error>>;
    fn delete_for_runs<'a>(&'a self, runs: &'a [String]) -> BoxFuture<'a, Result<(), Error>>;
    fn prune(&self, prune: Prune) -> BoxFuture<'_, Result<usize, Error>>;
    fn threads(&self, query: ThreadQuery) -> BoxFuture<'_, Result<ThreadPage, Error>>;
    fn inventory(&self) -> BoxFuture<'_, Result<Inventory, Error>>;
}

impl<C: Checkpointer> Erased for C {
    fn put(&self, put: Put) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(Checkpointer::put(self, put))
    }

    fn put_all(&self, puts: Vec<Put>) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(Checkpointer::put_all(self, puts))
    }

    fn relaxed(&self) -> Option<Arc<dyn Erased>> {
        Checkpointer::relaxed(self).map(|saver| Arc::new(saver) as Arc<dyn Erased>)
    }

    fn in_order(&self) -> bool {
        Checkpointer::in_order(self)
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

    fn copy_thread<'a>(&'a self, from: &'a str, to: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(Checkpointer::copy_thread(self, from, to))
    }

    fn delete_for_runs<'a>(&'a self, runs: &'a [String]) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(Checkpointer::delete_for_runs(self, runs))
    }

    fn prune(&self, prune: Prune) -> BoxFuture<'_, Result<usize, Error>> {
        Box::pin(Checkpointer::prune(self, prune))
    }

    fn threads(&self, query: ThreadQuery) -> BoxFuture<'_, Result<ThreadPage, Error>> {
        Box::pin(Checkpointer::threads(self, query))
    }

    fn inventory(&self) -> BoxFuture<'_, Result<Inventory, Error>> {
        Box::pin(Checkpointer::inventory(self))
    }
}
