//! What supersteps store all the time, in statements with nothing else in them.
//!
//! Each part of a statement costs time when it is planned and when it is run, also if it finds nothing to do. So there is a
//! statement for each combination of parts that a call may need. It stores everything or, if anything is not as it mostly is,
//! nothing. Why, and whether it can be stored all the same, is for the statements of [`store`](super::store) to find out.

use superstep_checkpoint::CheckpointId;
use tokio_postgres::types::Type;

use super::rows::{BlobRows, CheckpointRows, Sheet, WriteRows};
use super::store::{LOCK_NAMESPACE, LOCK_THREAD, bind_columns, locks};
use crate::db::{Db, Statement};
use crate::failure::Failure;

/// Stores writes of tasks ($4 to $9) beside checkpoint $3 if there is a row in `$gate`.
macro_rules! writes {
    ($gate:literal) => {
        concat!(
            ", added AS (
                INSERT INTO checkpoint_writes
                    (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob)
                SELECT $1, $2, $3, g.* FROM ",
            $gate,
            ", unnest($4::text[], $5::text[], $6::int4[], $7::text[], $8::text[], $9::bytea[]) AS g
                ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) DO UPDATE
                SET task_path = EXCLUDED.task_path, channel = EXCLUDED.channel, type = EXCLUDED.type, blob = EXCLUDED.blob
                WHERE EXCLUDED.idx < 0
            ) "
        )
    };
}

/// Stores values of channels with the checkpoint.
macro_rules! blobs {
    () => {
        ", blobbed AS (
            INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
            SELECT $1, $2, n.* FROM stored, unnest($14::text[], $15::text[], $16::text[], $17::bytea[]) AS n
            ON CONFLICT (thread_id, checkpoint_ns, channel, version) DO UPDATE
            SET type = EXCLUDED.type, blob = EXCLUDED.blob
        ) "
    };
}

/// Refuses if values that have not changed have no row.
macro_rules! needed {
    () => {
        "AND NOT EXISTS (
            SELECT FROM unnest($18::text[], $19::text[]) AS n(channel, version)
            WHERE NOT EXISTS (
                SELECT FROM checkpoint_blobs b WHERE b.thread_id = $1 AND b.checkpoint_ns = $2
                    AND b.channel = n.channel AND b.version = n.version
            )
        ) "
    };
}

/// Stores a checkpoint on top of the head it names, if that is the head and the checkpoint is new. Nothing older than the head
/// it names is looked at.
macro_rules! put {
    ($unless:expr, $with:expr) => {
        concat!(
            "WITH stored AS (
                INSERT INTO checkpoints
                    (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata)
                SELECT $1, $2, $10, $3, $12::text::jsonb, $13::text::jsonb
                WHERE (
                    SELECT checkpoint_id FROM checkpoints
                    WHERE thread_id = $1 AND checkpoint_ns = $2 AND checkpoint_id >= coalesce($11, '')
                    ORDER BY checkpoint_id DESC LIMIT 1
                ) IS NOT DISTINCT FROM $11 ",
            $unless,
            "ON CONFLICT DO NOTHING RETURNING 1
            ) ",
            $with,
            "SELECT 1 FROM stored"
        )
    };
}

const PUT_WRITES: &str = concat!(
    "WITH here AS MATERIALIZED (
        SELECT 1 FROM checkpoints WHERE thread_id = $1 AND checkpoint_ns = $2 AND checkpoint_id = $3
    ) ",
    writes!("here"),
    "SELECT 1 FROM here"
);

/// Whether writes neither replace all that a task has stored nor expect anything.
pub(super) fn fits(writes: &WriteRows<'_>) -> bool {
    writes.cleared.is_empty() && writes.expected.tasks.is_empty()
}

/// Stores a checkpoint, and says whether it did.
pub(super) async fn put(db: &Db, sheet: &Sheet<'_>) -> Result<bool, Failure> {
    if !sheet.is_plain() {
        return Ok(false);
    }
    let lock = Statement::new(LOCK_NAMESPACE).text(&sheet.thread).text(&sheet.ns);
    let answers = db.transact(&[&lock, &sheet.statement()]).await?;
    Ok(answers.last().is_some_and(|rows| !rows.is_empty()))
}

/// Fails, and with it everything before it in its transaction, if one of the checkpoints is not there.
const ALL_ARE_THERE: &str = "SELECT 1 / (count(*) = cardinality($3::text[]))::int4
    FROM unnest($1::text[], $2::text[], $3::text[]) AS n(thread_id, checkpoint_ns, checkpoint_id)
    JOIN checkpoints USING (thread_id, checkpoint_ns, checkpoint_id)";

/// Stores checkpoints, all of them or none, and says whether it did.
pub(super) async fn put_all(db: &Db, sheets: &[Sheet<'_>]) -> Result<bool, Failure> {
    if !sheets.iter().all(Sheet::is_plain) {
        return Ok(false);
    }
    let threads: Vec<_> = sheets.iter().map(|sheet| sheet.thread).collect();
    let spaces: Vec<_> = sheets.iter().map(|sheet| sheet.ns).collect();
    let ids: Vec<_> = sheets.iter().map(|sheet| sheet.id.as_str()).collect();
    let mut all = locks(sheets);
    all.extend(sheets.iter().map(Sheet::statement));
    all.push(Statement::new(ALL_ARE_THERE).texts(&threads).texts(&spaces).texts(&ids));
    db.transact_unless_divided_by_zero(&all.iter().collect::<Vec<_>>()).await
}

impl Sheet<'_> {
    /// That the parent is there, beside which the writes go, is known if it is the head.
    fn is_plain(&self) -> bool {
        fits(&self.writes) && (self.put.writes.is_empty() || self.put.parent == self.put.head)
    }

    fn statement(&self) -> Statement<'_> {
        let BlobRows { channels, versions, types, blobs } = &self.rows.blobs;
        let statement = Statement::new(text(&self.writes, &self.rows));
        let statement = statement.text(&self.thread).text(&self.ns).text(&self.parent);
        bind_columns(statement, &self.writes)
            .text(&self.id)
            .text(&self.head)
            .text(&self.rows.checkpoint)
            .text(&self.rows.metadata)
            .texts(channels)
            .texts(versions)
            .texts(types)
            .bind(blobs, Type::BYTEA_ARRAY)
            .texts(&self.rows.needed.channels)
            .texts(&self.rows.needed.versions)
    }
}

/// The statement with the parts that are needed.
fn text(writes: &WriteRows<'_>, rows: &CheckpointRows<'_>) -> &'static str {
    let has_writes = !writes.tasks.is_empty();
    let has_blobs = !rows.blobs.channels.is_empty();
    let has_needs = !rows.needed.channels.is_empty();
    match (has_writes, has_blobs, has_needs) {
        (false, false, false) => put!("", ""),
        (true, false, false) => put!("", writes!("stored")),
        (false, true, false) => put!("", blobs!()),
        (true, true, false) => put!("", concat!(writes!("stored"), blobs!())),
        (false, false, true) => put!(needed!(), ""),
        (true, false, true) => put!(needed!(), writes!("stored")),
        (false, true, true) => put!(needed!(), blobs!()),
        (true, true, true) => put!(needed!(), concat!(writes!("stored"), blobs!())),
    }
}

/// Stores writes beside a checkpoint, and says whether that is there. The same writes a second time change nothing.
pub(super) async fn put_writes(
    db: &Db,
    thread: &str,
    ns: &str,
    checkpoint: CheckpointId,
    writes: &WriteRows<'_>,
) -> Result<bool, Failure> {
    let id = checkpoint.to_string();
    let lock = &Statement::new(LOCK_THREAD).text(&thread);
    let statement = Statement::new(PUT_WRITES).text(&thread).text(&ns).text(&id);
    let statement = &bind_columns(statement, writes);
    let stored = db.insist(move |_| async move { db.transact(&[lock, statement]).await });
    let answers = stored.await?;
    Ok(answers.last().is_some_and(|rows| !rows.is_empty()))
}
