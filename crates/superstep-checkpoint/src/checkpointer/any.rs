use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

use super::{AlarmPage, Checkpointer, DeltaHistory};
use crate::{
    CheckpointId, Error, Inventory, MemorySaver, Prune, Put, Query, StorageId, Stored, TaskWrites,
    ThreadPage, ThreadQuery,
};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Any checkpointer, cheap to clone.
#[derive(Clone)]
pub struct AnyCheckpointer {
    checkpointer: Arc<dyn Erased>,
    storage: StorageId,
}

impl AnyCheckpointer {
    /// Wraps a checkpointer.
    pub fn new(checkpointer: impl Checkpointer) -> Self {
        let storage = checkpointer.storage().unwrap_or_else(StorageId::unique);
        Self { checkpointer: Arc::new(checkpointer), storage }
    }

    /// See [`Checkpointer::storage`].
    pub fn storage(&self) -> StorageId {
        self.storage
    }

    /// See [`Checkpointer::put`].
    pub async fn put(&self, put: Put) -> Result<(), Error> {
        self.checkpointer.put(put).await
    }

    /// See [`Checkpointer::put_all`].
    pub async fn put_all(&self, puts: Vec<Put>) -> Result<(), Error> {
        self.checkpointer.put_all(puts).await
    }

    /// See [`Checkpointer::relaxed`]; itself, if there is nothing to be gained.
    #[must_use]
    pub fn relaxed(self) -> Self {
        match self.checkpointer.relaxed() {
            Some(checkpointer) => Self { checkpointer, storage: self.storage },
            None => self,
        }
    }

    /// See [`Checkpointer::in_order`].
    pub fn in_order(&self) -> bool {
        self.checkpointer.in_order()
    }

    /// See [`Checkpointer::put_writes`].
    pub async fn put_writes(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        writes: Vec<TaskWrites>,
    ) -> Result<(), Error> {
        self.checkpointer.put_writes(thread, ns, checkpoint, writes).await
    }

    /// See [`Checkpointer::get`].
    pub async fn get(
        &self,
        thread: &str,
        ns: &str,
        id: Option<CheckpointId>,
    ) -> Result<Option<Stored>, Error> {
        self.checkpointer.get(thread, ns, id).await
    }

    /// See [`Checkpointer::list`].
    pub async fn list(&self, query: Query) -> Result<Vec<Stored>, Error> {
        self.checkpointer.list(query).await
    }

    /// See [`Checkpointer::delete_thread`].
    pub async fn delete_thread(&self, thread: &str) -> Result<(), Error> {
        self.checkpointer.delete_thread(thread).await
    }

    /// See [`Checkpointer::delta_history`].
    pub async fn delta_history(
        &self,
        thread: &str,
        ns: &str,
        id: CheckpointId,
        channels: &[Arc<str>],
    ) -> Result<BTreeMap<Arc<str>, DeltaHistory>, Error> {
        self.checkpointer.delta_history(thread, ns, id, channels).await
    }

    /// See [`Checkpointer::copy_thread`].
    pub async fn copy_thread(&self, from: &str, to: &str) -> Result<(), Error> {
        self.checkpointer.copy_thread(from, to).await
    }

    /// See [`Checkpointer::delete_for_runs`].
    pub async fn delete_for_runs(&self, runs: &[String]) -> Result<(), Error> {
        self.checkpointer.delete_for_runs(runs).await
    }

    /// See [`Checkpointer::prune`].
    pub async fn prune(&self, prune: Prune) -> Result<usize, Error> {
        self.checkpointer.prune(prune).await
    }

    /// See [`Checkpointer::threads`].
    pub async fn threads(&self, query: ThreadQuery) -> Result<ThreadPage, Error> {
        self.checkpointer.threads(query).await
    }

    /// See [`Checkpointer::alarms`].
    pub async fn alarms(&self, until: SystemTime, limit: usize) -> Result<AlarmPage, Error> {
        self.checkpointer.alarms(until, limit).await
    }

    /// See [`Checkpointer::inventory`].
    pub async fn inventory(&self) -> Result<Inventory, Error> {
        self.checkpointer.inventory().await
    }
}

/// Keeps threads in memory, as a new [`MemorySaver`] does.
impl Default for AnyCheckpointer {
    fn default() -> Self {
        Self::new(MemorySaver::new())
    }
}

/// A clone of a checkpointer uses the same storage.
impl<C: Checkpointer + Clone> From<&C> for AnyCheckpointer {
    fn from(checkpointer: &C) -> Self {
        Self::new(checkpointer.clone())
    }
}

impl From<&AnyCheckpointer> for AnyCheckpointer {
    fn from(checkpointer: &AnyCheckpointer) -> Self {
        checkpointer.clone()
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
    fn alarms(&self, until: SystemTime, limit: usize) -> BoxFuture<'_, Result<AlarmPage, Error>>;
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
        Checkpointer::relaxed(self).map(|checkpointer| Arc::new(checkpointer) as Arc<dyn Erased>)
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

    fn alarms(&self, until: SystemTime, limit: usize) -> BoxFuture<'_, Result<AlarmPage, Error>> {
        Box::pin(Checkpointer::alarms(self, until, limit))
    }

    fn inventory(&self) -> BoxFuture<'_, Result<Inventory, Error>> {
        Box::pin(Checkpointer::inventory(self))
    }
}
