//! What is on its way to storage: writes that go with the next checkpoint, a checkpoint that is held back, one that is being
//! stored while tasks run. And what this run knows of what is stored.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use superstep_checkpoint::{
    AnyCheckpointer, Checkpoint, CheckpointId, Error, Metadata, Put, TaskWrites,
};
use tracing::Instrument;

use crate::engine::drive::at_exit::{AtExit, Left};
use crate::engine::drive::control::Durability;
use crate::engine::step::futures::Saving;
use crate::engine::step::superstep::{Gate, GraphRun, Superstep};
use crate::engine::watch::span;

/// The storage of one graph, as the run that drives it sees it.
pub(in crate::engine) struct Outbox {
    setting: Arc<GraphRun>,
    /// The superstep of the task that the graph runs in. What the graph has done must not outlive it.
    around: Option<Arc<Superstep>>,
    /// The checkpoint that was stored last, which the next one continues.
    stored: Option<CheckpointId>,
    /// The head of the thread, as far as is known here.
    known_head: Option<CheckpointId>,
    /// No other run takes up what this graph works on: this run has stored something on the thread.
    owns: bool,
    /// A checkpoint that was made but, storing only at the end, not stored.
    dirty: bool,
    /// Writes that go with the next checkpoint.
    unsaved: Vec<TaskWrites>,
    /// A checkpoint that is stored together with the next one.
    held: Option<Box<Put>>,
    /// What is being stored while tasks run.
    background: Option<Saving>,
    /// What the graphs inside have stored, if everything is stored at the end of this one.
    at_exit: Option<AtExit>,
}

impl Outbox {
    pub(in crate::engine) fn new(
        setting: Arc<GraphRun>,
        around: Option<Arc<Superstep>>,
        at_exit: Option<AtExit>,
        owns: bool,
    ) -> Self {
        Self {
            setting,
            around,
            stored: None,
            known_head: None,
            owns,
            dirty: false,
            unsaved: Vec::new(),
            held: None,
            background: None,
            at_exit,
        }
    }

    /// Where the graph stores, and the thread.
    fn place(&self) -> Option<(&AnyCheckpointer, &Arc<str>)> {
        self.setting.checkpointer.as_ref().zip(self.setting.run.thread.as_ref())
    }

    pub(in crate::engine) fn stored(&self) -> Option<CheckpointId> {
        self.stored
    }

    /// Whether this checkpoint is stored, so that writes can stand beside it.
    pub(in crate::engine) fn has_stored(&self, id: CheckpointId) -> bool {
        self.stored == Some(id)
    }

    /// The next checkpoint continues this one, which was loaded.
    pub(in crate::engine) fn continues(&mut self, id: CheckpointId) {
        self.stored = Some(id);
    }

    pub(in crate::engine) fn known_head(&self) -> Option<CheckpointId> {
        self.known_head
    }

    pub(in crate::engine) fn knows_head(&mut self, id: Option<CheckpointId>) {
        self.known_head = id;
    }

    /// From now on the thread is this run's.
    pub(in crate::engine) fn took_thread(&mut self) {
        self.owns = true;
    }

    /// Whether something is being stored while tasks run.
    pub(in crate::engine) fn is_storing(&self) -> bool {
        self.background.is_some()
    }

    /// Takes the storage operation in progress, to be polled along with the tasks.
    pub(in crate::engine) fn lend_saving(&mut self) -> Option<Saving> {
        self.background.take()
    }

    pub(in crate::engine) fn take_back_saving(&mut self, saving: Option<Saving>) {
        self.background = saving;
    }

    /// Adds writes that go with the next checkpoint.
    pub(in crate::engine) fn add(&mut self, writes: TaskWrites) {
        self.unsaved.push(writes);
    }

    /// Adds all of these, which are then gone from there.
    pub(in crate::engine) fn add_all(&mut self, writes: &mut Vec<TaskWrites>) {
        self.unsaved.append(writes);
    }

    pub(in crate::engine) fn unsaved(&self) -> &[TaskWrites] {
        &self.unsaved
    }

    pub(in crate::engine) fn take_unsaved(&mut self) -> Vec<TaskWrites> {
        std::mem::take(&mut self.unsaved)
    }

    pub(in crate::engine) fn put_back(&mut self, unsaved: Vec<TaskWrites>) {
        self.unsaved = unsaved;
    }

    /// A checkpoint was made that is stored at the end, without the writes that led to it.
    pub(in crate::engine) fn put_off(&mut self) {
        self.dirty = true;
        self.unsaved.clear();
    }

    pub(in crate::engine) fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// What the graphs inside have left to store at the end of this one; nothing if they store by themselves.
    pub(in crate::engine) fn left_inside(&self) -> Option<Left> {
        self.at_exit.as_ref().map(AtExit::take)
    }

    /// Whether checkpoints of this graph are stored.
    pub(in crate::engine) fn stores(&self) -> bool {
        self.place().is_some()
    }

    /// A checkpoint ready to be stored, with the writes that led to it. From now on it counts as stored.
    pub(in crate::engine) fn pack(
        &mut self,
        checkpoint: Checkpoint,
        metadata: Metadata,
        changed: Vec<Arc<str>>,
    ) -> Option<Put> {
        let (_, thread) = self.place()?;
        let id = checkpoint.id;
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
        self.stored = Some(id);
        self.known_head = Some(id);
        self.dirty = false;
        Some(put)
    }

    /// Holds a checkpoint back, to go with the next one in one operation.
    ///
    /// Nothing may happen before that one which could be noticed.
    pub(in crate::engine) fn hold(&mut self, put: Option<Put>) {
        self.held = put.map(Box::new);
    }

    /// Stores a checkpoint: now, or while tasks run.
    ///
    /// No task runs before the thread is this run's: what it stores first is stored before anything else happens.
    pub(in crate::engine) async fn put(&mut self, put: Put) -> Result<(), Error> {
        let held = self.held.take();
        if self.setting.run.durability == Durability::Async && held.is_none() && self.owns {
            let saving = Box::pin(self.saving(None, put));
            return self.put_meanwhile(saving).await;
        }
        self.settle_background().await?;
        self.saving(held, put).await?;
        self.owns = true;
        Ok(())
    }

    /// Stores something while tasks run, once what was being stored is: a run is one superstep ahead at most.
    ///
    /// A checkpointer that keeps to the order in which it is asked is asked for it before that, and need not wait for us in between.
    /// Not while both wait for the superstep around this graph: whichever found first that it is stored would be asked for
    /// first.
    async fn put_meanwhile(&mut self, mut next: Saving) -> Result<(), Error> {
        let in_order = self.setting.checkpointer.as_ref().is_some_and(AnyCheckpointer::in_order);
        let around = self.around.as_ref().map(|around| &around.stored);
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

    /// Stores a checkpoint, and the one that was held back for it.
    fn saving(
        &self,
        held: Option<Box<Put>>,
        put: Put,
    ) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let checkpointer = self.setting.checkpointer.clone();
        let meanwhile = self.setting.run.durability == Durability::Async;
        let around = self.around.clone().filter(|_| meanwhile);
        let span = span::commit(&put);
        let saving = async move {
            // What a graph inside a task has done must not outlive the superstep that it was done for.
            if let Some(around) = around {
                around.stored.pass().await;
            }
            match (checkpointer, held) {
                (Some(checkpointer), None) => checkpointer.put(put).await,
                (Some(checkpointer), Some(held)) => checkpointer.put_all(vec![*held, put]).await,
                (None, _) => Ok(()),
            }
        };
        saving.instrument(span)
    }

    /// Stores these checkpoints in one operation.
    pub(in crate::engine) async fn put_all(&mut self, puts: Vec<Put>) -> Result<(), Error> {
        match (&self.setting.checkpointer, puts.last()) {
            (Some(checkpointer), Some(last)) => {
                let span = span::commit(last);
                checkpointer.put_all(puts).instrument(span).await
            }
            _ => Ok(()),
        }
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

    /// Stores writes beside a checkpoint of this graph.
    pub(in crate::engine) async fn put_writes(
        &mut self,
        beside: CheckpointId,
        writes: Vec<TaskWrites>,
    ) -> Result<(), Error> {
        self.settle().await?;
        match self.place() {
            Some((checkpointer, thread)) if !writes.is_empty() => {
                checkpointer.put_writes(thread, &self.setting.ns, beside, writes).await
            }
            _ => Ok(()),
        }
    }
}
