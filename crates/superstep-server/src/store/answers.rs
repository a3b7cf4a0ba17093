//! Open questions across threads, and who answered which.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{Answer, Thread};
use crate::time::Micros;

/// That a question was answered. The admission of the run that answers it puts this into the table, in its transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answered {
    pub(crate) thread_id: String,
    pub(crate) interrupt_id: String,
    pub(crate) run_id: String,
    pub(crate) question: Json,
    pub(crate) answer: Json,
    /// Who answered, if the server asks who somebody is.
    pub(crate) by: Option<String>,
    pub(crate) comment: Option<String>,
    pub(crate) at: Micros,
}

/// A place in the list of threads with questions: after this thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InboxPlace {
    pub(crate) state_updated_at: Micros,
    pub(crate) thread_id: String,
}

/// The table of answers, and the list of threads with questions. Answers go with their thread.
pub(crate) trait Answers: Send + Sync + 'static {
    /// Threads of a tenant whose status is `interrupted` or `error` and that have `interrupts`, those that have waited longest
    /// first (by `state_updated_at`, then by their keys), from this place on. After an answer that did not fit, a thread is in
    /// error and its question still open.
    fn waiting_threads(
        &self,
        tenant: &str,
        after: Option<InboxPlace>,
        limit: usize,
    ) -> Answer<'_, Vec<Thread>>;
    /// The answers that were given on a thread, newest first.
    fn answers(&self, thread: &str, limit: usize) -> Answer<'_, Vec<Answered>>;
}
