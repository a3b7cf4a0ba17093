use rusqlite::{Connection, params};

use super::{Result, answers, failed, idempotency, row, sessions, text, threads, webhooks};
use crate::store::rules::{self, Changes, ThreadRows};
use crate::store::{
    Admission, Admitted, Cancel, Cancelled, Claimed, Ended, Run, RunStatus, Stored, Which,
};
use crate::time::Micros;

pub(super) fn find(connection: &Connection, id: &str) -> Result<Option<Run>> {
    row(connection, "SELECT body FROM server_runs WHERE run_id = ?", id)
}

fn put(connection: &Connection, run: &Run) -> Result<()> {
    let sql = "INSERT INTO server_runs (run_id, thread_id, status, created_at, updated_at, body)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT (run_id) DO UPDATE SET status = ?3, updated_at = ?5, body = ?6";
    connection.prepare_cached(sql)?.execute(params![
        run.run_id,
        run.thread_id,
        run.status.as_str(),
        run.created_at.0,
        run.updated_at.0,
        text(run)?,
    ])?;
    Ok(())
}

fn remove(connection: &Connection, run: &str) -> Result<()> {
    connection.prepare_cached("DELETE FROM server_events WHERE run_id = ?")?.execute([run])?;
    connection.prepare_cached("DELETE FROM server_runs WHERE run_id = ?")?.execute([run])?;
    Ok(())
}

fn many(connection: &Connection, sql: &str, values: impl rusqlite::Params) -> Result<Vec<Run>> {
    let mut statement = connection.prepare_cached(sql)?;
    let bodies = statement.query_map(values, |row| row.get::<_, String>(0))?;
    let mut runs = Vec::new();
    for body in bodies {
        runs.push(serde_json::from_str(&body?)?);
    }
    Ok(runs)
}

/// The runs of a thread that are pending or running.
pub(super) fn open_of(connection: &Connection, thread: &str) -> Result<Vec<Run>> {
    let sql =
        "SELECT body FROM server_runs WHERE thread_id = ? AND status IN ('pending', 'running')
        ORDER BY created_at, rowid";
    many(connection, sql, [thread])
}

pub(super) fn load_thread(connection: &Connection, id: &str) -> Result<ThreadRows> {
    let (thread, open) = (threads::find(connection, id)?, open_of(connection, id)?);
    Ok(ThreadRows { thread, open })
}

pub(super) fn apply(connection: &Connection, changes: &Changes) -> Result<()> {
    if let Some(thread) = &changes.delete_thread {
        threads::delete(connection, thread)?;
    }
    changes.remove_runs.iter().try_for_each(|run| remove(connection, run))?;
    changes.put_thread.iter().try_for_each(|thread| threads::put(connection, thread))?;
    changes.put_runs.iter().try_for_each(|run| put(connection, run))?;
    changes.answers.iter().try_for_each(|answered| answers::put(connection, answered))?;
    let mut results = changes.results.iter();
    results.try_for_each(|(key, result)| idempotency::put_result(connection, key, result))?;
    let mut ended = changes.webhooks.iter();
    ended.try_for_each(|webhook| webhooks::put(connection, webhook, Some(webhook.ended_at)))
}

pub(super) fn admit(connection: &Connection, admission: Admission) -> Result<Admitted> {
    let (pending, _) = load(connection)?;
    let rows = load_thread(connection, &admission.run.thread_id)?;
    let (admitted, changes) = rules::admit(rows, admission, pending, Micros::now());
    apply(connection, &changes)?;
    Ok(admitted)
}

pub(super) fn claim(
    connection: &Connection,
    worker: &str,
    now: Micros,
    graphs: &[String],
) -> Result<std::result::Result<Claimed, Option<Micros>>> {
    let sql = "SELECT body FROM server_runs AS run WHERE status = 'pending' AND created_at <= ?1
        AND json_extract(body, '$.graph_id') IN (SELECT value FROM json_each(?2))
        AND NOT EXISTS (SELECT 1 FROM server_runs AS other
            WHERE other.thread_id = run.thread_id AND other.status = 'running')
        ORDER BY created_at, rowid LIMIT 2";
    let graphs = text(&graphs)?;
    let mut ready = many(connection, sql, params![now.0, graphs])?.into_iter();
    let Some(run) = ready.next() else {
        let sql =
            "SELECT min(created_at) FROM server_runs WHERE status = 'pending' AND created_at > ?1
                AND json_extract(body, '$.graph_id') IN (SELECT value FROM json_each(?2))";
        let next: Option<i64> =
            connection.prepare_cached(sql)?.query_row(params![now.0, graphs], |row| row.get(0))?;
        return Ok(Err(next.map(Micros)));
    };
    let claimed = rules::claim(run, worker, ready.next().is_some(), now);
    put(connection, &claimed.run)?;
    Ok(Ok(claimed))
}

pub(super) fn finish(
    connection: &Connection,
    run: &Run,
    end: Ended,
    told: &[Stored],
) -> Result<bool> {
    let rows = load_thread(connection, &run.thread_id)?;
    let (current, changes) = rules::finish(rows, &run.run_id, run.epoch, end, Micros::now());
    apply(connection, &changes)?;
    if current && changes.delete_thread.is_none() {
        sessions::append(connection, &run.thread_id, told, Micros::now())?;
    }
    Ok(current)
}

/// Takes back the runs of processes that are dead.
pub(super) fn recover(
    connection: &Connection,
    is_dead: impl Fn(&str) -> bool,
    attempts_max: u32,
) -> Result<usize> {
    let mut count = 0_usize;
    for thread in threads_with(connection, &[RunStatus::Running])? {
        let rows = load_thread(connection, &thread)?;
        // One without a name is of a version that had the file to itself.
        let is_dead = |run: &Run| run.worker.as_deref().is_none_or(&is_dead);
        let (left, changes) = rules::recover(rows, is_dead, attempts_max, Micros::now());
        apply(connection, &changes)?;
        count = count.saturating_add(left);
    }
    Ok(count)
}

pub(super) fn delete(connection: &Connection, thread: &str, id: &str) -> Result<Option<Run>> {
    let Some(run) = find(connection, id)?.filter(|run| run.thread_id == thread) else {
        return Ok(None);
    };
    let rows = load_thread(connection, thread)?;
    apply(connection, &rules::delete_run(rows, &run, Micros::now()))?;
    Ok(Some(run))
}

pub(super) fn cancel(connection: &Connection, which: &Which, action: Cancel) -> Result<Cancelled> {
    let threads = match which {
        Which::Runs { thread, .. } => vec![thread.clone()],
        Which::Status { of, .. } => threads_with(connection, of)?,
    };
    let mut cancelled = Cancelled::default();
    for thread in threads {
        let rows = load_thread(connection, &thread)?;
        let (of_thread, changes) =
            rules::cancel(rows, |run| which.includes(run), action, Micros::now());
        apply(connection, &changes)?;
        cancelled.extend(of_thread);
    }
    Ok(cancelled)
}

/// The threads that have runs with one of these states, of the runs that are not over.
fn threads_with(connection: &Connection, wanted: &[RunStatus]) -> Result<Vec<String>> {
    let sql = "SELECT DISTINCT thread_id FROM server_runs
        WHERE status IN ('pending', 'running') AND instr(?, status) > 0";
    let wanted: Vec<_> = wanted.iter().map(|status| status.as_str()).collect();
    let mut statement = connection.prepare_cached(sql)?;
    let threads = statement.query_map([wanted.join(" ")], |row| row.get(0))?;
    Ok(threads.collect::<std::result::Result<_, _>>()?)
}

pub(super) fn load(connection: &Connection) -> Result<(u64, u64)> {
    let sql = "SELECT coalesce(sum(status = 'pending'), 0), coalesce(sum(status = 'running'), 0)
        FROM server_runs WHERE status IN ('pending', 'running')";
    let mut statement = connection.prepare_cached(sql)?;
    let (pending, running): (i64, i64) =
        statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok((u64::try_from(pending).map_err(failed)?, u64::try_from(running).map_err(failed)?))
}
