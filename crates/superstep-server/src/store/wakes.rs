//! Threads that are to be woken, because a question of them is due.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{Admitted, Answer, Run};
use crate::time::Micros;

/// What is to happen on a thread that sleeps, or has asked a question with a deadline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wake {
    /// When the first question is due.
    pub(crate) due: Micros,
    /// The run that has asked. The one that wakes the thread is as that one, but for its input.
    pub(crate) after: Box<Run>,
}

impl Wake {
    /// The run that wakes a thread, made by this worker. It does what is due, and nothing if nothing is.
    pub(super) fn run(&self, thread: &str, id: String, worker: &str, now: Micros) -> Run {
        let mut run = (*self.after).clone();
        run.run_id.clone_from(&id);
        run.thread_id = thread.to_owned();
        (run.created_at, run.updated_at) = (now, now);
        for nothing in ["input", "command", "checkpoint"] {
            run.kwargs.insert(nothing.to_owned(), Json::Null);
        }
        run.kwargs.insert("wake".to_owned(), true.into());
        if let Some(config) = run.kwargs.get_mut("config").and_then(Json::as_object_mut)
            && let Some(configurable) = config.get_mut("configurable").and_then(Json::as_object_mut)
        {
            configurable.insert("run_id".to_owned(), id.into());
            configurable.insert("thread_id".to_owned(), thread.into());
        }
        Run {
            status: super::RunStatus::Pending,
            multitask: super::Multitask::Reject,
            attempt: 0,
            begun: false,
            worker: None,
            epoch: 0,
            admitted_by: Some(worker.to_owned()),
            followed: false,
            cancel: None,
            stateless: None,
            result: None,
            ..run
        }
    }
}

/// A thread that is due, as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DueThread {
    pub(crate) thread_id: String,
    pub(crate) due: Micros,
}

/// What became of a thread that was due.
#[derive(Clone, Debug)]
pub(crate) enum Woken {
    /// The run was admitted, or the queue is full; then the thread stays due.
    Admitted(Admitted),
    /// Another process was first, or the thread has gone on.
    Elsewhere,
}

/// The threads that are to be woken. The time is in the row of the thread, and moves with the end of its runs.
pub(crate) trait Wakes: Send + Sync + 'static {
    /// The threads that are due at this time and have no run, the earliest first; and, if there are none, when the next one is.
    fn due_threads(
        &self,
        now: Micros,
        limit: usize,
    ) -> Answer<'_, (Vec<DueThread>, Option<Micros>)>;
    /// Takes the time away and admits a run with this id, in one transaction, if the time is the one that was seen and the
    /// thread has no run.
    fn fire_wake(&self, seen: DueThread, run: String, pending_max: usize) -> Answer<'_, Woken>;
}
