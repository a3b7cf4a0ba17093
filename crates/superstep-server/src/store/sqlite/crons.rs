use rusqlite::{Connection, OptionalExtension as _, params};

use super::{Result, SqliteStore, failed, list, row, runs, text};
use crate::store::crons::{Cron, Crons, Fired, Firing};
use crate::store::{Admitted, Answer, ListQuery, Page};
use crate::time::Micros;

const TABLE: &str = "server_crons";

pub(super) const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS server_crons (
    cron_id TEXT PRIMARY KEY, assistant_id TEXT NOT NULL, thread_id TEXT, enabled TEXT NOT NULL,
    next_run_date INTEGER, end_time INTEGER, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS server_crons_due ON server_crons (next_run_date)
    WHERE next_run_date IS NOT NULL;
";

fn find(connection: &Connection, id: &str) -> Result<Option<Cron>> {
    row(connection, "SELECT body FROM server_crons WHERE cron_id = ?", id)
}

pub(super) fn put(connection: &Connection, cron: &Cron) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO server_crons (cron_id, assistant_id, thread_id, enabled,
        next_run_date, end_time, created_at, updated_at, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    connection.prepare_cached(sql)?.execute(params![
        cron.cron_id,
        cron.assistant_id,
        cron.thread_id,
        cron.enabled.to_string(),
        cron.next_run_date.map(|at| at.0),
        cron.end_time.map(|at| at.0),
        cron.created_at.0,
        cron.updated_at.0,
        text(cron)?,
    ])?;
    Ok(())
}

fn due(connection: &Connection, now: Micros, limit: usize) -> Result<(Vec<Cron>, Option<Micros>)> {
    let sql =
        "SELECT body FROM server_crons WHERE next_run_date <= ? ORDER BY next_run_date LIMIT ?";
    let mut statement = connection.prepare_cached(sql)?;
    let limit = i64::try_from(limit).map_err(failed)?;
    let bodies = statement.query_map(params![now.0, limit], |row| row.get::<_, String>(0))?;
    let mut found = Vec::new();
    for body in bodies {
        found.push(serde_json::from_str(&body?)?);
    }
    let sql = "SELECT min(next_run_date) FROM server_crons WHERE next_run_date IS NOT NULL";
    let next: Option<i64> =
        connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?.flatten();
    Ok((found, next.map(Micros)))
}

fn fire(connection: &Connection, firing: Firing) -> Result<Fired> {
    let Some(mut cron) = find(connection, &firing.cron_id)? else { return Ok(Fired::Elsewhere) };
    if cron.next_run_date != Some(firing.due) || !cron.enabled {
        return Ok(Fired::Elsewhere);
    }
    let fired = match firing.run {
        None => Fired::Skipped,
        Some(admission) => {
            let admitted = runs::admit(connection, *admission)?;
            // It stays due, and is fired when there is room.
            if matches!(admitted, Admitted::Full) {
                return Ok(Fired::Admitted(admitted));
            }
            Fired::Admitted(admitted)
        }
    };
    cron.next_run_date = firing.next;
    put(connection, &cron)?;
    Ok(fired)
}

/// Deletes the crons of a thread.
pub(super) fn delete_of_thread(connection: &Connection, thread: &str) -> Result<()> {
    let sql = "DELETE FROM server_crons WHERE thread_id = ?";
    connection.prepare_cached(sql)?.execute([thread])?;
    Ok(())
}

/// Deletes the crons of an assistant.
pub(super) fn delete_of_assistant(connection: &Connection, assistant: &str) -> Result<()> {
    let sql = "DELETE FROM server_crons WHERE assistant_id = ?";
    connection.prepare_cached(sql)?.execute([assistant])?;
    Ok(())
}

impl Crons for SqliteStore {
    fn cron(&self, id: &str) -> Answer<'_, Option<Cron>> {
        let id = id.to_owned();
        self.call(move |connection| find(connection, &id))
    }

    fn update_cron(
        &self,
        id: &str,
        change: Box<dyn FnOnce(&mut Cron) + Send>,
    ) -> Answer<'_, Option<Cron>> {
        let id = id.to_owned();
        self.call(move |connection| {
            let Some(mut cron) = find(connection, &id)? else { return Ok(None) };
            change(&mut cron);
            put(connection, &cron)?;
            Ok(Some(cron))
        })
    }

    fn delete_cron(&self, id: &str) -> Answer<'_, bool> {
        let id = id.to_owned();
        let sql = "DELETE FROM server_crons WHERE cron_id = ?";
        self.call(move |connection| Ok(connection.execute(sql, [id])? > 0))
    }

    fn crons(&self, query: ListQuery) -> Answer<'_, Page<Cron>> {
        self.call(move |connection| list::page(connection, TABLE, &query))
    }

    fn count_crons(&self, query: ListQuery) -> Answer<'_, u64> {
        self.call(move |connection| list::count(connection, TABLE, &query))
    }

    fn due_crons(&self, now: Micros, limit: usize) -> Answer<'_, (Vec<Cron>, Option<Micros>)> {
        self.call(move |connection| due(connection, now, limit))
    }

    fn fire_cron(&self, firing: Firing) -> Answer<'_, Fired> {
        self.call(move |connection| fire(connection, firing))
    }
}
