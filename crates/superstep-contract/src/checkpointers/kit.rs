//! What cases are made of.

use std::fmt::{Debug, Display};
use std::sync::Arc;

use superstep_checkpoint::{
    AnyCheckpointer, Blob, Checkpoint, CheckpointId, Error, IdClock, Metadata, PendingWrite, Put,
    Query, SharedMap, Source, Stored, TaskId, TaskWrites, Value, Version,
};

/// Why a case did not pass.
#[derive(Debug)]
pub(crate) enum Fault {
    Unsupported,
    Failed(String),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error {
            Error::Unsupported(_) => Self::Unsupported,
            error => Self::Failed(format!("unexpected error: {error} ({error:?})")),
        }
    }
}

pub(crate) type Case = Result<(), Fault>;

pub(crate) fn fail<T>(what: impl Display) -> Result<T, Fault> {
    Err(Fault::Failed(what.to_string()))
}

pub(crate) fn ensure(holds: bool, what: impl Display) -> Case {
    if holds { Ok(()) } else { fail(what) }
}

pub(crate) fn same<A: PartialEq<B> + Debug, B: Debug>(found: A, wanted: B, what: &str) -> Case {
    ensure(found == wanted, format_args!("{what}: found {found:?}, wanted {wanted:?}"))
}

/// A checkpoint that must exist.
pub(crate) async fn read(
    checkpointer: &AnyCheckpointer,
    thread: &str,
    ns: &str,
    id: Option<CheckpointId>,
) -> Result<Stored, Fault> {
    match checkpointer.get(thread, ns, id).await? {
        Some(stored) => Ok(stored),
        None => fail(format_args!("no checkpoint {id:?} on thread `{thread}`, namespace `{ns}`")),
    }
}

pub(crate) async fn ids(
    checkpointer: &AnyCheckpointer,
    query: Query,
) -> Result<Vec<CheckpointId>, Fault> {
    Ok(checkpointer.list(query).await?.into_iter().map(|stored| stored.checkpoint.id).collect())
}

pub(crate) fn of(thread: &str) -> Query {
    Query { thread: Some(thread.into()), ..Query::default() }
}

pub(crate) fn blob(value: impl Into<Value>) -> Blob {
    Blob::from_value(&value.into()).unwrap_or_default()
}

pub(crate) fn task(number: u8) -> TaskId {
    TaskId::from_bytes([number; 16])
}

/// Writes of a task whose path is its number.
pub(crate) fn writes(number: u8, writes: &[(&str, i64)]) -> TaskWrites {
    let writes = writes.iter().map(|(channel, value)| ((*channel).into(), blob(*value))).collect();
    TaskWrites::new(task(number), number.to_string(), writes)
}

/// Writes as text, one for each: `path task slot channel=value`.
pub(crate) fn shown(writes: &[PendingWrite]) -> Vec<String> {
    let show = |write: &PendingWrite| {
        let value = write.value.to_value().map_or_else(|e| e.to_string(), |v| v.to_string());
        let task = write.task.as_bytes()[0];
        format!("{} {task} {} {}={value}", write.path, write.index, write.channel)
    };
    writes.iter().map(show).collect()
}

/// A thread in the making: each call stores one more checkpoint on top of the last.
///
/// Channel `step` holds the step, and `fixed` a value that never changes.
pub(crate) struct Line {
    pub(crate) checkpointer: AnyCheckpointer,
    clock: IdClock,
    pub(crate) thread: Arc<str>,
    pub(crate) ns: Arc<str>,
    pub(crate) head: Option<CheckpointId>,
    pub(crate) step: i64,
    values: SharedMap<Blob>,
    versions: SharedMap<Version>,
}

impl Line {
    pub(crate) fn new(checkpointer: &AnyCheckpointer, thread: &str, ns: &str) -> Self {
        Self {
            checkpointer: checkpointer.clone(),
            clock: IdClock::new(),
            thread: thread.into(),
            ns: ns.into(),
            head: None,
            step: -1,
            values: SharedMap::new_sync(),
            versions: SharedMap::new_sync(),
        }
    }

    /// What would be stored next.
    pub(crate) fn next(&mut self) -> Put {
        let first = self.step == -1;
        let id = self.clock.next(self.step, self.head);
        // Two writers that count alike must not arrive at the same version.
        let random =
            id.as_bytes().iter().skip(8).fold(0, |sum, byte| (sum << 8) | u64::from(*byte));
        let version = Version::after((self.step + 1) as u64, random.reverse_bits());
        let mut changed: Vec<Arc<str>> = vec!["step".into()];
        self.set("step", blob(self.step), &version);
        if first {
            self.set("fixed", blob(vec![Value::from("unchanged")]), &version);
            changed.push("fixed".into());
        }
        let put = Put {
            thread: self.thread.clone(),
            ns: self.ns.clone(),
            parent: self.head,
            head: self.head,
            writes: Vec::new(),
            checkpoint: Checkpoint {
                v: Checkpoint::FORMAT,
                id,
                ts: "2026-01-02T03:04:05.678900+00:00".into(),
                channel_values: self.values.clone(),
                channel_versions: self.versions.clone(),
                versions_seen: SharedMap::new_sync(),
                updated_channels: None,
            },
            metadata: Metadata::new(if first { Source::Input } else { Source::Loop }, self.step),
            changed,
        };
        self.step += 1;
        put
    }

    fn set(&mut self, channel: &str, value: Blob, version: &Version) {
        self.values.insert_mut(channel.into(), value);
        self.versions.insert_mut(channel.into(), version.clone());
    }

    pub(crate) async fn store(&mut self, put: Put) -> Result<CheckpointId, Fault> {
        let id = put.checkpoint.id;
        self.checkpointer.put(put).await?;
        self.head = Some(id);
        Ok(id)
    }

    pub(crate) async fn put(&mut self) -> Result<CheckpointId, Fault> {
        let put = self.next();
        self.store(put).await
    }

    pub(crate) async fn puts(&mut self, count: usize) -> Result<Vec<CheckpointId>, Fault> {
        let mut ids = Vec::new();
        for _ in 0..count {
            ids.push(self.put().await?);
        }
        Ok(ids)
    }

    /// What would be stored next, one on top of the other. Each but the first has a write beside the one before it.
    pub(crate) fn several(&mut self, count: i64) -> Vec<Put> {
        let mut next = |nth| {
            let mut put = self.next();
            if nth > 0 {
                put.writes = vec![writes(1, &[("a", nth)])];
            }
            self.head = Some(put.checkpoint.id);
            put
        };
        (0..count).map(&mut next).collect()
    }

    /// Another writer that knows what this one knows.
    pub(crate) fn rival(&self, checkpointer: &AnyCheckpointer) -> Self {
        Self {
            checkpointer: checkpointer.clone(),
            clock: IdClock::new(),
            thread: self.thread.clone(),
            ns: self.ns.clone(),
            head: self.head,
            step: self.step,
            values: self.values.clone(),
            versions: self.versions.clone(),
        }
    }

    pub(crate) async fn read(&self, id: Option<CheckpointId>) -> Result<Stored, Fault> {
        read(&self.checkpointer, &self.thread, &self.ns, id).await
    }

    pub(crate) async fn add(&self, id: CheckpointId, writes: Vec<TaskWrites>) -> Case {
        Ok(self.checkpointer.put_writes(&self.thread, &self.ns, id, writes).await?)
    }

    /// The writes with a checkpoint, as text.
    pub(crate) async fn written(&self, id: CheckpointId) -> Result<Vec<String>, Fault> {
        Ok(shown(&self.read(Some(id)).await?.writes))
    }
}
