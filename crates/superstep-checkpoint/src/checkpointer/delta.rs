use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Checkpointer;
use crate::{Blob, CheckpointId, Error, PendingWrite, TaskId, Version, wire};

/// The history from which the value of a delta channel is rebuilt.
#[derive(Clone, Debug, Default)]
pub struct DeltaHistory {
    /// The last stored whole value, if there is one.
    pub seed: Option<Blob>,
    /// The writes since then, oldest first.
    pub writes: Vec<Blob>,
    /// The version of the channel at the checkpoint that has the whole value.
    pub seed_version: Option<Version>,
    /// The place of each write.
    pub places: Vec<WritePlace>,
}

/// The place of a write of a thread and namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WritePlace {
    /// The checkpoint with which it is stored.
    pub checkpoint: CheckpointId,
    /// The writer.
    pub task: TaskId,
    /// The slot of the write among those of its task.
    pub index: i64,
}

impl DeltaHistory {
    /// Prepends the writes of one checkpoint to a channel.
    ///
    /// Checkpointers walk from the newest checkpoint to the oldest, and call [`reverse`](Self::reverse) at the end.
    pub fn take(&mut self, checkpoint: CheckpointId, channel: &str, writes: &[PendingWrite]) {
        for write in writes.iter().rev().filter(|write| &*write.channel == channel) {
            self.writes.push(write.value.clone());
            self.places.push(WritePlace { checkpoint, task: write.task, index: write.index });
        }
    }

    /// Reverses the collected writes, oldest first.
    pub fn reverse(&mut self) {
        self.writes.reverse();
        self.places.reverse();
    }
}

/// Histories are the same if they lead to the same value, wherever their parts are stored.
impl PartialEq for DeltaHistory {
    fn eq(&self, other: &Self) -> bool {
        (&self.seed, &self.writes) == (&other.seed, &other.writes)
    }
}

/// Rebuilds histories by going from parent to parent.
pub(super) async fn walk_deltas<C: Checkpointer + ?Sized>(
    checkpointer: &C,
    thread: &str,
    ns: &str,
    id: CheckpointId,
    channels: &[Arc<str>],
) -> Result<BTreeMap<Arc<str>, DeltaHistory>, Error> {
    let mut found: BTreeMap<_, DeltaHistory> =
        channels.iter().map(|name| (name.clone(), DeltaHistory::default())).collect();
    let mut open: Vec<Arc<str>> = channels.to_vec();
    let mut parent = checkpointer.get(thread, ns, Some(id)).await?.and_then(|stored| stored.parent);
    // Callers name the parents, so a cycle is possible and must end the walk.
    let mut visited = BTreeSet::from([id]);
    while let (Some(at), false) = (parent, open.is_empty()) {
        if !visited.insert(at) {
            break;
        }
        let stored = checkpointer.get(thread, ns, Some(at)).await?;
        let stored = stored.ok_or_else(|| wire::broken_chain(thread, ns, at, id))?;
        open.retain(|channel| {
            let history = found.entry(channel.clone()).or_default();
            history.take(at, channel, &stored.writes);
            history.seed = stored.checkpoint.value(channel).cloned();
            history.seed_version = stored.checkpoint.version(channel).cloned();
            history.seed.is_none()
        });
        parent = stored.parent;
    }
    found.values_mut().for_each(DeltaHistory::reverse);
    Ok(found)
}
