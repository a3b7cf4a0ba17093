//! Alarms: the times at which to look at threads. They are writes, found by an index that has nothing else.

use std::sync::Arc;
use std::time::SystemTime;

use rusqlite::{Connection, params};
use superstep_checkpoint::{Alarm, AlarmPage, Blob, Error};

use crate::error::During;

/// The conditions of the index, word for word, with the id of `TaskId::ALARM`.
macro_rules! is_alarm {
    () => {
        "task_id = '73757065-7273-7465-702d-616c61726d73' AND checkpoint_ns = '' AND task_path <> ''"
    };
}

/// The path of an alarm is its time, so the index has them in the order of time.
pub(crate) const INDEX: &str = concat!(
    "CREATE INDEX IF NOT EXISTS superstep_alarms ON writes (task_path) WHERE ",
    is_alarm!()
);

const EARLIEST: &str = concat!(
    "SELECT thread_id, checkpoint_id, task_path, type, value FROM writes WHERE ",
    is_alarm!(),
    " ORDER BY task_path LIMIT ?1"
);

/// Turns on the alarm of the head, which may have been turned off when it was no longer the head.
const REARM: &str = "UPDATE writes SET task_path = ?2
    WHERE thread_id = ?1 AND checkpoint_ns = '' AND task_id = '73757065-7273-7465-702d-616c61726d73' AND task_path = ''
    AND checkpoint_id = (SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ?1 AND checkpoint_ns = '')";

pub(crate) fn page(db: &Connection, until: SystemTime, limit: usize) -> Result<AlarmPage, Error> {
    let what = "looking for alarms";
    #[expect(clippy::disallowed_methods, reason = "no table has more rows")]
    let count = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let mut statement = db.prepare_cached(EARLIEST).during(what)?;
    let mut rows = statement.query([count]).during(what)?;
    let mut first = Vec::new();
    while let Some(row) = rows.next().during(what)? {
        let (thread, id): (Arc<str>, String) = (row.get(0).during(what)?, row.get(1).during(what)?);
        let (path, tag): (String, String) = (row.get(2).during(what)?, row.get(3).during(what)?);
        let bytes: Option<Arc<[u8]>> = row.get(4).during(what)?;
        // What is no checkpoint or no time has not been written by us.
        let Ok(id) = id.parse() else { continue };
        let stored = Blob::new(tag.as_str().into(), bytes.unwrap_or_default());
        first.extend(Alarm::found(thread, id, &path, stored));
    }
    Ok(AlarmPage::new(first, until, limit))
}

pub(crate) fn rearm(db: &Connection, thread: &str) -> Result<(), Error> {
    let at = Alarm::path(SystemTime::UNIX_EPOCH);
    let rearm = || db.prepare_cached(REARM)?.execute(params![thread, at]);
    rearm().map(drop).during(format_args!("turning on the alarm of thread `{thread}`"))
}

#[cfg(test)]
mod tests {
    use superstep_checkpoint::TaskId;

    use super::*;
    use crate::options::SqliteOptions;
    use crate::schema;

    #[test]
    fn alarms_are_found_by_their_index() {
        assert!(INDEX.contains(&TaskId::ALARM.to_string()));
        let db = Connection::open_in_memory().expect("a database");
        schema::set_up(&db, "memory", &SqliteOptions::default()).expect("tables");
        let plan = |sql: &str, params: usize| -> Vec<String> {
            let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("SQL");
            let params = rusqlite::params_from_iter(vec!["1"; params]);
            let steps = statement.query_map(params, |row| row.get(3)).expect("a plan");
            steps.collect::<Result<_, _>>().expect("texts")
        };
        let earliest = plan(EARLIEST, 1);
        assert!(earliest.len() == 1 && earliest[0].contains("superstep_alarms"), "{earliest:?}");
    }
}
