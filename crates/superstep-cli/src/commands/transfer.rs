//! `export` and `import`: threads as JSON lines, every value with its tag and its bytes.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use superstep_checkpoint::{
    Blob, Checkpoint, CheckpointId, Metadata, PendingWrite, Put, Query, SharedMap, Stored, Tag,
    TaskWrites, Version, reserved_index, wire,
};

use crate::base64;
use crate::db::{Db, unknown_thread};
use crate::out::{Fail, Out, tame};

/// The first line of an export, and its version.
const FORMAT: &str = "superstep-export";

#[derive(Debug, Deserialize, Serialize)]
struct Header {
    format: String,
    v: u32,
}

/// A checkpoint with the writes next to it.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Record {
    thread: String,
    ns: String,
    id: CheckpointId,
    parent: Option<CheckpointId>,
    v: u32,
    ts: String,
    values: BTreeMap<String, Bytes>,
    versions: BTreeMap<String, String>,
    seen: BTreeMap<String, BTreeMap<String, String>>,
    updated: Option<Vec<String>>,
    /// Text, since JSON of some writers has numbers that others cannot read.
    metadata: String,
    writes: Vec<WriteRecord>,
}

#[derive(Debug, Deserialize, Serialize)]
struct WriteRecord {
    task: superstep_checkpoint::TaskId,
    path: String,
    index: i64,
    channel: String,
    value: Bytes,
}

/// A tag, and bytes in base64.
#[derive(Debug, Deserialize, Serialize)]
struct Bytes(String, String);

impl Bytes {
    fn new(blob: &Blob) -> Self {
        Self(blob.tag().as_str().to_owned(), base64::encode(blob.bytes()))
    }

    fn blob(&self) -> Result<Blob, Fail> {
        let bytes = base64::decode(&self.1).ok_or_else(|| Fail::new("a value is no base64"))?;
        Ok(Blob::new(Tag::from_word(&self.0), bytes))
    }
}

fn texts(versions: &SharedMap<Version>) -> BTreeMap<String, String> {
    versions.iter().map(|(name, version)| (name.to_string(), version.to_string())).collect()
}

fn versions(texts: &BTreeMap<String, String>) -> SharedMap<Version> {
    texts
        .iter()
        .map(|(name, text)| (name.as_str().into(), Version::from_text(text.as_str())))
        .collect()
}

impl Record {
    fn new(stored: &Stored) -> Result<Self, Fail> {
        let Checkpoint {
            v,
            id,
            ts,
            channel_values,
            channel_versions,
            versions_seen,
            updated_channels,
        } = &stored.checkpoint;
        let write = |write: &PendingWrite| WriteRecord {
            task: write.task,
            path: write.path.clone(),
            index: write.index,
            channel: write.channel.to_string(),
            value: Bytes::new(&write.value),
        };
        Ok(Self {
            thread: stored.thread.to_string(),
            ns: stored.ns.to_string(),
            id: *id,
            parent: stored.parent,
            v: *v,
            ts: ts.clone(),
            values: channel_values
                .iter()
                .map(|(name, blob)| (name.to_string(), Bytes::new(blob)))
                .collect(),
            versions: texts(channel_versions),
            seen: versions_seen
                .iter()
                .map(|(node, seen)| (node.to_string(), texts(seen)))
                .collect(),
            updated: updated_channels
                .as_ref()
                .map(|names| names.iter().map(ToString::to_string).collect()),
            metadata: wire::metadata_to_json(&stored.metadata)?,
            writes: stored.writes.iter().map(write).collect(),
        })
    }

    fn checkpoint(&self) -> Result<(Checkpoint, Metadata), Fail> {
        let mut channel_values = SharedMap::new_sync();
        for (name, bytes) in &self.values {
            channel_values.insert_mut(name.as_str().into(), bytes.blob()?);
        }
        let seen = self.seen.iter().map(|(node, seen)| (node.as_str().into(), versions(seen)));
        let checkpoint = Checkpoint {
            v: self.v,
            id: self.id,
            ts: self.ts.clone(),
            channel_values,
            channel_versions: versions(&self.versions),
            versions_seen: seen.collect(),
            updated_channels: self
                .updated
                .as_ref()
                .map(|names| names.iter().map(|name| name.as_str().into()).collect()),
        };
        Ok((checkpoint, wire::metadata_from_json(self.metadata.as_bytes())?))
    }

    /// The writes as a checkpointer takes them: the slot of an ordinary write is its position in the list.
    fn task_writes(&self) -> Result<Vec<TaskWrites>, Fail> {
        let mut tasks: Vec<(&WriteRecord, Vec<&WriteRecord>)> = Vec::new();
        for write in &self.writes {
            match tasks
                .iter_mut()
                .find(|(first, _)| first.task == write.task && first.path == write.path)
            {
                Some((_, all)) => all.push(write),
                None => tasks.push((write, vec![write])),
            }
        }
        tasks.into_iter().map(|(first, all)| {
            let pair = |write: &WriteRecord| Ok::<_, Fail>((Arc::<str>::from(write.channel.as_str()), write.value.blob()?));
            let (reserved, mut ordinary): (Vec<_>, Vec<_>) = all.into_iter().partition(|write| reserved_index(&write.channel).is_some());
            ordinary.sort_by_key(|write| write.index);
            let mut list = Vec::new();
            for write in ordinary {
                while (list.len() as i64) < write.index {
                    // A reserved write may stand anywhere and any number of times, so it holds a place.
                    let Some(filler) = reserved.first() else {
                        return Err(Fail::new(format_args!("task {} of checkpoint {} has no write in front of slot {}, which cannot be stored again", write.task, self.id, write.index)));
                    };
                    list.push(pair(filler)?);
                }
                list.push(pair(write)?);
            }
            for write in reserved {
                list.push(pair(write)?);
            }
            Ok(TaskWrites::new(first.task, first.path.clone(), list))
        }).collect()
    }
}

/// Writes threads to standard output.
pub(super) async fn export(db: &Db, threads: &[String], out: Out) -> Result<(), Fail> {
    let all = db.checkpointer.inventory().await?;
    let mut names: Vec<Arc<str>> = all.checkpoints.into_iter().map(|key| key.thread).collect();
    names.dedup();
    if let Some(unknown) =
        threads.iter().find(|thread| !names.iter().any(|name| **name == ***thread))
    {
        return Err(unknown_thread(unknown));
    }
    names.retain(|name| threads.is_empty() || threads.iter().any(|thread| **thread == **name));
    let header = Header { format: FORMAT.to_owned(), v: 1 };
    out.line(serde_json::to_string(&header)?)?;
    for thread in names {
        let query = Query { thread: Some(thread), ..Query::default() };
        // Oldest first, so that each line follows what it continues.
        for stored in db.checkpointer.list(query).await?.iter().rev() {
            out.line(serde_json::to_string(&Record::new(stored)?)?)?;
        }
    }
    Ok(())
}

/// Reads an export.
pub(super) fn read(input: impl BufRead) -> Result<Vec<Record>, Fail> {
    let mut lines = input.lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    match serde_json::from_str::<Header>(&first) {
        Ok(header) if header.format == FORMAT && header.v == 1 => {}
        _ => {
            return Err(Fail::new(
                "this is not an export of superstep: its first line does not say so",
            ));
        }
    }
    let mut records = Vec::new();
    for (nth, line) in lines.enumerate() {
        let record: Record = serde_json::from_str(&line?)
            .map_err(|error| Fail::new(format_args!("line {} cannot be read: {error}", nth + 2)))?;
        records.push(record);
    }
    Ok(records)
}

/// Stores what an export holds. Threads that are there already are refused before anything is stored.
pub(super) async fn import(db: &Db, records: &[Record], out: Out) -> Result<(), Fail> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for record in records {
        *counts.entry(&record.thread).or_default() += 1;
    }
    let there = db.checkpointer.inventory().await?;
    if let Some(key) = there.checkpoints.iter().find(|key| counts.contains_key(&*key.thread)) {
        return Err(Fail::new(format_args!(
            "thread `{}` is there already; delete it first, or export and import others",
            key.thread
        )));
    }
    let stored = store(db, records).await;
    if let Err(fail) = stored {
        // Half a thread is worse than none, and none of these was there before.
        for thread in counts.keys() {
            db.checkpointer.delete_thread(thread).await?;
        }
        return Err(fail);
    }
    let json = json!({ "imported": counts });
    out.either(&Json::clone(&json), || {
        let line = |(thread, count): (&&str, &usize)| {
            format!("imported thread `{}` with {count} checkpoints", tame(thread))
        };
        counts.iter().map(line).collect::<Vec<_>>().join("\n")
    })
}

async fn store(db: &Db, records: &[Record]) -> Result<(), Fail> {
    let mut heads: BTreeMap<(&str, &str), CheckpointId> = BTreeMap::new();
    let mut sorted: Vec<&Record> = records.iter().collect();
    sorted.sort_by_key(|record| record.id);
    for record in sorted {
        let (checkpoint, metadata) = record.checkpoint()?;
        let (thread, ns) = (record.thread.as_str(), record.ns.as_str());
        let put = Put {
            thread: thread.into(),
            ns: ns.into(),
            parent: record.parent,
            head: heads.insert((thread, ns), record.id),
            writes: Vec::new(),
            changed: checkpoint.channel_versions.keys().cloned().collect(),
            checkpoint,
            metadata,
        };
        db.checkpointer.put(put).await?;
        let writes = record.task_writes()?;
        if !writes.is_empty() {
            db.checkpointer.put_writes(thread, ns, record.id, writes).await?;
        }
    }
    Ok(())
}
