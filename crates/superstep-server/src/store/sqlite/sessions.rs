use rusqlite::{Connection, OptionalExtension as _, params};

use super::{Result, SqliteStore, failed};
use crate::store::sessions::{SESSION_EVENTS_MAX, SessionLog};
use crate::store::{Answer, Stored};
use crate::time::Micros;

pub(super) const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS server_sessions (
    thread_id TEXT PRIMARY KEY, last INTEGER NOT NULL, updated_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS server_session_events (
    thread_id TEXT NOT NULL, seq INTEGER NOT NULL, event TEXT NOT NULL, data TEXT NOT NULL,
    PRIMARY KEY (thread_id, seq)
) WITHOUT ROWID;
";

pub(super) fn append(
    connection: &Connection,
    thread: &str,
    new: &[Stored],
    now: Micros,
) -> Result<()> {
    let Some(last) = new.last().map(|event| event.seq) else { return Ok(()) };
    let sql = "INSERT OR IGNORE INTO server_session_events (thread_id, seq, event, data) VALUES (?, ?, ?, ?)";
    let mut statement = connection.prepare_cached(sql)?;
    for event in new {
        let seq = i64::try_from(event.seq).map_err(failed)?;
        statement.execute(params![thread, seq, event.event, event.data])?;
    }
    let number = i64::try_from(last).map_err(failed)?;
    let sql = "INSERT INTO server_sessions (thread_id, last, updated_at) VALUES (?1, ?2, ?3)
        ON CONFLICT (thread_id) DO UPDATE SET last = max(last, ?2), updated_at = ?3";
    connection.prepare_cached(sql)?.execute(params![thread, number, now.0])?;
    let oldest = i64::try_from(last.saturating_sub(SESSION_EVENTS_MAX)).map_err(failed)?;
    let sql = "DELETE FROM server_session_events WHERE thread_id = ? AND seq <= ?";
    connection.prepare_cached(sql)?.execute(params![thread, oldest])?;
    Ok(())
}

fn after(connection: &Connection, thread: &str, after: u64, limit: usize) -> Result<Vec<Stored>> {
    let sql = "SELECT seq, event, data FROM server_session_events
        WHERE thread_id = ? AND seq > ? ORDER BY seq LIMIT ?";
    super::events::read(connection, sql, thread, after, limit)
}

fn last(connection: &Connection, thread: &str) -> Result<u64> {
    let sql = "SELECT last FROM server_sessions WHERE thread_id = ?";
    let last: Option<i64> =
        connection.prepare_cached(sql)?.query_row([thread], |row| row.get(0)).optional()?;
    last.map_or(Ok(0), |last| u64::try_from(last).map_err(failed))
}

fn forget(connection: &Connection, before: Micros) -> Result<usize> {
    let sql = "DELETE FROM server_session_events WHERE thread_id IN
        (SELECT thread_id FROM server_sessions WHERE updated_at < ?)";
    Ok(connection.execute(sql, [before.0])?)
}

/// Deletes what is kept for a thread that is deleted.
pub(super) fn delete(connection: &Connection, thread: &str) -> Result<()> {
    for table in ["server_session_events", "server_sessions"] {
        let sql = format!("DELETE FROM {table} WHERE thread_id = ?");
        connection.prepare_cached(&sql)?.execute([thread])?;
    }
    Ok(())
}

impl SessionLog for SqliteStore {
    fn append_session(&self, thread: &str, events: Vec<Stored>) -> Answer<'_, ()> {
        let thread = thread.to_owned();
        self.call(move |connection| append(connection, &thread, &events, Micros::now()))
    }

    fn session_events(&self, thread: &str, from: u64, limit: usize) -> Answer<'_, Vec<Stored>> {
        let thread = thread.to_owned();
        self.call(move |connection| after(connection, &thread, from, limit))
    }

    fn session_last(&self, thread: &str) -> Answer<'_, u64> {
        let thread = thread.to_owned();
        self.call(move |connection| last(connection, &thread))
    }

    fn forget_sessions(&self, before: Micros) -> Answer<'_, usize> {
        self.call(move |connection| forget(connection, before))
    }
}
