use std::collections::BTreeMap;
use std::sync::Arc;

use superstep::checkpoint::{
    AnyCheckpointer, CheckpointId, CheckpointerLayer, DeltaHistory, Error, Inventory, Prune, Put,
    Query, StorageId, Stored, TaskWrites, ThreadPage, ThreadQuery,
};

use super::key;

/// The threads of one tenant, under their ids: graphs and clients see no keys.
pub(crate) struct TenantCheckpoints {
    inner: AnyCheckpointer,
    tenant: Arc<str>,
}

impl TenantCheckpoints {
    pub(crate) fn new(inner: AnyCheckpointer, tenant: &str) -> Self {
        Self { inner, tenant: tenant.into() }
    }

    fn put_of(&self, put: Put) -> Put {
        Put { thread: key(&self.tenant, &put.thread).into(), ..put }
    }
}

impl CheckpointerLayer for TenantCheckpoints {
    fn inner(&self) -> &AnyCheckpointer {
        &self.inner
    }

    async fn put(&self, put: Put) -> Result<(), Error> {
        self.inner.put(self.put_of(put)).await
    }

    async fn put_all(&self, puts: Vec<Put>) -> Result<(), Error> {
        self.inner.put_all(puts.into_iter().map(|put| self.put_of(put)).collect()).await
    }

    async fn put_writes(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        writes: Vec<TaskWrites>,
    ) -> Result<(), Error> {
        self.inner.put_writes(&key(&self.tenant, thread), ns, checkpoint, writes).await
    }

    async fn get(
        &self,
        thread: &str,
        ns: &str,
        id: Option<CheckpointId>,
    ) -> Result<Option<Stored>, Error> {
        let found = self.inner.get(&key(&self.tenant, thread), ns, id).await?;
        Ok(found.map(|stored| Stored { thread: thread.into(), ..stored }))
    }

    async fn list(&self, query: Query) -> Result<Vec<Stored>, Error> {
        let Some(thread) = query.thread.clone() else {
            return Err(Error::Unsupported("list the checkpoints of all threads of a tenant"));
        };
        let query = Query { thread: Some(key(&self.tenant, &thread).into()), ..query };
        let found = self.inner.list(query).await?;
        let own = |stored| Stored { thread: thread.clone(), ..stored };
        Ok(found.into_iter().map(own).collect())
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), Error> {
        self.inner.delete_thread(&key(&self.tenant, thread)).await
    }

    async fn delta_history(
        &self,
        thread: &str,
        ns: &str,
        id: CheckpointId,
        channels: &[Arc<str>],
    ) -> Result<BTreeMap<Arc<str>, DeltaHistory>, Error> {
        self.inner.delta_history(&key(&self.tenant, thread), ns, id, channels).await
    }

    fn relaxed(&self) -> Option<Self> {
        Some(Self { inner: self.inner.clone().relaxed(), tenant: self.tenant.clone() })
    }

    fn storage(&self) -> Option<StorageId> {
        Some(StorageId::named(&(self.inner.storage(), &*self.tenant)))
    }

    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), Error> {
        self.inner.copy_thread(&key(&self.tenant, from), &key(&self.tenant, to)).await
    }

    async fn prune(&self, prune: Prune) -> Result<usize, Error> {
        let Some(threads) = prune.threads else {
            return Err(Error::Unsupported("prune all threads of a tenant"));
        };
        let threads = threads.iter().map(|thread| key(&self.tenant, thread)).collect();
        self.inner.prune(Prune { threads: Some(threads), keep: prune.keep }).await
    }

    async fn threads(&self, _: ThreadQuery) -> Result<ThreadPage, Error> {
        Err(Error::Unsupported("list the threads of a tenant"))
    }

    async fn inventory(&self) -> Result<Inventory, Error> {
        Err(Error::Unsupported("list what a tenant has stored"))
    }
}
