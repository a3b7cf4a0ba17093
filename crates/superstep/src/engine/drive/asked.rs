//! How a run was asked for: where it stops, how far it may go, and what it takes up.

use std::collections::HashMap;

use superstep_checkpoint::Value;

use crate::engine::kernel::breakpoint::{At, Breakpoints};
use crate::engine::kernel::head::Head;
use crate::engine::kernel::layout::Layout;

/// What the caller wants of this graph in this run.
pub(in crate::engine) struct Asked {
    breakpoints: Breakpoints,
    limit: u64,
    /// Whether graphs inside the first superstep continue from where they were; unknown after it.
    resuming: Option<bool>,
    /// Finished tasks of the first superstep run again instead of getting their stored writes back.
    replaying: bool,
    /// Answers for tasks of a branch that begins here, by path.
    seeds: HashMap<String, Vec<Value>>,
}

impl Asked {
    pub(in crate::engine) fn new(breakpoints: Breakpoints, limit: u64) -> Self {
        Self { breakpoints, limit, resuming: None, replaying: false, seeds: HashMap::new() }
    }

    /// The recursion limit.
    pub(in crate::engine) fn limit(&self) -> u64 {
        self.limit
    }

    pub(in crate::engine) fn resuming(&self) -> Option<bool> {
        self.resuming
    }

    pub(in crate::engine) fn resume(&mut self, resuming: Option<bool>) {
        self.resuming = resuming;
    }

    pub(in crate::engine) fn is_replaying(&self) -> bool {
        self.replaying
    }

    pub(in crate::engine) fn replay(&mut self, replaying: bool) {
        self.replaying = replaying;
    }

    /// Gives answers to tasks of the first superstep.
    pub(in crate::engine) fn seed(&mut self, answers: Vec<(String, Vec<Value>)>) {
        self.seeds.extend(answers);
    }

    pub(in crate::engine) fn seeds(&self) -> &HashMap<String, Vec<Value>> {
        &self.seeds
    }

    /// The writes of the first superstep are folded in: what was asked of its tasks is over.
    pub(in crate::engine) fn first_superstep_is_over(&mut self) {
        self.replaying = false;
        if !self.seeds.is_empty() {
            self.seeds.clear();
        }
    }

    pub(in crate::engine) fn stops_before(
        &self,
        layout: &Layout,
        head: &Head,
        nodes: impl Iterator<Item = usize>,
    ) -> bool {
        stops(&self.breakpoints.before, layout, head, nodes)
    }

    pub(in crate::engine) fn stops_after(
        &self,
        layout: &Layout,
        head: &Head,
        nodes: impl Iterator<Item = usize>,
    ) -> bool {
        stops(&self.breakpoints.after, layout, head, nodes)
    }

    pub(in crate::engine) fn may_stop_after(&self) -> bool {
        !self.breakpoints.after.is_empty()
    }
}

/// Whether a breakpoint holds: something changed since the last stop, and one of the nodes is listed.
fn stops(at: &At, layout: &Layout, head: &Head, mut nodes: impl Iterator<Item = usize>) -> bool {
    if at.is_empty() {
        return false;
    }
    let seen = head.seen_interrupt.as_deref();
    let mut versions = head.versions.iter().enumerate();
    versions.any(|(slot, version)| *version > seen.map_or(0, |seen| seen[slot]))
        && nodes.any(|node| at.includes(&layout.nodes[node].name, layout.nodes[node].hidden))
}
