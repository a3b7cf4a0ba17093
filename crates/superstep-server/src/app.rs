//! What all requests and workers share.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use superstep::checkpoint::{AnyCheckpointer, AnyStore};
use superstep::{AnyGraph, RunControl};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use uuid::Uuid;

use crate::access::Caller;
use crate::auth::Gatekeeper;
use crate::error::{ApiError, ApiResult};
use crate::events::{Active, Feed, Hub};
use crate::metrics::Metrics;
use crate::store::{
    Asked, Assistant, Cancel, Create, Kept, Made, News, Once, Run, Store, StoreError, Thread,
};
use crate::tenant::{self, TenantCheckpoints, TenantItems};
use crate::time::Micros;
use crate::webhooks;

/// Default assistants have the same ids everywhere.
const ASSISTANTS: Uuid = Uuid::from_u128(0x6ba7_b821_9dad_11d1_80b4_00c0_4fd4_30c8);

/// How many tenants are remembered at most; they are prepared again when they come back.
const PREPARED_MAX: usize = 10_000;

pub(crate) struct App {
    /// The graphs, each with the checkpointer and the long-term memory of the default tenant.
    pub(crate) graphs: BTreeMap<String, AnyGraph>,
    /// Has the threads of all tenants, under their keys.
    pub(crate) checkpointer: AnyCheckpointer,
    /// The long-term memory of all tenants.
    pub(crate) all_items: AnyStore,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) hub: Hub,
    /// Tells workers that a run may be ready.
    pub(crate) wake: Arc<Notify>,
    /// How many workers wait for a run.
    pub(crate) free: AtomicUsize,
    /// Tells what fires crons that one of them may be due earlier.
    pub(crate) cron_wake: Arc<Notify>,
    /// Tells what deletes expired threads that one of them will expire.
    pub(crate) expiry_wake: Arc<Notify>,
    /// Tells what wakes threads that one of them may be due earlier.
    pub(crate) timer_wake: Arc<Notify>,
    /// Tells what sends webhooks that there may be one.
    pub(crate) webhook_wake: Arc<Notify>,
    pub(crate) webhooks: webhooks::Client,
    /// For how long this process is taken for alive after it was heard of.
    pub(crate) lease: Duration,
    pub(crate) pending_max: usize,
    pub(crate) body_max: usize,
    /// How many answers may wait for a run at the same time.
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) streams_max: usize,
    pub(crate) metrics: Metrics,
    pub(crate) gatekeeper: Gatekeeper,
    /// Tenants whose default assistants are there.
    pub(crate) prepared: Mutex<HashSet<String>>,
    /// Set when the server is told to stop.
    pub(crate) stopping: watch::Sender<bool>,
}

/// How often a run is begun before it is given up.
const ATTEMPTS_MAX: u32 = 3;

/// Why a run is told to stop, as its control knows it.
pub(crate) const SHUTDOWN: &str = "shutdown";

/// Why a run is told to stop that this process must not go on with.
pub(crate) const LOST: &str = "the lease is lost";

pub(crate) fn cancel_reason(action: Cancel) -> &'static str {
    match action {
        Cancel::Interrupt => "cancel: interrupt",
        Cancel::Rollback => "cancel: rollback",
    }
}

impl App {
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Takes no more runs, and asks those that are running to stop after their superstep.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
        self.hub.drain_all(SHUTDOWN);
        self.hub.let_go_of_others();
        self.wake.notify_waiters();
        self.cron_wake.notify_waiters();
        self.timer_wake.notify_waiters();
        self.webhook_wake.notify_waiters();
        self.expiry_wake.notify_waiters();
    }

    /// A thread was stored that may expire.
    pub(crate) fn threads_expire(&self, thread: &Thread) {
        if thread.ttl.is_some() {
            self.expiry_wake.notify_one();
        }
    }

    /// Takes back the runs of processes that are dead. Returns how many there were.
    pub(crate) async fn take_back(&self) -> Result<usize, StoreError> {
        let left = self.store.take_back(ATTEMPTS_MAX).await?;
        if left > 0 {
            tracing::info!(runs = left, "continuing runs that another process left");
        }
        Ok(left)
    }

    /// Makes something, once for each idempotency key. What was made before is returned as an error.
    pub(crate) async fn create(
        &self,
        asked: Option<Asked>,
        what: Create,
    ) -> ApiResult<Result<Made, Kept>> {
        let key = asked.as_ref().and_then(|asked| Some(asked.key.rsplit_once('\n')?.1.to_owned()));
        match self.store.create(asked, what, Micros::now()).await? {
            Once::Made(made) => Ok(Ok(*made)),
            Once::Known(kept) => Ok(Err(kept)),
            Once::Other => Err(ApiError::invalid(format!(
                "the idempotency key `{}` was used for another request; use a new key for each request",
                key.unwrap_or_default()
            ))),
        }
    }

    /// A place for an answer that waits for a run. It is asked for before the run is created.
    pub(crate) fn open_stream(&self) -> ApiResult<OwnedSemaphorePermit> {
        self.streams.clone().try_acquire_owned().map_err(|_| ApiError::too_many_streams())
    }

    pub(crate) fn streams_open(&self) -> usize {
        self.streams_max.saturating_sub(self.streams.available_permits())
    }

    pub(crate) fn graph(&self, name: &str) -> Option<&AnyGraph> {
        self.graphs.get(name)
    }

    /// A graph with the threads and the long-term memory of a tenant. Threads have their ids there, not their keys.
    pub(crate) fn graph_of(&self, tenant: &str, name: &str) -> Option<AnyGraph> {
        let graph = self.graphs.get(name)?.clone();
        if tenant == tenant::DEFAULT {
            return Some(graph);
        }
        let threads = TenantCheckpoints::new(self.checkpointer.clone(), tenant);
        Some(graph.with_checkpointer(AnyCheckpointer::new(threads)).with_store(self.items(tenant)))
    }

    /// The long-term memory of a tenant.
    pub(crate) fn items(&self, tenant: &str) -> AnyStore {
        AnyStore::new(TenantItems::new(self.all_items.clone(), tenant))
    }

    /// Makes the default assistants of a tenant.
    pub(crate) async fn prepare(&self, tenant: &str) -> Result<(), StoreError> {
        let prepared = || self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if prepared().contains(tenant) {
            return Ok(());
        }
        for name in self.graphs.keys() {
            // It may be there from an earlier start, and may have been changed since.
            drop(self.store.create_assistant(default_for(tenant, name)).await?);
        }
        let mut prepared = prepared();
        if prepared.len() >= PREPARED_MAX {
            prepared.clear();
        }
        prepared.insert(tenant.to_owned());
        Ok(())
    }

    /// Whether an assistant belongs to a graph, and not to those who use it.
    pub(crate) fn is_default(&self, id: &str) -> bool {
        self.graphs.keys().any(|graph| default_assistant(graph) == id)
    }

    /// The assistant that a run or a cron names: by id, or by the name of its graph. The default assistants are there for all
    /// of a tenant.
    pub(crate) async fn assistant(
        &self,
        caller: &Caller,
        id_or_graph: &str,
    ) -> ApiResult<Assistant> {
        let id = match Uuid::try_parse(id_or_graph) {
            Ok(id) => id.to_string(),
            Err(_) if self.graphs.contains_key(id_or_graph) => default_assistant(id_or_graph),
            Err(_) => {
                let known: Vec<_> = self.graphs.keys().map(|name| format!("`{name}`")).collect();
                let known = known.join(", ");
                return Err(ApiError::invalid(format!(
                    "`{id_or_graph}` is neither the id of an assistant nor a graph; graphs are {known}"
                )));
            }
        };
        let found = self.store.assistant(&tenant::key(caller.tenant(), &id)).await?;
        let seen = found.filter(|found| self.is_default(&id) || caller.sees(&found.metadata));
        seen.ok_or_else(|| ApiError::not_found(format!("there is no assistant `{id_or_graph}`")))
    }

    /// A thread that must be there, by its key. One that is stored only as checkpoints, by another program, is taken in.
    pub(crate) async fn thread(&self, caller: &Caller, key: &str) -> ApiResult<Thread> {
        let missing = || ApiError::no_thread(tenant::id_of(key));
        if let Some(thread) = self.store.thread(key).await? {
            return Some(thread).filter(|known| caller.sees(&known.metadata)).ok_or_else(missing);
        }
        let Some(head) =
            self.checkpointer.get(key, "", None).await.map_err(superstep::RunError::from)?
        else {
            return Err(missing());
        };
        let graph = head.metadata.extra.get("graph_id").and_then(|graph| graph.as_str());
        let graph = graph.map(|graph| ("graph_id".to_owned(), graph.into()));
        let thread = Thread::new(key.to_owned(), graph.into_iter().collect(), Micros::now());
        if !caller.sees(&thread.metadata) {
            return Err(missing());
        }
        match self.store.create_thread(thread).await? {
            Ok(thread) => Ok(thread),
            Err(known) => Ok(*known),
        }
    }

    /// Finds out whether the runs of a thread are there for the caller. Who sees all of a tenant need not be asked: a key is of
    /// their tenant.
    pub(crate) async fn see_runs(&self, caller: &Caller, thread: &str) -> ApiResult<()> {
        match caller.filter().is_empty() {
            true => Ok(()),
            false => self.thread(caller, thread).await.map(drop),
        }
    }

    /// A run that must be there. Without a thread it is found by its id alone.
    pub(crate) async fn run(
        &self,
        caller: &Caller,
        thread: Option<&str>,
        id: &str,
    ) -> ApiResult<Run> {
        let missing = || ApiError::no_run(id);
        if let Some(thread) = thread {
            self.see_runs(caller, thread).await?;
        }
        let found = self.store.run(thread, id).await?.ok_or_else(missing)?;
        if !caller.owns(&found.thread_id) {
            return Err(missing());
        }
        if thread.is_none() {
            self.see_runs(caller, &found.thread_id).await.map_err(|error| match error.status {
                StatusCode::NOT_FOUND => missing(),
                _ => error,
            })?;
        }
        Ok(found)
    }

    pub(crate) fn active(&self, run: &Run) -> Active {
        self.hub.get_or_add(&run.run_id, || Active {
            feed: Feed::new(&run.run_id, run.resumable(), self.store.clone()),
            control: RunControl::new(),
        })
    }

    /// A run may be ready. Other processes are told if nobody is free here.
    pub(crate) fn run_is_ready(&self) {
        self.wake.notify_one();
        if self.free.load(Ordering::Relaxed) == 0 || self.is_stopping() {
            self.store.tell(News::Work);
        }
    }

    /// Tells a run to stop, wherever it is.
    pub(crate) fn stop_run(&self, run: &str, action: Cancel) {
        match self.hub.get(run).filter(|active| active.feed.epoch().is_some()) {
            Some(active) => active.control.stop_now(cancel_reason(action)),
            None => self.store.tell(News::Run(run.to_owned())),
        }
    }

    /// Ends the streams of a run that was cancelled before it began.
    pub(crate) fn drop_run(&self, run: &str) {
        if let Some(active) = self.hub.remove(run) {
            active.feed.end(serde_json::json!({}));
        }
        self.store.tell(News::Run(run.to_owned()));
    }
}

/// Completes when the server is told to stop.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // An error means that the server is gone.
    drop(stopping.wait_for(|stopping| *stopping).await);
}

/// The id of the assistant that every graph has.
pub(crate) fn default_assistant(graph: &str) -> String {
    Uuid::new_v5(&ASSISTANTS, graph.as_bytes()).to_string()
}

fn default_for(tenant: &str, graph: &str) -> Assistant {
    let now = Micros::now();
    let empty = || serde_json::Value::Object(serde_json::Map::new());
    Assistant {
        assistant_id: tenant::key(tenant, &default_assistant(graph)),
        graph_id: graph.to_owned(),
        name: graph.to_owned(),
        description: None,
        config: empty(),
        context: empty(),
        metadata: [("created_by".to_owned(), "system".into())].into_iter().collect(),
        version: 1,
        created_at: now,
        updated_at: now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_assistants_have_the_ids_that_clients_may_have_kept() {
        assert_eq!(default_assistant("counter"), "09d6caf4-2ef3-5a8b-b1a7-114690ed5d45");
        assert_eq!(default_assistant("chat"), "eb6db400-e3c8-5d06-a834-015cb89efe69");
    }
}
