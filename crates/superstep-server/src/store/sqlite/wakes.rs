use rusqlite::{Connection, params};

use super::{Result, SqliteStore, failed, runs};
use crate::store::wakes::{DueThread, Wakes, Woken};
use crate::store::{Answer, rules};
use crate::time::Micros;

/// The time is in the body of the thread; the index has only threads that are to be woken.
pub(super) const SCHEMA: &str = "
CREATE INDEX IF NOT EXISTS server_threads_due ON server_threads (json_extract(body, '$.wake.due'))
    WHERE json_extract(body, '$.wake.due') IS NOT NULL;
";

const DUE: &str = "SELECT thread_id, json_extract(body, '$.wake.due') FROM server_threads
    WHERE json_extract(body, '$.wake.due') <= ? AND status <> 'busy'
    ORDER BY json_extract(body, '$.wake.due') LIMIT ?";

const NEXT: &str = "SELECT min(json_extract(body, '$.wake.due')) FROM server_threads
    WHERE json_extract(body, '$.wake.due') > ?";

fn due(
    connection: &Connection,
    now: Micros,
    limit: usize,
) -> Result<(Vec<DueThread>, Option<Micros>)> {
    let limit = i64::try_from(limit).map_err(failed)?;
    let mut statement = connection.prepare_cached(DUE)?;
    let found = statement.query_map(params![now.0, limit], |row| {
        Ok(DueThread { thread_id: row.get(0)?, due: Micros(row.get(1)?) })
    })?;
    let found = found.collect::<rusqlite::Result<_>>()?;
    let next: Option<i64> =
        connection.prepare_cached(NEXT)?.query_row([now.0], |row| row.get(0))?;
    Ok((found, next.map(Micros)))
}

fn fire(
    connection: &Connection,
    seen: &DueThread,
    run: (String, &str),
    pending_max: usize,
) -> Result<Woken> {
    let (pending, _) = runs::load(connection)?;
    let rows = runs::load_thread(connection, &seen.thread_id)?;
    let room = (pending, pending_max);
    let (woken, changes) = rules::wake(rows, seen, run, room, Micros::now());
    runs::apply(connection, &changes)?;
    Ok(woken)
}

impl Wakes for SqliteStore {
    fn due_threads(
        &self,
        now: Micros,
        limit: usize,
    ) -> Answer<'_, (Vec<DueThread>, Option<Micros>)> {
        self.call(move |connection| due(connection, now, limit))
    }

    fn fire_wake(&self, seen: DueThread, run: String, pending_max: usize) -> Answer<'_, Woken> {
        let process = self.process.clone();
        self.call(move |connection| fire(connection, &seen, (run, &process.name), pending_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads that sleep cost nothing but their rows.
    #[test]
    fn due_threads_are_found_by_their_index() {
        let connection = super::super::connect(None).expect("a database");
        for sql in [DUE, NEXT] {
            let params = vec!["1"; sql.matches('?').count()];
            let mut statement =
                connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("SQL");
            let steps = statement
                .query_map(rusqlite::params_from_iter(params), |row| row.get::<_, String>(3))
                .expect("a plan");
            let plan: Vec<String> = steps.collect::<rusqlite::Result<_>>().expect("texts");
            assert!(plan.len() == 1 && plan[0].contains("server_threads_due"), "{plan:?}");
        }
    }
}
