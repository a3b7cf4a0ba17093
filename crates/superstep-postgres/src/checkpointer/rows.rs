//! Converts what is stored to columns of rows.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};
use serde_json::Value as Json;
use superstep_checkpoint::{
    Blob, Checkpoint, Error, Put, SharedMap, TaskId, TaskWrites, Version, wire,
};

use super::inline::{self, Place};
use crate::text::{check_text, json_has_nul};

/// A checkpoint with everything that statements take of it.
#[derive(Debug)]
pub(super) struct Sheet<'a> {
    pub(super) put: &'a Put,
    pub(super) thread: &'a str,
    pub(super) ns: &'a str,
    pub(super) id: String,
    pub(super) parent: Option<String>,
    pub(super) head: Option<String>,
    pub(super) writes: WriteRows<'a>,
    pub(super) rows: CheckpointRows<'a>,
}

impl<'a> Sheet<'a> {
    pub(super) fn new(put: &'a Put) -> Result<Self, Error> {
        check_text("thread", &put.thread)?;
        check_text("namespace", &put.ns)?;
        if !put.writes.is_empty() {
            wire::parent_of_writes(put)?;
        }
        Ok(Self {
            put,
            thread: &put.thread,
            ns: &put.ns,
            id: put.checkpoint.id.to_string(),
            parent: put.parent.map(|id| id.to_string()),
            head: put.head.map(|id| id.to_string()),
            writes: WriteRows::new(&put.writes)?,
            rows: CheckpointRows::new(put)?,
        })
    }
}

/// Writes of tasks, a list for each column.
#[derive(Debug, Default)]
pub(super) struct WriteRows<'a> {
    /// Tasks of which everything else that is stored goes.
    pub(super) cleared: Vec<String>,
    pub(super) tasks: Vec<String>,
    pub(super) paths: Vec<&'a str>,
    pub(super) slots: Vec<i32>,
    pub(super) channels: Vec<&'a str>,
    pub(super) types: Vec<&'a str>,
    pub(super) blobs: Vec<&'a [u8]>,
    pub(super) expected: ExpectedRows<'a>,
}

/// The expected content of slots, one list per column.
#[derive(Debug, Default)]
pub(super) struct ExpectedRows<'a> {
    pub(super) tasks: Vec<String>,
    pub(super) slots: Vec<i32>,
    pub(super) types: Vec<Option<&'a str>>,
    pub(super) blobs: Vec<Option<&'a [u8]>>,
}

/// The change of a slot.
struct Written<'a> {
    path: &'a str,
    channel: &'a str,
    value: &'a Blob,
}

impl<'a> WriteRows<'a> {
    /// The rows of writes that are stored one after the other, at most one for each slot: a statement can change a row only
    /// once.
    pub(super) fn new(all: &'a [TaskWrites]) -> Result<Self, Error> {
        let mut cleared: BTreeSet<TaskId> = BTreeSet::new();
        let mut slots: BTreeMap<(TaskId, i64), Written<'a>> = BTreeMap::new();
        for writes in all {
            check_text("the path of a task", &writes.path)?;
            if writes.replaces {
                cleared.insert(writes.task);
                slots.retain(|(task, _), _| *task != writes.task);
            }
            for (slot, channel, value) in wire::slots(writes) {
                check_text("channel", channel)?;
                let key = (writes.task, slot.index);
                if slot.replaces || !slots.contains_key(&key) {
                    slots.insert(key, Written { path: &writes.path, channel, value });
                }
            }
        }
        let mut rows = Self {
            cleared: cleared.iter().map(ToString::to_string).collect(),
            expected: ExpectedRows::new(all)?,
            ..Self::default()
        };
        for ((task, slot), written) in slots {
            rows.tasks.push(task.to_string());
            rows.paths.push(written.path);
            rows.slots.push(slot_number(slot)?);
            rows.channels.push(written.channel);
            rows.types.push(written.value.tag().as_str());
            rows.blobs.push(written.value.bytes());
        }
        Ok(rows)
    }
}

impl<'a> ExpectedRows<'a> {
    fn new(all: &'a [TaskWrites]) -> Result<Self, Error> {
        let mut rows = Self::default();
        for (task, slot, expected) in wire::expectations(all)? {
            rows.tasks.push(task.to_string());
            rows.slots.push(slot_number(slot)?);
            rows.types.push(expected.value.as_ref().map(|blob| blob.tag().as_str()));
            rows.blobs.push(expected.value.as_ref().map(Blob::bytes));
        }
        Ok(rows)
    }
}

fn slot_number(slot: i64) -> Result<i32, Error> {
    i32::try_from(slot).map_err(|_| Error::invalid("a task made more writes than can be stored"))
}

/// A checkpoint, split into its own row and those of the values that have one.
#[derive(Debug, Default)]
pub(super) struct CheckpointRows<'a> {
    pub(super) checkpoint: String,
    pub(super) metadata: String,
    /// The values to be stored in rows.
    pub(super) blobs: BlobRows<'a>,
    /// Values that have not changed and need a row, which LangGraph did not make.
    pub(super) needed: BlobRows<'a>,
    /// Changed channels that have no row, and their versions.
    pub(super) rowless: (Vec<&'a str>, Vec<String>),
}

/// Values of channels, a list for each column.
#[derive(Debug, Default)]
pub(super) struct BlobRows<'a> {
    pub(super) channels: Vec<&'a str>,
    pub(super) versions: Vec<String>,
    pub(super) types: Vec<&'a str>,
    pub(super) blobs: Vec<&'a [u8]>,
}

impl<'a> BlobRows<'a> {
    fn push(&mut self, channel: &'a str, version: String, blob: &'a Blob) {
        self.channels.push(channel);
        self.versions.push(version);
        self.types.push(blob.tag().as_str());
        self.blobs.push(blob.bytes());
    }

    pub(super) fn append(&mut self, mut other: Self) {
        self.channels.append(&mut other.channels);
        self.versions.append(&mut other.versions);
        self.types.append(&mut other.types);
        self.blobs.append(&mut other.blobs);
    }
}

impl<'a> CheckpointRows<'a> {
    pub(super) fn new(put: &'a Put) -> Result<Self, Error> {
        let checkpoint = &put.checkpoint;
        let changed: BTreeSet<&str> = put.changed.iter().map(|channel| &**channel).collect();
        let mut rows = Self::default();
        let mut values = Vec::new();
        for (channel, blob) in &checkpoint.channel_values {
            check_text("channel", channel)?;
            // The first of a line has nothing before it that could have stored a value.
            let is_new = put.parent.is_none() || changed.contains(&**channel);
            let place = inline::place(blob);
            if place == Place::Snapshot {
                values.push((&**channel, Json::Bool(true)));
            }
            match place {
                Place::Inline(json) => values.push((&**channel, json)),
                _ if is_new => rows.blobs.push(channel, version_of(checkpoint, channel)?, blob),
                Place::RowHere => rows.needed.push(channel, version_of(checkpoint, channel)?, blob),
                Place::Row | Place::Snapshot => {}
            }
        }
        let with_row: BTreeSet<&str> = rows.blobs.channels.iter().copied().collect();
        for channel in changed.difference(&with_row) {
            if let Ok(version) = version_of(checkpoint, channel) {
                rows.rowless.0.push(channel);
                rows.rowless.1.push(version);
            }
        }
        rows.checkpoint = checkpoint_json(checkpoint, &values)?;
        rows.metadata = wire::metadata_to_json(&put.metadata)?;
        for (what, text) in [("checkpoint", &rows.checkpoint), ("metadata", &rows.metadata)] {
            if json_has_nul(text) {
                return Err(Error::invalid(format_args!(
                    "the {what} for thread `{}` has a name or text with NUL in it, which PostgreSQL cannot store; leave it \
                     out",
                    put.thread
                )));
            }
        }
        Ok(rows)
    }
}

/// The version of a channel as it stands in the rows of its values.
fn version_of(checkpoint: &Checkpoint, channel: &str) -> Result<String, Error> {
    let version = checkpoint.version(channel).ok_or_else(|| {
        Error::invalid(format_args!("channel `{channel}` has a value but no version"))
    })?;
    check_text("the version of a channel", version.as_str())?;
    Ok(match wire::whole_number(version) {
        Some(number) => number.to_string(),
        None => version.as_str().to_owned(),
    })
}

fn checkpoint_json(checkpoint: &Checkpoint, values: &[(&str, Json)]) -> Result<String, Error> {
    let updated = checkpoint.updated_channels.as_ref();
    let skeleton = Skeleton {
        v: checkpoint.v,
        ts: &checkpoint.ts,
        id: checkpoint.id.to_string(),
        channel_values: Values(values),
        channel_versions: Versions(&checkpoint.channel_versions),
        versions_seen: VersionsSeen(&checkpoint.versions_seen),
        updated_channels: updated.map(|names| names.iter().map(|name| &**name).collect()),
    };
    serde_json::to_string(&skeleton).map_err(Error::codec)
}

/// A checkpoint without the values that have a row. It is written as text once for each superstep, without a tree of its
/// parts in between.
#[derive(Serialize)]
struct Skeleton<'a> {
    v: u32,
    ts: &'a str,
    id: String,
    channel_values: Values<'a>,
    channel_versions: Versions<'a>,
    versions_seen: VersionsSeen<'a>,
    updated_channels: Option<Vec<&'a str>>,
}

struct Values<'a>(&'a [(&'a str, Json)]);

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(channel, json)| (channel, json)))
    }
}

struct Versions<'a>(&'a SharedMap<Version>);

impl Serialize for Versions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer
            .collect_map(self.0.iter().map(|(channel, version)| (&**channel, Stored(version))))
    }
}

struct VersionsSeen<'a>(&'a SharedMap<SharedMap<Version>>);

impl Serialize for VersionsSeen<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(node, seen)| (&**node, Versions(seen))))
    }
}

/// A version as it is stored.
struct Stored<'a>(&'a Version);

impl Serialize for Stored<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match wire::whole_number(self.0) {
            Some(number) => serializer.serialize_u64(number),
            None => serializer.serialize_str(self.0.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_that_is_written_twice_in_one_call_is_one_row() {
        let task = TaskId::NULL;
        let value = |number: i32| Blob::encode(&number).expect("a number");
        let all = [
            TaskWrites::new(
                task,
                "p",
                vec![("a".into(), value(1)), ("__resume__".into(), value(2))],
            ),
            TaskWrites::new(
                task,
                "p",
                vec![("a".into(), value(3)), ("__resume__".into(), value(4))],
            ),
        ];
        let rows = WriteRows::new(&all).expect("rows");
        assert_eq!(rows.slots, [-4, 0]);
        assert_eq!(rows.blobs, [[4], [1]]);
    }
}
