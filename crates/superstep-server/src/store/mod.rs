//! What the server keeps: threads, runs, assistants, events.
//!
//! The contract, which every implementation keeps:
//!
//! 1. **Each call is one transaction.** What it answers is stored when it answers; what it refuses has changed nothing.
//! 2. **A thread has at most one running run.** [`Store::claim`] never hands out a run of a thread that has one.
//! 3. **Runs of a thread are handed out in the order in which they are due**, which is that of their admission unless one was
//!    delayed.
//! 4. **A run ends once.** Each claim of a run has the next epoch. [`Store::finish`] and [`Store::append`] with an epoch that is
//!    not the current one change nothing, so that a worker that was taken for dead can neither end the run of another one nor
//!    write between its events.
//! 5. **Events of a run have numbers from 1, without gaps, in the order in which they were appended.**
//! 6. **Threads, assistants and crons have keys** that say whose they are (`crate::tenant`). The store takes a key as it is,
//!    but lists can be limited to a tenant: to rows with this value of the column `tenant`, which is the part of the key
//!    before the colon, or empty.
//! 7. **Any number of processes may work on one database.** A process that says that it lives keeps its runs; those of one that
//!    does not are taken back ([`WorkerTable`]).
//!
//! A call that cancels or takes back runs of several threads is one transaction for each of them.
//!
//! Knows no other room but `tenant`: what is stored is neither JSON of the API nor a run in memory.

// Stored data is untrusted.
#![cfg_attr(
    not(test),
    warn(clippy::arithmetic_side_effects, clippy::disallowed_methods, clippy::indexing_slicing)
)]

mod answers;
#[cfg(test)]
mod contract;
mod crons;
mod idempotency;
mod keys;
pub(crate) mod news;
mod postgres;
pub(crate) mod records;
mod rules;
pub(crate) mod sessions;
mod sqlite;
mod wakes;
pub(crate) mod webhooks;
pub(crate) mod workers;

use std::future::Future;
use std::pin::Pin;

use serde_json::{Map, Value as Json};

pub(crate) use answers::{Answered, Answers, InboxPlace};
pub(crate) use crons::{Cron, Crons, Fired, Firing};
pub(crate) use idempotency::{Asked, Create, Idempotency, Kept, Made, Once};
pub(crate) use keys::{ApiKey, ApiKeys};
pub(crate) use news::{News, NewsReader, Others, Progress};
pub(crate) use postgres::PostgresStore;
pub(crate) use records::{
    Assistant, Cancel, Claimed, Ended, Multitask, OnCompletion, OnExpiry, Origin, Run, RunStatus,
    Thread, ThreadStatus, Ttl,
};
pub(crate) use sessions::SessionLog;
pub(crate) use sqlite::SqliteStore;
pub(crate) use wakes::{DueThread, Wake, Wakes, Woken};
pub(crate) use webhooks::{Webhook, Webhooks};
pub(crate) use workers::WorkerTable;

use crate::metrics::Timing;
use crate::tenant::tenant_of;
use crate::time::Micros;

/// Why the store could not answer.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("the server's store failed: {0}")]
    Failed(String),
    /// This process was taken for dead meanwhile.
    #[error("another process has taken over the run")]
    Superseded,
}

pub(crate) type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A page of a list, and whether more follows.
#[derive(Clone, Debug)]
pub(crate) struct Page<T> {
    pub(crate) rows: Vec<T>,
    pub(crate) more: bool,
}

impl<T> Page<T> {
    pub(crate) fn empty() -> Self {
        Self { rows: Vec::new(), more: false }
    }
}

/// Which rows of a list are wanted, and in which order.
#[derive(Clone, Debug)]
pub(crate) struct ListQuery {
    /// Parts that the metadata must contain.
    pub(crate) metadata: Map<String, Json>,
    /// Parts that the values of a thread must contain.
    pub(crate) values: Map<String, Json>,
    /// What the name of an assistant must contain, in capitals or not.
    pub(crate) name: Option<String>,
    /// Columns that must have one of these values.
    pub(crate) equal: Vec<(&'static str, Vec<String>)>,
    /// Only threads that live for a time.
    pub(crate) expiring: bool,
    pub(crate) sort_by: &'static str,
    pub(crate) descending: bool,
    pub(crate) limit: usize,
    pub(crate) offset: usize,
}

impl Default for ListQuery {
    fn default() -> Self {
        Self {
            metadata: Map::new(),
            values: Map::new(),
            name: None,
            equal: Vec::new(),
            expiring: false,
            sort_by: "created_at",
            descending: true,
            limit: 10,
            offset: 0,
        }
    }
}

impl ListQuery {
    /// Whether rows have to be looked at one by one.
    pub(crate) fn is_filtered(&self) -> bool {
        !self.metadata.is_empty() || !self.values.is_empty() || self.name.is_some()
    }

    /// Whether a row is wanted, as far as its columns do not say that.
    pub(crate) fn matches(&self, body: &Json) -> bool {
        let is_named = |part: &String| {
            let name = body["name"].as_str().unwrap_or_default().to_lowercase();
            name.contains(&part.to_lowercase())
        };
        contains_all(&body["metadata"], &self.metadata)
            && contains_all(&body["values"], &self.values)
            && self.name.as_ref().is_none_or(is_named)
    }
}

/// A run that asks to be admitted.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    pub(crate) run: Run,
    /// Made if the thread is not there; without it a missing thread is refused.
    pub(crate) new_thread: Option<Thread>,
    /// Merged into the metadata of the thread.
    pub(crate) thread_metadata: Map<String, Json>,
    pub(crate) thread_config: Json,
    /// More pending runs than this are refused.
    pub(crate) pending_max: usize,
}

/// What became of an [`Admission`].
#[derive(Clone, Debug)]
pub(crate) enum Admitted {
    /// The run is stored. Runs of the thread that are running are to be stopped first; those that waited will not run.
    Stored { run: Box<Run>, stop: Vec<(String, Cancel)>, dropped: Vec<String> },
    /// The thread is not there.
    NoThread,
    /// Another run is pending or running, and the run did not want to wait.
    Busy,
    /// Too many runs wait.
    Full,
    /// The run answers this question of the thread, or any, but it was answered before.
    Answered(Option<String>),
}

/// What came of a request to cancel runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancelled {
    /// They were waiting and will not run.
    pub(crate) pending: Vec<String>,
    /// They are running and are to be stopped.
    pub(crate) running: Vec<String>,
}

impl Cancelled {
    fn extend(&mut self, other: Self) {
        self.pending.extend(other.pending);
        self.running.extend(other.running);
    }
}

/// Which runs are to be cancelled.
#[derive(Clone, Debug)]
pub(crate) enum Which {
    /// These runs of a thread.
    Runs { thread: String, runs: Vec<String> },
    /// All of a tenant that are not over and have one of these states.
    Status { tenant: String, of: Vec<RunStatus> },
}

impl Which {
    fn includes(&self, run: &Run) -> bool {
        match self {
            Self::Runs { thread, runs } => run.thread_id == *thread && runs.contains(&run.run_id),
            Self::Status { tenant, of } => {
                of.contains(&run.status) && tenant_of(&run.thread_id) == tenant
            }
        }
    }
}

/// An event as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) seq: u64,
    pub(crate) event: String,
    pub(crate) data: String,
}

/// An error and its causes, in one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text.push_str(": ");
        text.push_str(&source.to_string());
        cause = source.source();
    }
    text
}

/// A bound as databases take it. No table has more rows than 63 bits can count.
fn bound(rows: impl TryInto<i64>) -> i64 {
    rows.try_into().map_or(i64::MAX, |rows| rows)
}

/// The server's store. The [module page](self) is its contract.
pub(crate) trait Store:
    Answers + ApiKeys + Crons + Idempotency + Others + SessionLog + Wakes + Webhooks + WorkerTable
{
    /// How often the store was called, and how long its answers took.
    fn timing(&self) -> &Timing;
    /// Whether the store answers.
    fn ping(&self) -> Answer<'_, ()>;

    /// Stores an assistant as its first version. If one with the id is there, that one is returned as an error.
    fn create_assistant(&self, new: Assistant) -> Answer<'_, Result<Assistant, Box<Assistant>>>;
    fn assistant(&self, id: &str) -> Answer<'_, Option<Assistant>>;
    /// Changes an assistant, as a new version with the next free number.
    fn update_assistant(
        &self,
        id: &str,
        change: Box<dyn FnOnce(&mut Assistant) + Send>,
    ) -> Answer<'_, Option<Assistant>>;
    fn delete_assistant(&self, id: &str) -> Answer<'_, bool>;
    fn assistants(&self, query: ListQuery) -> Answer<'_, Page<Assistant>>;
    fn count_assistants(&self, query: ListQuery) -> Answer<'_, u64>;
    fn versions(&self, id: &str) -> Answer<'_, Vec<Assistant>>;
    /// Makes an older version the current one.
    fn use_version(&self, id: &str, version: u64) -> Answer<'_, Option<Assistant>>;

    /// Stores a thread. If one with the id is there, that one is returned as an error.
    fn create_thread(&self, new: Thread) -> Answer<'_, Result<Thread, Box<Thread>>>;
    fn thread(&self, id: &str) -> Answer<'_, Option<Thread>>;
    fn update_thread(
        &self,
        id: &str,
        change: Box<dyn FnOnce(&mut Thread) + Send>,
    ) -> Answer<'_, Option<Thread>>;
    /// Deletes a thread with its runs and events. Returns the runs that were pending or running, if it was there.
    fn delete_thread(&self, id: &str) -> Answer<'_, Option<Vec<Run>>>;
    fn threads(&self, query: ListQuery) -> Answer<'_, Page<Thread>>;
    fn count_threads(&self, query: ListQuery) -> Answer<'_, u64>;

    /// Stores a run, or refuses it.
    fn admit(&self, admission: Admission) -> Answer<'_, Admitted>;
    /// Takes the oldest run of one of these graphs that is due and whose thread has no running run. If there is none, says
    /// when one will be due. Runs of other graphs wait.
    fn claim(
        &self,
        now: Micros,
        graphs: Vec<String>,
    ) -> Answer<'_, Result<Claimed, Option<Micros>>>;
    /// Ends an attempt of a run, as it was claimed, and changes its thread accordingly. Returns whether the run still has the
    /// epoch of that claim. The events are appended to the session of its thread, if the thread is still there.
    fn finish(&self, run: &Run, end: Ended, told: Vec<Stored>) -> Answer<'_, bool>;
    fn run(&self, thread: Option<&str>, run: &str) -> Answer<'_, Option<Run>>;
    fn runs(&self, query: ListQuery) -> Answer<'_, Page<Run>>;
    /// Deletes a run that does not run, with its events. Returns it as it was.
    fn delete_run(&self, thread: &str, run: &str) -> Answer<'_, Option<Run>>;
    fn cancel(&self, which: Which, action: Cancel) -> Answer<'_, Cancelled>;
    /// How many runs are pending, and how many are running.
    fn load(&self) -> Answer<'_, (u64, u64)>;

    /// Appends events; those that are stored already are ignored, so a batch whose answer was lost can be sent again. With an
    /// epoch, returns whether the run is running and has it; otherwise nothing is stored.
    fn append(&self, run: &str, epoch: Option<u64>, events: Vec<Stored>) -> Answer<'_, bool>;
    /// Events after this number, in order.
    fn events(&self, run: &str, after: u64, limit: usize) -> Answer<'_, Vec<Stored>>;
    /// The number of the last event of a run; 0 if it has none.
    fn last_event(&self, run: &str) -> Answer<'_, u64>;
    /// Forgets the events of runs that ended before this time.
    fn forget_events(&self, before: Micros) -> Answer<'_, usize>;
}

/// Whether `whole` contains `part`: all keys of objects, and equal values otherwise.
pub(crate) fn contains(whole: &Json, part: &Json) -> bool {
    match (whole, part) {
        (Json::Object(whole), Json::Object(part)) => {
            part.iter().all(|(key, part)| whole.get(key).is_some_and(|whole| contains(whole, part)))
        }
        (Json::Array(whole), Json::Array(part)) => {
            part.iter().all(|part| whole.iter().any(|whole| contains(whole, part)))
        }
        (whole, part) => whole == part,
    }
}

/// As [`contains`], for objects.
pub(crate) fn contains_all(whole: &Json, part: &Map<String, Json>) -> bool {
    part.iter().all(|(key, part)| whole.get(key).is_some_and(|whole| contains(whole, part)))
}
