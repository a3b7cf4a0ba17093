//! From rows to checkpoints.

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

/// Where dispatches stood before they were the value of a channel of this name.
const TASKS: &str = "__pregel_tasks";

/// What is selected for each checkpoint `c`, and the joins that find it.
///
/// Before format 4, what is to be dispatched was stored as writes of the parent.
macro_rules! whole_checkpoints {
    () => {
        "SELECT c.thread_id, c.checkpoint_ns, c.checkpoint_id, c.parent_checkpoint_id,
            c.checkpoint::text AS checkpoint, c.metadata::text AS metadata,
            b.channels AS blob_channels, b.types AS blob_types, b.blobs,
            w.tasks, w.paths, w.slots, w.channels, w.types, w.values,
            s.types AS send_types, s.values AS sends
        FROM c
        LEFT JOIN LATERAL (
            SELECT array_agg(b.channel) AS channels, array_agg(b.type) AS types, array_agg(b.blob) AS blobs
            FROM jsonb_each_text(CASE jsonb_typeof(c.checkpoint -> 'channel_versions')
                WHEN 'object' THEN c.checkpoint -> 'channel_versions' ELSE '{}' END) AS v(channel, version)
            JOIN checkpoint_blobs b ON b.thread_id = c.thread_id AND b.checkpoint_ns = c.checkpoint_ns
                AND b.channel = v.channel AND b.version = v.version
            WHERE b.type <> 'empty'
        ) b ON true
        LEFT JOIN LATERAL (
            SELECT array_agg(w.task_id) AS tasks, array_agg(w.task_path) AS paths, array_agg(w.idx) AS slots,
                array_agg(w.channel) AS channels, array_agg(w.type) AS types, array_agg(w.blob) AS values
            FROM checkpoint_writes w
            WHERE w.thread_id = c.thread_id AND w.checkpoint_ns = c.checkpoint_ns
                AND w.checkpoint_id = c.checkpoint_id
        ) w ON true
        LEFT JOIN LATERAL (
            SELECT array_agg(s.type ORDER BY s.task_path COLLATE \"C\", s.task_id COLLATE \"C\", s.idx) AS types,
                array_agg(s.blob ORDER BY s.task_path COLLATE \"C\", s.task_id COLLATE \"C\", s.idx) AS values
            FROM checkpoint_writes s
            WHERE c.checkpoint ->> 'v' IN ('1', '2', '3') AND s.thread_id = c.thread_id
                AND s.checkpoint_ns = c.checkpoint_ns AND s.checkpoint_id = c.parent_checkpoint_id
                AND s.channel = '__pregel_tasks'
        ) s ON true "
    };
}
pub(super) use whole_checkpoints;

/// A checkpoint of a row of [`whole_checkpoints`], or an error that names it.
pub(super) fn stored(row: &Row) -> Result<Stored, Error> {
    let thread: &str = column(row, "thread_id")?;
    let ns: &str = column(row, "checkpoint_ns")?;
    let id: &str = column(row, "checkpoint_id")?;
    read(row, thread, ns, id).map_err(|error| wire::damaged(thread, ns, id, &error))
}

fn read(row: &Row, thread: &str, ns: &str, id: &str) -> Result<Stored, Error> {
    let parent: Option<&str> = column(row, "parent_checkpoint_id")?;
    let mut checkpoint = skeleton(column(row, "checkpoint")?)?;
    checkpoint.id = id.parse()?;
    add_blobs(&mut checkpoint, row)?;
    add_sends(&mut checkpoint, row)?;
    Ok(Stored {
        thread: thread.into(),
        ns: ns.into(),
        checkpoint,
        metadata: wire::metadata_from_json(column::<&str>(row, "metadata")?.as_bytes())?,
        parent: parent.map(str::parse).transpose()?,
        writes: writes(row)?,
    })
}

/// A column, which is missing or of another type only if the tables are not ours.
pub(super) fn column<'a, T: FromSql<'a>>(row: &'a Row, name: &str) -> Result<T, Error> {
    row.try_get(name)
        .map_err(|error| Error::backend(format!("column `{name}` is not as it should be"), error))
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
            return Err(Error::codec(format_args!("what node `{node}` has seen is no map")));
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

fn add_blobs(checkpoint: &mut Checkpoint, row: &Row) -> Result<(), Error> {
    let channels: Option<Vec<&str>> = column(row, "blob_channels")?;
    let types: Option<Vec<&str>> = column(row, "blob_types")?;
    let blobs: Option<Vec<Option<&[u8]>>> = column(row, "blobs")?;
    let blobs = blobs.into_iter().flatten();
    for ((channel, tag), bytes) in
        channels.into_iter().flatten().zip(types.into_iter().flatten()).zip(blobs)
    {
        checkpoint.channel_values.insert_mut(channel.into(), blob(Some(tag), bytes));
    }
    Ok(())
}

pub(super) fn blob(tag: Option<&str>, bytes: Option<&[u8]>) -> Blob {
    Blob::new(Tag::from_word(tag.unwrap_or_default()), bytes.unwrap_or_default())
}

fn add_sends(checkpoint: &mut Checkpoint, row: &Row) -> Result<(), Error> {
    let types: Option<Vec<Option<&str>>> = column(row, "send_types")?;
    let sends: Option<Vec<Option<&[u8]>>> = column(row, "sends")?;
    let (Some(types), Some(sends)) = (types, sends) else { return Ok(()) };
    let sends = types.into_iter().zip(sends).map(|(tag, bytes)| blob(tag, bytes).to_value());
    let sends = Blob::from_value(&Value::List(sends.collect::<Result<_, _>>()?))?;
    let newest = checkpoint.channel_versions.values().max().cloned();
    let version = newest.unwrap_or_else(|| Version::after(0, 0));
    checkpoint.channel_values.insert_mut(TASKS.into(), sends);
    checkpoint.channel_versions.insert_mut(TASKS.into(), version);
    Ok(())
}

/// The writes beside a checkpoint, in the order every saver gives them. The order of the database is one of its language.
pub(super) fn writes(row: &Row) -> Result<Vec<PendingWrite>, Error> {
    let Some(tasks) = column::<Option<Vec<&str>>>(row, "tasks")? else { return Ok(Vec::new()) };
    let paths: Vec<&str> = column(row, "paths")?;
    let slots: Vec<i32> = column(row, "slots")?;
    let channels: Vec<&str> = column(row, "channels")?;
    let types: Vec<Option<&str>> = column(row, "types")?;
    let values: Vec<Option<&[u8]>> = column(row, "values")?;
    let mut writes = Vec::with_capacity(tasks.len());
    for (nth, task) in tasks.into_iter().enumerate() {
        writes.push(PendingWrite {
            task: task.parse()?,
            path: paths[nth].to_owned(),
            index: slots[nth].into(),
            channel: channels[nth].into(),
            value: blob(types[nth], values[nth]),
        });
    }
    writes
        .sort_by(|a, b| a.path.cmp(&b.path).then(a.task.cmp(&b.task)).then(a.index.cmp(&b.index)));
    Ok(writes)
}
