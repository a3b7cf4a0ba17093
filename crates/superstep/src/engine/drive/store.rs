//! Storing what a graph has done: the checkpoint of its head, and the writes beside it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use superstep_checkpoint::{
    AnyCheckpointer, CheckpointId, Error, Metadata, Put, Source, TaskWrites, reserved_index,
};
use tracing::Instrument;
use xxhash_rust::xxh3::xxh3_128;

use crate::engine::drive::at_exit::{AtExit, Beside, Left};
use crate::engine::drive::control::Durability;
use crate::engine::drive::driver::Driver;
use crate::engine::step::futures::Saving;
use crate::engine::step::superstep::{Gate, lock};
use crate::engine::stored::ids;
use crate::engine::stored::record;
use crate::engine::stored::slots::Unstorable;
use crate::engine::watch::span;
use crate::error::RunError;

impl Driver {
    /// Makes the checkpoint of the head as it is, and stores it.
    pub(in crate::engine) async fn save(&mut self, source: Source) -> Result<(), RunError> {
        if self.advance(source) { self.put().await } else { Ok(()) }
    }

    /// Makes the head as it is the one that the next superstep starts from. Returns whether it is to be stored now.
    pub(in crate::engine) fn advance(&mut self, source: Source) -> bool {
        let id = self.next_id(self.step, Some(self.id));
        if self.setting.run.durability != Durability::Exit {
            self.before = self.stored;
        }
        self.id = id;
        let step = self.step;
        self.step += 1;
        if self.setting.saver.is_none() {
            self.head.news.clear();
            return false;
        }
        self.recorder.count(&self.head);
        let extra = &self.setting.run.metadata;
        let parents = (*self.setting.around).clone();
        self.metadata = Some(record::metadata(source, step, parents, &self.recorder, extra));
        if self.setting.run.durability == Durability::Exit {
            self.dirty = true;
            self.unsaved.clear();
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
        if self.setting.saver.is_none() && self.is_nested() && self.setting.run.keeps {
            let place = format!("{}{}{step}", self.setting.ns, ids::LEVEL);
            return CheckpointId::from_bytes(xxh3_128(place.as_bytes()).to_be_bytes());
        }
        match parent {
            Some(parent) if self.setting.saver.is_none() => {
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
    ///
    /// No task runs before the thread is this run's: what it stores first is stored before anything else happens.
    pub(in crate::engine) async fn store_put(&mut self, put: Put) -> Result<(), RunError> {
        let held = self.held.take();
        if self.setting.run.durability == Durability::Async && held.is_none() && self.owns {
            let saving = Box::pin(self.saving(None, put));
            return Ok(self.put_meanwhile(saving).await?);
        }
        self.settle_background().await?;
        self.saving(held, put).await?;
        self.owns = true;
        Ok(())
    }

    /// Has something stored while tasks run, when what was being stored is: a run is one superstep ahead at most.
    ///
    /// A saver that keeps to the order in which it is asked is asked for it before that, and need not wait for us in between.
    /// Not while both wait for the superstep around this graph: whichever found first that it is stored would be asked for
    /// first.
    async fn put_meanwhile(&mut self, mut next: Saving) -> Result<(), Error> {
        let in_order = self.setting.saver.as_ref().is_some_and(AnyCheckpointer::in_order);
        let around = self.caller.as_ref().map(|caller| &caller.superstep.stored);
        let asks_ahead = in_order && around.is_none_or(Gate::is_open);
        let mut ended = None;
        if let Some(mut before) = self.background.take() {
            let both = poll_fn(|cx| {
                let stored = before.as_mut().poll(cx);
                if asks_ahead
                    && ended.is_none()
                    && stored.is_pending()
                    && let Poll::Ready(end) = next.as_mut().poll(cx)
                {
                    ended = Some(end);
                }
                stored
            });
            both.await?;
        }
        if ended.is_none() {
            self.background = Some(next);
        }
        ended.unwrap_or(Ok(()))
    }

    /// Makes the current checkpoint ready to go with the next one, in one operation.
    ///
    /// Nothing may happen before that one which could be noticed.
    pub(in crate::engine) fn hold(&mut self) -> Result<(), RunError> {
        self.held = self.record()?.map(Box::new);
        Ok(())
    }

    /// What there is to store of the current checkpoint, which from now on counts as stored.
    pub(in crate::engine) fn record(&mut self) -> Result<Option<Put>, Unstorable> {
        let (Some(_), Some(thread)) = (&self.setting.saver, &self.setting.run.thread) else {
            return Ok(None);
        };
        let (checkpoint, changed) =
            self.recorder.checkpoint(&self.setting.layout, &mut self.head, self.id)?;
        let mut metadata = match &self.metadata {
            Some(metadata) => metadata.clone(),
            None => Metadata::new(Source::Loop, self.step - 1),
        };
        metadata.delta_counters = self.recorder.delta_counters();
        self.metadata = Some(metadata.clone());
        let put = Put {
            thread: thread.clone(),
            ns: self.setting.ns.clone(),
            parent: self.stored,
            head: self.known_head,
            writes: std::mem::take(&mut self.unsaved),
            checkpoint,
            metadata,
            changed,
        };
        self.stored = Some(self.id);
        self.known_head = Some(self.id);
        self.dirty = false;
        Ok(Some(put))
    }

    /// Stores a checkpoint, and the one that was held back for it.
    fn saving(
        &self,
        held: Option<Box<Put>>,
        put: Put,
    ) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let saver = self.setting.saver.clone();
        let meanwhile = self.setting.run.durability == Durability::Async;
        let around = self.caller.as_ref().filter(|_| meanwhile);
        let around = around.map(|caller| caller.superstep.clone());
        let span = span::commit(&put);
        let saving = async move {
            // What a graph inside a task has done must not outlive the superstep that it was done for.
            if let Some(around) = around {
                around.stored.pass().await;
            }
            match (saver, held) {
                (Some(saver), None) => saver.put(put).await,
                (Some(saver), Some(held)) => saver.put_all(vec![*held, put]).await,
                (None, _) => Ok(()),
            }
        };
        saving.instrument(span)
    }

    /// Waits until what is being stored is stored, and with it what was held back.
    pub(in crate::engine) async fn settle(&mut self) -> Result<(), Error> {
        self.settle_background().await?;
        match self.held.take() {
            Some(held) => self.saving(None, *held).await,
            None => Ok(()),
        }
    }

    async fn settle_background(&mut self) -> Result<(), Error> {
        match self.background.take() {
            Some(saving) => saving.await,
            None => Ok(()),
        }
    }

    /// Stores writes beside the current checkpoint.
    pub(in crate::engine) async fn put_writes(
        &mut self,
        writes: Vec<TaskWrites>,
    ) -> Result<(), Error> {
        self.settle().await?;
        match (&self.setting.saver, &self.setting.run.thread) {
            (Some(saver), Some(thread)) if !writes.is_empty() => {
                saver.put_writes(thread, &self.setting.ns, self.id, writes).await
            }
            _ => Ok(()),
        }
    }

    /// Stores what was not stored on the way, with what the graphs inside have left: all checkpoints in one operation, and
    /// then what stands beside them.
    pub(in crate::engine) async fn store_at_exit(&mut self) -> Result<(), RunError> {
        let Left { mut puts, beside } = self.at_exit.as_ref().map(AtExit::take).unwrap_or_default();
        if self.at_exit.is_some() {
            let ended = std::mem::take(&mut *lock(&self.setting.run.ended));
            puts.retain(|put| !ended.contains(&put.checkpoint.id) || self.is_called_again(&put.ns));
        }
        let writes = std::mem::take(&mut self.unsaved);
        if self.dirty {
            // What was written on the way is not stored, so channels that store writes store their value.
            for at in 0..self.setting.layout.channels.len() {
                self.recorder.forced.insert(at);
            }
            puts.extend(self.record()?);
        }
        self.settle().await?;
        let (Some(saver), Some(thread)) = (&self.setting.saver, &self.setting.run.thread) else {
            return Ok(());
        };
        if let Some(put) = puts.last() {
            let span = span::commit(put);
            saver.put_all(puts).instrument(span).await?;
        }
        for Beside { ns, checkpoint, writes } in beside {
            saver.put_writes(thread, &ns, checkpoint, writes).await?;
        }
        if self.stored == Some(self.id) && !writes.is_empty() {
            self.put_last_writes(writes).await?;
        }
        Ok(())
    }

    /// Whether the next run calls the graph at a namespace again: its task has not finished in the superstep that is open.
    fn is_called_again(&self, ns: &str) -> bool {
        let output = |(channel, _): &(Arc<str>, _)| reserved_index(channel).is_none();
        let finished = self.unsaved.iter().filter(|task| task.writes.iter().any(output));
        let mut places = finished.map(|task| format!("{}{}", ids::TASK, task.task));
        !self.dirty && !places.any(|place| ns.contains(&place))
    }
}
