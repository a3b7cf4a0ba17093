//! The queue.
//!
//! A call loads the rows of a thread, asks the rule, and applies its changes, in one transaction of two round trips. Two locks
//! keep others away from the thread meanwhile: one by its name, because the thread may not be there yet, and the row of its head,
//! which is what a claim locks.

use superstep::checkpoint::Error;
use superstep_postgres::tables::Sql;
use tokio_postgres::Row;

use super::rows::{column, first, number, object, objects, put_run, put_thread, put_webhook};
use super::{PostgresStore, Result};
use crate::store::rules::{self, Changes, ThreadRows};
use crate::store::{
    Admission, Admitted, Cancel, Cancelled, Claimed, Cron, Ended, Multitask, Run, RunStatus,
    Stored, Which, bound,
};
use crate::time::Micros;

/// Locks of ours among those of others: the first half of their keys.
const LOCKS: &str = "1936024690";

/// Finds a cron that is still as it was seen, and says how it is stored afterwards.
type Condition<'a> = (Sql, &'a (dyn Fn(Cron) -> Result<Sql> + Sync));

/// Which of the open runs of a thread a rule has to see. Many may wait.
pub(super) enum Need {
    All,
    /// These, and one other if there is one: rules only ask whether there are others.
    Some(Vec<String>),
}

impl Need {
    /// Those that decide about a run that asks to be admitted: an answer is compared with all that wait.
    pub(super) fn of(admission: &Admission) -> Self {
        let answers = !admission.run.asked("command")["resume"].is_null();
        match admission.run.multitask {
            Multitask::Reject | Multitask::Enqueue if !answers => Self::Some(Vec::new()),
            _ => Self::All,
        }
    }
}

/// How many runs wait on all threads, as far as it matters for those that ask to be admitted.
pub(super) fn count_pending(admissions: &[Admission]) -> Option<Sql> {
    admissions.iter().map(|admission| admission.pending_max).max().map(count_up_to)
}

pub(super) fn count_up_to(most: usize) -> Sql {
    let sql = "SELECT count(*) FROM (SELECT FROM server_runs WHERE status = 'pending' LIMIT $1) AS counted";
    Sql::new(sql).int(bound(most))
}

/// Keeps others away from a thread until the end of the transaction.
pub(super) fn lock(thread: &str) -> [Sql; 2] {
    [
        Sql::new(format!("SELECT pg_advisory_xact_lock({LOCKS}, hashtext($1))")).text(thread),
        Sql::new("SELECT FROM server_queue WHERE thread_id = $1 FOR UPDATE").text(thread),
    ]
}

pub(super) fn load(thread: &str, need: Need) -> [Sql; 3] {
    let sql = "SELECT body FROM server_runs WHERE thread_id = $1 AND status = 'running'";
    let running = Sql::new(sql).text(thread);
    let waiting = match need {
        Need::All => {
            let sql = "SELECT body FROM server_runs WHERE thread_id = $1 AND status = 'pending'
                ORDER BY created_at, n";
            Sql::new(sql).text(thread)
        }
        Need::Some(runs) => {
            let sql = "SELECT body FROM (
                    (SELECT body, created_at, n FROM server_runs
                        WHERE thread_id = $1 AND status = 'pending' AND run_id = ANY($2))
                    UNION ALL
                    (SELECT body, created_at, n FROM server_runs
                        WHERE thread_id = $1 AND status = 'pending' AND run_id <> ALL($2)
                        ORDER BY created_at, n LIMIT 1)
                ) AS waiting ORDER BY created_at, n";
            Sql::new(sql).text(thread).texts(runs)
        }
    };
    [
        Sql::new("SELECT body FROM server_threads WHERE thread_id = $1").text(thread),
        running,
        waiting,
    ]
}

/// The head of a thread follows from its open runs.
fn put_head(thread: &str) -> Sql {
    let sql = "WITH head AS (
            SELECT * FROM (
                (SELECT 0 AS rank, run_id, graph_id, created_at, n, worker FROM server_runs
                    WHERE thread_id = $1 AND status = 'running')
                UNION ALL
                (SELECT 1, run_id, graph_id, created_at, n, NULL FROM server_runs
                    WHERE thread_id = $1 AND status = 'pending' ORDER BY created_at, n LIMIT 1)
            ) AS open ORDER BY rank LIMIT 1
        ), gone AS (
            DELETE FROM server_queue WHERE thread_id = $1 AND NOT EXISTS (SELECT FROM head)
        )
        INSERT INTO server_queue (thread_id, run_id, graph_id, due_at, n, worker)
        SELECT $1, run_id, graph_id, created_at, n, worker FROM head
        ON CONFLICT (thread_id) DO UPDATE SET run_id = EXCLUDED.run_id, graph_id = EXCLUDED.graph_id,
            due_at = EXCLUDED.due_at, n = EXCLUDED.n, worker = EXCLUDED.worker";
    Sql::new(sql).text(thread)
}

/// The statements that apply the changes of a rule to a thread.
pub(super) fn apply(thread: &str, changes: &Changes) -> Result<Vec<Sql>> {
    let mut sql = Vec::new();
    if let Some(thread) = &changes.delete_thread {
        let keep = changes.kept_end.as_ref().map(|(run, _)| &**run);
        sql.extend(super::threads::delete(thread, keep));
    }
    if !changes.remove_runs.is_empty() {
        // Whoever appends events holds the row of the run, so it goes first.
        let of = |table| Sql::new(format!("DELETE FROM {table} WHERE run_id = ANY($1)"));
        let is_kept =
            |run: &&String| changes.kept_end.as_ref().is_some_and(|(kept, _)| kept == *run);
        let forgotten = changes.remove_runs.iter().filter(|run| !is_kept(run)).cloned();
        sql.push(of("server_runs").texts(changes.remove_runs.clone()));
        sql.push(of("server_events").texts(forgotten.collect()));
    }
    if let Some(thread) = &changes.put_thread {
        sql.push(put_thread(thread)?);
    }
    // One that ends makes room for one that begins.
    let (ended, open): (Vec<_>, Vec<_>) =
        changes.put_runs.iter().partition(|run| run.status != RunStatus::Running);
    for run in ended.into_iter().chain(open) {
        sql.push(put_run(run)?);
    }
    for answered in &changes.answers {
        sql.push(super::answers::put(answered)?);
    }
    for (key, result) in &changes.results {
        sql.push(super::idempotency::put_result(key, result));
    }
    for webhook in &changes.webhooks {
        sql.push(put_webhook(webhook, Some(webhook.ended_at))?);
    }
    if let Some((run, result)) = &changes.kept_end {
        let keep = "INSERT INTO server_ends (run_id, ended_at, result) VALUES ($1, $2, $3)
            ON CONFLICT (run_id) DO NOTHING";
        sql.push(Sql::new(keep).text(run).int(Micros::now().0).text(result.to_string()));
    }
    if !sql.is_empty() {
        sql.push(put_head(thread));
    }
    Ok(sql)
}

impl PostgresStore {
    /// Asks a rule what becomes of a thread. `also` is read in the same transaction, before the rule is asked.
    pub(super) async fn with_thread<T>(
        &self,
        thread: &str,
        need: Need,
        also: Vec<Sql>,
        rule: impl FnOnce(ThreadRows, &[Vec<Row>]) -> Result<(T, Changes, Vec<Sql>)>,
    ) -> Result<T> {
        let mut sql = Vec::from(lock(thread));
        sql.extend(load(thread, need));
        sql.extend(also);
        let (transaction, rows) = self.tables.begin(&sql).await?;
        let [_, _, of_thread, running, waiting, also @ ..] = &*rows else {
            return Err(Error::invalid("PostgreSQL answered less than was asked").into());
        };
        let mut open: Vec<Run> = objects(running)?;
        open.extend(objects::<Run>(waiting)?);
        let (answer, changes, more) = rule(ThreadRows { thread: first(of_thread)?, open }, also)?;
        let mut sql = apply(thread, &changes)?;
        sql.extend(more);
        transaction.commit(&sql).await?;
        Ok(answer)
    }

    /// Stores a run, or refuses it.
    pub(super) async fn admit_run(&self, admission: &Admission, again: bool) -> Result<Admitted> {
        // The answer to the first attempt may have been lost.
        if again && let Some(run) = self.run_by_id(&admission.run.run_id).await? {
            return Ok(Admitted::Stored { run: Box::new(run), stop: vec![], dropped: vec![] });
        }
        let admitted = self.admit_if(admission, None).await?;
        admitted.ok_or_else(|| Error::invalid("a run without a condition was not admitted").into())
    }

    /// Stores a run, or refuses it, if a cron is as it was seen. What the cron is then is stored with the run.
    pub(super) async fn admit_if(
        &self,
        admission: &Admission,
        cron: Option<Condition<'_>>,
    ) -> Result<Option<Admitted>> {
        let mut also = Vec::from_iter(count_pending(std::slice::from_ref(admission)));
        let (find, moved) = cron.unzip();
        also.extend(find);
        let rule = |rows, also: &[Vec<Row>]| {
            let seen = also.get(1).map(|rows| first::<Cron>(rows)).transpose()?.flatten();
            if moved.is_some() && seen.is_none() {
                return Ok((None, Changes::default(), Vec::new()));
            }
            let pending = also.first().and_then(|rows| rows.first());
            let pending = pending.map_or(Ok(0), |row| number(row, 0))?;
            let now = Micros::now();
            let (admitted, changes) = rules::admit(rows, admission.clone(), pending, now);
            let more = match (moved, seen) {
                // It stays due, and is fired when there is room.
                (Some(moved), Some(cron)) if !matches!(admitted, Admitted::Full) => {
                    vec![moved(cron)?]
                }
                _ => Vec::new(),
            };
            Ok((Some(admitted), changes, more))
        };
        self.with_thread(&admission.run.thread_id, Need::of(admission), also, rule).await
    }

    /// Takes a head. Which one it was is asked after it is locked, since only then nobody else changes it.
    pub(super) async fn claim_run(
        &self,
        now: Micros,
        graphs: &[String],
        token: &str,
        again: bool,
    ) -> Result<std::result::Result<Claimed, Option<Micros>>> {
        let taken = || {
            let sql = "SELECT r.body FROM server_queue q JOIN server_runs r USING (run_id)
                WHERE q.worker = $1 AND q.token = $2";
            Sql::new(sql).text(&*self.worker).text(token)
        };
        if again && let Some(run) = first::<Run>(&self.tables.read(&taken()).await?)? {
            return Ok(Ok(Claimed { run, again: true, more: true }));
        }
        let ready = "worker IS NULL AND due_at <= $1 AND graph_id = ANY($2)";
        let take = format!(
            "UPDATE server_queue SET worker = $3, token = $4 WHERE thread_id = (
                SELECT thread_id FROM server_queue WHERE {ready}
                ORDER BY due_at, n LIMIT 1 FOR UPDATE SKIP LOCKED)"
        );
        let more = format!("SELECT FROM server_queue WHERE {ready} LIMIT 1");
        let next = "SELECT min(due_at) FROM server_queue
            WHERE worker IS NULL AND due_at > $1 AND graph_id = ANY($2)";
        let known = |text: &str| Sql::new(text).int(now.0).texts(graphs.to_vec());
        let take = known(&take).text(&*self.worker).text(token);
        let sql = [take, taken(), known(&more), known(next)];
        let (transaction, rows) = self.tables.begin(&sql).await?;
        let [_, taken, more, next] = &*rows else {
            return Err(Error::invalid("PostgreSQL answered less than was asked").into());
        };
        let Some(run) = first::<Run>(taken)? else {
            transaction.commit(&[]).await?;
            let next: Option<i64> = next.first().map_or(Ok(None), |row| column(row, 0))?;
            // One that is being claimed by somebody else is no reason to come back at once.
            return Ok(Err(next.map(Micros)));
        };
        let claimed = rules::claim(run, &self.worker, !more.is_empty(), now);
        transaction.commit(&[put_run(&claimed.run)?]).await?;
        Ok(Ok(claimed))
    }

    pub(super) async fn finish_run(
        &self,
        run: &Run,
        end: Ended,
        told: &[Stored],
        again: bool,
    ) -> Result<bool> {
        let rule = |rows, _: &[Vec<Row>]| {
            let now = Micros::now();
            let (current, changes) = rules::finish(rows, &run.run_id, run.epoch, end, now);
            let told = match current && changes.delete_thread.is_none() {
                true => Self::append_to_session(&run.thread_id, told, now)?,
                false => Vec::new(),
            };
            Ok((current, changes, told))
        };
        let need = Need::Some(vec![run.run_id.clone()]);
        let current = self.with_thread(&run.thread_id, need, Vec::new(), rule).await?;
        if current || !again {
            return Ok(current);
        }
        // The answer to the first attempt may have been lost.
        let stored = self.run_by_id(&run.run_id).await?;
        Ok(stored.is_some_and(|stored| stored.epoch == run.epoch && stored.status.is_over()))
    }

    pub(super) async fn run_by_id(&self, run: &str) -> Result<Option<Run>> {
        let sql = Sql::new("SELECT body FROM server_runs WHERE run_id = $1").text(run);
        first(&self.tables.read(&sql).await?)
    }

    pub(super) async fn delete_one_run(&self, thread: &str, id: &str) -> Result<Option<Run>> {
        let sql = "SELECT body FROM server_runs WHERE thread_id = $1 AND run_id = $2";
        let wanted = vec![Sql::new(sql).text(thread).text(id)];
        let rule = |rows, also: &[Vec<Row>]| {
            let run = also.first().and_then(|rows| rows.first()).map(object::<Run>).transpose()?;
            let changes = run.as_ref().map(|run| rules::delete_run(rows, run, Micros::now()));
            Ok((run, changes.unwrap_or_default(), Vec::new()))
        };
        self.with_thread(thread, Need::Some(vec![id.to_owned()]), wanted, rule).await
    }

    pub(super) async fn delete_whole_thread(&self, thread: &str) -> Result<Option<Vec<Run>>> {
        let rule = |rows: ThreadRows, _: &[Vec<Row>]| {
            let was_there = rows.thread.is_some();
            let changes = Changes { delete_thread: Some(thread.to_owned()), ..Changes::default() };
            Ok((was_there.then_some(rows.open), changes, Vec::new()))
        };
        self.with_thread(thread, Need::All, Vec::new(), rule).await
    }

    /// Each thread is a transaction of its own, so that many of them do not hold up everybody.
    pub(super) async fn cancel_runs(&self, which: &Which, action: Cancel) -> Result<Cancelled> {
        let threads = match which {
            Which::Runs { thread, .. } => vec![thread.clone()],
            Which::Status { of, .. } => self.threads_with(of).await?,
        };
        let mut cancelled = Cancelled::default();
        for thread in threads {
            let need = match which {
                Which::Runs { runs, .. } => Need::Some(runs.clone()),
                Which::Status { .. } => Need::All,
            };
            let rule = |rows, _: &[Vec<Row>]| {
                let is_meant = |run: &Run| which.includes(run);
                let (cancelled, changes) = rules::cancel(rows, is_meant, action, Micros::now());
                Ok((cancelled, changes, Vec::new()))
            };
            cancelled.extend(self.with_thread(&thread, need, Vec::new(), rule).await?);
        }
        Ok(cancelled)
    }

    async fn threads_with(&self, wanted: &[RunStatus]) -> Result<Vec<String>> {
        let sql = "SELECT DISTINCT thread_id FROM server_runs
            WHERE status IN ('pending', 'running') AND status = ANY($1)";
        let wanted = wanted.iter().map(|status| status.as_str().to_owned()).collect();
        let rows = self.tables.read(&Sql::new(sql).texts(wanted)).await?;
        rows.iter().map(|row| column(row, 0)).collect()
    }

    pub(super) async fn count_open(&self) -> Result<(u64, u64)> {
        let sql = "SELECT count(*) FILTER (WHERE status = 'pending'), count(*) FILTER (WHERE status = 'running')
            FROM server_runs WHERE status IN ('pending', 'running')";
        let rows = self.tables.read(&Sql::new(sql)).await?;
        rows.first().map_or(Ok((0, 0)), |row| Ok((number(row, 0)?, number(row, 1)?)))
    }

    /// Takes back the runs of processes that have not been heard of, and returns how many there were.
    pub(super) async fn take_back_runs(&self, attempts_max: u32) -> Result<usize> {
        let is_dead = "q.worker IS NOT NULL AND NOT EXISTS (SELECT FROM server_workers w
            WHERE w.worker_id = q.worker AND w.expires_at >= clock_timestamp())";
        let sql = format!("SELECT q.thread_id FROM server_queue q WHERE {is_dead} LIMIT 1000");
        let left = self.tables.read(&Sql::new(sql)).await?;
        let mut count = 0_usize;
        for row in &left {
            let thread: String = column(row, 0)?;
            let sql =
                format!("SELECT q.worker FROM server_queue q WHERE thread_id = $1 AND {is_dead}");
            let dead = vec![Sql::new(sql).text(&thread)];
            let rule = |rows, also: &[Vec<Row>]| {
                // It may have been heard of meanwhile, or somebody else was quicker.
                let dead = also.first().and_then(|rows| rows.first());
                let dead: Option<String> = dead.map(|row| column(row, 0)).transpose()?;
                let is_dead = |run: &Run| dead.is_some() && run.worker == dead;
                let (count, changes) = rules::recover(rows, is_dead, attempts_max, Micros::now());
                Ok((count, changes, Vec::new()))
            };
            let taken = self.with_thread(&thread, Need::Some(Vec::new()), dead, rule).await?;
            count = count.saturating_add(taken);
        }
        Ok(count)
    }
}
