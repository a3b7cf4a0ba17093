//! The store in an SQLite file, or in memory: SQLite keeps both.
//!
//! One thread owns the connection. Calls that wait are run together in one transaction, each in a savepoint of its own, and
//! are answered after the commit.

mod answers;
mod assistants;
mod crons;
mod events;
mod idempotency;
mod keys;
mod list;
mod others;
mod runs;
mod sessions;
mod threads;
mod wakes;
mod webhooks;
mod workers;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, oneshot};

use super::{
    Admission, Admitted, Answer, Assistant, Cancel, Cancelled, Claimed, Ended, ListQuery, Page,
    Run, Store, StoreError, Stored, Thread, Which, bound,
};
use crate::metrics::Timing;
use crate::time::Micros;

/// How many calls are run together at most.
const BATCH_MAX: usize = 128;

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS server_assistants (
    assistant_id TEXT PRIMARY KEY, graph_id TEXT NOT NULL, name TEXT NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, body TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS server_assistant_versions (
    assistant_id TEXT NOT NULL, version INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (assistant_id, version)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS server_threads (
    thread_id TEXT PRIMARY KEY, status TEXT NOT NULL, created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL, state_updated_at INTEGER NOT NULL, body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS server_threads_updated ON server_threads (updated_at);
CREATE TABLE IF NOT EXISTS server_runs (
    run_id TEXT PRIMARY KEY, thread_id TEXT NOT NULL, status TEXT NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS server_runs_thread ON server_runs (thread_id, created_at);
CREATE INDEX IF NOT EXISTS server_runs_open ON server_runs (created_at, run_id)
    WHERE status IN ('pending', 'running');
CREATE TABLE IF NOT EXISTS server_events (
    run_id TEXT NOT NULL, seq INTEGER NOT NULL, event TEXT NOT NULL, data TEXT NOT NULL,
    PRIMARY KEY (run_id, seq)
) WITHOUT ROWID;
";

type Result<T> = std::result::Result<T, StoreError>;

/// Runs in a transaction and returns what sends the answer, once it is known whether the commit succeeded.
type Job = Box<dyn FnOnce(&Connection) -> Reply + Send>;
type Reply = Box<dyn FnOnce(Result<()>) + Send>;

/// The store in SQLite.
#[derive(Clone, Debug)]
pub(crate) struct SqliteStore {
    jobs: mpsc::UnboundedSender<JobBox>,
    process: Arc<workers::Process>,
    timing: Arc<Timing>,
}

struct JobBox(Job);

impl std::fmt::Debug for JobBox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Job")
    }
}

fn failed(error: impl std::fmt::Display) -> StoreError {
    StoreError::Failed(error.to_string())
}

/// A stored number that counts something.
fn whole(number: i64) -> rusqlite::Result<u64> {
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(0, number))
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        failed(error)
    }
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        failed(format_args!("a row cannot be read or written: {error}"))
    }
}

impl SqliteStore {
    /// Opens the store in this file, beside the checkpoints, or in memory.
    pub(crate) async fn open(file: Option<&Path>) -> Result<Self> {
        let process = Arc::new(workers::Process::new(file));
        let file = file.map(Path::to_owned);
        let (opened, is_open) = oneshot::channel();
        let (jobs, queue) = mpsc::unbounded_channel();
        let thread = std::thread::Builder::new().name("superstep-server-store".to_owned());
        let spawned = thread.spawn(move || {
            let connection = match connect(file.as_deref()) {
                Ok(connection) => connection,
                Err(error) => return drop(opened.send(Err(error))),
            };
            if opened.send(Ok(())).is_ok() {
                work(&connection, queue);
            }
        });
        spawned.map_err(failed)?;
        is_open.await.map_err(|_| failed("its thread died while it was opened"))??;
        Ok(Self { jobs, process, timing: Arc::default() })
    }

    /// Runs a call in a transaction.
    fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Answer<'static, T> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            let done = in_savepoint(connection, call);
            Box::new(move |committed: Result<()>| {
                // The caller may have been dropped.
                let _ = answer.send(committed.and(done));
            })
        });
        let begun = Instant::now();
        let sent = self.jobs.send(JobBox(job));
        let timing = self.timing.clone();
        Box::pin(async move {
            let gone = || failed("it is closed");
            sent.map_err(|_| gone())?;
            let answer = answered.await.map_err(|_| gone())?;
            timing.add(begun.elapsed());
            answer
        })
    }
}

fn connect(file: Option<&Path>) -> Result<Connection> {
    let connection = match file {
        Some(file) => Connection::open(file)?,
        None => Connection::open_in_memory()?,
    };
    connection.busy_timeout(Duration::from_secs(30))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    for schema in [SCHEMA, sessions::SCHEMA, crons::SCHEMA, webhooks::SCHEMA, workers::SCHEMA] {
        connection.execute_batch(schema)?;
    }
    for (table, key) in [
        ("server_threads", "thread_id"),
        ("server_assistants", "assistant_id"),
        ("server_crons", "cron_id"),
    ] {
        with_tenant(&connection, table, key)?;
    }
    for schema in [answers::SCHEMA, idempotency::SCHEMA, keys::SCHEMA, wakes::SCHEMA] {
        connection.execute_batch(schema)?;
    }
    Ok(connection)
}

/// Adds the column `tenant` to a table. Its values follow from the keys, so older files get it, too.
fn with_tenant(connection: &Connection, table: &str, key: &str) -> Result<()> {
    let sql = "SELECT count(*) FROM pragma_table_xinfo(?) WHERE name = 'tenant'";
    if connection.query_row(sql, [table], |row| row.get::<_, i64>(0))? > 0 {
        return Ok(());
    }
    let tenant = format!("substr({key}, 1, instr({key}, ':') - 1)");
    connection.execute_batch(&format!(
        "ALTER TABLE {table} ADD COLUMN tenant TEXT
            GENERATED ALWAYS AS (CASE instr({key}, ':') WHEN 0 THEN '' ELSE {tenant} END) VIRTUAL;
        CREATE INDEX IF NOT EXISTS {table}_tenant ON {table} (tenant, updated_at);"
    ))?;
    Ok(())
}

fn in_savepoint<T>(
    connection: &Connection,
    call: impl FnOnce(&Connection) -> Result<T>,
) -> Result<T> {
    connection.execute_batch("SAVEPOINT call")?;
    let done = call(connection);
    let end = if done.is_ok() { "RELEASE call" } else { "ROLLBACK TO call; RELEASE call" };
    connection.execute_batch(end)?;
    done
}

fn work(connection: &Connection, mut queue: mpsc::UnboundedReceiver<JobBox>) {
    while let Some(first) = queue.blocking_recv() {
        let begun = connection.execute_batch("BEGIN IMMEDIATE");
        let mut replies = vec![(first.0)(connection)];
        while replies.len() < BATCH_MAX
            && let Ok(next) = queue.try_recv()
        {
            replies.push((next.0)(connection));
        }
        let committed = begun.and_then(|()| connection.execute_batch("COMMIT")).map_err(|error| {
            // Nothing is left open, whichever of the two failed.
            let _ = connection.execute_batch("ROLLBACK");
            StoreError::from(error)
        });
        for reply in replies {
            reply(committed.clone());
        }
    }
}

/// The body of a row.
fn row<T: DeserializeOwned>(connection: &Connection, sql: &str, id: &str) -> Result<Option<T>> {
    let body: Option<String> =
        connection.prepare_cached(sql)?.query_row(params![id], |row| row.get(0)).optional()?;
    body.map(|body| Ok(serde_json::from_str(&body)?)).transpose()
}

fn text(body: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string(body)?)
}

impl Store for SqliteStore {
    fn timing(&self) -> &Timing {
        &self.timing
    }

    fn ping(&self) -> Answer<'_, ()> {
        self.call(|connection| {
            Ok(connection.query_row("SELECT 1", [], |row| row.get::<_, i64>(0)).map(drop)?)
        })
    }

    fn create_assistant(
        &self,
        new: Assistant,
    ) -> Answer<'_, std::result::Result<Assistant, Box<Assistant>>> {
        self.call(|connection| assistants::create(connection, new))
    }

    fn assistant(&self, id: &str) -> Answer<'_, Option<Assistant>> {
        let id = id.to_owned();
        self.call(move |connection| assistants::find(connection, &id))
    }

    fn update_assistant(
        &self,
        id: &str,
        change: Box<dyn FnOnce(&mut Assistant) + Send>,
    ) -> Answer<'_, Option<Assistant>> {
        let id = id.to_owned();
        self.call(move |connection| assistants::update(connection, &id, change))
    }

    fn delete_assistant(&self, id: &str) -> Answer<'_, bool> {
        let id = id.to_owned();
        self.call(move |connection| assistants::delete(connection, &id))
    }

    fn assistants(&self, query: ListQuery) -> Answer<'_, Page<Assistant>> {
        self.call(move |connection| list::page(connection, "server_assistants", &query))
    }

    fn count_assistants(&self, query: ListQuery) -> Answer<'_, u64> {
        self.call(move |connection| list::count(connection, "server_assistants", &query))
    }

    fn versions(&self, id: &str) -> Answer<'_, Vec<Assistant>> {
        let id = id.to_owned();
        self.call(move |connection| assistants::versions(connection, &id))
    }

    fn use_version(&self, id: &str, version: u64) -> Answer<'_, Option<Assistant>> {
        let id = id.to_owned();
        self.call(move |connection| assistants::use_version(connection, &id, version))
    }

    fn create_thread(&self, new: Thread) -> Answer<'_, std::result::Result<Thread, Box<Thread>>> {
        self.call(|connection| threads::create(connection, new))
    }

    fn thread(&self, id: &str) -> Answer<'_, Option<Thread>> {
        let id = id.to_owned();
        self.call(move |connection| threads::find(connection, &id))
    }

    fn update_thread(
        &self,
        id: &str,
        change: Box<dyn FnOnce(&mut Thread) + Send>,
    ) -> Answer<'_, Option<Thread>> {
        let id = id.to_owned();
        self.call(move |connection| threads::update(connection, &id, change))
    }

    fn delete_thread(&self, id: &str) -> Answer<'_, Option<Vec<Run>>> {
        let id = id.to_owned();
        self.call(move |connection| threads::delete(connection, &id))
    }

    fn threads(&self, query: ListQuery) -> Answer<'_, Page<Thread>> {
        self.call(move |connection| list::page(connection, "server_threads", &query))
    }

    fn count_threads(&self, query: ListQuery) -> Answer<'_, u64> {
        self.call(move |connection| list::count(connection, "server_threads", &query))
    }

    fn admit(&self, admission: Admission) -> Answer<'_, Admitted> {
        self.call(|connection| runs::admit(connection, admission))
    }

    fn claim(
        &self,
        now: Micros,
        graphs: Vec<String>,
    ) -> Answer<'_, std::result::Result<Claimed, Option<Micros>>> {
        let process = self.process.clone();
        self.call(move |connection| runs::claim(connection, &process.name, now, &graphs))
    }

    fn finish(&self, run: &Run, end: Ended, told: Vec<Stored>) -> Answer<'_, bool> {
        let run = run.clone();
        self.call(move |connection| runs::finish(connection, &run, end, &told))
    }

    fn run(&self, thread: Option<&str>, run: &str) -> Answer<'_, Option<Run>> {
        let (thread, run) = (thread.map(str::to_owned), run.to_owned());
        self.call(move |connection| {
            let found = runs::find(connection, &run)?;
            Ok(found.filter(|run| thread.is_none_or(|thread| run.thread_id == thread)))
        })
    }

    fn runs(&self, query: ListQuery) -> Answer<'_, Page<Run>> {
        self.call(move |connection| list::page(connection, "server_runs", &query))
    }

    fn delete_run(&self, thread: &str, run: &str) -> Answer<'_, Option<Run>> {
        let (thread, run) = (thread.to_owned(), run.to_owned());
        self.call(move |connection| runs::delete(connection, &thread, &run))
    }

    fn cancel(&self, which: Which, action: Cancel) -> Answer<'_, Cancelled> {
        self.call(move |connection| runs::cancel(connection, &which, action))
    }

    fn load(&self) -> Answer<'_, (u64, u64)> {
        self.call(runs::load)
    }

    fn append(&self, run: &str, epoch: Option<u64>, new: Vec<Stored>) -> Answer<'_, bool> {
        let run = run.to_owned();
        self.call(move |connection| events::append(connection, &run, epoch, &new))
    }

    fn last_event(&self, run: &str) -> Answer<'_, u64> {
        let run = run.to_owned();
        self.call(move |connection| events::last(connection, &run))
    }

    fn events(&self, run: &str, after: u64, limit: usize) -> Answer<'_, Vec<Stored>> {
        let run = run.to_owned();
        self.call(move |connection| events::after(connection, &run, after, limit))
    }

    fn forget_events(&self, before: Micros) -> Answer<'_, usize> {
        self.call(move |connection| events::forget(connection, before))
    }
}

#[cfg(test)]
mod tests;
