use rusqlite::{Connection, params};
use serde::de::DeserializeOwned;

use super::{Result, SqliteStore, failed, text};
use crate::store::{Answer, Answered, Answers, InboxPlace, Thread};

pub(super) const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS server_answers (
    thread_id TEXT NOT NULL, at INTEGER NOT NULL, run_id TEXT NOT NULL, interrupt_id TEXT NOT NULL,
    body TEXT NOT NULL, PRIMARY KEY (thread_id, at, run_id, interrupt_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS server_threads_waiting ON server_threads (tenant, state_updated_at, thread_id)
    WHERE status IN ('interrupted', 'error');
";

pub(super) fn put(connection: &Connection, answered: &Answered) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO server_answers (thread_id, at, run_id, interrupt_id, body)
        VALUES (?, ?, ?, ?, ?)";
    let Answered { thread_id, at, run_id, interrupt_id, .. } = answered;
    let values = params![thread_id, at.0, run_id, interrupt_id, text(answered)?];
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

pub(super) fn delete_of_thread(connection: &Connection, thread: &str) -> Result<()> {
    connection
        .prepare_cached("DELETE FROM server_answers WHERE thread_id = ?")?
        .execute([thread])?;
    Ok(())
}

fn bodies<T: DeserializeOwned>(
    connection: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(values)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(serde_json::from_str(row.get_ref(0)?.as_str().map_err(failed)?)?);
    }
    Ok(found)
}

impl Answers for SqliteStore {
    fn waiting_threads(
        &self,
        tenant: &str,
        after: Option<InboxPlace>,
        limit: usize,
    ) -> Answer<'_, Vec<Thread>> {
        let tenant = tenant.to_owned();
        self.call(move |connection| {
            let limit = i64::try_from(limit).map_err(failed)?;
            let (at, thread) = after.map_or((i64::MIN, String::new()), |place| {
                (place.state_updated_at.0, place.thread_id)
            });
            let sql = "SELECT body FROM server_threads WHERE status IN ('interrupted', 'error') AND tenant = ?
                AND json_extract(body, '$.interrupts') <> '{}' AND (state_updated_at, thread_id) > (?, ?)
                ORDER BY state_updated_at, thread_id LIMIT ?";
            bodies(connection, sql, params![tenant, at, thread, limit])
        })
    }

    fn answers(&self, thread: &str, limit: usize) -> Answer<'_, Vec<Answered>> {
        let thread = thread.to_owned();
        self.call(move |connection| {
            let limit = i64::try_from(limit).map_err(failed)?;
            let sql = "SELECT body FROM server_answers WHERE thread_id = ?
                ORDER BY at DESC, run_id DESC, interrupt_id LIMIT ?";
            bodies(connection, sql, params![thread, limit])
        })
    }
}
