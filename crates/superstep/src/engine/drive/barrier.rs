//! The end of a superstep: its writes are folded into the head, or taken back.

use std::sync::Arc;

use smallvec::SmallVec;
use superstep_checkpoint::{Blob, Put, Source, TaskId, TaskWrites, Value};

use crate::engine::drive::control::Durability;
use crate::engine::drive::driver::{Driver, Spare};
use crate::engine::kernel::apply::{Actor, Applied, ApplyError, Fault, apply};
use crate::engine::kernel::head::Write;
use crate::engine::kernel::layout::TASKS;
use crate::engine::kernel::plan::{Cause, plan};
use crate::engine::step::entry::Entry;
use crate::engine::step::superstep::Superstep;
use crate::engine::stored::record;
use crate::engine::stored::slots::Unstorable;
use crate::error::{Code, RunError};
use crate::state::Kind;

/// The tasks of a superstep with their writes. Most supersteps have one.
type AppliedTasks = SmallVec<[Applied; 1]>;

/// A superstep whose writes are folded in, until it is known that what came of them can be stored.
pub(in crate::engine) struct Folded {
    superstep: Arc<Superstep>,
    entries: Vec<Entry>,
    tasks: AppliedTasks,
}

/// Writes that cannot be applied, with the tasks that made them.
pub(in crate::engine) struct FailedBarrier {
    error: Box<ApplyError>,
    entries: Vec<Entry>,
}

impl Driver {
    /// Applies a superstep.
    pub(in crate::engine) fn barrier(
        &mut self,
        superstep: Arc<Superstep>,
        mut entries: Vec<Entry>,
    ) -> Result<Folded, FailedBarrier> {
        let mut tasks = self.applied(&superstep, &mut entries);
        if self.setting.checkpointer.is_some() {
            self.note_overwrites(&tasks);
        }
        // Storing at the end stores the head, so it must not be left half changed.
        let undo = self.setting.run.durability == Durability::Exit;
        if let Err(error) = apply(&self.setting.layout, &mut self.head, &mut tasks, undo) {
            return Err(FailedBarrier { error, entries });
        }
        self.setting.emitter.values_if_changed(&self.head);
        if !self.pending.is_clear() {
            self.force_dropped_deltas();
            self.pending.clear();
        }
        self.asked.first_superstep_is_over();
        Ok(Folded { superstep, entries, tasks })
    }

    /// Ends a superstep: makes the head the one that the next superstep starts from, and returns what there is to store.
    pub(in crate::engine) fn commit(
        &mut self,
        folded: Folded,
    ) -> Result<Option<Put>, FailedBarrier> {
        let Folded { superstep, mut entries, mut tasks } = folded;
        let before = self.position.mark();
        let mut put = None;
        if self.advance(Source::Loop) {
            match self.record() {
                Ok(recorded) => put = recorded,
                Err(unstorable) => {
                    self.position.back_to(before);
                    return Err(FailedBarrier { error: self.unstorable(unstorable), entries });
                }
            }
        }
        entries.clear();
        let writes =
            tasks.first_mut().map(|task| std::mem::take(&mut task.writes)).unwrap_or_default();
        self.spare = Spare { entries, superstep: Some(superstep), writes };
        Ok(put)
    }

    /// What the tasks wrote can be stored, but not what came of it.
    fn unstorable(&self, unstorable: Unstorable) -> Box<ApplyError> {
        let (at, cause) = unstorable.into_parts();
        let mut tasks: Vec<_> = self
            .head
            .wrote
            .iter()
            .filter(|(channel, _)| Some(*channel) == at)
            .map(|(_, task)| *task)
            .collect();
        tasks.dedup();
        let channel =
            at.map_or_else(|| TASKS.into(), |at| self.setting.layout.channels[at].name.clone());
        Box::new(ApplyError { channel, tasks, fault: Fault::Unstorable(cause) })
    }

    /// Stored writes to delta channels of tasks that this run did not take up would be replayed with the others. So these
    /// channels store their whole value.
    pub(in crate::engine) fn force_dropped_deltas(&mut self) {
        for name in self.pending.dropped_channels() {
            self.recorder.seal(&self.setting.layout, &name);
        }
    }

    /// The tasks of a superstep in the order in which their writes are folded. The entries are sorted alike.
    pub(in crate::engine) fn applied(
        &self,
        superstep: &Superstep,
        entries: &mut [Entry],
    ) -> AppliedTasks {
        let mut tasks = match entries {
            [entry] => AppliedTasks::from_buf([entry.applied()]),
            entries => {
                entries.sort_by(|a, b| a.order().cmp(&b.order()));
                entries.iter_mut().map(Entry::applied).collect()
            }
        };
        while let Some(name) = superstep.work().calls.pop_first() {
            tasks.push(Applied { actor: Actor::Call(name), writes: Vec::new() });
        }
        tasks
    }

    fn note_overwrites(&mut self, tasks: &[Applied]) {
        for write in tasks.iter().flat_map(|task| &task.writes) {
            if let Write::State(at, value) = write
                && matches!(self.setting.layout.channels[*at].kind, Kind::Delta(_))
                && self.head.row.is_replaced_by(*at, value)
            {
                self.recorder.forced.insert(*at);
            }
        }
    }

    /// Writes that cannot be applied are taken back, so that their tasks can run again.
    pub(in crate::engine) async fn fail_barrier(&mut self, unfit: FailedBarrier) -> RunError {
        let FailedBarrier { error, entries: ran } = &unfit;
        let names: Vec<_> = ran.iter().map(|entry| entry.task.inner.name.clone()).collect();
        let failed = apply_error(error, &names, self.position.step());
        let undo = self.setting.run.durability == Durability::Exit;
        if self.setting.checkpointer.is_some() {
            let text = failed.stored();
            let tasks = error.tasks.iter().filter_map(|at| ran.get(*at));
            let mut writes = Vec::new();
            for Entry { task, .. } in tasks {
                let stored = Blob::from_value(&Value::from(text.as_str()));
                let Ok(blob) = stored else { continue };
                let failed = vec![(record::ERROR.into(), blob)];
                let failed = TaskWrites::new(task.id(), task.path(), failed);
                writes.push(TaskWrites { replaces: true, ..failed });
            }
            let involved: Vec<TaskId> = writes.iter().map(|write| write.task).collect();
            let others = self.outbox.take_unsaved();
            let others = others.into_iter().filter(|write| !involved.contains(&write.task));
            let all: Vec<TaskWrites> = others.chain(writes).collect();
            if undo {
                self.outbox.put_back(all);
                return failed;
            }
            if self.outbox.has_stored(self.position.id())
                && let Err(error) = self.put_writes(all).await
            {
                return error.into();
            }
        }
        failed
    }

    /// The writes of a command or of an update that is no task's.
    pub(in crate::engine) fn input_writes(&self, writes: Vec<Write>) -> Applied {
        Applied { actor: Actor::Input, writes }
    }

    /// Drops the tasks that are planned: their triggers count as seen.
    pub(in crate::engine) fn discarded(&self) -> Vec<Applied> {
        let planned = plan(&self.setting.layout, &self.head);
        let discarded = planned.into_iter().map(|planned| Applied {
            actor: match planned.cause {
                Cause::Triggered => Actor::Triggered(planned.node),
                Cause::Dispatched(..) => Actor::Ran(planned.node),
            },
            writes: Vec::new(),
        });
        discarded.collect()
    }
}

/// What went wrong at a barrier, in the user's words.
pub(crate) fn apply_error(error: &ApplyError, names: &[Arc<str>], step: i64) -> RunError {
    let channel = &error.channel;
    let mut nodes: Vec<String> = Vec::new();
    for at in &error.tasks {
        let name = names.get(*at).map_or("input", |name| name);
        nodes.push(format!("`{name}`"));
    }
    let nodes = nodes.join(" and ");
    let code = Some(Code::InvalidConcurrentGraphUpdate);
    match &error.fault {
        Fault::Concurrent => RunError::InvalidUpdate {
            message: format!(
                "channel `{channel}` keeps one value, but nodes {nodes} both wrote it in superstep {step}; give it a reducer or let one of them write"
            ),
            code,
        },
        Fault::Guarded => RunError::InvalidUpdate {
            message: format!(
                "channel `{channel}` takes one write in a superstep, but nodes {nodes} wrote it in superstep {step}; declare it with `guard = false` to keep the last one"
            ),
            code: None,
        },
        Fault::Overwrites => RunError::InvalidUpdate {
            message: format!(
                "channel `{channel}` was overwritten by nodes {nodes} in superstep {step}; let one of them overwrite it"
            ),
            code,
        },
        Fault::Refused(refused) => {
            RunError::Reducer { channel: channel.clone(), nodes, message: refused.to_string() }
        }
        Fault::Unstorable(cause) => RunError::Reducer {
            channel: channel.clone(),
            nodes,
            message: format!("what it would hold cannot be stored: {cause}"),
        },
        Fault::Panicked(text) => RunError::Reducer {
            channel: channel.clone(),
            nodes,
            message: format!("its reducer panicked: {text}"),
        },
    }
}
