//! Joins: which sources have arrived, when the target runs, and when the next round begins.

use std::sync::Arc;

use crate::engine::kernel::head::{Control, Head};
use crate::engine::kernel::layout::{ControlKind, Layout};
use crate::engine::kernel::plan::is_triggered;
use crate::error::UnfilledJoin;

/// A join of a compiled graph.
#[derive(Debug)]
pub(crate) struct JoinSpec {
    pub(crate) members: Vec<Arc<str>>,
    /// How many of them have to run.
    pub(crate) needed: usize,
    /// The target waits until nothing else is left to run.
    pub(crate) deferred: bool,
    /// What has arrived when a run ends counts in the next one.
    pub(crate) across_runs: bool,
    /// For each member, the nodes that may lead to it without going through the target.
    pub(crate) feeders: Vec<Vec<bool>>,
}

impl JoinSpec {
    /// Whether the target runs before all members have.
    pub(crate) fn is_partial(&self) -> bool {
        self.needed < self.members.len()
    }
}

/// What has happened at a join in its current round.
///
/// A round begins with the first member that arrives. The join fires once in it, when enough have arrived; those that come
/// after that are late, and change nothing. The round is over when all have arrived, when none of those that are missing can
/// still come, or when a member comes for the second time, which begins the next round.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    pub(crate) seen: Box<[bool]>,
    pub(crate) needed: usize,
    /// The target waits until nothing else is left to run; whether that has come.
    pub(crate) finished: Option<bool>,
    /// The target has run in this round.
    pub(crate) fired: bool,
}

impl Arrivals {
    pub(crate) fn new(spec: &JoinSpec) -> Self {
        Self {
            seen: vec![false; spec.members.len()].into(),
            needed: spec.needed,
            finished: spec.deferred.then_some(false),
            fired: false,
        }
    }

    fn has_enough(&self) -> bool {
        !self.fired && self.seen.iter().filter(|seen| **seen).count() >= self.needed
    }

    fn has_all(&self) -> bool {
        self.seen.iter().all(|seen| *seen)
    }

    pub(crate) fn is_available(&self) -> bool {
        self.finished != Some(false) && self.has_enough()
    }

    /// Some members have arrived, and the target has not run.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.fired && self.seen.contains(&true)
    }

    /// A member has run. Returns whether that changes anything.
    pub(crate) fn arrive(&mut self, member: usize) -> bool {
        if self.fired && self.seen[member] {
            self.clear();
        }
        let is_new = !std::mem::replace(&mut self.seen[member], true);
        if self.fired && self.has_all() {
            self.clear();
        }
        is_new
    }

    /// The target has run. Returns whether that was because of this join.
    pub(crate) fn consume(&mut self) -> bool {
        let fires = self.is_available();
        if fires {
            self.fired = true;
            if self.has_all() {
                self.clear();
            }
        }
        fires
    }

    /// Nothing else is left to run. Returns whether anything changed.
    pub(crate) fn finish(&mut self) -> bool {
        let finishes = self.finished == Some(false) && self.has_enough();
        if finishes {
            self.finished = Some(true);
        }
        finishes
    }

    /// Ends the round. Returns whether there was one.
    pub(crate) fn clear(&mut self) -> bool {
        let held = self.seen.contains(&true);
        self.seen.fill(false);
        self.fired = false;
        self.finished = self.finished.map(|_| false);
        held
    }
}

/// The nodes that are under way: those that are to run, now or when nothing else is left.
pub(crate) struct UnderWay(Vec<bool>);

impl UnderWay {
    pub(crate) fn new(layout: &Layout, head: &Head) -> Self {
        let waits = |control: &usize| match &head.controls[*control] {
            Control::DeferredBranch { mark, .. } => mark.is_some(),
            Control::Join(arrivals) => arrivals.finished == Some(false) && arrivals.has_enough(),
            Control::Start(_) | Control::Branch(_) => false,
        };
        let nodes = layout.nodes.iter().enumerate();
        let mut under_way: Vec<bool> = nodes
            .map(|(at, def)| is_triggered(layout, head, at) || def.triggers.iter().any(waits))
            .collect();
        for packet in &head.sends {
            if let Some(node) = layout.node(&packet.node) {
                under_way[node] = true;
            }
        }
        Self(under_way)
    }

    /// Whether a member that has not arrived may still come, other than from `target`.
    pub(crate) fn may_complete(
        &self,
        spec: &JoinSpec,
        arrivals: &Arrivals,
        target: Option<usize>,
    ) -> bool {
        let missing = arrivals.seen.iter().zip(&spec.feeders).filter(|(seen, _)| !**seen);
        let comes = |feeders: &Vec<bool>| {
            let both = self.0.iter().zip(feeders).enumerate();
            both.into_iter().any(|(node, (live, feeds))| *live && *feeds && Some(node) != target)
        };
        missing.into_iter().any(|(_, feeders)| comes(feeders))
    }
}

/// Ends the round of a join that has fired, unless a missing member may still come. Returns whether it did.
pub(in crate::engine) fn end_round(
    layout: &Layout,
    head: &mut Head,
    control: usize,
    under_way: &UnderWay,
    target: Option<usize>,
) -> bool {
    match (&layout.controls[control].kind, &mut head.controls[control]) {
        (ControlKind::Join(spec), Control::Join(arrivals))
            if arrivals.fired && !under_way.may_complete(spec, arrivals, target) =>
        {
            arrivals.clear()
        }
        _ => false,
    }
}

/// Ends the rounds of joins that have fired and whose missing members cannot come any more.
pub(in crate::engine) fn end_rounds(layout: &Layout, head: &mut Head, next: u64) {
    let under_way = UnderWay::new(layout, head);
    for control in &layout.partial_joins {
        if end_round(layout, head, *control, &under_way, None) {
            head.touch(layout.control_slot(*control), next);
        }
    }
}

/// New input begins a new round of every join that does not wait across runs.
pub(in crate::engine) fn begin_rounds(layout: &Layout, head: &mut Head, next: u64) {
    for control in &layout.joins {
        if let (ControlKind::Join(spec), Control::Join(arrivals)) =
            (&layout.controls[*control].kind, &mut head.controls[*control])
            && !spec.across_runs
            && arrivals.clear()
        {
            head.touch(layout.control_slot(*control), next);
        }
    }
}

/// The joins that some of their members have reached, and that are not kept for a later run.
pub(crate) fn unfilled(layout: &Layout, head: &Head) -> Vec<UnfilledJoin> {
    let mut found = Vec::new();
    for control in &layout.joins {
        let (ControlKind::Join(spec), Control::Join(arrivals)) =
            (&layout.controls[*control].kind, &head.controls[*control])
        else {
            continue;
        };
        if spec.across_runs || !arrivals.is_waiting() {
            continue;
        }
        let (mut arrived, mut missing) = (Vec::new(), Vec::new());
        for (name, seen) in spec.members.iter().zip(&arrivals.seen) {
            if *seen { &mut arrived } else { &mut missing }.push(name.clone());
        }
        let targets =
            layout.triggered[*control].iter().map(|node| layout.nodes[*node].name.clone());
        found.extend(targets.map(|node| UnfilledJoin {
            node,
            needed: spec.needed,
            arrived: arrived.clone(),
            missing: missing.clone(),
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(members: usize, needed: usize) -> Arrivals {
        Arrivals::new(&JoinSpec {
            members: (0..members).map(|at| at.to_string().into()).collect(),
            needed,
            deferred: false,
            across_runs: false,
            feeders: Vec::new(),
        })
    }

    #[test]
    fn all_start_over_when_the_target_has_run() {
        let mut all = join(2, 2);
        assert!(all.arrive(0) && !all.arrive(0) && !all.is_available());
        assert!(all.arrive(1) && all.is_available());
        assert!(all.consume() && !all.is_waiting() && !all.fired);
    }

    #[test]
    fn a_late_source_changes_nothing_and_the_last_one_ends_the_round() {
        let mut two = join(4, 2);
        assert!(two.arrive(0) && !two.is_available());
        assert!(two.arrive(3) && two.is_available() && two.consume());
        assert!(two.arrive(1) && !two.is_available() && two.fired);
        assert!(two.arrive(2) && !two.is_available() && !two.fired && !two.is_waiting());
    }

    #[test]
    fn a_member_that_comes_again_begins_the_next_round() {
        let mut any = join(2, 1);
        assert!(any.arrive(0) && any.consume() && !any.is_available());
        assert!(any.arrive(0) && any.is_available());
    }
}
