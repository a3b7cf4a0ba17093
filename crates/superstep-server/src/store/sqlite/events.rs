use rusqlite::{Connection, params};

use super::{Result, bound, failed, whole};
use crate::store::Stored;
use crate::time::Micros;

pub(super) fn append(connection: &Connection, run: &str, new: &[Stored]) -> Result<()> {
    // A batch whose answer was lost is sent again.
    let sql = "INSERT OR IGNORE INTO server_events (run_id, seq, event, data) VALUES (?, ?, ?, ?)";
    let mut statement = connection.prepare_cached(sql)?;
    for event in new {
        let seq = i64::try_from(event.seq).map_err(failed)?;
        statement.execute(params![run, seq, event.event, event.data])?;
    }
    Ok(())
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
