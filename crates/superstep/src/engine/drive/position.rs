//! Where a thread is: the checkpoint that the next superstep starts from, and how far the run may go.

use std::collections::BTreeMap;
use std::sync::Arc;

use superstep_checkpoint::{CheckpointId, Metadata, Source, Stored};

/// The place of a graph in its history.
pub(in crate::engine) struct Position {
    id: CheckpointId,
    /// The checkpoint before the current one, as streams show it.
    before: Option<CheckpointId>,
    metadata: Option<Metadata>,
    step: i64,
    stop: i64,
}

/// What a superstep that fails at its end goes back to.
#[derive(Clone, Copy)]
pub(in crate::engine) struct Mark {
    id: CheckpointId,
    step: i64,
}

impl Position {
    /// Before the beginning of a thread.
    pub(in crate::engine) fn new() -> Self {
        Self {
            id: CheckpointId::from_bytes([0; 16]),
            before: None,
            metadata: None,
            step: -1,
            stop: 0,
        }
    }

    /// Starts from a stored checkpoint.
    pub(in crate::engine) fn load(&mut self, stored: &Stored) {
        self.id = stored.checkpoint.id;
        self.before = stored.parent;
        self.step = stored.metadata.step + 1;
        self.metadata = Some(stored.metadata.clone());
    }

    /// Starts from nothing, which has this id.
    pub(in crate::engine) fn start_at(&mut self, id: CheckpointId) {
        self.id = id;
    }

    /// The checkpoint the next superstep starts from.
    pub(in crate::engine) fn id(&self) -> CheckpointId {
        self.id
    }

    /// The checkpoint before that, as streams show it.
    pub(in crate::engine) fn before(&self) -> Option<CheckpointId> {
        self.before
    }

    pub(in crate::engine) fn metadata(&self) -> Option<&Metadata> {
        self.metadata.as_ref()
    }

    /// The number of the next superstep.
    pub(in crate::engine) fn step(&self) -> i64 {
        self.step
    }

    /// The number of the last superstep that this run may take.
    pub(in crate::engine) fn stop(&self) -> i64 {
        self.stop
    }

    /// Lets the run take so many supersteps from here.
    pub(in crate::engine) fn allow(&mut self, supersteps: u64) {
        // A limit that cannot be reached is none.
        let supersteps = i64::try_from(supersteps).unwrap_or(i64::MAX);
        self.stop = self.step.saturating_add(supersteps).saturating_add(1);
    }

    pub(in crate::engine) fn is_out_of_steps(&self) -> bool {
        self.step > self.stop
    }

    /// Whether the checkpoint was made from outside, and not by a run.
    pub(in crate::engine) fn is_from_outside(&self) -> bool {
        self.metadata.as_ref().is_some_and(|metadata| metadata.source.is_outside())
    }

    /// Says which stored checkpoint the current one follows.
    pub(in crate::engine) fn follow(&mut self, before: Option<CheckpointId>) {
        self.before = before;
    }

    /// Goes on to the next checkpoint. Returns its step.
    pub(in crate::engine) fn advance(&mut self, id: CheckpointId) -> i64 {
        let step = self.step;
        self.id = id;
        self.step += 1;
        step
    }

    pub(in crate::engine) fn mark(&self) -> Mark {
        Mark { id: self.id, step: self.step }
    }

    /// Takes an advance back.
    pub(in crate::engine) fn back_to(&mut self, mark: Mark) {
        (self.id, self.step) = (mark.id, mark.step);
    }

    /// Says what is stored about the current checkpoint.
    pub(in crate::engine) fn describe(&mut self, metadata: Metadata) {
        self.metadata = Some(metadata);
    }

    /// What is stored about the current checkpoint, with the counters of its delta channels.
    pub(in crate::engine) fn described(
        &mut self,
        counters: BTreeMap<Arc<str>, (u64, u64)>,
    ) -> Metadata {
        let step = self.step;
        let metadata = self.metadata.get_or_insert_with(|| Metadata::new(Source::Loop, step - 1));
        metadata.delta_counters = counters;
        metadata.clone()
    }
}
