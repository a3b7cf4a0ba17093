//! Reading checkpoints and writes, inside a read transaction.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, ToSql, params};
use superstep_checkpoint::wire::{self, CheckpointParts};
use superstep_checkpoint::{
    Blob, Checkpoint, CheckpointId, DeltaHistory, Error, Limits, Metadata, PendingWrite, Query,
    Stored, Tag,
};

use crate::error::During;

const CHECKPOINT: &str = "SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, \
                          checkpoint, metadata FROM checkpoints \
                          WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND checkpoint_id = ?3";

const HEAD: &str = "SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, \
                    checkpoint, metadata FROM checkpoints \
                    WHERE thread_id = ?1 AND checkpoint_ns = ?2 \
                    ORDER BY checkpoint_id DESC LIMIT 1";

const WRITES: &str = "SELECT task_id, task_path, idx, channel, type, value FROM writes \
                      WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND checkpoint_id = ?3";

/// The id of the head of a namespace.
pub(crate) fn head(db: &Connection, thread: &str, ns: &str) -> Result<Option<CheckpointId>, Error> {
    let sql = "SELECT checkpoint_id FROM checkpoints WHERE thread_id = ?1 AND checkpoint_ns = ?2 \
               ORDER BY checkpoint_id DESC LIMIT 1";
    let look = || {
        let mut statement = db.prepare_cached(sql)?;
        statement.query_row(params![thread, ns], |row| row.get::<_, String>(0)).optional()
    };
    let found = look().during(format_args!("looking for the head of thread `{thread}`"))?;
    found.map(|id| id.parse().map_err(|error| wire::damaged(thread, ns, &id, &error))).transpose()
}

pub(crate) fn get(
    db: &Connection,
    thread: &str,
    ns: &str,
    id: Option<CheckpointId>,
) -> Result<Option<Stored>, Error> {
    let what = || format!("reading a checkpoint of thread `{thread}`");
    let id = id.map(|id| id.to_string());
    let mut key: Vec<&dyn ToSql> = vec![&thread, &ns];
    key.extend(id.as_ref().map(|id| id as &dyn ToSql));
    let sql = if id.is_some() { CHECKPOINT } else { HEAD };
    let mut statement = db.prepare_cached(sql).during(what())?;
    let mut rows = statement.query(key.as_slice()).during(what())?;
    let Some(row) = rows.next().during(what())? else { return Ok(None) };
    let mut writes = db.prepare_cached(WRITES).during(what())?;
    stored(row, metadata(row)?, &mut writes).map(Some)
}

/// Sorts keys, which are in an index, and then reads one checkpoint after another: sorting whole rows would carry the
/// values of every checkpoint through memory before the first is given.
pub(crate) fn list(db: &Connection, query: &Query) -> Result<Vec<Stored>, Error> {
    let what = "listing checkpoints";
    let (sql, key) = list_statement(query);
    let key: Vec<&dyn ToSql> = key.iter().map(|text| text as &dyn ToSql).collect();
    let mut keys = db.prepare_cached(&sql).during(what)?;
    let mut checkpoints = db.prepare_cached(CHECKPOINT).during(what)?;
    let mut writes = db.prepare_cached(WRITES).during(what)?;
    let mut keys = keys.query(key.as_slice()).during(what)?;
    let mut found = Vec::new();
    while found.len() < query.limit.unwrap_or(usize::MAX) {
        let Some(key) = keys.next().during(what)? else { break };
        let [thread, ns, id]: [String; 3] =
            [key.get(0).during(what)?, key.get(1).during(what)?, key.get(2).during(what)?];
        let mut rows = checkpoints.query(params![thread, ns, id]).during(what)?;
        let Some(row) = rows.next().during(what)? else { continue };
        // Compared here and not in SQL: invalid JSON in one row would fail the query for every
        // thread, and all checkpointers must treat a filter alike.
        let metadata = metadata(row)?;
        if metadata.matches(&query.filter) {
            found.push(stored(row, metadata, &mut writes)?);
        }
    }
    Ok(found)
}

/// Values are bound, never part of the text.
fn list_statement(query: &Query) -> (String, Vec<String>) {
    let mut sql = String::from("SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints");
    let mut key = Vec::new();
    for (condition, value) in [
        ("thread_id =", query.thread.as_ref().map(ToString::to_string)),
        ("checkpoint_ns =", query.ns.as_ref().map(ToString::to_string)),
        ("checkpoint_id =", query.id.map(|id| id.to_string())),
        ("checkpoint_id <", query.before.map(|id| id.to_string())),
    ] {
        let Some(value) = value else { continue };
        key.push(value);
        let word = if key.len() == 1 { "WHERE" } else { "AND" };
        sql.push_str(&format!(" {word} {condition} ?{}", key.len()));
    }
    sql.push_str(" ORDER BY checkpoint_id DESC, thread_id, checkpoint_ns");
    (sql, key)
}

fn metadata(row: &Row<'_>) -> Result<Metadata, Error> {
    let bytes = row.get_ref(6).during("reading metadata").and_then(raw);
    bytes.and_then(wire::metadata_from_json).map_err(|error| name_row(row, &error))
}

fn stored(
    row: &Row<'_>,
    metadata: Metadata,
    writes: &mut CachedStatement<'_>,
) -> Result<Stored, Error> {
    let what = "reading a checkpoint";
    let (thread, ns): (Arc<str>, Arc<str>) = (row.get(0).during(what)?, row.get(1).during(what)?);
    let id: String = row.get(2).during(what)?;
    let (checkpoint, parent) =
        checkpoint(row, &id).map_err(|error| wire::damaged(&thread, &ns, &id, &error))?;
    let writes = pending(writes, &thread, &ns, &id)?;
    Ok(Stored { thread, ns, checkpoint, metadata, parent, writes })
}

fn checkpoint(row: &Row<'_>, id: &str) -> Result<(Checkpoint, Option<CheckpointId>), Error> {
    let what = "reading a checkpoint";
    let parent: Option<String> = row.get(3).during(what)?;
    let parent = parent.map(|parent| parent.parse()).transpose()?;
    let bytes = msgpack(row.get_ref(4).during(what)?, row.get_ref(5).during(what)?)?;
    let checkpoint = wire::checkpoint_from_msgpack(&bytes, Limits::DEFAULT)?;
    if checkpoint.id != id.parse()? {
        return Err(Error::codec(format_args!("it says it is {}", checkpoint.id)));
    }
    Ok((checkpoint, parent))
}

/// The bytes of a checkpoint. Very old ones are JSON.
pub(crate) fn msgpack<'a>(
    tag: ValueRef<'a>,
    bytes: ValueRef<'a>,
) -> Result<std::borrow::Cow<'a, [u8]>, Error> {
    let bytes = raw(bytes)?;
    match self::tag(tag)? {
        Tag::Msgpack => Ok(bytes.into()),
        Tag::Json => {
            let value = Blob::new(Tag::Json, bytes).to_value()?;
            Ok(Blob::from_value(&value)?.bytes().to_vec().into())
        }
        other => Err(Error::codec(format_args!(
            "it is stored as `{other}`, which cannot be read here; store it as `msgpack`"
        ))),
    }
}

fn tag(tag: ValueRef<'_>) -> Result<Tag, Error> {
    let word = tag.as_str_or_null().map_err(Error::codec)?;
    word.map(Tag::from_word).ok_or_else(|| Error::codec("its type is missing"))
}

/// Bytes, whichever way they were stored.
fn raw(value: ValueRef<'_>) -> Result<&[u8], Error> {
    match value {
        ValueRef::Blob(bytes) | ValueRef::Text(bytes) => Ok(bytes),
        ValueRef::Null => Ok(&[]),
        ValueRef::Integer(_) | ValueRef::Real(_) => Err(Error::codec("a number, not bytes")),
    }
}

fn name_row(row: &Row<'_>, error: &Error) -> Error {
    #[expect(
        clippy::disallowed_methods,
        reason = "a name that cannot be read is left out of the error"
    )]
    let text = |at| row.get::<_, String>(at).unwrap_or_default();
    wire::damaged(&text(0), &text(1), text(2), error)
}

/// The writes with a checkpoint, in their order.
fn pending(
    statement: &mut CachedStatement<'_>,
    thread: &str,
    ns: &str,
    id: &str,
) -> Result<Vec<PendingWrite>, Error> {
    let what = || format!("reading writes at checkpoint {id} of thread `{thread}`");
    let mut rows = statement.query(params![thread, ns, id]).during(what())?;
    let mut writes = Vec::new();
    while let Some(row) = rows.next().during(what())? {
        writes.push(write(row).map_err(|error| wire::damaged(thread, ns, id, &error))?);
    }
    writes.sort_by(|a, b| (&a.path, a.task, a.index).cmp(&(&b.path, b.task, b.index)));
    Ok(writes)
}

/// A row of task, path, slot, channel, type and value.
pub(crate) fn write(row: &Row<'_>) -> Result<PendingWrite, Error> {
    let what = "reading a write";
    let task: String = row.get(0).during(what)?;
    let tag = tag(row.get_ref(4).during(what)?)?;
    let value = raw(row.get_ref(5).during(what)?)?;
    Ok(PendingWrite {
        task: task.parse()?,
        path: row.get(1).during(what)?,
        index: row.get(2).during(what)?,
        channel: row.get(3).during(what)?,
        value: Blob::new(tag, value),
    })
}

/// Walks from parent to parent with two prepared statements, and reads of each checkpoint only whether it has a value.
pub(crate) fn delta_history(
    db: &Connection,
    thread: &str,
    ns: &str,
    id: CheckpointId,
    channels: &[Arc<str>],
) -> Result<BTreeMap<Arc<str>, DeltaHistory>, Error> {
    let what = || format!("rebuilding channels of thread `{thread}`");
    let mut found: BTreeMap<Arc<str>, DeltaHistory> =
        channels.iter().map(|channel| (channel.clone(), DeltaHistory::default())).collect();
    let mut open: Vec<(&Arc<str>, &mut DeltaHistory)> = found.iter_mut().collect();
    let sql = "SELECT parent_checkpoint_id, type, checkpoint FROM checkpoints \
               WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND checkpoint_id = ?3";
    let mut checkpoints = db.prepare_cached(sql).during(what())?;
    let mut writes = db.prepare_cached(WRITES).during(what())?;
    // Callers name the parents, so a cycle is possible and must end the walk.
    let mut visited = HashSet::from([id.to_string()]);
    let mut at = id.to_string();
    while !open.is_empty() {
        let damage = |error: &Error| wire::damaged(thread, ns, &at, error);
        let mut rows = checkpoints.query(params![thread, ns, at]).during(what())?;
        let Some(row) = rows.next().during(what())? else {
            if visited.len() == 1 {
                break;
            }
            return Err(wire::broken_chain(thread, ns, &at, id));
        };
        if visited.len() > 1 {
            let bytes = msgpack(row.get_ref(1).during(what())?, row.get_ref(2).during(what())?)
                .map_err(|error| damage(&error))?;
            let parts =
                CheckpointParts::new(&bytes, Limits::DEFAULT).map_err(|error| damage(&error))?;
            let here = pending(&mut writes, thread, ns, &at)?;
            for (channel, history) in &mut open {
                history.take(at.parse()?, channel, &here);
                history.seed =
                    parts.value(channel, Limits::DEFAULT).map_err(|error| damage(&error))?;
                if history.seed.is_some() {
                    let version = parts.version(channel, Limits::DEFAULT);
                    history.seed_version = version.map_err(|error| damage(&error))?;
                }
            }
            open.retain(|(_, history)| history.seed.is_none());
        }
        let parent: Option<String> = row.get(0).during(what())?;
        match parent {
            Some(parent) if visited.insert(parent.clone()) => at = parent,
            _ => break,
        }
    }
    found.values_mut().for_each(DeltaHistory::reverse);
    Ok(found)
}
