//! From rows to checkpoints.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value as Json};
use superstep_checkpoint::{
    Blob, Checkpoint, CheckpointId, Error, PendingWrite, SharedMap, Stored, Tag, Value, Version,
    wire,
};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::inline;

/// The former place of dispatches, before they became the value of this channel.
const TASKS: &str = "__pregel_tasks";

/// The first format with what is to be dispatched in the checkpoint. Before, it was stored as writes of the parent.
pub(super) const WITH_SENDS: u32 = 4;

/// The rows of each checkpoint of `c`, which says with `nth` where among them it comes: one of its
/// own, and one for each value, each write next to it, and each dispatch.
///
/// A value may be long, and an array of values would be copied several times on its way.
///
/// A format before [`WITH_SENDS`] needs `whole_checkpoints!(of any format)`.
macro_rules! whole_checkpoints {
    () => {
        "SELECT 'checkpoint' AS part, c.nth, c.thread_id, c.checkpoint_ns, c.checkpoint_id, c.parent_checkpoint_id,
            c.checkpoint::text AS checkpoint, c.metadata::text AS metadata, NULL::text AS channel, NULL::text AS type,
            NULL::bytea AS blob, NULL::text AS task_id, NULL::text AS task_path, NULL::int4 AS idx
        FROM c
        UNION ALL
        SELECT 'value', c.nth, NULL, NULL, NULL, NULL, NULL, NULL, b.channel, b.type, b.blob, NULL, NULL, NULL
        FROM c
        CROSS JOIN jsonb_each_text(CASE jsonb_typeof(c.checkpoint -> 'channel_versions')
            WHEN 'object' THEN c.checkpoint -> 'channel_versions' ELSE '{}' END) AS v(channel, version)
        JOIN checkpoint_blobs b ON b.thread_id = c.thread_id AND b.checkpoint_ns = c.checkpoint_ns
            AND b.channel = v.channel AND b.version = v.version
        WHERE b.type <> 'empty'
        UNION ALL
        SELECT 'write', c.nth, NULL, NULL, NULL, NULL, NULL, NULL, w.channel, w.type, w.blob,
            w.task_id, w.task_path, w.idx
        FROM c
        JOIN checkpoint_writes w ON w.thread_id = c.thread_id AND w.checkpoint_ns = c.checkpoint_ns
            AND w.checkpoint_id = c.checkpoint_id "
    };
    (of any format) => {
        concat!(
            whole_checkpoints!(),
            "UNION ALL
            SELECT 'send', c.nth, NULL, NULL, NULL, NULL, NULL, NULL, s.channel, s.type, s.blob,
                s.task_id, s.task_path, s.idx
            FROM c
            JOIN checkpoint_writes s ON s.thread_id = c.thread_id AND s.checkpoint_ns = c.checkpoint_ns
                AND s.checkpoint_id = c.parent_checkpoint_id AND s.channel = '__pregel_tasks'
            WHERE c.checkpoint ->> 'v' IN ('1', '2', '3') "
        )
    };
}
pub(super) use whole_checkpoints;

/// One checkpoint from [`whole_checkpoints`].
#[derive(Default)]
struct Parts<'a> {
    own: Option<&'a Row>,
    values: Vec<&'a Row>,
    writes: Vec<&'a Row>,
    sends: Vec<&'a Row>,
}

/// The checkpoints in the rows of [`whole_checkpoints`], or an error that names the one that cannot be read.
pub(super) fn stored(rows: &[Row]) -> Result<Vec<Stored>, Error> {
    each(rows)?.into_iter().map(|(_, stored)| stored).collect()
}

/// A checkpoint that can be read or not, and its place among those that were asked for.
pub(super) type Placed = (i64, Result<Stored, Error>);

/// Each checkpoint in the rows of [`whole_checkpoints`] with its place, or an error that names it if it cannot be read.
pub(super) fn each(rows: &[Row]) -> Result<Vec<Placed>, Error> {
    let mut all: BTreeMap<i64, Parts<'_>> = BTreeMap::new();
    for row in rows {
        let parts = all.entry(column(row, "nth")?).or_default();
        match column(row, "part")? {
            "checkpoint" => parts.own = Some(row),
            "value" => parts.values.push(row),
            "write" => parts.writes.push(row),
            _ => parts.sends.push(row),
        }
    }
    Ok(all.iter().map(|(nth, parts)| (*nth, whole(parts))).collect())
}

fn whole(parts: &Parts<'_>) -> Result<Stored, Error> {
    let own = parts.own.ok_or_else(|| Error::codec("PostgreSQL gave parts of no checkpoint"))?;
    let thread: &str = column(own, "thread_id")?;
    let ns: &str = column(own, "checkpoint_ns")?;
    let id: &str = column(own, "checkpoint_id")?;
    read(parts, own, thread, ns, id).map_err(|error| wire::damaged(thread, ns, id, &error))
}

fn read(parts: &Parts<'_>, own: &Row, thread: &str, ns: &str, id: &str) -> Result<Stored, Error> {
    let parent: Option<&str> = column(own, "parent_checkpoint_id")?;
    let mut checkpoint = skeleton(column(own, "checkpoint")?)?;
    checkpoint.id = id.parse()?;
    for row in &parts.values {
        let channel: &str = column(row, "channel")?;
        checkpoint.channel_values.insert_mut(channel.into(), value(row)?);
    }
    add_sends(&mut checkpoint, &parts.sends)?;
    let mut writes = parts.writes.iter().map(|row| write(row)).collect::<Result<Vec<_>, _>>()?;
    sort(&mut writes);
    Ok(Stored {
        thread: thread.into(),
        ns: ns.into(),
        checkpoint,
        metadata: wire::metadata_from_json(column::<&str>(own, "metadata")?.as_bytes())?,
        parent: parent.map(str::parse).transpose()?,
        writes,
    })
}

/// A column, which is missing or of another type only if the tables are not ours.
pub(crate) fn column<'a, T: FromSql<'a>>(row: &'a Row, name: &str) -> Result<T, Error> {
    row.try_get(name)
        .map_err(|error| Error::backend(format!("column `{name}` is not as it should be"), error))
}

/// As [`column`], for a column without a name.
pub(crate) fn nth<'a, T: FromSql<'a>>(row: &'a Row, nth: usize) -> Result<T, Error> {
    row.try_get(nth)
        .map_err(|error| Error::backend(format!("column {nth} is not as it should be"), error))
}

#[derive(Deserialize)]
struct Skeleton {
    v: u32,
    #[serde(default)]
    ts: String,
    #[serde(default)]
    channel_values: Map<String, Json>,
    #[serde(default)]
    channel_versions: Map<String, Json>,
    #[serde(default)]
    versions_seen: Map<String, Json>,
    #[serde(default)]
    updated_channels: Option<Vec<String>>,
}

/// A checkpoint with the values that stand in it, and with no id yet.
fn skeleton(text: &str) -> Result<Checkpoint, Error> {
    let skeleton: Skeleton = serde_json::from_str(text).map_err(Error::codec)?;
    if skeleton.v > Checkpoint::FORMAT {
        let (v, known) = (skeleton.v, Checkpoint::FORMAT);
        return Err(Error::codec(format_args!(
            "it has format {v}, and the newest this version knows is {known}; update superstep"
        )));
    }
    let mut channel_values = SharedMap::new_sync();
    for (channel, json) in skeleton.channel_values {
        channel_values.insert_mut(channel.into(), inline::from_inline(json)?);
    }
    let mut versions_seen = SharedMap::new_sync();
    for (node, seen) in skeleton.versions_seen {
        let Json::Object(seen) = seen else {
            return Err(Error::codec(format_args!("what node `{node}` has seen is not a map")));
        };
        versions_seen.insert_mut(node.into(), versions(seen)?);
    }
    Ok(Checkpoint {
        v: skeleton.v,
        id: CheckpointId::from_bytes([0; 16]),
        ts: skeleton.ts,
        channel_values,
        channel_versions: versions(skeleton.channel_versions)?,
        versions_seen,
        updated_channels: skeleton
            .updated_channels
            .map(|names| names.into_iter().map(Arc::from).collect()),
    })
}

fn versions(map: Map<String, Json>) -> Result<SharedMap<Version>, Error> {
    let mut found = SharedMap::new_sync();
    for (channel, version) in map {
        found.insert_mut(channel.into(), wire::version_from_value(&Value::from(version))?);
    }
    Ok(found)
}

/// The value in the columns of a row.
fn value(row: &Row) -> Result<Blob, Error> {
    Ok(blob(column(row, "type")?, column(row, "blob")?))
}

pub(super) fn blob(tag: Option<&str>, bytes: Option<&[u8]>) -> Blob {
    Blob::new(Tag::from_word(tag.unwrap_or_default()), bytes.unwrap_or_default())
}

fn add_sends(checkpoint: &mut Checkpoint, rows: &[&Row]) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut sends = rows.iter().map(|row| write(row)).collect::<Result<Vec<_>, _>>()?;
    sort(&mut sends);
    let sends = sends.iter().map(|send| send.value.to_value()).collect::<Result<_, _>>()?;
    let newest = checkpoint.channel_versions.values().max().cloned();
    let version = newest.unwrap_or_else(|| Version::after(0, 0));
    checkpoint.channel_values.insert_mut(TASKS.into(), Blob::from_value(&Value::List(sends))?);
    checkpoint.channel_versions.insert_mut(TASKS.into(), version);
    Ok(())
}

/// The write in the columns of a row.
fn write(row: &Row) -> Result<PendingWrite, Error> {
    Ok(PendingWrite {
        task: column::<&str>(row, "task_id")?.parse()?,
        path: column(row, "task_path")?,
        index: column::<i32>(row, "idx")?.into(),
        channel: column::<&str>(row, "channel")?.into(),
        value: value(row)?,
    })
}

/// Sorts writes in the contract's order. The database's order depends on its collation.
fn sort(writes: &mut [PendingWrite]) {
    writes
        .sort_by(|a, b| a.path.cmp(&b.path).then(a.task.cmp(&b.task)).then(a.index.cmp(&b.index)));
}
