//! The runs that are alive in this process, so that no thread has two of them.
//!
//! Runs of other processes are not seen here. They are kept apart by what they store; see `answer.rs`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, Weak};
use std::time::{Duration, SystemTime};

use superstep_checkpoint::{AnyCheckpointer, StorageId};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::engine::step::superstep::lock;
use crate::error::RunError;

/// How long a run waits for the nodes of one that was dropped.
const PATIENCE: Duration = Duration::from_secs(1);

/// A thread, and where it is kept.
type Key = (StorageId, Arc<str>);

static ALIVE: LazyLock<Mutex<HashMap<Key, LiveThread>>> = LazyLock::new(Mutex::default);

struct LiveThread {
    since: SystemTime,
    /// Whether the run is being polled. If not, it was dropped, and its spawned nodes have not noticed yet.
    driven: bool,
    /// How many of its nodes are polled by the runtime.
    spawned: usize,
    /// Notified when the rest of the run has ended.
    ended: Option<Arc<Notify>>,
}

/// A run that is alive. No other run begins on its thread in this process before this is dropped.
pub(crate) struct Alive {
    key: Key,
}

impl Alive {
    /// Begins a run on a thread.
    ///
    /// Of a run that was dropped, nodes may still be polled by the runtime, until they next await something. That is waited
    /// for, but not for long: they may be busy with something else.
    ///
    /// # Errors
    /// [`RunError::Busy`] if another run on the thread is alive.
    pub(crate) async fn begin(
        checkpointer: &AnyCheckpointer,
        thread: &Arc<str>,
    ) -> Result<Arc<Self>, RunError> {
        let key = (checkpointer.storage(), thread.clone());
        let busy = |since| RunError::Busy { thread: thread.clone(), since };
        loop {
            let (ended, since) = {
                let mut alive = lock(&ALIVE);
                match alive.get_mut(&key) {
                    None => {
                        let entry = LiveThread {
                            since: SystemTime::now(),
                            driven: true,
                            spawned: 0,
                            ended: None,
                        };
                        alive.insert(key.clone(), entry);
                        return Ok(Arc::new(Self { key }));
                    }
                    Some(LiveThread { since, driven: true, .. }) => {
                        return Err(busy(*since));
                    }
                    Some(LiveThread { ended, since, .. }) => {
                        let ended = ended.get_or_insert_default().clone().notified_owned();
                        let mut ended = Box::pin(ended);
                        // From here on nothing is missed.
                        ended.as_mut().enable();
                        (ended, *since)
                    }
                }
            };
            timeout(PATIENCE, ended).await.map_err(|_| busy(since))?;
        }
    }

    /// Keeps the thread busy for a node that the runtime polls.
    pub(crate) fn spawned(self: &Arc<Self>) -> Spawned {
        if let Some(entry) = lock(&ALIVE).get_mut(&self.key) {
            entry.spawned += 1;
        }
        Spawned { key: self.key.clone() }
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        leave(&self.key, |entry| entry.driven = false);
    }
}

/// A node of a run that the runtime polls.
pub(crate) struct Spawned {
    key: Key,
}

impl Drop for Spawned {
    fn drop(&mut self) {
        leave(&self.key, |entry| entry.spawned -= 1);
    }
}

fn leave(key: &Key, change: impl FnOnce(&mut LiveThread)) {
    let mut alive = lock(&ALIVE);
    let Some(entry) = alive.get_mut(key) else { return };
    change(entry);
    if entry.driven || entry.spawned > 0 {
        return;
    }
    let entry = alive.remove(key);
    drop(alive);
    if let Some(ended) = entry.and_then(|entry| entry.ended) {
        ended.notify_waiters();
    }
}

/// How the parts of a run find out that it is alive, without keeping it so.
#[derive(Default)]
pub(crate) struct Life(OnceLock<Weak<Alive>>);

impl Life {
    pub(crate) fn begins(&self, alive: &Arc<Alive>) {
        // A run begins once.
        let _ = self.0.set(Arc::downgrade(alive));
    }

    /// Keeps the thread busy for a node that the runtime polls, if the run is stored on a thread.
    pub(crate) fn spawned(&self) -> Option<Spawned> {
        self.0.get()?.upgrade().map(|alive| alive.spawned())
    }
}
