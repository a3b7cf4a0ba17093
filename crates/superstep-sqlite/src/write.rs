//! Storing checkpoints and writes, inside a transaction.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};
use superstep_checkpoint::{Blob, CheckpointId, Error, Put, TaskWrites, wire};

use crate::error::During;
use crate::read;

/// A checkpoint ready to be stored.
///
/// It has the bytes of the checkpoint and no longer what they were made of: the next checkpoint
/// shares most of them, and unshared data can be changed without a copy.
pub(crate) struct Row {
    thread: Arc<str>,
    ns: Arc<str>,
    id: CheckpointId,
    parent: Option<CheckpointId>,
    head: Option<CheckpointId>,
    writes: Option<Beside>,
    checkpoint: Vec<u8>,
    metadata: String,
}

/// Writes of tasks, and the checkpoint with which they are stored.
struct Beside {
    parent: CheckpointId,
    writes: Vec<TaskWrites>,
}

impl Row {
    pub(crate) fn new(put: Put) -> Result<Self, Error> {
        let bytes = wire::checkpoint_to_msgpack(&put.checkpoint).map_err(|error| {
            Error::codec(format_args!("a checkpoint of thread `{}`: {error}", put.thread))
        })?;
        let metadata = wire::metadata_to_json(&put.metadata)?;
        let beside = (!put.writes.is_empty()).then(|| wire::parent_of_writes(&put)).transpose()?;
        let Put { thread, ns, parent, head, writes, checkpoint, .. } = put;
        Ok(Self {
            thread,
            ns,
            id: checkpoint.id,
            parent,
            head,
            writes: beside.map(|parent| Beside { parent, writes }),
            checkpoint: bytes,
            metadata,
        })
    }

    pub(crate) fn store(&self, db: &Connection) -> Result<(), Error> {
        let Self { thread, ns, id, parent, .. } = self;
        let head = self.check_head(db)?;
        if let Some(Beside { parent, writes }) = &self.writes {
            if head != Some(*parent) {
                refuse_unknown(db, thread, ns, *parent)?;
            }
            store_writes(db, thread, ns, *parent, writes)?;
        }
        let sql = "INSERT OR REPLACE INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, \
                   parent_checkpoint_id, type, checkpoint, metadata) \
                   VALUES (?1, ?2, ?3, ?4, 'msgpack', ?5, ?6)";
        let what = format_args!("storing checkpoint {id} of thread `{thread}`");
        let mut statement = db.prepare_cached(sql).during(what)?;
        let stored = statement.execute(params![
            thread,
            ns,
            id.to_string(),
            parent.map(|parent| parent.to_string()),
            self.checkpoint,
            self.metadata.as_bytes(),
        ]);
        stored.map(drop).during(what)
    }

    /// Checks that the head is the one the writer expects, unless the checkpoint replaces itself.
    fn check_head(&self, db: &Connection) -> Result<Option<CheckpointId>, Error> {
        let Self { thread, ns, head, id, .. } = self;
        let found = read::head(db, thread, ns)?;
        if found == *head || is_stored(db, thread, ns, *id)? {
            return Ok(found);
        }
        Err(Error::Conflict {
            thread: thread.to_string(),
            ns: ns.to_string(),
            expected: *head,
            found,
        })
    }
}

/// Stores writes with an existing checkpoint.
pub(crate) fn put_writes(
    db: &Connection,
    thread: &str,
    ns: &str,
    checkpoint: CheckpointId,
    tasks: &[TaskWrites],
) -> Result<(), Error> {
    refuse_unknown(db, thread, ns, checkpoint)?;
    store_writes(db, thread, ns, checkpoint, tasks)
}

fn refuse_unknown(
    db: &Connection,
    thread: &str,
    ns: &str,
    checkpoint: CheckpointId,
) -> Result<(), Error> {
    if is_stored(db, thread, ns, checkpoint)? {
        return Ok(());
    }
    Err(Error::Unknown { thread: thread.to_owned(), ns: ns.to_owned(), id: checkpoint })
}

fn store_writes(
    db: &Connection,
    thread: &str,
    ns: &str,
    checkpoint: CheckpointId,
    tasks: &[TaskWrites],
) -> Result<(), Error> {
    for (task, slot, expected) in wire::expectations(tasks)? {
        let key = params![thread, ns, checkpoint.to_string(), task.to_string(), slot];
        if slot_value(db, key)? != expected.value {
            return Err(wire::overtaken(thread, ns, checkpoint, task, expected));
        }
    }
    store_tasks(db, thread, ns, checkpoint, tasks)
        .during(format_args!("storing writes at checkpoint {checkpoint} of thread `{thread}`"))
}

fn store_tasks(
    db: &Connection,
    thread: &str,
    ns: &str,
    checkpoint: CheckpointId,
    tasks: &[TaskWrites],
) -> rusqlite::Result<()> {
    let checkpoint = checkpoint.to_string();
    // What all rows begin with is bound once.
    let prepare = |sql| {
        let mut statement = db.prepare_cached(sql)?;
        statement.raw_bind_parameter(1, thread)?;
        statement.raw_bind_parameter(2, ns)?;
        statement.raw_bind_parameter(3, &checkpoint)?;
        Ok::<_, rusqlite::Error>(statement)
    };
    let mut replace = prepare(
        "INSERT OR REPLACE INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, \
         task_path, idx, channel, type, value) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    let mut add = prepare(
        "INSERT OR IGNORE INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, \
         task_path, idx, channel, type, value) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    for writes in tasks {
        let task = writes.task.to_string();
        if writes.replaces {
            let sql = "DELETE FROM writes WHERE thread_id = ?1 AND checkpoint_ns = ?2 \
                       AND checkpoint_id = ?3 AND task_id = ?4";
            db.prepare_cached(sql)?.execute(params![thread, ns, checkpoint, task])?;
        }
        for (slot, channel, value) in wire::slots(writes) {
            let row = if slot.replaces { &mut replace } else { &mut add };
            row.raw_bind_parameter(4, &task)?;
            row.raw_bind_parameter(5, &writes.path)?;
            row.raw_bind_parameter(6, slot.index)?;
            row.raw_bind_parameter(7, channel)?;
            row.raw_bind_parameter(8, value.tag().as_str())?;
            row.raw_bind_parameter(9, value.bytes())?;
            row.raw_execute()?;
        }
    }
    Ok(())
}

fn is_stored(
    db: &Connection,
    thread: &str,
    ns: &str,
    checkpoint: CheckpointId,
) -> Result<bool, Error> {
    let sql = "SELECT 1 FROM checkpoints WHERE thread_id = ?1 AND checkpoint_ns = ?2 \
               AND checkpoint_id = ?3";
    let exists = || db.prepare_cached(sql)?.exists(params![thread, ns, checkpoint.to_string()]);
    exists().during(format_args!("looking for checkpoint {checkpoint} of thread `{thread}`"))
}

fn slot_value(db: &Connection, key: &[&dyn rusqlite::ToSql]) -> Result<Option<Blob>, Error> {
    let sql = "SELECT type, value FROM writes WHERE thread_id = ?1 AND checkpoint_ns = ?2 \
               AND checkpoint_id = ?3 AND task_id = ?4 AND idx = ?5";
    let look = || {
        let mut statement = db.prepare_cached(sql)?;
        let found = statement.query_row(key, |row| {
            let tag: String = row.get(0)?;
            let bytes: Option<Arc<[u8]>> = row.get(1)?;
            Ok(Blob::new(tag.as_str().into(), bytes.unwrap_or_default()))
        });
        found.optional()
    };
    look().during("comparing what is stored with what is expected")
}
