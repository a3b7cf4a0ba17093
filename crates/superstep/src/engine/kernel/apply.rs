//! What a superstep makes of the writes of its tasks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::engine::kernel::fold::{Undos, fold_writes, overwrite_counts_alone};
use crate::engine::kernel::head::{Control, Head, Write};
use crate::engine::kernel::join::{UnderWay, begin_rounds, end_round, end_rounds};
use crate::engine::kernel::layout::{Layout, Place, Slot};
use crate::state::{ChannelError, Kind, WriteValue};

/// A task whose writes are to be applied.
#[derive(Debug)]
pub(crate) struct Applied {
    pub(crate) actor: Actor,
    pub(crate) writes: Vec<Write>,
}

/// Who made the writes, as far as applying them depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Actor {
    /// A node that was triggered: its triggers count as seen and are consumed.
    Triggered(usize),
    /// A node that ran for another reason.
    Ran(usize),
    /// An update from outside that stands in for a node that was triggered: its triggers are consumed.
    StoodIn(usize),
    /// A recorded call of this name.
    Call(Arc<str>),
    /// Input, or a command given as input. Such writes are no superstep: nothing is emptied.
    Input,
}

impl Actor {
    pub(crate) fn name(&self, layout: &Layout) -> Arc<str> {
        match self {
            Self::Triggered(node) | Self::Ran(node) | Self::StoodIn(node) => {
                layout.nodes[*node].name.clone()
            }
            Self::Call(name) => name.clone(),
            Self::Input => "__input__".into(),
        }
    }
}

/// Why writes could not be applied. The head is then to be thrown away.
#[derive(Debug)]
pub(crate) struct ApplyError {
    pub(crate) channel: Arc<str>,
    pub(crate) fault: Fault,
    /// Positions of the tasks that wrote to the channel.
    pub(crate) tasks: Vec<usize>,
}

#[derive(Debug)]
pub(crate) enum Fault {
    /// Several writes where one is allowed.
    Concurrent,
    /// Several writes to a channel that guards against them.
    Guarded,
    /// Several writes that replace the value.
    Overwrites,
    /// A write the channel does not take.
    Refused(ChannelError),
    /// The reducer panicked.
    Panicked(String),
    /// What the channel would hold has no stored form.
    Unstorable(superstep_checkpoint::Error),
}

/// Folds the writes of tasks, given in the order of their paths, into the head.
///
/// Each channel changes at most once, and all that change get the same new version.
///
/// # Errors
/// A channel does not take what was written to it. With `undo`, the head is then as it was; otherwise it is to be thrown
/// away.
pub(crate) fn apply(
    layout: &Layout,
    head: &mut Head,
    tasks: &mut [Applied],
    undo: bool,
) -> Result<(), Box<ApplyError>> {
    let superstep = !tasks.iter().all(|task| matches!(task.actor, Actor::Input));
    let mut state = take_state(tasks);
    // Only this can fail, so it comes first.
    let changes = fold(layout, head, &mut state, superstep, undo)?;

    // The tasks of this superstep: what they lead to is late for a join that has fired.
    let under_way = (!layout.partial_joins.is_empty()).then(|| UnderWay::new(layout, head));
    for task in &*tasks {
        mark_seen(layout, head, &task.actor);
    }
    let next = head.newest + 1;
    for task in &*tasks {
        if let Actor::Triggered(node) | Actor::StoodIn(node) = task.actor {
            consume(layout, head, node, next, under_way.as_ref());
        }
    }
    let mut updated = head.updated.take().unwrap_or_default();
    updated.clear();
    control(layout, head, tasks, superstep, next, &mut updated);
    for &(at, filled) in &changes {
        head.filled[at] = filled;
        head.touch(at, next);
        updated.push(at);
    }

    updated.retain(|slot| head.is_available(layout, *slot));
    if superstep {
        empty_idle(layout, head, next);
        let goes_on = updated.iter().any(|slot| is_trigger(layout, *slot));
        if !goes_on {
            finish(layout, head, next, &mut updated);
        }
    }
    if under_way.is_some() {
        end_rounds(layout, head, next);
    }
    head.volatile.extend(updated.iter().filter(|slot| layout.is_volatile(**slot)));
    if head.volatile.len() > 1 {
        head.volatile.sort_unstable();
        head.volatile.dedup();
    }
    head.updated = Some(updated);
    head.wrote.clear();
    head.wrote.extend(state.iter().map(|write| (write.channel, write.task)));
    Ok(())
}

/// A write to a state channel, until it is folded in.
struct StateWrite {
    channel: usize,
    /// The position of the task that made it.
    task: usize,
    value: Option<WriteValue>,
}

impl StateWrite {
    fn is_overwrite(&self) -> bool {
        matches!(self.value, Some(WriteValue::Overwrite(_)))
    }
}

/// Takes the writes to state channels out of the tasks: by channel, and then in task order.
fn take_state(tasks: &mut [Applied]) -> SmallVec<[StateWrite; 2]> {
    let mut state = SmallVec::<[StateWrite; 2]>::new();
    for (position, task) in tasks.iter_mut().enumerate() {
        for write in task.writes.iter_mut().filter(|write| matches!(write, Write::State(..))) {
            if let Write::State(channel, value) = std::mem::replace(write, Write::Taken) {
                state.push(StateWrite { channel, task: position, value: Some(value) });
            }
        }
    }
    if !state.is_sorted_by_key(|write| write.channel) {
        // A stable sort keeps the writes to one channel in task order.
        state.sort_by_key(|write| write.channel);
    }
    state
}

fn mark_seen(layout: &Layout, head: &mut Head, actor: &Actor) {
    match *actor {
        Actor::Triggered(node) => {
            let triggers = &layout.nodes[node].triggers;
            let seen = head.seen[node].get_or_insert_with(|| vec![0; triggers.len()].into());
            for (seen, control) in seen.iter_mut().zip(triggers) {
                *seen = head.versions[layout.control_slot(*control)];
            }
            head.news.nodes.push(node);
        }
        Actor::Ran(node) | Actor::StoodIn(node) => {
            let triggers = layout.nodes[node].triggers.len();
            head.seen[node].get_or_insert_with(|| vec![0; triggers].into());
            head.news.nodes.push(node);
        }
        Actor::Call(ref name) => {
            head.news.calls.insert(name.clone());
        }
        Actor::Input => head.news.input = true,
    }
}

fn consume(layout: &Layout, head: &mut Head, node: usize, next: u64, under_way: Option<&UnderWay>) {
    for control in &layout.nodes[node].triggers {
        if head.controls[*control].consume() {
            if let Some(under_way) = under_way {
                end_round(layout, head, *control, under_way, Some(node));
            }
            head.touch(layout.control_slot(*control), next);
        }
    }
}

/// Writes that are no state: triggers, joins, dispatches, input.
fn control(
    layout: &Layout,
    head: &mut Head,
    tasks: &mut [Applied],
    superstep: bool,
    next: u64,
    updated: &mut Vec<Slot>,
) {
    let mut sends = Vec::new();
    let alone = tasks.len() == 1;
    for task in tasks {
        for write in task.writes.drain(..) {
            match write {
                Write::Branch(control, mark) => {
                    let to_run = head.controls[control].is_available();
                    head.controls[control].mark(mark);
                    // A command does not put off a deferred node that is to run already.
                    if to_run && !superstep {
                        head.controls[control].finish();
                    }
                    changed(head, layout.control_slot(control), next, updated);
                }
                Write::Join(control, member) => {
                    if head.controls[control].arrive(member) {
                        changed(head, layout.control_slot(control), next, updated);
                    }
                }
                Write::Send(packet) => sends.push(packet),
                Write::Start(control, value) => {
                    begin_rounds(layout, head, next);
                    head.controls[control] = Control::Start(Some(value));
                    changed(head, layout.control_slot(control), next, updated);
                }
                Write::State(..) | Write::Taken | Write::Return(_) => {}
                Write::Unknown(channel, _) => {
                    tracing::warn!(%channel, "ignored a write to an unknown channel");
                }
            }
        }
        // The next lone task may use the list again. Those of many would only take up memory.
        if !alone {
            task.writes = Vec::new();
        }
    }
    if !sends.is_empty() {
        // What a command dispatches stands beside what is to run already, finished or not.
        if superstep {
            head.sends.clear();
        }
        head.sends.append(&mut sends);
        changed(head, layout.tasks_slot(), next, updated);
    }
}

/// Folds writes to state channels in. Returns the channels that changed, and whether each has a value now.
fn fold(
    layout: &Layout,
    head: &mut Head,
    state: &mut [StateWrite],
    superstep: bool,
    undo: bool,
) -> Result<SmallVec<[(usize, bool); 2]>, Box<ApplyError>> {
    let mut changes = SmallVec::new();
    let mut taken = Undos::new();
    for writes in state.chunk_by_mut(|a, b| a.channel == b.channel) {
        let at = writes[0].channel;
        let back = undo.then_some(&mut taken);
        let update =
            AssertUnwindSafe(|| update_channel(layout, head, at, &mut *writes, superstep, back));
        let fault = match catch_unwind(update) {
            Ok(Ok(Some(filled))) => {
                changes.push((at, filled));
                continue;
            }
            Ok(Ok(None)) => continue,
            Ok(Err(fault)) => fault,
            Err(panic) => Fault::Panicked(crate::error::panic_text(&*panic)),
        };
        let mut row = head.row.open();
        for (at, taken) in taken.into_iter().rev() {
            row.take_back(at, taken);
        }
        let channel = layout.channels[at].name.clone();
        let tasks = writes.iter().map(|write| write.task).collect();
        return Err(Box::new(ApplyError { channel, fault, tasks }));
    }
    Ok(changes)
}

fn changed(head: &mut Head, slot: Slot, next: u64, updated: &mut Vec<Slot>) {
    head.touch(slot, next);
    if !updated.contains(&slot) {
        updated.push(slot);
    }
}

/// Folds one superstep's writes to one state channel in. Returns whether it has a value now, or nothing if it did not
/// change.
fn update_channel(
    layout: &Layout,
    head: &mut Head,
    at: usize,
    writes: &mut [StateWrite],
    superstep: bool,
    undos: Option<&mut Undos>,
) -> Result<Option<bool>, Fault> {
    let kind = layout.channels[at].kind;
    let several = writes.len() > 1;
    let mut overwritten = false;
    match kind {
        // Commands are given one after another, so the last one wins.
        Kind::Last if several && superstep => return Err(Fault::Concurrent),
        Kind::Ephemeral { guard: true } | Kind::Untracked { guard: true } if several => {
            return Err(Fault::Guarded);
        }
        _ if several && overwrite_counts_alone(kind) => {
            let overwrites = writes.iter().filter(|write| write.is_overwrite()).count();
            if overwrites > 1 && superstep {
                return Err(Fault::Overwrites);
            }
            overwritten = overwrites > 0;
        }
        _ => {}
    }
    let had = head.filled[at];
    let size = match kind {
        Kind::Topic { accumulate: true } if had => head.row.size(at).unwrap_or(0),
        _ => 0,
    };
    let topic = matches!(kind, Kind::Topic { .. });
    let replaced = topic && writes.iter().any(StateWrite::is_overwrite);
    let values = writes.iter_mut().filter_map(|write| write.value.take());
    let mut row = head.row.open();
    fold_writes(&mut row, at, kind, values, overwritten, undos).map_err(Fault::Refused)?;
    if !topic {
        return Ok(Some(true));
    }
    let filled = !row.is_empty(at);
    let grew = head.row.size(at).unwrap_or(0) > size;
    let changed = grew || replaced || (had && kind == (Kind::Topic { accumulate: false }));
    Ok(changed.then_some(filled))
}

/// Empties what lives for one superstep only and was not written in this one.
fn empty_idle(layout: &Layout, head: &mut Head, next: u64) {
    let mut idle = std::mem::take(&mut head.volatile);
    for slot in idle.drain(..) {
        if head.versions[slot] == next || !head.is_available(layout, slot) {
            continue;
        }
        match layout.place(slot) {
            Place::State(at) => {
                head.row.open().clear(at);
                head.filled[at] = false;
            }
            Place::Control(at) => head.controls[at].clear(),
            Place::Tasks => head.sends.clear(),
        }
        head.touch(slot, next);
    }
    head.volatile = idle;
}

fn is_trigger(layout: &Layout, slot: Slot) -> bool {
    match layout.place(slot) {
        Place::Control(control) => !layout.triggered[control].is_empty(),
        Place::State(_) | Place::Tasks => false,
    }
}

fn finish(layout: &Layout, head: &mut Head, next: u64, updated: &mut Vec<Slot>) {
    for control in &layout.deferred {
        if head.controls[*control].finish() {
            changed(head, layout.control_slot(*control), next, updated);
        }
    }
}
