//! Deleting, copying and pruning threads, and listing everything that is stored.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use superstep_checkpoint::wire::{self, Removal, Row as Known};
use superstep_checkpoint::{
    Alarm, CheckpointId, Error, Inventory, Keep, Metadata, Prune, StoredKey,
};
use tokio_postgres::Row;

use super::alarms::REARM;
use super::read::column;
use super::store::LOCK_WHOLE_THREAD;
use crate::db::{Attempt, Db, Statement};
use crate::failure::Failure;
use crate::text::check_text;

const DELETE: &str = "WITH
    c AS (DELETE FROM checkpoints WHERE thread_id = $1),
    w AS (DELETE FROM checkpoint_writes WHERE thread_id = $1)
    DELETE FROM checkpoint_blobs WHERE thread_id = $1";

pub(super) async fn delete_thread(db: &Db, thread: &str) -> Result<(), Error> {
    if super::has_nul(&[thread]) {
        return Ok(());
    }
    let (thread, threads) = (&thread, &vec![thread]);
    let done = db.insist(move |_| async move {
        let lock = Statement::new(LOCK_WHOLE_THREAD).texts(threads);
        db.transact(&[&lock, &Statement::new(DELETE).text(thread)]).await
    });
    done.await
        .map(drop)
        .map_err(|failure| failure.told_of_change(|| format!("delete thread `{thread}`")))
}

const COPY: &str = "WITH gate AS MATERIALIZED (
        SELECT NOT EXISTS (SELECT FROM checkpoints WHERE thread_id = $2) AS go,
            NOT EXISTS (
                SELECT checkpoint_ns, checkpoint_id FROM checkpoints WHERE thread_id = $2
                EXCEPT SELECT checkpoint_ns, checkpoint_id FROM checkpoints WHERE thread_id = $1
            ) AS is_copy
    ), c AS (
        INSERT INTO checkpoints
            (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
        SELECT $2, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata
        FROM checkpoints, gate WHERE gate.go AND thread_id = $1
    ), b AS (
        INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
        SELECT $2, checkpoint_ns, channel, version, type, blob
        FROM checkpoint_blobs, gate WHERE gate.go AND thread_id = $1
        ON CONFLICT DO NOTHING
    ), w AS (
        INSERT INTO checkpoint_writes
            (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob)
        SELECT $2, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob
        FROM checkpoint_writes, gate WHERE gate.go AND thread_id = $1
        ON CONFLICT DO NOTHING
    )
    SELECT go, is_copy FROM gate";

pub(super) async fn copy_thread(db: &Db, from: &str, to: &str) -> Result<(), Error> {
    check_text("thread", to)?;
    if super::has_nul(&[from]) {
        return Ok(());
    }
    let (from, to, both) = (&from, &to, &vec![from, to]);
    let copied = db.insist(move |attempt| async move {
        let lock = Statement::new(LOCK_WHOLE_THREAD).texts(both);
        let copy = Statement::new(COPY).text(from).text(to);
        let answers = db.transact(&[&lock, &copy]).await?;
        let row = answers.last().and_then(|rows| rows.first());
        let (go, is_copy) = match row {
            Some(row) => (column(row, "go")?, column(row, "is_copy")?),
            None => (false, false),
        };
        // What the attempt before may have done is not in the way.
        Ok(go || (is_copy && attempt == Attempt::Again))
    });
    let copied = copied
        .await
        .map_err(|failure| failure.told_of_change(|| format!("copy thread `{from}` to `{to}`")))?;
    if copied { Ok(()) } else { Err(wire::target_exists(from, to)) }
}

/// The information about rows of threads that decides which can be deleted.
const KNOWN: &str = "
WITH deltas AS MATERIALIZED (
    SELECT DISTINCT c.thread_id, k.channel FROM checkpoints c,
        jsonb_object_keys(CASE jsonb_typeof(c.metadata -> 'counters_since_delta_snapshot')
            WHEN 'object' THEN c.metadata -> 'counters_since_delta_snapshot' ELSE '{}' END) AS k(channel)
    WHERE c.thread_id = ANY($1)
)
SELECT c.thread_id, c.checkpoint_ns, c.checkpoint_id, c.parent_checkpoint_id, c.metadata::text AS metadata, ARRAY(
    SELECT d.channel FROM deltas d WHERE d.thread_id = c.thread_id AND (
        coalesce(c.checkpoint -> 'channel_values' ? d.channel, false) OR EXISTS (
            SELECT FROM checkpoint_blobs b WHERE b.thread_id = c.thread_id AND b.checkpoint_ns = c.checkpoint_ns
                AND b.channel = d.channel AND b.version = c.checkpoint -> 'channel_versions' ->> d.channel
                AND b.type <> 'empty'
        )
    )
) AS \"values\"
FROM checkpoints c WHERE c.thread_id = ANY($1)";

const REMOVE_WRITES: &str = "DELETE FROM checkpoint_writes w USING unnest($1::text[], $2::text[], $3::text[])
        AS g(thread_id, checkpoint_ns, checkpoint_id)
    WHERE w.thread_id = g.thread_id AND w.checkpoint_ns = g.checkpoint_ns AND w.checkpoint_id = g.checkpoint_id";

const REMOVE_CHECKPOINTS: &str = "DELETE FROM checkpoints c USING unnest($1::text[], $2::text[], $3::text[])
        AS g(thread_id, checkpoint_ns, checkpoint_id)
    WHERE c.thread_id = g.thread_id AND c.checkpoint_ns = g.checkpoint_ns AND c.checkpoint_id = g.checkpoint_id";

const ORPHAN: &str = "UPDATE checkpoints c SET parent_checkpoint_id = NULL
    FROM unnest($1::text[], $2::text[], $3::text[]) AS g(thread_id, checkpoint_ns, checkpoint_id)
    WHERE c.thread_id = g.thread_id AND c.checkpoint_ns = g.checkpoint_ns AND c.checkpoint_id = g.checkpoint_id";

/// Removes the values no checkpoint names any more.
const REMOVE_BLOBS: &str = "WITH used AS MATERIALIZED (
        SELECT DISTINCT c.thread_id, c.checkpoint_ns, v.channel, v.version FROM checkpoints c,
            jsonb_each_text(CASE jsonb_typeof(c.checkpoint -> 'channel_versions')
                WHEN 'object' THEN c.checkpoint -> 'channel_versions' ELSE '{}' END) AS v(channel, version)
        WHERE c.thread_id = ANY($1)
    )
    DELETE FROM checkpoint_blobs b WHERE b.thread_id = ANY($1) AND NOT EXISTS (
        SELECT FROM used u WHERE u.thread_id = b.thread_id AND u.checkpoint_ns = b.checkpoint_ns
            AND u.channel = b.channel AND u.version = b.version
    )";

/// Decides what goes, given the rows of each thread and which of them are of the runs that are looked for.
type Decide<'a> = dyn Fn(&str, &[Known], &BTreeSet<usize>) -> Result<Removal, Error> + Sync + 'a;

/// Takes checkpoints out of threads, in one transaction; says how many.
async fn remove(
    db: &Db,
    threads: &[String],
    runs: &[String],
    decide: &Decide<'_>,
) -> Result<usize, Failure> {
    db.insist(move |_| async move {
        let lock = Statement::new(LOCK_WHOLE_THREAD).texts(&threads);
        let (open, answers) = db.open(&[&lock, &Statement::new(KNOWN).texts(&threads)]).await?;
        let rows = answers.last().map(Vec::as_slice).unwrap_or_default();
        let removals = known(rows, runs).and_then(|by_thread| {
            let each = by_thread.iter();
            each.map(|(thread, (rows, of_runs))| Ok((*thread, decide(thread, rows, of_runs)?)))
                .collect::<Result<Vec<_>, Error>>()
        });
        let removals = match removals {
            Ok(removals) => removals,
            Err(error) => {
                open.end("ROLLBACK").await?;
                return Err(error.into());
            }
        };
        let gone = Places::new(&removals, |removal| &removal.gone);
        let now = Alarm::path(UNIX_EPOCH);
        let orphaned = Places::new(&removals, |removal| &removal.orphaned);
        open.commit(&[
            &gone.bind(REMOVE_WRITES),
            &gone.bind(REMOVE_CHECKPOINTS),
            &orphaned.bind(ORPHAN),
            &Statement::new(REMOVE_BLOBS).texts(&threads),
            &Statement::new(REARM).texts(&threads).text(&now),
        ])
        .await?;
        Ok(gone.ids.len())
    })
    .await
}

/// The rows of each thread, and which of them are of certain runs.
type ByThread<'a> = BTreeMap<&'a str, (Vec<Known>, BTreeSet<usize>)>;

fn known<'a>(rows: &'a [Row], runs: &[String]) -> Result<ByThread<'a>, Error> {
    let mut known = ByThread::new();
    for row in rows {
        let thread: &str = column(row, "thread_id")?;
        let ns: &str = column(row, "checkpoint_ns")?;
        let id: &str = column(row, "checkpoint_id")?;
        let (one, metadata) =
            know(row, ns, id).map_err(|error| wire::damaged(thread, ns, id, &error))?;
        let (rows, of_runs) = known.entry(thread).or_default();
        if wire::is_of_runs(&metadata, runs) {
            of_runs.insert(rows.len());
        }
        rows.push(one);
    }
    Ok(known)
}

fn know(row: &Row, ns: &str, id: &str) -> Result<(Known, Metadata), Error> {
    let parent: Option<&str> = column(row, "parent_checkpoint_id")?;
    let metadata = wire::metadata_from_json(column::<&str>(row, "metadata")?.as_bytes())?;
    let values: Vec<&str> = column(row, "values")?;
    let values = values.into_iter().map(Arc::from).collect();
    let parent = parent.map(str::parse).transpose()?;
    Ok((Known::new(&ns.into(), id.parse()?, parent, &metadata, values), metadata))
}

/// Checkpoints, a list for each column.
#[derive(Default)]
struct Places<'a> {
    threads: Vec<&'a str>,
    namespaces: Vec<&'a str>,
    ids: Vec<String>,
}

impl<'a> Places<'a> {
    fn new(
        removals: &'a [(&'a str, Removal)],
        which: impl Fn(&'a Removal) -> &'a Vec<(Arc<str>, CheckpointId)>,
    ) -> Self {
        let mut places = Self::default();
        for (thread, removal) in removals {
            for (ns, id) in which(removal) {
                places.threads.push(thread);
                places.namespaces.push(ns);
                places.ids.push(id.to_string());
            }
        }
        places
    }

    fn bind(&'a self, sql: &'a str) -> Statement<'a> {
        Statement::new(sql).texts(&self.threads).texts(&self.namespaces).texts(&self.ids)
    }
}

pub(super) async fn delete_for_runs(db: &Db, runs: &[String]) -> Result<(), Error> {
    let sql = "SELECT DISTINCT thread_id FROM checkpoints WHERE metadata ->> 'run_id' = ANY($1)";
    let known: Vec<&str> =
        runs.iter().map(String::as_str).filter(|run| !run.contains('\0')).collect();
    let failed =
        |failure: Failure| failure.told_of_change(|| "delete the checkpoints of runs".to_owned());
    let rows = db.read(Statement::new(sql).texts(&known)).await.map_err(failed)?;
    let threads: Vec<String> =
        rows.iter().map(|row| column(row, "thread_id")).collect::<Result<_, _>>()?;
    if threads.is_empty() {
        return Ok(());
    }
    remove(db, &threads, runs, &wire::remove_runs).await.map(drop).map_err(failed)
}

pub(super) async fn prune(db: &Db, prune: Prune) -> Result<usize, Error> {
    let failed = |failure: Failure| failure.told_of_change(|| "prune threads".to_owned());
    let threads = match prune.threads {
        Some(mut threads) => {
            threads.retain(|thread| !thread.contains('\0'));
            threads.sort();
            threads.dedup();
            threads
        }
        None => {
            let sql = "SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id";
            let rows = db.read(Statement::new(sql)).await.map_err(failed)?;
            rows.iter().map(|row| column(row, "thread_id")).collect::<Result<_, _>>()?
        }
    };
    let keep: Keep = prune.keep;
    let decide = move |_: &str, rows: &[Known], _: &BTreeSet<usize>| Ok(wire::thin_out(rows, keep));
    let mut gone = 0;
    let mut failure = None;
    for thread in threads {
        // A thread that cannot be read does not keep the others from being pruned.
        match remove(db, &[thread], &[], &decide).await {
            Ok(count) => gone = usize::saturating_add(gone, count),
            Err(lost @ Failure::Lost(_)) => return Err(failed(lost)),
            Err(other) => failure = failure.or(Some(other)),
        }
    }
    failure.map_or(Ok(gone), |failure| Err(failed(failure)))
}

const INVENTORY: &str =
    "SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id FROM checkpoints
    ORDER BY thread_id COLLATE \"C\", checkpoint_ns COLLATE \"C\", checkpoint_id";

const STRAY: &str = "SELECT DISTINCT thread_id, checkpoint_ns, checkpoint_id, NULL::text AS parent_checkpoint_id
    FROM checkpoint_writes w WHERE NOT EXISTS (
        SELECT FROM checkpoints c WHERE c.thread_id = w.thread_id AND c.checkpoint_ns = w.checkpoint_ns
            AND c.checkpoint_id = w.checkpoint_id
    )";

pub(super) async fn inventory(db: &Db) -> Result<Inventory, Error> {
    let keys = async |sql| {
        let rows = db.read(Statement::new(sql)).await;
        let rows =
            rows.map_err(|failure| failure.told(|| "name everything that is stored".to_owned()))?;
        let key = |row: &Row| -> Result<_, Error> {
            Ok(StoredKey {
                thread: column::<&str>(row, "thread_id")?.into(),
                ns: column::<&str>(row, "checkpoint_ns")?.into(),
                id: column(row, "checkpoint_id")?,
                parent: column(row, "parent_checkpoint_id")?,
            })
        };
        rows.iter().map(key).collect::<Result<Vec<_>, Error>>()
    };
    Ok(Inventory { checkpoints: keys(INVENTORY).await?, stray_writes: keys(STRAY).await? })
}
