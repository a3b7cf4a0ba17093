use rusqlite::{Connection, params};

use super::{Result, bound, failed, whole};
use crate::store::{RunStatus, Stored};
use crate::time::Micros;

pub(super) fn append(
    connection: &Connection,
    run: &str,
    epoch: Option<u64>,
    new: &[Stored],
) -> Result<bool> {
    let current =
        super::runs::find(connection, run)?.filter(|run| run.status == RunStatus::Running);
    if epoch.is_some() && current.map(|run| run.epoch) != epoch {
        return Ok(false);
    }
    // A batch whose answer was lost is sent again.
    let sql = "INSERT OR IGNORE INTO server_events (run_id, seq, event, data) VALUES (?, ?, ?, ?)";
    let mut statement = connection.prepare_cached(sql)?;
    for event in new {
        let seq = i64::try_from(event.seq).map_err(failed)?;
        statement.execute(params![run, seq, event.event, event.data])?;
    }
    Ok(true)
}

pub(super) fn last(connection: &Connection, run: &str) -> Result<u64> {
    let sql = "SELECT coalesce(max(seq), 0) FROM server_events WHERE run_id = ?";
    let last: i64 = connection.prepare_cached(sql)?.query_row([run], |row| row.get(0))?;
    u64::try_from(last).map_err(failed)
}

pub(super) fn after(
    connection: &Connection,
    run: &str,
    after: u64,
    limit: usize,
) -> Result<Vec<Stored>> {
    let sql = "SELECT seq, event, data FROM server_events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?";
    read(connection, sql, run, after, limit)
}

/// Reads events of the log with this id. A number that SQLite cannot hold is after all events.
pub(super) fn read(
    connection: &Connection,
    sql: &str,
    log: &str,
    after: u64,
    limit: usize,
) -> Result<Vec<Stored>> {
    let values = params![log, bound(after), bound(limit)];
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(values, |row| {
        let seq: i64 = row.get(0)?;
        Ok(Stored { seq: whole(seq)?, event: row.get(1)?, data: row.get(2)? })
    })?;
    Ok(rows.collect::<std::result::Result<_, _>>()?)
}

pub(super) fn forget(connection: &Connection, before: Micros) -> Result<usize> {
    let sql = "DELETE FROM server_events WHERE run_id NOT IN (SELECT run_id FROM server_runs
        WHERE updated_at >= ? OR status IN ('pending', 'running'))";
    Ok(connection.execute(sql, [before.0])?)
}
