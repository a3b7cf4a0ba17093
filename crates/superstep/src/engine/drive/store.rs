//! Storing what a graph has done: the checkpoint of its head, and the writes beside it.

use std::sync::Arc;

use superstep_checkpoint::{CheckpointId, Error, Put, Source, TaskWrites, reserved_index};
use xxhash_rust::xxh3::xxh3_128;

use crate::engine::drive::at_exit::{Beside, Left};
use crate::engine::drive::control::Durability;
use crate::engine::drive::driver::Driver;
use crate::engine::step::superstep::lock;
use crate::engine::stored::ids;
use crate::engine::stored::record;
use crate::engine::stored::slots::Unstorable;
use crate::error::RunError;

impl Driver {
    /// Makes the checkpoint of the head as it is, and stores it.
    pub(in crate::engine) async fn save(&mut self, source: Source) -> Result<(), RunError> {
        if self.advance(source) { self.put().await } else { Ok(()) }
    }

    /// Makes the head as it is the one that the next superstep starts from. Returns whether it is to be stored now.
    pub(in crate::engine) fn advance(&mut self, source: Source) -> bool {
        let id = self.next_id(self.position.step(), Some(self.position.id()));
        if self.setting.run.durability != Durability::Exit {
            self.position.follow(self.outbox.stored());
        }
        let step = self.position.advance(id);
        if self.setting.checkpointer.is_none() {
            self.head.news.clear();
            return false;
        }
        self.recorder.count(&self.head);
        let extra = &self.setting.run.metadata;
        let parents = (*self.setting.around).clone();
        let metadata = record::metadata(source, step, parents, &self.recorder, extra);
        self.position.describe(metadata);
        if self.setting.run.durability == Durability::Exit {
            self.outbox.put_off();
            return false;
        }
        true
    }

    /// The id of the next checkpoint.
    ///
    /// A nested graph that is not stored begins anew each time its task runs. Its ids then come from where it is, so that
    /// a question asked in it keeps its id.
    pub(in crate::engine) fn next_id(
        &self,
        step: i64,
        parent: Option<CheckpointId>,
    ) -> CheckpointId {
        if self.setting.checkpointer.is_none() && self.is_nested() && self.setting.run.keeps {
            let place = format!("{}{}{step}", self.setting.ns, ids::LEVEL);
            return CheckpointId::from_bytes(xxh3_128(place.as_bytes()).to_be_bytes());
        }
        match parent {
            Some(parent) if self.setting.checkpointer.is_none() => {
                self.setting.run.ids.next_unstored(step, parent)
            }
            parent => self.setting.run.ids.next(step, parent),
        }
    }

    /// Stores the current checkpoint.
    pub(in crate::engine) async fn put(&mut self) -> Result<(), RunError> {
        match self.record()? {
            Some(put) => self.store_put(put).await,
            None => Ok(()),
        }
    }

    /// Stores a checkpoint: now, or while tasks run.
    pub(in crate::engine) async fn store_put(&mut self, put: Put) -> Result<(), RunError> {
        Ok(self.outbox.put(put).await?)
    }

    /// Makes the current checkpoint ready to go with the next one, in one operation.
    pub(in crate::engine) fn hold(&mut self) -> Result<(), RunError> {
        let put = self.record()?;
        self.outbox.hold(put);
        Ok(())
    }

    /// What there is to store of the current checkpoint, which from now on counts as stored.
    pub(in crate::engine) fn record(&mut self) -> Result<Option<Put>, Unstorable> {
        if !self.outbox.stores() {
            return Ok(None);
        }
        let (checkpoint, changed) =
            self.recorder.checkpoint(&self.setting.layout, &mut self.head, self.position.id())?;
        let metadata = self.position.described(self.recorder.delta_counters());
        Ok(self.outbox.pack(checkpoint, metadata, changed))
    }

    /// Stores writes beside the current checkpoint.
    pub(in crate::engine) async fn put_writes(
        &mut self,
        writes: Vec<TaskWrites>,
    ) -> Result<(), Error> {
        self.outbox.put_writes(self.position.id(), writes).await
    }

    /// Stores what was not stored on the way, with what the graphs inside have left: all checkpoints in one operation, and
    /// then what stands beside them.
    pub(in crate::engine) async fn store_at_exit(&mut self) -> Result<(), RunError> {
        let left = self.outbox.left_inside();
        let is_outermost = left.is_some();
        let Left { mut puts, beside } = left.unwrap_or_default();
        if is_outermost {
            let ended = std::mem::take(&mut *lock(&self.setting.run.ended));
            puts.retain(|put| !ended.contains(&put.checkpoint.id) || self.is_called_again(&put.ns));
        }
        let writes = self.outbox.take_unsaved();
        if self.outbox.is_dirty() {
            // What was written on the way is not stored, so channels that store writes store their value.
            for at in 0..self.setting.layout.channels.len() {
                self.recorder.forced.insert(at);
            }
            puts.extend(self.record()?);
        }
        self.outbox.settle().await?;
        self.outbox.put_all(puts).await?;
        let (Some(checkpointer), Some(thread)) =
            (&self.setting.checkpointer, &self.setting.run.thread)
        else {
            return Ok(());
        };
        for Beside { ns, checkpoint, writes } in beside {
            checkpointer.put_writes(thread, &ns, checkpoint, writes).await?;
        }
        if self.outbox.has_stored(self.position.id()) && !writes.is_empty() {
            self.put_last_writes(writes).await?;
        }
        Ok(())
    }

    /// Whether the next run calls the graph at a namespace again: its task has not finished in the superstep that is open.
    fn is_called_again(&self, ns: &str) -> bool {
        let output = |(channel, _): &(Arc<str>, _)| reserved_index(channel).is_none();
        let finished = self.outbox.unsaved().iter().filter(|task| task.writes.iter().any(output));
        let mut places = finished.map(|task| format!("{}{}", ids::TASK, task.task));
        !self.outbox.is_dirty() && !places.any(|place| ns.contains(&place))
    }
}
