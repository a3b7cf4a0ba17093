//! What all requests and workers share.

use std::collections::BTreeMap;
use std::sync::Arc;

use superstep::checkpoint::{AnyCheckpointer, AnyStore};
use superstep::{AnyGraph, RunControl};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use uuid::Uuid;

use crate::error::{ApiError, ApiResult};
use crate::events::{Active, Feed, Hub};
use crate::metrics::Metrics;
use crate::store::{Assistant, Cancel, Run, Store, Thread};
use crate::time::Micros;
use crate::webhooks;

/// Default assistants have the same ids everywhere.
const ASSISTANTS: Uuid = Uuid::from_u128(0x6ba7_b821_9dad_11d1_80b4_00c0_4fd4_30c8);

pub(crate) struct App {
    /// The graphs, each with the checkpointer and the long-term memory of the server.
    pub(crate) graphs: BTreeMap<String, AnyGraph>,
    pub(crate) checkpointer: AnyCheckpointer,
    pub(crate) items: AnyStore,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) hub: Hub,
    /// Tells workers that a run may be ready.
    pub(crate) wake: Arc<Notify>,
    /// Tells what fires crons that one of them may be due earlier.
    pub(crate) cron_wake: Arc<Notify>,
    /// Tells what wakes threads that one of them may be due earlier.
    pub(crate) timer_wake: Arc<Notify>,
    /// Tells what sends webhooks that there may be one.
    pub(crate) webhook_wake: Arc<Notify>,
    pub(crate) webhooks: webhooks::Client,
    pub(crate) pending_max: usize,
    pub(crate) body_max: usize,
    /// How many answers may wait for a run at the same time.
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) streams_max: usize,
    pub(crate) metrics: Metrics,
    pub(crate) api_keys: Vec<String>,
    /// Set when the server is told to stop.
    pub(crate) stopping: watch::Sender<bool>,
}

/// Why a run is told to stop, as its control knows it.
pub(crate) const SHUTDOWN: &str = "shutdown";

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
        self.wake.notify_waiters();
        self.cron_wake.notify_waiters();
        self.timer_wake.notify_waiters();
        self.webhook_wake.notify_waiters();
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

    /// The assistant that a run or a cron names: by id, or by the name of its graph.
    pub(crate) async fn assistant(&self, id_or_graph: &str) -> ApiResult<Assistant> {
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
        let found = self.store.assistant(&id).await?;
        found.ok_or_else(|| ApiError::not_found(format!("there is no assistant `{id_or_graph}`")))
    }

    /// A thread that must be there. One that is stored only as checkpoints, by another program, is taken in.
    pub(crate) async fn thread(&self, id: &str) -> ApiResult<Thread> {
        if let Some(thread) = self.store.thread(id).await? {
            return Ok(thread);
        }
        let Some(head) =
            self.checkpointer.get(id, "", None).await.map_err(superstep::RunError::from)?
        else {
            return Err(ApiError::no_thread(id));
        };
        let graph = head.metadata.extra.get("graph_id").and_then(|graph| graph.as_str());
        let graph = graph.map(|graph| ("graph_id".to_owned(), graph.into()));
        let thread = Thread::new(id.to_owned(), graph.into_iter().collect(), Micros::now());
        match self.store.create_thread(thread).await? {
            Ok(thread) => Ok(thread),
            Err(known) => Ok(*known),
        }
    }

    pub(crate) fn active(&self, run: &Run) -> Active {
        self.hub.get_or_add(&run.run_id, || Active {
            feed: Feed::new(&run.run_id, run.resumable(), self.store.clone()),
            control: RunControl::new(),
        })
    }

    /// Tells a run of this process to stop.
    pub(crate) fn stop_run(&self, run: &str, action: Cancel) {
        if let Some(active) = self.hub.get(run) {
            active.control.stop_now(cancel_reason(action));
        }
    }

    /// Ends the streams of a run that was cancelled before it began.
    pub(crate) fn drop_run(&self, run: &str) {
        if let Some(active) = self.hub.remove(run) {
            active.feed.end(serde_json::json!({}));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_assistants_have_the_ids_that_clients_may_have_kept() {
        assert_eq!(default_assistant("counter"), "09d6caf4-2ef3-5a8b-b1a7-114690ed5d45");
        assert_eq!(default_assistant("chat"), "eb6db400-e3c8-5d06-a834-015cb89efe69");
    }
}
