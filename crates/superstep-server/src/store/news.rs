//! What processes tell each other.
//!
//! The tables are what counts. News only say that it is worth looking, and may be lost: each process also looks by itself, once
//! a second while it has something to look for.

use serde_json::Value as Json;

use super::{Answer, Cancel, RunStatus};

/// Something that another process did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// A run may be ready, and nobody was free to take it.
    Work,
    /// This run has events, was cancelled, has readers elsewhere, or is over.
    Run(String),
    /// The session of this thread has events.
    Session(String),
}

impl News {
    pub(super) fn to_text(&self) -> String {
        match self {
            Self::Work => "work".to_owned(),
            Self::Run(run) => format!("run {run}"),
            Self::Session(thread) => format!("session {thread}"),
        }
    }

    pub(super) fn from_text(text: &str) -> Option<Self> {
        match text.split_once(' ') {
            None => (text == "work").then_some(Self::Work),
            Some(("run", run)) => Some(Self::Run(run.to_owned())),
            Some(("session", thread)) => Some(Self::Session(thread.to_owned())),
            Some(_) => None,
        }
    }
}

/// How far a run has come.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    pub(crate) run_id: String,
    pub(crate) status: RunStatus,
    pub(crate) epoch: u64,
    pub(crate) cancel: Option<Cancel>,
    pub(crate) followed: bool,
    pub(crate) last_event: u64,
    /// What `wait` and `join` answer, if it is over.
    pub(crate) result: Option<Json>,
}

/// Hears the news of other processes.
pub(crate) trait NewsReader: Send {
    /// The next news; nothing once the connection is lost.
    fn next(&mut self) -> std::pin::Pin<Box<dyn Future<Output = Option<News>> + Send + '_>>;
}

/// Following what other processes do.
pub(crate) trait Others: Send + Sync + 'static {
    /// Whether other processes may serve the readers of the runs that this one drives.
    fn has_others(&self) -> bool;
    /// Tells other processes, soon.
    fn tell(&self, news: News);
    /// Hears what other processes tell from now on. Nothing if they cannot.
    fn hear(&self) -> Answer<'_, Option<Box<dyn NewsReader>>>;
    /// From now on the run has readers in other processes than the one that drives it. Its events are stored, and what it
    /// ended with is kept even if it is deleted.
    fn follow(&self, thread: &str, run: &str) -> Answer<'_, ()>;
    /// How far these runs have come; those that are not there are left out.
    fn progress(&self, runs: Vec<String>) -> Answer<'_, Vec<Progress>>;
}
