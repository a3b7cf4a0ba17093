//! The histories of delta channels.

use std::collections::BTreeMap;
use std::sync::Arc;

use superstep_checkpoint::{
    Blob, CheckpointId, DeltaHistory, Error, TaskId, Value, Version, WritePlace, wire,
};
use tokio_postgres::Row;

use super::inline;
use super::read::{blob, column};
use crate::db::{Db, Statement};

/// Walks from parent to parent in the database until the whole value of each channel is found, and
/// returns the writes on the way and the whole values. A row without a channel names a missing
/// parent.
///
/// `LIMIT 1` keeps the server from reading the whole line again for each parent.
///
/// Writers name the parents, so a cycle is possible; the number of checkpoints bounds the walk.
const WALK: &str = "
WITH RECURSIVE walk(depth, size, id, parent, open, rest) AS (
    SELECT 0::bigint, (SELECT count(*) FROM checkpoints WHERE thread_id = $1 AND checkpoint_ns = $2),
        checkpoint_id, parent_checkpoint_id, '{}'::text[], $4::text[]
    FROM checkpoints WHERE thread_id = $1 AND checkpoint_ns = $2 AND checkpoint_id = $3
    UNION ALL
    SELECT walk.depth + 1, walk.size, c.checkpoint_id, c.parent_checkpoint_id, walk.rest, ARRAY(
        SELECT channel FROM unnest(walk.rest) AS r(channel)
        WHERE NOT coalesce(c.checkpoint -> 'channel_values' ? channel, false) AND NOT EXISTS (
            SELECT FROM checkpoint_blobs b WHERE b.thread_id = $1 AND b.checkpoint_ns = $2 AND b.channel = r.channel
                AND b.version = c.checkpoint -> 'channel_versions' ->> r.channel AND b.type <> 'empty'
        )
    )
    FROM walk CROSS JOIN LATERAL (
        SELECT * FROM checkpoints c
        WHERE c.thread_id = $1 AND c.checkpoint_ns = $2 AND c.checkpoint_id = walk.parent LIMIT 1
    ) c
    WHERE cardinality(walk.rest) > 0 AND walk.depth < walk.size
)
SELECT walk.depth, walk.id, w.channel, w.task_path, w.task_id, w.idx, w.type, w.blob, NULL AS inline, NULL AS version
FROM walk JOIN checkpoint_writes w ON w.thread_id = $1 AND w.checkpoint_ns = $2 AND w.checkpoint_id = walk.id
    AND w.channel = ANY(walk.open)
UNION ALL
SELECT walk.depth, walk.id, o.channel, NULL, NULL, NULL, b.type, b.blob,
    (c.checkpoint -> 'channel_values' -> o.channel)::text, c.checkpoint -> 'channel_versions' ->> o.channel
FROM walk
CROSS JOIN unnest(walk.open) AS o(channel)
JOIN checkpoints c ON c.thread_id = $1 AND c.checkpoint_ns = $2 AND c.checkpoint_id = walk.id
LEFT JOIN checkpoint_blobs b ON b.thread_id = $1 AND b.checkpoint_ns = $2 AND b.channel = o.channel
    AND b.version = c.checkpoint -> 'channel_versions' ->> o.channel AND b.type <> 'empty'
WHERE o.channel <> ALL(walk.rest)
UNION ALL
SELECT walk.depth, walk.parent, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM walk
WHERE walk.parent IS NOT NULL AND cardinality(walk.rest) > 0 AND NOT EXISTS (
    SELECT FROM checkpoints c WHERE c.thread_id = $1 AND c.checkpoint_ns = $2 AND c.checkpoint_id = walk.parent
)";

/// The position of a write among all of its channel: oldest checkpoint first, then in the order of
/// writes.
type Place = (std::cmp::Reverse<i64>, String, TaskId, i32);

pub(super) async fn delta_history(
    db: &Db,
    thread: &str,
    ns: &str,
    id: CheckpointId,
    channels: &[Arc<str>],
) -> Result<BTreeMap<Arc<str>, DeltaHistory>, Error> {
    let mut found: BTreeMap<Arc<str>, DeltaHistory> =
        channels.iter().map(|channel| (channel.clone(), DeltaHistory::default())).collect();
    let names: Vec<&str> = found.keys().map(|channel| &**channel).collect();
    if names.is_empty() || super::has_nul(&[thread, ns]) || super::has_nul(&names) {
        return Ok(found);
    }
    let target = id.to_string();
    let statement = Statement::new(WALK).text(&thread).text(&ns).text(&target).texts(&names);
    let rows = db.read(statement).await;
    let rows = rows.map_err(|failure| failure.told(|| format!("read thread `{thread}`")))?;
    let mut writes: BTreeMap<&str, Vec<(Place, WritePlace, Blob)>> = BTreeMap::new();
    for row in &rows {
        let at: &str = column(row, "id")?;
        let Some(channel) = column::<Option<&str>>(row, "channel")? else {
            return Err(wire::broken_chain(thread, ns, at, id));
        };
        let value = step(row).map_err(|error| wire::damaged(thread, ns, at, &error))?;
        match value {
            Step::Write(place, value) => {
                let (task, index) = (place.2, i64::from(place.3));
                let stored = WritePlace { checkpoint: at.parse()?, task, index };
                writes.entry(channel).or_default().push((place, stored, value));
            }
            Step::Seed(value) => {
                let version: Option<&str> = column(row, "version")?;
                if let Some(history) = found.get_mut(channel) {
                    history.seed = Some(value);
                    history.seed_version = version.map(version_from);
                }
            }
        }
    }
    for (channel, mut ordered) in writes {
        ordered.sort_by(|a, b| a.0.cmp(&b.0));
        if let Some(history) = found.get_mut(channel) {
            let parts = ordered.into_iter().map(|(_, place, value)| (place, value));
            (history.places, history.writes) = parts.unzip();
        }
    }
    Ok(found)
}

/// The version of a channel, which is a number where it was counted in numbers.
fn version_from(text: &str) -> Version {
    let value = text.parse().map_or_else(|_| Value::from(text), |number: u64| Value::from(number));
    wire::version_from_value(&value).unwrap_or_else(|_| Version::from_text(text))
}

enum Step {
    Write(Place, Blob),
    Seed(Blob),
}

fn step(row: &Row) -> Result<Step, Error> {
    let tag: Option<&str> = column(row, "type")?;
    let bytes: Option<&[u8]> = column(row, "blob")?;
    if let Some(task) = column::<Option<&str>>(row, "task_id")? {
        let path: String = column(row, "task_path")?;
        let depth = std::cmp::Reverse(column(row, "depth")?);
        let place = (depth, path, task.parse()?, column(row, "idx")?);
        return Ok(Step::Write(place, blob(tag, bytes)));
    }
    // A row goes before what stands in the checkpoint, which may be only a mark.
    match (tag, column::<Option<&str>>(row, "inline")?) {
        (Some(_), _) => Ok(Step::Seed(blob(tag, bytes))),
        (None, Some(json)) => {
            Ok(Step::Seed(inline::from_inline(serde_json::from_str(json).map_err(Error::codec)?)?))
        }
        (None, None) => Err(Error::codec("a value that was found a moment ago is gone")),
    }
}
