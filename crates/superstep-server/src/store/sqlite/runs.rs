use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;

use super::{Result, row, text, threads};
use crate::store::records::ThreadEnd;
use crate::store::{
    Admission, Admitted, Cancel, Cancelled, Claimed, Ended, Multitask, Run, RunStatus, Thread,
    ThreadStatus, Which,
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

pub(super) fn admit(connection: &Connection, admission: Admission) -> Result<Admitted> {
    let Admission { mut run, new_thread, thread_metadata, thread_config, pending_max } = admission;
    let (pending, _) = load(connection)?;
    if pending >= pending_max as u64 {
        return Ok(Admitted::Full);
    }
    let known = threads::find(connection, &run.thread_id)?;
    let Some(mut thread) = known.or(new_thread) else { return Ok(Admitted::NoThread) };
    let open = open_of(connection, &run.thread_id)?;
    let action = match run.multitask {
        Multitask::Reject if !open.is_empty() => return Ok(Admitted::Busy),
        Multitask::Reject | Multitask::Enqueue => None,
        Multitask::Interrupt => Some(Cancel::Interrupt),
        Multitask::Rollback => Some(Cancel::Rollback),
    };
    let (mut stop, mut dropped) = (Vec::new(), Vec::new());
    if let Some(action) = action {
        for open in open {
            let id = open.run_id.clone();
            match cancel_one(connection, open, action)? {
                Some(running) => stop.push((running, action)),
                None => dropped.push(id),
            }
        }
    }
    let now = Micros::now();
    run.adopt(&thread);
    thread.metadata.extend(thread_metadata);
    thread.config = thread_config;
    thread.status = ThreadStatus::Busy;
    thread.updated_at = now;
    threads::put(connection, &thread)?;
    put(connection, &run)?;
    Ok(Admitted::Stored { run: Box::new(run), stop, dropped })
}

/// Cancels a run that waits, or marks one that runs. Returns the latter.
fn cancel_one(connection: &Connection, mut run: Run, action: Cancel) -> Result<Option<String>> {
    run.updated_at = Micros::now();
    match (run.status, action) {
        (RunStatus::Running, _) => {
            run.cancel = Some(action);
            put(connection, &run)?;
            Ok(Some(run.run_id))
        }
        (_, Cancel::Rollback) => remove(connection, &run.run_id).map(|()| None),
        (_, Cancel::Interrupt) => {
            run.status = RunStatus::Interrupted;
            run.result = Some(json!({}));
            put(connection, &run)?;
            Ok(None)
        }
    }
}

pub(super) fn claim(
    connection: &Connection,
    now: Micros,
) -> Result<std::result::Result<Claimed, Option<Micros>>> {
    let sql = "SELECT body FROM server_runs AS run WHERE status = 'pending' AND created_at <= ?
        AND NOT EXISTS (SELECT 1 FROM server_runs AS other
            WHERE other.thread_id = run.thread_id AND other.status = 'running')
        ORDER BY created_at, rowid LIMIT 2";
    let mut ready = many(connection, sql, [now.0])?.into_iter();
    let Some(mut run) = ready.next() else {
        let sql =
            "SELECT min(created_at) FROM server_runs WHERE status = 'pending' AND created_at > ?";
        let next: Option<i64> = connection
            .prepare_cached(sql)?
            .query_row([now.0], |row| row.get(0))
            .optional()?
            .flatten();
        return Ok(Err(next.map(Micros)));
    };
    let again = std::mem::replace(&mut run.begun, true);
    run.status = RunStatus::Running;
    run.attempt += 1;
    run.updated_at = now;
    put(connection, &run)?;
    Ok(Ok(Claimed { run, again, more: ready.next().is_some() }))
}

pub(super) fn finish(connection: &Connection, id: &str, attempt: u32, end: Ended) -> Result<bool> {
    let Some(mut run) = find(connection, id)? else { return Ok(false) };
    if run.status != RunStatus::Running || run.attempt != attempt {
        return Ok(false);
    }
    run.updated_at = Micros::now();
    match end {
        Ended::PutBack => {
            run.status = RunStatus::Pending;
            run.attempt -= 1;
            put(connection, &run)?;
        }
        Ended::Over { status, result, thread } => {
            run.status = status;
            run.result = Some(result);
            put(connection, &run)?;
            settle(connection, &run.thread_id, Some(*thread))?;
        }
        Ended::Deleted { thread_too: true, .. } => {
            threads::delete(connection, &run.thread_id)?;
        }
        Ended::Deleted { thread_too: false, thread, .. } => {
            remove(connection, id)?;
            settle(connection, &run.thread_id, thread.map(|thread| *thread))?;
        }
    }
    Ok(true)
}

/// What a thread is after a run of it was taken away.
fn settle(connection: &Connection, id: &str, end: Option<ThreadEnd>) -> Result<()> {
    let Some(mut thread) = threads::find(connection, id)? else { return Ok(()) };
    let now = Micros::now();
    thread.updated_at = now;
    let status = match end {
        Some(ThreadEnd { status, values, interrupts, error }) => {
            if let Some(values) = values {
                thread.values = values;
            }
            thread.interrupts = interrupts;
            thread.error = error;
            thread.state_updated_at = now;
            status
        }
        None => resting(&thread),
    };
    let busy = !open_of(connection, id)?.is_empty();
    thread.status = if busy { ThreadStatus::Busy } else { status };
    threads::put(connection, &thread)
}

/// What a thread is if no run of it is in progress, from what is known of it.
fn resting(thread: &Thread) -> ThreadStatus {
    if !thread.interrupts.is_empty() {
        ThreadStatus::Interrupted
    } else if !thread.error.is_null() {
        ThreadStatus::Error
    } else {
        ThreadStatus::Idle
    }
}

pub(super) fn recover(connection: &Connection, attempts_max: u32) -> Result<usize> {
    let sql = "SELECT body FROM server_runs WHERE status = 'running'";
    let left = many(connection, sql, [])?;
    let count = left.len();
    for mut run in left {
        run.updated_at = Micros::now();
        if run.attempt < attempts_max {
            run.status = RunStatus::Pending;
            put(connection, &run)?;
            continue;
        }
        let message =
            format!("the run was begun {} times, and its process died each time", run.attempt);
        let error = json!({ "error": "WorkerDied", "message": message });
        run.status = RunStatus::Error;
        run.result = Some(json!({ "__error__": error }));
        put(connection, &run)?;
        let Some(thread) = threads::find(connection, &run.thread_id)? else { continue };
        let status = ThreadStatus::Error;
        let end = ThreadEnd { status, values: None, interrupts: thread.interrupts, error };
        settle(connection, &run.thread_id, Some(end))?;
    }
    Ok(count)
}

pub(super) fn delete(connection: &Connection, thread: &str, id: &str) -> Result<Option<Run>> {
    let Some(run) = find(connection, id)?.filter(|run| run.thread_id == thread) else {
        return Ok(None);
    };
    if run.status == RunStatus::Running {
        cancel_one(connection, run.clone(), Cancel::Rollback)?;
    } else {
        remove(connection, id)?;
        if run.status == RunStatus::Pending {
            settle(connection, thread, None)?;
        }
    }
    Ok(Some(run))
}

pub(super) fn cancel(connection: &Connection, which: Which, action: Cancel) -> Result<Cancelled> {
    let open = match which {
        Which::Runs { thread, runs } => {
            let mut open = open_of(connection, &thread)?;
            open.retain(|run| runs.contains(&run.run_id));
            open
        }
        Which::Status(wanted) => {
            let sql = "SELECT body FROM server_runs WHERE status IN ('pending', 'running')";
            let mut open = many(connection, sql, [])?;
            open.retain(|run| wanted.contains(&run.status));
            open
        }
    };
    let mut cancelled = Cancelled::default();
    for run in open {
        let (id, thread) = (run.run_id.clone(), run.thread_id.clone());
        match cancel_one(connection, run, action)? {
            Some(running) => cancelled.running.push(running),
            None => {
                cancelled.pending.push(id);
                settle(connection, &thread, None)?;
            }
        }
    }
    Ok(cancelled)
}

pub(super) fn load(connection: &Connection) -> Result<(u64, u64)> {
    let sql = "SELECT coalesce(sum(status = 'pending'), 0), coalesce(sum(status = 'running'), 0)
        FROM server_runs WHERE status IN ('pending', 'running')";
    let mut statement = connection.prepare_cached(sql)?;
    let (pending, running): (i64, i64) =
        statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok((u64::try_from(pending).unwrap_or(0), u64::try_from(running).unwrap_or(0)))
}
