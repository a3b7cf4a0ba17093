//! Which tasks run in the next superstep.

use smallvec::SmallVec;
use superstep_checkpoint::TimeLimits;

use crate::engine::kernel::head::Head;
use crate::engine::kernel::layout::{Layout, Place};
use crate::state::Payload;

/// A task that is to run.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) node: usize,
    pub(crate) cause: Cause,
}

#[derive(Clone, Debug)]
pub(crate) enum Cause {
    /// A channel triggered the node.
    Triggered,
    /// The node was dispatched to: position, argument, time limits.
    Dispatched(usize, Payload, Option<Box<TimeLimits>>),
}

/// The tasks of the next superstep: dispatches in their order, then triggered nodes.
///
/// Triggered nodes are sorted by name if it is known which channels changed, and stand in the order of their
/// definition otherwise.
pub(crate) fn plan(layout: &Layout, head: &Head) -> Vec<Planned> {
    let mut tasks = Vec::new();
    plan_each(layout, head, |planned| tasks.push(planned));
    tasks
}

/// As [`plan`], one task after the other.
pub(crate) fn plan_each(layout: &Layout, head: &Head, mut run: impl FnMut(Planned)) {
    for (index, packet) in head.sends.iter().enumerate() {
        match layout.node(&packet.node) {
            Some(node) => {
                let cause = Cause::Dispatched(index, packet.arg.clone(), packet.timeout.clone());
                run(Planned { node, cause });
            }
            None => tracing::warn!(node = %packet.node, "ignored a dispatch to an unknown node"),
        }
    }
    let mut pull = |node: usize| {
        if is_triggered(layout, head, node) {
            run(Planned { node, cause: Cause::Triggered });
        }
    };
    match &head.updated {
        Some(updated) if !updated.is_empty() => {
            let mut candidates = SmallVec::<[usize; 8]>::new();
            for slot in updated {
                if let Place::Control(control) = layout.place(*slot) {
                    candidates.extend(layout.triggered[control].iter().copied());
                }
            }
            if candidates.len() > 1 {
                candidates.sort_unstable_by_key(|node| layout.rank[*node]);
                candidates.dedup();
            }
            candidates.iter().copied().for_each(pull);
        }
        _ if head.newest == 0 => {}
        _ => (0..layout.nodes.len()).for_each(&mut pull),
    }
}

/// Whether no task would run next.
pub(crate) fn is_at_rest(layout: &Layout, head: &Head) -> bool {
    head.sends.is_empty() && plan(layout, head).is_empty()
}

/// A node runs if one of its triggers holds something that it has not seen.
pub(crate) fn is_triggered(layout: &Layout, head: &Head, node: usize) -> bool {
    let seen = head.seen[node].as_deref();
    layout.nodes[node].triggers.iter().enumerate().any(|(at, control)| {
        let version = head.versions[layout.control_slot(*control)];
        let newer = seen.is_none_or(|seen| version > seen[at]);
        newer && head.controls[*control].is_available()
    })
}
