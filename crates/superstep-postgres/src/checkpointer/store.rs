//! Storing checkpoints and writes.
//!
//! A call stores everything in one statement, whose first parts decide whether the rest has an
//! effect. Before it, the transaction takes locks: a statement sees what was committed when it
//! began, so it must begin while the lock is held. Every access to a thread takes its lock shared,
//! so that deleting or copying the thread can take it exclusively; a comparison also takes the lock
//! of the namespace exclusively.
//!
//! The statements here decide everything and say why they refuse. What a superstep stores is tried with [`plain`] ones before.

use superstep_checkpoint::{CheckpointId, Error, Put, TaskWrites, wire};
use tokio_postgres::Row;

use super::plain;
use super::read::column;
use super::rows::{Sheet, WriteRows};
use crate::db::{Attempt, Db, Statement};
use crate::failure::Failure;
use crate::named::statement;
use crate::text::check_text;

pub(super) const LOCK_THREAD: &str = "SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 1))";
pub(super) const LOCK_NAMESPACE: &str =
    "SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 1)),
    pg_advisory_xact_lock(hashtextextended($1, hashtextextended($2, 2)))";
/// For operations on a whole thread.
pub(super) const LOCK_WHOLE_THREAD: &str = "SELECT pg_advisory_xact_lock(hashtextextended(t, 1)) FROM (SELECT DISTINCT unnest($1::text[]) AS t ORDER BY t) s";

/// The writes of tasks beside a checkpoint and what they expect, as named parts.
macro_rules! given_writes {
    () => {
        "given AS MATERIALIZED (
            SELECT * FROM unnest($tasks::text[], $paths::text[], $slots::int4[], $channels::text[], $types::text[], $blobs::bytea[])
                AS g(task_id, task_path, idx, channel, type, blob)
        ), overtaken AS (
            SELECT min(e.nth)::int4 AS nth
            FROM unnest($expected_tasks::text[], $expected_slots::int4[], $expected_types::text[], $expected_blobs::bytea[]) WITH ORDINALITY
                AS e(task_id, idx, type, blob, nth)
            LEFT JOIN checkpoint_writes w ON w.thread_id = $thread AND w.checkpoint_ns = $ns AND w.checkpoint_id = $beside
                AND w.task_id = e.task_id AND w.idx = e.idx
            WHERE w.type IS DISTINCT FROM e.type OR w.blob IS DISTINCT FROM e.blob
        ), "
    };
}

/// Stores the writes if `gate` says so. What is in a reserved slot gives way. Slots of cleared tasks that are written again
/// are replaced and not deleted, since no statement can delete a row and insert it again.
macro_rules! store_writes {
    () => {
        "cleared AS (
            DELETE FROM checkpoint_writes w USING gate
            WHERE gate.go AND w.thread_id = $thread AND w.checkpoint_ns = $ns AND w.checkpoint_id = $beside
                AND w.task_id = ANY($cleared::text[])
                AND NOT EXISTS (SELECT FROM given g WHERE g.task_id = w.task_id AND g.idx = w.idx)
        ), added AS (
            INSERT INTO checkpoint_writes
                (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob)
            SELECT $thread, $ns, $beside, g.task_id, g.task_path, g.idx, g.channel, g.type, g.blob FROM given g, gate WHERE gate.go
            ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) DO UPDATE
            SET task_path = EXCLUDED.task_path, channel = EXCLUDED.channel, type = EXCLUDED.type, blob = EXCLUDED.blob
            WHERE EXCLUDED.idx < 0 OR EXCLUDED.task_id = ANY($cleared::text[])
        ) "
    };
}

statement! {
    /// Stores writes beside a checkpoint.
    struct PutWrites {
        thread: TEXT,
        ns: TEXT,
        beside: TEXT,
        cleared: TEXT_ARRAY,
        tasks: TEXT_ARRAY,
        paths: TEXT_ARRAY,
        slots: INT4_ARRAY,
        channels: TEXT_ARRAY,
        types: TEXT_ARRAY,
        blobs: BYTEA_ARRAY,
        expected_tasks: TEXT_ARRAY,
        expected_slots: INT4_ARRAY,
        expected_types: TEXT_ARRAY,
        expected_blobs: BYTEA_ARRAY,
    }
    concat!(
    "WITH ",
    given_writes!(),
    "gate AS MATERIALIZED (
        SELECT *, there AND overtaken IS NULL AS go FROM (
            SELECT EXISTS (
                    SELECT FROM checkpoints WHERE thread_id = $thread AND checkpoint_ns = $ns AND checkpoint_id = $beside
                ) AS there,
                (SELECT nth FROM overtaken) AS overtaken
        ) seen
    ), ",
    store_writes!(),
    "SELECT there, overtaken, pg_current_xact_id()::xid::text AS xact FROM gate"
)
}

statement! {
    /// Stores a checkpoint. The one beside which its writes stand is its parent.
    struct PutOne {
        thread: TEXT,
        ns: TEXT,
        beside: TEXT,
        cleared: TEXT_ARRAY,
        tasks: TEXT_ARRAY,
        paths: TEXT_ARRAY,
        slots: INT4_ARRAY,
        channels: TEXT_ARRAY,
        types: TEXT_ARRAY,
        blobs: BYTEA_ARRAY,
        expected_tasks: TEXT_ARRAY,
        expected_slots: INT4_ARRAY,
        expected_types: TEXT_ARRAY,
        expected_blobs: BYTEA_ARRAY,
        id: TEXT,
        head: TEXT,
        again: BOOL,
        has_writes: BOOL,
        needed_channels: TEXT_ARRAY,
        needed_versions: TEXT_ARRAY,
        rowless_channels: TEXT_ARRAY,
        rowless_versions: TEXT_ARRAY,
        value_channels: TEXT_ARRAY,
        value_versions: TEXT_ARRAY,
        value_types: TEXT_ARRAY,
        value_blobs: BYTEA_ARRAY,
        checkpoint: TEXT,
        metadata: TEXT,
    }
    concat!(
    "WITH ",
    given_writes!(),
    "gate AS MATERIALIZED (
        SELECT *, (there AND NOT $again OR NOT there AND head IS NOT DISTINCT FROM $head)
            AND parent_there AND overtaken IS NULL AND NOT rows_missing AS go
        FROM (
            SELECT (
                    SELECT checkpoint_id FROM checkpoints WHERE thread_id = $thread AND checkpoint_ns = $ns
                    ORDER BY checkpoint_id DESC LIMIT 1
                ) AS head,
                EXISTS (
                    SELECT FROM checkpoints WHERE thread_id = $thread AND checkpoint_ns = $ns AND checkpoint_id = $id
                ) AS there,
                NOT $has_writes OR EXISTS (
                    SELECT FROM checkpoints WHERE thread_id = $thread AND checkpoint_ns = $ns AND checkpoint_id = $beside
                ) AS parent_there,
                (SELECT nth FROM overtaken) AS overtaken,
                EXISTS (
                    SELECT FROM unnest($needed_channels::text[], $needed_versions::text[]) AS n(channel, version)
                    WHERE NOT EXISTS (
                        SELECT FROM checkpoint_blobs b WHERE b.thread_id = $thread AND b.checkpoint_ns = $ns
                            AND b.channel = n.channel AND b.version = n.version
                    )
                ) AS rows_missing
        ) seen
    ), ",
    store_writes!(),
    ", unblobbed AS (
        DELETE FROM checkpoint_blobs b USING gate, unnest($rowless_channels::text[], $rowless_versions::text[]) AS n(channel, version)
        WHERE gate.go AND gate.there AND b.thread_id = $thread AND b.checkpoint_ns = $ns
            AND b.channel = n.channel AND b.version = n.version
    ), blobbed AS (
        INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
        SELECT $thread, $ns, n.channel, n.version, n.type, n.blob
        FROM gate, unnest($value_channels::text[], $value_versions::text[], $value_types::text[], $value_blobs::bytea[]) AS n(channel, version, type, blob)
        WHERE gate.go
        ON CONFLICT (thread_id, checkpoint_ns, channel, version) DO UPDATE
        SET type = EXCLUDED.type, blob = EXCLUDED.blob
    ), stored AS (
        INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata)
        SELECT $thread, $ns, $id, $beside, $checkpoint::text::jsonb, $metadata::text::jsonb FROM gate WHERE gate.go
        ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id) DO UPDATE
        SET parent_checkpoint_id = EXCLUDED.parent_checkpoint_id, checkpoint = EXCLUDED.checkpoint,
            metadata = EXCLUDED.metadata
    )
    SELECT go, head, there, parent_there, overtaken, rows_missing FROM gate"
)
}

/// Stores checkpoints, all of them or none.
///
/// If the connection is lost, it is unknown whether they were stored; then they are looked up by
/// their ids, and stored if they are missing.
pub(super) async fn put_all(db: &Db, puts: &[Put]) -> Result<(), Error> {
    let mut sheets = match puts {
        [] => return Ok(()),
        [one] => return put(db, one).await,
        several => several.iter().map(Sheet::new).collect::<Result<Vec<_>, _>>()?,
    };
    let before = match plain::put_all(db, &sheets).await {
        Ok(true) => return Ok(()),
        Ok(false) | Err(Failure::Undone(_)) => Attempt::First,
        Err(Failure::Lost(_)) => Attempt::Again,
        Err(failure) => return Err(told_of_all(&sheets, failure)),
    };
    loop {
        let sent = send_all(db, &sheets, before).await;
        let Some(nth) = sent.map_err(|failure| told_of_all(&sheets, failure))?? else {
            return Ok(());
        };
        // As in `put_sheet`: each of them lacks rows once at most.
        let lacking = sheets.get_mut(nth);
        let rows = &mut lacking.ok_or_else(|| Error::invalid("no such checkpoint was sent"))?.rows;
        let needed = std::mem::take(&mut rows.needed);
        rows.blobs.append(needed);
    }
}

/// Sends checkpoints in one transaction, which is undone if one of them cannot be stored. Says which one was not because rows
/// that it needs are not there.
async fn send_all(
    db: &Db,
    sheets: &[Sheet<'_>],
    before: Attempt,
) -> Result<Result<Option<usize>, Error>, Failure> {
    let locks = &locks(sheets);
    db.insist(move |attempt| async move {
        let again = before == Attempt::Again || attempt == Attempt::Again;
        let puts: Vec<_> = sheets.iter().map(|sheet| put_statement(sheet, &again)).collect();
        let all: Vec<_> = locks.iter().chain(&puts).collect();
        let (open, answers) = db.open(&all).await?;
        for (nth, sheet) in sheets.iter().enumerate() {
            let row = answers.get(..=locks.len().saturating_add(nth)).unwrap_or_default();
            let row = only_row(row)?;
            let refused = match judge_put(sheet.put, again, row) {
                Ok(false) => continue,
                Ok(true) => Ok(Some(nth)),
                Err(refused) => Err(refused),
            };
            open.end("ROLLBACK").await?;
            return Ok(refused);
        }
        open.end("COMMIT").await?;
        Ok(Ok(None))
    })
    .await
}

/// The locks of the namespaces, in an order that avoids deadlocks.
pub(super) fn locks<'a>(sheets: &'a [Sheet<'_>]) -> Vec<Statement<'a>> {
    let mut sheets: Vec<_> = sheets.iter().collect();
    sheets.sort_by_key(|sheet| (sheet.thread, sheet.ns));
    sheets.dedup_by_key(|sheet| (sheet.thread, sheet.ns));
    let lock =
        |sheet: &'a Sheet<'_>| Statement::new(LOCK_NAMESPACE).text(&sheet.thread).text(&sheet.ns);
    sheets.into_iter().map(lock).collect()
}

/// Stores a checkpoint.
///
/// If the connection is lost, it is unknown whether the checkpoint was stored; then it is looked up
/// by its id, and stored if it is missing.
pub(super) async fn put(db: &Db, put: &Put) -> Result<(), Error> {
    put_sheet(db, &mut Sheet::new(put)?, Attempt::First).await
}

async fn put_sheet(db: &Db, sheet: &mut Sheet<'_>, before: Attempt) -> Result<(), Error> {
    let sent = send(db, sheet, before).await;
    if sent.map_err(|failure| told(sheet, failure))?? {
        // LangGraph stored values in the checkpoint that have rows here.
        let needed = std::mem::take(&mut sheet.rows.needed);
        sheet.rows.blobs.append(needed);
        send(db, sheet, before).await.map_err(|failure| told(sheet, failure))??;
    }
    Ok(())
}

fn told_of_all(sheets: &[Sheet<'_>], failure: Failure) -> Error {
    match sheets.first() {
        Some(sheet) => told(sheet, failure),
        None => failure.told_of_change(|| "store no checkpoints".to_owned()),
    }
}

fn told(sheet: &Sheet<'_>, failure: Failure) -> Error {
    failure.told_of_change(|| format!("store checkpoint {} of thread `{}`", sheet.id, sheet.thread))
}

/// Sends a checkpoint. Says whether nothing was stored because rows that are needed are not there.
///
/// What was sent before may be stored, which only the statement here can tell from a conflict.
async fn send(db: &Db, sheet: &Sheet<'_>, before: Attempt) -> Result<Result<bool, Error>, Failure> {
    db.insist(move |attempt| async move {
        let again = before == Attempt::Again || attempt == Attempt::Again;
        if !again && plain::put(db, sheet).await? {
            return Ok(Ok(false));
        }
        let lock = Statement::new(LOCK_NAMESPACE).text(&sheet.thread).text(&sheet.ns);
        let answers = db.transact(&[&lock, &put_statement(sheet, &again)]).await?;
        Ok(judge_put(sheet.put, again, only_row(&answers)?))
    })
    .await
}

fn put_statement<'a>(sheet: &'a Sheet<'_>, again: &'a bool) -> Statement<'a> {
    let Sheet { put, thread, ns, id, parent, head, writes, rows } = sheet;
    let has_writes: &bool = if put.writes.is_empty() { &false } else { &true };
    let expected = &writes.expected;
    PutOne {
        thread,
        ns,
        beside: parent,
        cleared: &writes.cleared,
        tasks: &writes.tasks,
        paths: &writes.paths,
        slots: &writes.slots,
        channels: &writes.channels,
        types: &writes.types,
        blobs: &writes.blobs,
        expected_tasks: &expected.tasks,
        expected_slots: &expected.slots,
        expected_types: &expected.types,
        expected_blobs: &expected.blobs,
        id,
        head,
        again,
        has_writes,
        needed_channels: &rows.needed.channels,
        needed_versions: &rows.needed.versions,
        rowless_channels: &rows.rowless.0,
        rowless_versions: &rows.rowless.1,
        value_channels: &rows.blobs.channels,
        value_versions: &rows.blobs.versions,
        value_types: &rows.blobs.types,
        value_blobs: &rows.blobs.blobs,
        checkpoint: &rows.checkpoint,
        metadata: &rows.metadata,
    }
    .into()
}

fn judge_put(put: &Put, again: bool, row: &Row) -> Result<bool, Error> {
    let there: bool = column(row, "there")?;
    if column(row, "go")? || (there && again) {
        return Ok(false);
    }
    let head: Option<&str> = column(row, "head")?;
    let head: Option<CheckpointId> = head.map(str::parse).transpose()?;
    let (thread, ns) = (put.thread.to_string(), put.ns.to_string());
    if !there && head != put.head {
        return Err(Error::Conflict { thread, ns, expected: put.head, found: head });
    }
    let parent = put.parent.unwrap_or(put.checkpoint.id);
    if !column::<bool>(row, "parent_there")? {
        return Err(Error::Unknown { thread, ns, id: parent });
    }
    refuse_overtaken(row, &put.thread, &put.ns, parent, &put.writes)?;
    column(row, "rows_missing")
}

/// Stores writes with a checkpoint.
pub(super) async fn put_writes(
    db: &Db,
    thread: &str,
    ns: &str,
    checkpoint: CheckpointId,
    all: &[TaskWrites],
) -> Result<(), Error> {
    check_text("thread", thread)?;
    check_text("namespace", ns)?;
    let writes = &WriteRows::new(all)?;
    let id = &checkpoint.to_string();
    let failed = |failure: Failure| {
        failure
            .told_of_change(|| format!("store writes beside checkpoint {id} of thread `{thread}`"))
    };
    let unknown =
        || Error::Unknown { thread: thread.to_owned(), ns: ns.to_owned(), id: checkpoint };
    if plain::fits(writes) {
        let there = plain::put_writes(db, thread, ns, checkpoint, writes).await.map_err(failed)?;
        return if there { Ok(()) } else { Err(unknown()) };
    }
    let (thread, ns) = (&thread, &ns);
    let compares = !writes.expected.tasks.is_empty();
    let expected = &writes.expected;
    let statement = &PutWrites {
        thread,
        ns,
        beside: id,
        cleared: &writes.cleared,
        tasks: &writes.tasks,
        paths: &writes.paths,
        slots: &writes.slots,
        channels: &writes.channels,
        types: &writes.types,
        blobs: &writes.blobs,
        expected_tasks: &expected.tasks,
        expected_slots: &expected.slots,
        expected_types: &expected.types,
        expected_blobs: &expected.blobs,
    }
    .into();
    let lock = if compares {
        &Statement::new(LOCK_NAMESPACE).text(thread).text(ns)
    } else {
        &Statement::new(LOCK_THREAD).text(thread)
    };
    let judge = |row: &Row| {
        if !column::<bool>(row, "there")? {
            return Err(unknown());
        }
        refuse_overtaken(row, thread, ns, checkpoint, all)
    };
    // What only compares, and changes nothing that it compares, may be sent a second time like anything else.
    let changes = |writes: &TaskWrites| {
        let compared = writes.expected.as_ref().map(|expected| &expected.channel);
        compared.is_some_and(|channel| writes.writes.iter().any(|(written, _)| written == channel))
    };
    let done = if all.iter().any(changes) {
        claim(db, &Claim { lock, statement, thread, ns, checkpoint: id, writes }, &judge).await
    } else {
        // The same writes a second time change nothing.
        db.insist(move |_| async move {
            let answers = db.transact(&[lock, statement]).await?;
            Ok(judge(only_row(&answers)?)?)
        })
        .await
    };
    done.map_err(failed)
}

statement! {
    /// Whether the slots have the writes of a call, and this transaction stored them. Numbers of
    /// transactions are used again after a crash if nothing of them had reached the disk, so the
    /// number alone would not tell.
    struct Claimed {
        thread: TEXT,
        ns: TEXT,
        beside: TEXT,
        transaction: TEXT,
        expected_tasks: TEXT_ARRAY,
        expected_slots: INT4_ARRAY,
        tasks: TEXT_ARRAY,
        slots: INT4_ARRAY,
        types: TEXT_ARRAY,
        blobs: BYTEA_ARRAY,
    }
    "SELECT EXISTS (
        SELECT FROM unnest($expected_tasks::text[], $expected_slots::int4[]) AS e(task_id, idx)
        JOIN unnest($tasks::text[], $slots::int4[], $types::text[], $blobs::bytea[]) AS g(task_id, idx, type, blob)
            ON g.task_id = e.task_id AND g.idx = e.idx
        JOIN checkpoint_writes w ON w.thread_id = $thread AND w.checkpoint_ns = $ns AND w.checkpoint_id = $beside
            AND w.task_id = g.task_id AND w.idx = g.idx AND w.type = g.type AND w.blob = g.blob
        WHERE w.xmin::text = $transaction
    ) AS claimed"
}

/// Conditional writes.
struct Claim<'a> {
    lock: &'a Statement<'a>,
    statement: &'a Statement<'a>,
    thread: &'a &'a str,
    ns: &'a &'a str,
    checkpoint: &'a String,
    writes: &'a WriteRows<'a>,
}

/// Stores writes that expect something, so that the same writes a second time do not find what they expect.
///
/// The number of the transaction is known before it commits. If the connection is lost afterwards,
/// a lookup finds whether that transaction made the stored writes; if it is lost earlier, the
/// transaction had no effect.
async fn claim(
    db: &Db,
    claim: &Claim<'_>,
    judge: &(dyn Fn(&Row) -> Result<(), Error> + Sync),
) -> Result<(), Failure> {
    db.insist(move |_| async move {
        let (open, answers) = db.open(&[claim.lock, claim.statement]).await?;
        let row = only_row(&answers)?;
        let judged = judge(row);
        if judged.is_err() {
            open.end("ROLLBACK").await?;
            return Ok(judged?);
        }
        let number: String = column(row, "xact")?;
        match open.end("COMMIT").await {
            Err(Failure::Lost(lost)) if claimed(db, claim, &number).await? => {
                tracing::debug!(error = %lost, "a claim was stored although its answer was lost");
                Ok(())
            }
            other => other,
        }
    })
    .await
}

/// Whether a transaction whose `COMMIT` was sent took effect. The lock is granted only after it has
/// ended.
async fn claimed(db: &Db, claim: &Claim<'_>, number: &String) -> Result<bool, Failure> {
    let writes = claim.writes;
    let statement = &Claimed {
        thread: claim.thread,
        ns: claim.ns,
        beside: claim.checkpoint,
        transaction: number,
        expected_tasks: &writes.expected.tasks,
        expected_slots: &writes.expected.slots,
        tasks: &writes.tasks,
        slots: &writes.slots,
        types: &writes.types,
        blobs: &writes.blobs,
    }
    .into();
    db.insist(move |_| async move {
        let answers = db.transact(&[claim.lock, statement]).await?;
        Ok(column(only_row(&answers)?, "claimed")?)
    })
    .await
}

/// The only row of the last statement.
fn only_row(answers: &[Vec<Row>]) -> Result<&Row, Failure> {
    let row = answers.last().and_then(|rows| rows.first());
    row.ok_or_else(|| Error::codec("PostgreSQL gave no answer where it always gives one").into())
}

fn refuse_overtaken(
    row: &Row,
    thread: &str,
    ns: &str,
    checkpoint: CheckpointId,
    all: &[TaskWrites],
) -> Result<(), Error> {
    let Some(nth) = column::<Option<i32>>(row, "overtaken")? else { return Ok(()) };
    let expectations = wire::expectations(all)?;
    let place = usize::try_from(nth).ok().and_then(|nth| nth.checked_sub(1));
    match place.and_then(|place| expectations.get(place)) {
        Some((task, _, expected)) => Err(wire::overtaken(thread, ns, checkpoint, *task, expected)),
        None => {
            Err(Error::codec("PostgreSQL reports a conflict for a write that had no expectation"))
        }
    }
}
