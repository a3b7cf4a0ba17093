//! Fast statements for what every superstep stores.
//!
//! Each part of a statement costs planning and execution time, even if it has nothing to do. So
//! there is a statement for each combination of parts. It stores everything, or nothing if the case
//! is unusual; then the statements of [`store`](super::store) decide.

use superstep_checkpoint::CheckpointId;

use super::rows::{CheckpointRows, Sheet, WriteRows};
use super::store::{LOCK_NAMESPACE, LOCK_THREAD, locks};
use crate::db::{Db, Statement};
use crate::failure::Failure;
use crate::named::{numbered, params, statement};

/// Stores writes of tasks beside a checkpoint if there is a row in `$gate`.
macro_rules! writes {
    ($gate:literal) => {
        concat!(
            ", added AS (
                INSERT INTO checkpoint_writes
                    (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob)
                SELECT $thread, $ns, $beside, g.* FROM ",
            $gate,
            ", unnest($tasks::text[], $paths::text[], $slots::int4[], $channels::text[], $types::text[], $blobs::bytea[]) AS g
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
            SELECT $thread, $ns, n.* FROM stored, unnest($value_channels::text[], $value_versions::text[], $value_types::text[], $value_blobs::bytea[]) AS n
            ON CONFLICT (thread_id, checkpoint_ns, channel, version) DO UPDATE
            SET type = EXCLUDED.type, blob = EXCLUDED.blob
        ) "
    };
}

/// Refuses if values that have not changed have no row.
macro_rules! needed {
    () => {
        "AND NOT EXISTS (
            SELECT FROM unnest($needed_channels::text[], $needed_versions::text[]) AS n(channel, version)
            WHERE NOT EXISTS (
                SELECT FROM checkpoint_blobs b WHERE b.thread_id = $thread AND b.checkpoint_ns = $ns
                    AND b.channel = n.channel AND b.version = n.version
            )
        ) "
    };
}

/// Stores a checkpoint on top of the head it names, if that is the head and the checkpoint is new. Nothing older than the head
/// it names is looked at.
macro_rules! put {
    ($unless:expr, $with:expr) => {
        numbered!(PutOne, concat!(
            "WITH stored AS (
                INSERT INTO checkpoints
                    (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata)
                SELECT $thread, $ns, $id, $beside, $checkpoint::text::jsonb, $metadata::text::jsonb
                WHERE (
                    SELECT checkpoint_id FROM checkpoints
                    WHERE thread_id = $thread AND checkpoint_ns = $ns AND checkpoint_id >= coalesce($head, '')
                    ORDER BY checkpoint_id DESC LIMIT 1
                ) IS NOT DISTINCT FROM $head ",
            $unless,
            "ON CONFLICT DO NOTHING RETURNING 1
            ) ",
            $with,
            "SELECT 1 FROM stored"
        ))
    };
}

statement! {
    /// Stores writes beside a checkpoint.
    struct PutWrites {
        thread: TEXT,
        ns: TEXT,
        beside: TEXT,
        tasks: TEXT_ARRAY,
        paths: TEXT_ARRAY,
        slots: INT4_ARRAY,
        channels: TEXT_ARRAY,
        types: TEXT_ARRAY,
        blobs: BYTEA_ARRAY,
    }
    concat!(
    "WITH here AS MATERIALIZED (
        SELECT 1 FROM checkpoints WHERE thread_id = $thread AND checkpoint_ns = $ns AND checkpoint_id = $beside
    ) ",
    writes!("here"),
    "SELECT 1 FROM here"
)
}

params! {
    /// What a checkpoint is stored with, whether or not its statement has a part for it. The one beside which its writes stand is
    /// its parent.
    struct PutOne {
        thread: TEXT,
        ns: TEXT,
        beside: TEXT,
        tasks: TEXT_ARRAY,
        paths: TEXT_ARRAY,
        slots: INT4_ARRAY,
        channels: TEXT_ARRAY,
        types: TEXT_ARRAY,
        blobs: BYTEA_ARRAY,
        id: TEXT,
        head: TEXT,
        checkpoint: TEXT,
        metadata: TEXT,
        value_channels: TEXT_ARRAY,
        value_versions: TEXT_ARRAY,
        value_types: TEXT_ARRAY,
        value_blobs: BYTEA_ARRAY,
        needed_channels: TEXT_ARRAY,
        needed_versions: TEXT_ARRAY,
    }
}

/// Whether writes neither replace all that a task has stored nor expect anything.
pub(super) fn fits(writes: &WriteRows<'_>) -> bool {
    writes.cleared.is_empty() && writes.expected.tasks.is_empty()
}

/// Stores a checkpoint. Returns whether it did.
pub(super) async fn put(db: &Db, sheet: &Sheet<'_>) -> Result<bool, Failure> {
    if !sheet.is_plain() {
        return Ok(false);
    }
    let lock = Statement::new(LOCK_NAMESPACE).text(&sheet.thread).text(&sheet.ns);
    let answers = db.transact(&[&lock, &sheet.statement()]).await?;
    Ok(answers.last().is_some_and(|rows| !rows.is_empty()))
}

statement! {
    /// Fails the transaction if one of the checkpoints does not exist.
    struct AllAreThere { threads: TEXT_ARRAY, namespaces: TEXT_ARRAY, ids: TEXT_ARRAY }
    "SELECT 1 / (count(*) = cardinality($ids::text[]))::int4
    FROM unnest($threads::text[], $namespaces::text[], $ids::text[]) AS n(thread_id, checkpoint_ns, checkpoint_id)
    JOIN checkpoints USING (thread_id, checkpoint_ns, checkpoint_id)"
}

/// Stores all checkpoints or none. Returns whether it did.
pub(super) async fn put_all(db: &Db, sheets: &[Sheet<'_>]) -> Result<bool, Failure> {
    if !sheets.iter().all(Sheet::is_plain) {
        return Ok(false);
    }
    let threads: Vec<_> = sheets.iter().map(|sheet| sheet.thread).collect();
    let namespaces: Vec<_> = sheets.iter().map(|sheet| sheet.ns).collect();
    let ids: Vec<_> = sheets.iter().map(|sheet| sheet.id.as_str()).collect();
    let mut all = locks(sheets);
    all.extend(sheets.iter().map(Sheet::statement));
    all.push(AllAreThere { threads: &threads, namespaces: &namespaces, ids: &ids }.into());
    db.transact_unless_divided_by_zero(&all.iter().collect::<Vec<_>>()).await
}

impl Sheet<'_> {
    /// If the parent is the head, it is known to exist.
    fn is_plain(&self) -> bool {
        fits(&self.writes) && (self.put.writes.is_empty() || self.put.parent == self.put.head)
    }

    fn statement(&self) -> Statement<'_> {
        let Self { thread, ns, id, parent, head, writes, rows, put: _ } = self;
        let params = PutOne {
            thread,
            ns,
            beside: parent,
            tasks: &writes.tasks,
            paths: &writes.paths,
            slots: &writes.slots,
            channels: &writes.channels,
            types: &writes.types,
            blobs: &writes.blobs,
            id,
            head,
            checkpoint: &rows.checkpoint,
            metadata: &rows.metadata,
            value_channels: &rows.blobs.channels,
            value_versions: &rows.blobs.versions,
            value_types: &rows.blobs.types,
            value_blobs: &rows.blobs.blobs,
            needed_channels: &rows.needed.channels,
            needed_versions: &rows.needed.versions,
        };
        params.bind(text(writes, rows))
    }
}

/// The statement with the necessary parts.
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

/// Stores writes with a checkpoint. Returns whether the checkpoint exists. Repeating the same
/// writes changes nothing.
pub(super) async fn put_writes(
    db: &Db,
    thread: &str,
    ns: &str,
    checkpoint: CheckpointId,
    writes: &WriteRows<'_>,
) -> Result<bool, Failure> {
    let id = checkpoint.to_string();
    let lock = &Statement::new(LOCK_THREAD).text(&thread);
    let statement = &PutWrites {
        thread: &thread,
        ns: &ns,
        beside: &id,
        tasks: &writes.tasks,
        paths: &writes.paths,
        slots: &writes.slots,
        channels: &writes.channels,
        types: &writes.types,
        blobs: &writes.blobs,
    }
    .into();
    let stored = db.insist(move |_| async move { db.transact(&[lock, statement]).await });
    let answers = stored.await?;
    Ok(answers.last().is_some_and(|rows| !rows.is_empty()))
}
