use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

/// Stops runs: at the next boundary between supersteps, or at once.
///
/// Clones control the same runs. One control may serve many runs; after a request, every run with
/// this control stops, also one that begins later.
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
    /// A control without a request.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests a drain: the running superstep completes, its checkpoint is stored, and the run
    /// ends with [`Outcome::Drained`](crate::Outcome::Drained). The first reason counts.
    ///
    /// A [workflow](crate::func) is one superstep. It stops before its next recorded call begins; calls that are running
    /// complete and are recorded.
    pub fn request_drain(&self, reason: impl Into<Arc<str>>) {
        self.shared.reason.get_or_init(|| reason.into());
        self.shared.changed.notify_waiters();
    }

    /// Ends the run with [`Outcome::Drained`](crate::Outcome::Drained) without waiting for the
    /// superstep: running tasks are dropped. Finished tasks keep their writes, so that the thread
    /// continues from there; dropped tasks run again.
    ///
    /// A node that blocks its thread cannot be dropped before its next `await`.
    pub fn stop_now(&self, reason: impl Into<Arc<str>>) {
        self.request_drain(reason);
        self.shared.now.store(true, Ordering::Release);
        self.shared.changed.notify_waiters();
    }

    /// The reason of the drain, if one was requested.
    pub fn drain_reason(&self) -> Option<Arc<str>> {
        self.shared.reason.get().cloned()
    }

    /// Whether the run is to stop.
    pub fn drain_requested(&self) -> bool {
        self.shared.is_draining()
    }

    /// Completes when a stop is requested, by [`request_drain`](Self::request_drain) or
    /// [`stop_now`](Self::stop_now).
    ///
    /// A server uses it as its signal to stop accepting requests. A node that waits for something
    /// external may wait for this too, to return early.
    pub fn draining(&self) -> impl Future<Output = ()> + Send + 'static {
        self.shared.clone().until(Shared::is_draining)
    }

    /// Completes when a stop was requested and no run is left: each has ended, or was dropped.
    ///
    /// A run counts from the moment it is first polled. One that begins afterwards stops before its first superstep.
    pub fn drained(&self) -> impl Future<Output = ()> + Send + 'static {
        let over =
            |shared: &Shared| shared.is_draining() && shared.running.load(Ordering::Acquire) == 0;
        self.shared.clone().until(over)
    }

    /// The number of active runs with this control.
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

/// When a run stores its progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// Each superstep, with the writes of its tasks, before the next one starts.
    #[default]
    Sync,
    /// Each superstep while the next one runs, in order; everything before the run ends.
    ///
    /// A superstep is applied only when the one before it is stored, so a process that dies loses
    /// at most the last superstep. If a checkpoint cannot be stored, the run fails.
    ///
    /// It uses the relaxed durability of the checkpointer
    /// ([`Checkpointer::relaxed`](crate::checkpoint::Checkpointer::relaxed)). A power failure may
    /// then lose more than a crash of the process: on SQLite, the last tenth of a second.
    Async,
    /// Only when the run ends: done, failed, interrupted or drained.
    Exit,
}
