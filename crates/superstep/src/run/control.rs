use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

/// Asks runs to stop: at the next boundary between supersteps, or at once.
///
/// A clone asks the same runs. One control may serve many runs; once asked, every run with this control stops, also one
/// that begins later.
#[derive(Clone, Default)]
pub struct RunControl {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    reason: OnceLock<Arc<str>>,
    now: AtomicBool,
    told: Notify,
}

impl RunControl {
    /// A control that has not asked for anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the superstep that is running complete, stores its checkpoint, and ends the run with
    /// [`Outcome::Drained`](crate::Outcome::Drained). The first reason that was given stays.
    pub fn request_drain(&self, reason: impl Into<Arc<str>>) {
        self.shared.reason.get_or_init(|| reason.into());
    }

    /// Ends the run with [`Outcome::Drained`](crate::Outcome::Drained) without waiting for the superstep: tasks that run
    /// are dropped where they stand. What tasks have finished is kept, so that the thread goes on from there; those that
    /// were dropped run again.
    ///
    /// A node that blocks without waiting for anything cannot be dropped before it waits.
    pub fn stop_now(&self, reason: impl Into<Arc<str>>) {
        self.request_drain(reason);
        self.shared.now.store(true, Ordering::Release);
        self.shared.told.notify_waiters();
    }

    /// Why the run is to stop, if it is.
    pub fn drain_reason(&self) -> Option<Arc<str>> {
        self.shared.reason.get().cloned()
    }

    /// Whether the run is to stop.
    pub fn drain_requested(&self) -> bool {
        self.shared.reason.get().is_some()
    }

    /// Completes when runs are to stop at once.
    pub(crate) fn now(&self) -> impl Future<Output = ()> + Send + 'static {
        let shared = self.shared.clone();
        async move {
            let mut told = std::pin::pin!(shared.told.notified());
            told.as_mut().enable();
            if !shared.now.load(Ordering::Acquire) {
                told.await;
            }
        }
    }
}

impl fmt::Debug for RunControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunControl").field("reason", &self.drain_reason()).finish_non_exhaustive()
    }
}

/// When what a run does is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// Each superstep, with the writes of its tasks, before the next one starts.
    #[default]
    Sync,
    /// Each superstep while the next one runs, in order; everything before the run ends.
    ///
    /// A superstep is applied only when the one before it is stored, so a process that dies loses the last superstep at
    /// most. What cannot be stored fails the run.
    ///
    /// It does not wait for a disk where the checkpointer can do without
    /// ([`Checkpointer::relaxed`](crate::checkpoint::Checkpointer::relaxed)). Then a machine that stops may lose more than a
    /// process that dies: on SQLite, what was stored in the last tenth of a second.
    Async,
    /// Only when the run ends: at its end, on an error, a question or a drain.
    Exit,
}
