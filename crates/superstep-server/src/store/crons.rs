//! Crons, and what fires them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::{Admission, Admitted, Answer, ListQuery, OnCompletion, Page};
use crate::time::Micros;

/// A cron.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cron {
    pub(crate) cron_id: String,
    pub(crate) assistant_id: String,
    /// Without one each firing has a new thread.
    pub(crate) thread_id: Option<String>,
    pub(crate) schedule: String,
    /// The IANA name of a time zone; UTC if there is none.
    pub(crate) timezone: Option<String>,
    /// It is not due after this time.
    pub(crate) end_time: Option<Micros>,
    /// When it is due; never if there is none.
    pub(crate) next_run_date: Option<Micros>,
    pub(crate) enabled: bool,
    pub(crate) on_run_completed: OnCompletion,
    pub(crate) metadata: Map<String, Json>,
    /// What its runs are asked for.
    pub(crate) payload: Map<String, Json>,
    pub(crate) created_at: Micros,
    pub(crate) updated_at: Micros,
    /// Who made it, if the server asks who somebody is.
    #[serde(default)]
    pub(crate) by: Option<String>,
    /// What its threads must have as metadata, so that who made it sees them.
    #[serde(default)]
    pub(crate) stamp: Map<String, Json>,
}

/// A cron that is due.
#[derive(Clone, Debug)]
pub(crate) struct Firing {
    pub(crate) cron_id: String,
    /// The date that was seen.
    pub(crate) due: Micros,
    /// The date after it.
    pub(crate) next: Option<Micros>,
    /// The run; without one the date is skipped.
    pub(crate) run: Option<Box<Admission>>,
}

/// What became of a [`Firing`].
#[derive(Clone, Debug)]
pub(crate) enum Fired {
    /// The run was admitted, or refused; either way the date has moved, unless the queue is full.
    Admitted(Admitted),
    /// The date was skipped.
    Skipped,
    /// The cron was fired, changed or deleted meanwhile.
    Elsewhere,
}

/// The table of crons. [`super::Create::Cron`] makes one; it goes with its thread and with its assistant.
pub(crate) trait Crons: Send + Sync + 'static {
    fn cron(&self, id: &str) -> Answer<'_, Option<Cron>>;
    fn update_cron(
        &self,
        id: &str,
        change: Box<dyn FnOnce(&mut Cron) + Send>,
    ) -> Answer<'_, Option<Cron>>;
    fn delete_cron(&self, id: &str) -> Answer<'_, bool>;
    fn crons(&self, query: ListQuery) -> Answer<'_, Page<Cron>>;
    fn count_crons(&self, query: ListQuery) -> Answer<'_, u64>;
    /// The crons that are due at this time, oldest first; and, if there are none, when the next one is.
    fn due_crons(&self, now: Micros, limit: usize) -> Answer<'_, (Vec<Cron>, Option<Micros>)>;
    /// Moves the date of a cron and admits its run, in one transaction, if the date is the one that was seen.
    fn fire_cron(&self, firing: Firing) -> Answer<'_, Fired>;
}
