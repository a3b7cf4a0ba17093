//! The store in PostgreSQL, in the database of the checkpoints and through the same connections.
//!
//! Any number of processes work on it. Locks end with their transaction and no call leaves state in a session, so it works
//! behind a pooler that gives each transaction another one. A call whose answer was lost is tried again; one that may have been
//! committed looks first.

mod answers;
mod assistants;
mod crons;
mod events;
mod idempotency;
mod keys;
mod list;
mod others;
mod rows;
mod runs;
mod schema;
mod sessions;
mod threads;
mod wakes;
mod webhooks;
mod workers;

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use superstep::checkpoint::Error;
use superstep_postgres::PostgresSaver;
use superstep_postgres::tables::{Failure, Sql, Tables};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::{
    Admission, Admitted, Answer, Assistant, Cancel, Cancelled, Claimed, Ended, ListQuery, Page,
    Run, Store, StoreError, Stored, Thread, Which, with_causes,
};
use crate::metrics::Timing;
use crate::time::Micros;
use rows::number;

type Result<T> = std::result::Result<T, Failure>;

/// The store in PostgreSQL.
#[derive(Debug)]
pub(crate) struct PostgresStore {
    tables: Tables,
    /// The name of this process.
    worker: Arc<str>,
    /// What other processes are told.
    told: mpsc::UnboundedSender<String>,
    timing: Timing,
}

impl PostgresStore {
    /// Opens the store beside the checkpoints, and makes or migrates its tables.
    pub(crate) async fn beside(checkpointer: &PostgresSaver) -> std::result::Result<Self, Error> {
        let tables = checkpointer.tables(schema::TABLE, schema::STEPS).await?;
        let worker: Arc<str> = Uuid::now_v7().to_string().into();
        let (told, telling) = mpsc::unbounded_channel();
        tokio::spawn(others::send(tables.clone(), worker.clone(), telling));
        Ok(Self { tables, worker, told, timing: Timing::default() })
    }

    fn answer<'a, T>(
        &'a self,
        what: &'static str,
        work: impl Future<Output = Result<T>> + Send + 'a,
    ) -> Answer<'a, T> {
        Box::pin(async move {
            let begun = Instant::now();
            let done = work.await;
            self.timing.add(begun.elapsed());
            done.map_err(|failure| StoreError::Failed(with_causes(&failure.told(what))))
        })
    }

    /// Deletes rows, and says how many.
    async fn delete(&self, delete: &str, before: Micros) -> Result<usize> {
        let sql = format!("WITH gone AS ({delete} RETURNING 1) SELECT count(*) FROM gone");
        let rows = self.tables.run(&[Sql::new(sql).int(before.0)]).await?;
        let row = rows.first().and_then(|rows| rows.first());
        let count = row.map_or(Ok(0), |row| number(row, 0))?;
        Ok(usize::try_from(count).map_err(Error::codec)?)
    }
}

impl Store for PostgresStore {
    fn timing(&self) -> &Timing {
        &self.timing
    }

    fn ping(&self) -> Answer<'_, ()> {
        self.answer("answer", async { self.tables.read(&Sql::new("SELECT 1")).await.map(drop) })
    }

    fn create_assistant(
        &self,
        new: Assistant,
    ) -> Answer<'_, std::result::Result<Assistant, Box<Assistant>>> {
        self.answer("store an assistant", async move {
            let new = &new;
            self.tables.insist(move |again| self.make_assistant(new, again)).await
        })
    }

    fn assistant(&self, id: &str) -> Answer<'_, Option<Assistant>> {
        let id = id.to_owned();
        self.answer("read an assistant", async move { self.find_assistant(&id).await })
    }

    fn update_assistant(
        &self,
        id: &str,
        change: Box<dyn FnOnce(&mut Assistant) + Send>,
    ) -> Answer<'_, Option<Assistant>> {
        let id = id.to_owned();
        self.answer("change an assistant", async move { self.change_assistant(&id, change).await })
    }

    fn delete_assistant(&self, id: &str) -> Answer<'_, bool> {
        let id = id.to_owned();
        self.answer("delete an assistant", async move {
            let id = &*id;
            self.tables.insist(move |again| self.remove_assistant(id, again)).await
        })
    }

    fn assistants(&self, query: ListQuery) -> Answer<'_, Page<Assistant>> {
        self.answer("list assistants", async move { self.page("server_assistants", &query).await })
    }

    fn count_assistants(&self, query: ListQuery) -> Answer<'_, u64> {
        self.answer(
            "count assistants",
            async move { self.count("server_assistants", &query).await },
        )
    }

    fn versions(&self, id: &str) -> Answer<'_, Vec<Assistant>> {
        let id = id.to_owned();
        self.answer("read an assistant", async move { self.assistant_versions(&id).await })
    }

    fn use_version(&self, id: &str, version: u64) -> Answer<'_, Option<Assistant>> {
        let id = id.to_owned();
        self.answer("change an assistant", async move {
            let id = &*id;
            self.tables.insist(move |_| self.back_to_version(id, version)).await
        })
    }

    fn create_thread(&self, new: Thread) -> Answer<'_, std::result::Result<Thread, Box<Thread>>> {
        self.answer("store a thread", async move {
            let new = &new;
            self.tables.insist(move |again| self.make_thread(new, again)).await
        })
    }

    fn thread(&self, id: &str) -> Answer<'_, Option<Thread>> {
        let id = id.to_owned();
        self.answer("read a thread", async move { self.find_thread(&id).await })
    }

    fn update_thread(
        &self,
        id: &str,
        change: Box<dyn FnOnce(&mut Thread) + Send>,
    ) -> Answer<'_, Option<Thread>> {
        let id = id.to_owned();
        self.answer("change a thread", async move { self.change_thread(&id, change).await })
    }

    fn delete_thread(&self, id: &str) -> Answer<'_, Option<Vec<Run>>> {
        let id = id.to_owned();
        self.answer("delete a thread", async move {
            let id = &*id;
            self.tables.insist(move |_| self.delete_whole_thread(id)).await
        })
    }

    fn threads(&self, query: ListQuery) -> Answer<'_, Page<Thread>> {
        self.answer("list threads", async move { self.page("server_threads", &query).await })
    }

    fn count_threads(&self, query: ListQuery) -> Answer<'_, u64> {
        self.answer("count threads", async move { self.count("server_threads", &query).await })
    }

    fn admit(&self, admission: Admission) -> Answer<'_, Admitted> {
        self.answer("store a run", async move {
            let admission = &admission;
            self.tables.insist(move |again| self.admit_run(admission, again)).await
        })
    }

    fn claim(
        &self,
        now: Micros,
        graphs: Vec<String>,
    ) -> Answer<'_, std::result::Result<Claimed, Option<Micros>>> {
        self.answer("take a run", async move {
            let (graphs, token) = (&*graphs, &*Uuid::new_v4().to_string());
            self.tables.insist(move |again| self.claim_run(now, graphs, token, again)).await
        })
    }

    fn finish(&self, run: &Run, end: Ended, told: Vec<Stored>) -> Answer<'_, bool> {
        let run = run.clone();
        self.answer("store the end of a run", async move {
            let (run, end, told) = (&run, &end, &*told);
            self.tables.insist(move |again| self.finish_run(run, end.clone(), told, again)).await
        })
    }

    fn run(&self, thread: Option<&str>, run: &str) -> Answer<'_, Option<Run>> {
        let (thread, run) = (thread.map(str::to_owned), run.to_owned());
        self.answer("read a run", async move {
            let found = self.run_by_id(&run).await?;
            Ok(found.filter(|run| thread.is_none_or(|thread| run.thread_id == thread)))
        })
    }

    fn runs(&self, query: ListQuery) -> Answer<'_, Page<Run>> {
        self.answer("list runs", async move { self.page("server_runs", &query).await })
    }

    fn delete_run(&self, thread: &str, run: &str) -> Answer<'_, Option<Run>> {
        let (thread, run) = (thread.to_owned(), run.to_owned());
        self.answer("delete a run", async move {
            let (thread, run) = (&*thread, &*run);
            self.tables.insist(move |_| self.delete_one_run(thread, run)).await
        })
    }

    fn cancel(&self, which: Which, action: Cancel) -> Answer<'_, Cancelled> {
        self.answer("cancel runs", async move {
            let which = &which;
            self.tables.insist(move |_| self.cancel_runs(which, action)).await
        })
    }

    fn load(&self) -> Answer<'_, (u64, u64)> {
        self.answer("count runs", self.count_open())
    }

    fn append(&self, run: &str, epoch: Option<u64>, new: Vec<Stored>) -> Answer<'_, bool> {
        let run = run.to_owned();
        self.answer("store events", async move { self.append_events(&run, epoch, &new).await })
    }

    fn events(&self, run: &str, after: u64, limit: usize) -> Answer<'_, Vec<Stored>> {
        let sql = "SELECT seq, event, data FROM server_events WHERE run_id = $1 AND seq > $2 ORDER BY seq LIMIT $3";
        let sql = events::after(Sql::new(sql).text(run), after, limit);
        self.answer("read events", async move { rows::events(&self.tables.read(&sql).await?) })
    }

    fn last_event(&self, run: &str) -> Answer<'_, u64> {
        let run = run.to_owned();
        self.answer("read events", async move { self.last_of(&run).await })
    }

    fn forget_events(&self, before: Micros) -> Answer<'_, usize> {
        self.answer("forget events", self.forget_events_before(before))
    }
}
