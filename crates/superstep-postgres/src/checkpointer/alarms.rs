//! Alarms: the times at which to look at threads. They are writes, found by an index that has nothing else.

use std::time::SystemTime;

use superstep_checkpoint::{Alarm, AlarmPage, Blob, CheckpointId, Error};
use tokio_postgres::types::Type;

use super::read::column;
use crate::db::{Db, Statement};
use crate::failure::Failure;

/// The conditions of the index, with the id of `TaskId::ALARM`.
macro_rules! is_alarm {
    () => {
        "task_id = '73757065-7273-7465-702d-616c61726d73' AND checkpoint_ns = '' AND task_path <> ''"
    };
}

/// The path of an alarm is its time, so the index has them in the order of time.
const INDEX: &str = concat!(
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS superstep_alarms ON checkpoint_writes (task_path COLLATE \"C\") WHERE ",
    is_alarm!()
);

/// Whether the index is there and can be used, and whether it is there and cannot.
const IS_THERE: &str = "SELECT coalesce(bool_or(indisvalid), false) AS valid, coalesce(bool_or(NOT indisvalid), false) AS broken
    FROM pg_index WHERE indexrelid = to_regclass('superstep_alarms')";

const EARLIEST: &str = concat!(
    "SELECT thread_id, checkpoint_id, task_path, type, blob FROM checkpoint_writes WHERE ",
    is_alarm!(),
    " ORDER BY task_path COLLATE \"C\" LIMIT $1"
);

/// Turns on the alarms of the heads of threads ($1), which may have been turned off when they were no longer heads.
pub(super) const REARM: &str = "UPDATE checkpoint_writes w SET task_path = $2
    WHERE w.thread_id = ANY($1) AND w.checkpoint_ns = '' AND w.task_id = '73757065-7273-7465-702d-616c61726d73'
        AND w.task_path = '' AND w.checkpoint_id = (
            SELECT c.checkpoint_id FROM checkpoints c WHERE c.thread_id = w.thread_id AND c.checkpoint_ns = ''
            ORDER BY c.checkpoint_id DESC LIMIT 1
        )";

/// Makes the index. Without it alarms are found all the same, at the cost of a look at every write; so a role that may not make
/// it, or another process that makes it now, is no error.
pub(super) async fn make_index(db: &Db) -> Result<(), Error> {
    let client = db.connect().await.map_err(Failure::unreached)?;
    let row = db.in_time(client.query_typed_one(IS_THERE, &[])).await?;
    let (valid, broken): (bool, bool) = (column(&row, "valid")?, column(&row, "broken")?);
    if broken {
        // Somebody is making it, or was interrupted.
        tracing::debug!("the index of alarms is not complete");
    }
    if valid || broken {
        return Ok(());
    }
    if let Err(error) = client.batch_execute(INDEX).await {
        tracing::debug!(%error, "alarms have no index");
    }
    Ok(())
}

pub(super) async fn page(db: &Db, until: SystemTime, limit: usize) -> Result<AlarmPage, Error> {
    #[expect(clippy::disallowed_methods, reason = "no table has more rows")]
    let count = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let statement = Statement::new(EARLIEST).bind(&count, Type::INT8);
    let rows = db.read(statement).await;
    let rows = rows.map_err(|failure| failure.told(|| "look for alarms".to_owned()))?;
    let mut first = Vec::with_capacity(rows.len());
    for row in &rows {
        let (thread, id): (&str, &str) = (column(row, "thread_id")?, column(row, "checkpoint_id")?);
        let (path, tag): (&str, Option<&str>) = (column(row, "task_path")?, column(row, "type")?);
        let bytes: &[u8] = column(row, "blob")?;
        // What is no checkpoint or no time has not been written by us.
        let Ok(id) = id.parse::<CheckpointId>() else { continue };
        let stored = Blob::new(tag.unwrap_or_default().into(), bytes);
        first.extend(Alarm::found(thread, id, path, stored));
    }
    Ok(AlarmPage::new(first, until, limit))
}
