//! Storing at the end of a run: what the graphs inside it have stored until then.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex};

use superstep_checkpoint::wire::slots;
use superstep_checkpoint::{
    AnyCheckpointer, CheckpointId, Checkpointer, Error, PendingWrite, Put, Query, Stored,
    TaskWrites,
};

use crate::engine::step::superstep::lock;

/// Where graphs inside a run that stores at its end store: in memory, on top of what is in storage. When the run ends, it is
/// stored in one operation with the checkpoint of the outermost graph, so that none of them is ahead of it.
#[derive(Clone)]
pub(in crate::engine) struct AtExit {
    below: AnyCheckpointer,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    left: Left,
    /// The checkpoints among it, as they will be found, oldest first.
    rows: Vec<Stored>,
}

/// What is left to store, in the order in which it came.
#[derive(Default)]
pub(in crate::engine) struct Left {
    pub(in crate::engine) puts: Vec<Put>,
    pub(in crate::engine) beside: Vec<Beside>,
}

/// Writes of tasks beside a checkpoint.
pub(in crate::engine) struct Beside {
    pub(in crate::engine) ns: Arc<str>,
    pub(in crate::engine) checkpoint: CheckpointId,
    pub(in crate::engine) writes: Vec<TaskWrites>,
}

impl AtExit {
    pub(in crate::engine) fn new(below: AnyCheckpointer) -> Self {
        Self { below, kept: Arc::default() }
    }

    pub(in crate::engine) fn take(&self) -> Left {
        std::mem::take(&mut *lock(&self.kept)).left
    }
}

impl Kept {
    /// Adds what is kept for a checkpoint that is in storage.
    fn complete(&self, mut stored: Stored) -> Stored {
        let added = self.left.beside.iter();
        let added = added.filter(|b| b.ns == stored.ns && b.checkpoint == stored.checkpoint.id);
        for beside in added {
            add(&mut stored.writes, &beside.writes);
        }
        stored
    }

    fn row(&mut self, ns: &str, id: CheckpointId) -> Option<&mut Stored> {
        self.rows.iter_mut().find(|row| &*row.ns == ns && row.checkpoint.id == id)
    }
}

/// Adds writes as every checkpointer does: slots that are filled stay as they are, except reserved ones.
fn add(writes: &mut Vec<PendingWrite>, tasks: &[TaskWrites]) {
    for tasks in tasks {
        let TaskWrites { task, path, replaces, .. } = tasks;
        if *replaces {
            writes.retain(|write| write.task != *task);
        }
        for (slot, channel, value) in slots(tasks) {
            let index = slot.index;
            let filled = writes.iter().position(|old| old.task == *task && old.index == index);
            let write = PendingWrite {
                task: *task,
                path: path.clone(),
                index,
                channel: channel.clone(),
                value: value.clone(),
            };
            match filled {
                Some(at) if slot.replaces => writes[at] = write,
                Some(_) => {}
                None => writes.push(write),
            }
        }
    }
    writes.sort_by(|a, b| (&a.path, a.task, a.index).cmp(&(&b.path, b.task, b.index)));
}

impl Checkpointer for AtExit {
    /// Whether somebody else has moved the thread on is found when it is stored.
    async fn put(&self, put: Put) -> Result<(), Error> {
        let mut kept = lock(&self.kept);
        if let Some(row) = put.parent.and_then(|parent| kept.row(&put.ns, parent)) {
            add(&mut row.writes, &put.writes);
        }
        kept.rows.push(Stored {
            thread: put.thread.clone(),
            ns: put.ns.clone(),
            checkpoint: put.checkpoint.clone(),
            metadata: put.metadata.clone(),
            parent: put.parent,
            writes: Vec::new(),
        });
        kept.left.puts.push(put);
        Ok(())
    }

    async fn put_writes(
        &self,
        _: &str,
        ns: &str,
        checkpoint: CheckpointId,
        writes: Vec<TaskWrites>,
    ) -> Result<(), Error> {
        let mut kept = lock(&self.kept);
        if let Some(row) = kept.row(ns, checkpoint) {
            add(&mut row.writes, &writes);
        }
        kept.left.beside.push(Beside { ns: ns.into(), checkpoint, writes });
        Ok(())
    }

    async fn get(
        &self,
        thread: &str,
        ns: &str,
        id: Option<CheckpointId>,
    ) -> Result<Option<Stored>, Error> {
        let matches = |row: &&Stored| &*row.ns == ns && id.is_none_or(|id| row.checkpoint.id == id);
        if let Some(row) = lock(&self.kept).rows.iter().rev().find(matches) {
            return Ok(Some(row.clone()));
        }
        let stored = self.below.get(thread, ns, id).await?;
        Ok(stored.map(|stored| lock(&self.kept).complete(stored)))
    }

    async fn list(&self, query: Query) -> Result<Vec<Stored>, Error> {
        let below = self.below.list(query.clone()).await?;
        let kept = lock(&self.kept);
        let matches = |row: &&Stored| {
            query.thread.as_ref().is_none_or(|thread| *thread == row.thread)
                && query.ns.as_ref().is_none_or(|ns| *ns == row.ns)
                && query.admits(row.checkpoint.id, &row.metadata)
        };
        let mut found: Vec<_> = kept.rows.iter().filter(matches).cloned().collect();
        found.extend(below.into_iter().map(|stored| kept.complete(stored)));
        found.sort_by_key(|stored| Reverse(stored.checkpoint.id));
        found.truncate(query.limit.unwrap_or(usize::MAX));
        Ok(found)
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), Error> {
        self.below.delete_thread(thread).await
    }
}
