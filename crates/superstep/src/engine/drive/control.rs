use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

/// Asks runs to stop: at the next boundary between supersteps, or at once.
///
/// A clone asks the same runs. One control may serve many runs; once asked, every run with this control stops, also one
/// that begins later.
///
/// In a service, one control serves all runs, and a server that shuts down gracefully waits for the same signal:
///
/// ```
/// # async fn serve(signal: impl Future<Output = ()>) { signal.await }
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use superstep::RunControl;
///
/// let control = RunControl::new();
/// # control.request_drain("deploy");
/// serve(control.draining()).await; // such as axum's `with_graceful_shutdown(control.draining())`
/// control.drained().await; // runs that no request waits for
/// # });
/// ```
#[derive(Clone, Default)]
pub struct RunControl {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    reason: OnceLock<Arc<str>>,
    now: AtomicBool,
    running: AtomicUsize,
    changed: Notify,
}

impl Shared {
    fn is_draining(&self) -> bool {
        self.reason.get().is_some()
    }

    /// Completes when the condition holds. Whatever may make it hold calls `changed` afterwards.
    async fn until(self: Arc<Self>, holds: fn(&Self) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if holds(&self) {
                return;
            }
            changed.await;
        }
    }
}

impl RunControl {
    /// A control that has not asked for anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the superstep that is running complete, stores its checkpoint, and ends the run with
    /// [`Outcome::Drained`](crate::Outcome::Drained). The first reason that was given stays.
    ///
    /// A [workflow](crate::func) is one superstep. It stops before its next recorded call begins; calls that are running
    /// complete and are recorded.
    pub fn request_drain(&self, reason: impl Into<Arc<str>>) {
        self.shared.reason.get_or_init(|| reason.into());
        self.shared.changed.notify_waiters();
    }

    /// Ends the run with [`Outcome::Drained`](crate::Outcome::Drained) without waiting for the superstep: tasks that run
    /// are dropped where they stand. What tasks have finished is kept, so that the thread goes on from there; those that
    /// were dropped run again.
    ///
    /// A node that blocks without waiting for anything cannot be dropped before it waits.
    pub fn stop_now(&self, reason: impl Into<Arc<str>>) {
        self.request_drain(reason);
        self.shared.now.store(true, Ordering::Release);
        self.shared.changed.notify_waiters();
    }

    /// Why the run is to stop, if it is.
    pub fn drain_reason(&self) -> Option<Arc<str>> {
        self.shared.reason.get().cloned()
    }

    /// Whether the run is to stop.
    pub fn drain_requested(&self) -> bool {
        self.shared.is_draining()
    }

    /// Completes when runs are asked to stop, by [`request_drain`](Self::request_drain) or [`stop_now`](Self::stop_now).
    ///
    /// This is what a server takes as its signal to stop accepting requests. A node that waits for something outside may
    /// wait for this too, to return early.
    pub fn draining(&self) -> impl Future<Output = ()> + Send + 'static {
        self.shared.clone().until(Shared::is_draining)
    }

    /// Completes when runs were asked to stop and none is left: each has ended, or was dropped.
    ///
    /// A run counts from the moment it is first polled. One that begins afterwards stops before its first superstep.
    pub fn drained(&self) -> impl Future<Output = ()> + Send + 'static {
        let over =
            |shared: &Shared| shared.is_draining() && shared.running.load(Ordering::Acquire) == 0;
        self.shared.clone().until(over)
    }

    /// How many runs with this control are running.
    pub fn running(&self) -> usize {
        self.shared.running.load(Ordering::Acquire)
    }

    /// Completes when runs are to stop at once.
    pub(crate) fn now(&self) -> impl Future<Output = ()> + Send + 'static {
        self.shared.clone().until(|shared| shared.now.load(Ordering::Acquire))
    }

    /// Counts a run until the guard is dropped.
    pub(crate) fn enter(&self) -> Running {
        self.shared.running.fetch_add(1, Ordering::AcqRel);
        Running(self.shared.clone())
    }
}

/// A run that counts for [`RunControl::drained`].
pub(crate) struct Running(Arc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.changed.notify_waiters();
        }
    }
}

impl fmt::Debug for RunControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunControl")
            .field("reason", &self.drain_reason())
            .field("running", &self.running())
            .finish_non_exhaustive()
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
