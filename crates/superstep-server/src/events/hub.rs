//! The runs that this process has something to do with, and who follows their threads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use superstep::RunControl;
use tokio::sync::broadcast;

use super::feed::Feed;
use crate::protocol::Session;
use crate::store::Run;
use crate::time::Micros;

/// How many runs a reader of a thread may be behind before its stream breaks off.
const BEHIND_MAX: usize = 16;

/// A run that was admitted here or is running here.
#[derive(Clone)]
pub(crate) struct Active {
    pub(crate) feed: Arc<Feed>,
    pub(crate) control: RunControl,
}

/// A run that a reader of its thread is to show.
#[derive(Clone)]
pub(crate) struct Started {
    pub(crate) run_id: String,
    pub(crate) created_at: Micros,
    pub(crate) feed: Arc<Feed>,
}

impl Started {
    pub(crate) fn new(run: &Run, feed: &Arc<Feed>) -> Self {
        Self { run_id: run.run_id.clone(), created_at: run.created_at, feed: feed.clone() }
    }
}

#[derive(Default)]
pub(crate) struct Hub {
    runs: Mutex<HashMap<String, Active>>,
    sessions: Mutex<Weaks<Session>>,
    threads: Mutex<HashMap<String, broadcast::Sender<Started>>>,
}

struct Weaks<T> {
    of: HashMap<String, Weak<T>>,
    /// At this length those that are gone are swept out.
    sweep_at: usize,
}

impl<T> Default for Weaks<T> {
    fn default() -> Self {
        Self { of: HashMap::new(), sweep_at: 64 }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    pub(crate) fn get(&self, run: &str) -> Option<Active> {
        lock(&self.runs).get(run).cloned()
    }

    /// The run under this id; it is added if it is not there.
    pub(crate) fn get_or_add(&self, run: &str, new: impl FnOnce() -> Active) -> Active {
        lock(&self.runs).entry(run.to_owned()).or_insert_with(new).clone()
    }

    pub(crate) fn remove(&self, run: &str) -> Option<Active> {
        lock(&self.runs).remove(run)
    }

    /// Asks all runs to stop at the next boundary.
    pub(crate) fn drain_all(&self, reason: &str) {
        for active in lock(&self.runs).values() {
            active.control.request_drain(reason);
        }
    }

    /// The session of a thread. It is here while it has readers or a run.
    pub(crate) fn session(&self, thread: &str, new: impl FnOnce() -> Session) -> Arc<Session> {
        let mut sessions = lock(&self.sessions);
        if let Some(session) = sessions.of.get(thread).and_then(Weak::upgrade) {
            return session;
        }
        if sessions.of.len() >= sessions.sweep_at {
            sessions.of.retain(|_, session| session.strong_count() > 0);
            sessions.sweep_at = 64.max(2 * sessions.of.len());
        }
        let session = Arc::new(new());
        sessions.of.insert(thread.to_owned(), Arc::downgrade(&session));
        session
    }

    /// The ids of all runs.
    pub(crate) fn runs(&self) -> Vec<String> {
        lock(&self.runs).keys().cloned().collect()
    }

    /// Ends the streams of runs that this process does not drive: another one goes on with them.
    pub(crate) fn let_go_of_others(&self) {
        lock(&self.runs).retain(|_, active| {
            let is_own = active.feed.epoch().is_some();
            if !is_own {
                active.feed.end(None);
            }
            is_own
        });
    }

    /// Tells the runs that this process drives to stop where they are.
    pub(crate) fn stop_own(&self, reason: &str) {
        for active in lock(&self.runs).values().filter(|active| active.feed.epoch().is_some()) {
            active.control.stop_now(reason);
        }
    }

    /// The session of a thread, if it has readers here or a run.
    pub(crate) fn open_session(&self, thread: &str) -> Option<Arc<Session>> {
        lock(&self.sessions).of.get(thread).and_then(Weak::upgrade)
    }

    pub(crate) fn open_sessions(&self) -> Vec<Arc<Session>> {
        lock(&self.sessions).of.values().filter_map(Weak::upgrade).collect()
    }

    /// Whether the session of a thread has readers here, or a run.
    pub(crate) fn has_session(&self, thread: &str) -> bool {
        lock(&self.sessions).of.get(thread).is_some_and(|session| session.strong_count() > 0)
    }

    /// Is told of the runs of a thread when they start.
    pub(crate) fn watch(&self, thread: &str) -> broadcast::Receiver<Started> {
        let mut threads = lock(&self.threads);
        threads.retain(|_, sender| sender.receiver_count() > 0);
        let sender = threads.entry(thread.to_owned());
        sender.or_insert_with(|| broadcast::channel(BEHIND_MAX).0).subscribe()
    }

    /// Tells those who follow the thread that a run of it starts.
    pub(crate) fn started(&self, run: &Run, feed: &Arc<Feed>) {
        if let Some(sender) = lock(&self.threads).get(&run.thread_id) {
            // An error means that all of them have left.
            let _ = sender.send(Started::new(run, feed));
        }
    }
}
