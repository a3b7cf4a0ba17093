//! Updates as if nodes had made them.

use std::sync::Arc;

use superstep_checkpoint::{CheckpointId, Source, TaskId, TaskWrites};
use uuid::Uuid;

use super::{Change, ChangeValue, Updater, invalid};
use crate::engine::drive::barrier::apply_error;
use crate::engine::kernel::apply::{Actor, Applied, apply};
use crate::engine::kernel::head::{Head, Mark, Write};
use crate::engine::kernel::layout::{ControlKind, START};
use crate::engine::step::entry::Entry;
use crate::engine::step::output::{Unwritten, Written, writes_of};
use crate::engine::step::superstep::Superstep;
use crate::engine::stored::{ids, slots};
use crate::engine::task::handle::{Identity, Task};
use crate::error::{RunError, nearest};
use crate::node::{Output, Target};

/// A change, and whose place it takes.
struct Placed {
    node: usize,
    value: ChangeValue,
    task: Task,
    /// The id its writes are stored under: that of the task whose place it takes, or one of its own.
    id: TaskId,
}

impl Updater<'_> {
    pub(super) async fn written_by_nodes(
        mut self,
        changes: Vec<Change>,
    ) -> Result<CheckpointId, RunError> {
        let layout = self.graph.layout.clone();
        let (superstep, entries) = self.planned();
        let placed = self.place(&superstep, &entries, changes)?;
        let is_planned = |node: usize| entries.iter().any(|entry| entry.node == node);
        let mut tasks = Vec::new();
        let mut stored = Vec::new();
        if !self.superseded() {
            tasks.extend(self.finished(&entries, &placed)?);
        }
        // Stored writes are replayed in the order of paths, with those that this update drops.
        let mixed = !self.pending.is_empty();
        if placed.iter().any(|placed| is_planned(placed.node)) {
            tasks.extend(self.kept(&entries, &placed));
        }
        for (index, Placed { node, value, task, id }) in placed.into_iter().enumerate() {
            let writes = self.writes(node, value, &task, id).await?;
            let encoded = writes.iter().filter_map(|w| slots::encode_write(&layout, w).transpose());
            let encoded = encoded.collect::<Result<_, _>>()?;
            stored.push(TaskWrites::new(id, ids::update_path(index), encoded));
            let actor = if is_planned(node) { Actor::StoodIn(node) } else { Actor::Ran(node) };
            tasks.push(Applied { actor, writes });
        }
        let names: Vec<_> = tasks.iter().map(|task| task.actor.name(&layout)).collect();
        let overwritten = overwritten(&self.head, &tasks);
        apply(&layout, &mut self.head, &mut tasks, false)
            .map_err(|error| apply_error(&error, &names, self.step()))?;
        let step = self.step();
        let writes = if self.superseded() || self.stored.is_none() {
            self.force_snapshots();
            Vec::new()
        } else {
            self.recorder.forced.extend(overwritten);
            if mixed {
                self.force_snapshots();
            }
            stored
        };
        let parent = self.stored.as_ref().map(|stored| stored.checkpoint.id);
        self.put(Source::Update, step, parent, writes).await
    }

    /// Finds the task whose place each change takes: the next one of that node that is planned and has not finished, or
    /// one of its own. No two changes have the same, because what is stored under an id is stored once.
    fn place(
        &self,
        superstep: &Arc<Superstep>,
        entries: &[Entry],
        changes: Vec<Change>,
    ) -> Result<Vec<Placed>, RunError> {
        let layout = &self.graph.layout;
        let mut placed: Vec<Placed> = Vec::with_capacity(changes.len());
        for (index, Change { value, as_node }) in changes.into_iter().enumerate() {
            let name = as_node.unwrap_or_else(|| START.into());
            let known = layout.nodes.iter().map(|def| &*def.name);
            let node = layout.node(&name).ok_or_else(|| {
                invalid(format!("node `{name}` does not exist{}", nearest(&name, known)))
            })?;
            let is_free = |entry: &&Entry| {
                let id = entry.task.id();
                entry.node == node
                    && self.pending.output(id).is_none()
                    && placed.iter().all(|placed| placed.id != id)
            };
            let (task, id) = match entries.iter().find(is_free) {
                Some(entry) => (entry.task.clone(), entry.task.id()),
                None => {
                    let task = Task::new(superstep.clone(), name, Identity::Triggered(node), None);
                    let text = match index {
                        0 => "__interrupt__".to_owned(),
                        index => format!("__interrupt__:{index}"),
                    };
                    let id = Uuid::new_v5(&self.base.as_uuid(), text.as_bytes());
                    (task, TaskId::from(id))
                }
            };
            placed.push(Placed { node, value, task, id });
        }
        Ok(placed)
    }

    /// Whether a change takes the place of this task: of one that has not finished, or of the node it was triggered for.
    fn is_replaced(&self, entry: &Entry, placed: &[Placed]) -> bool {
        let replaces = |placed: &Placed| {
            let same = !entry.is_dispatched() && placed.node == entry.node;
            same || placed.id == entry.task.id()
        };
        placed.iter().any(replaces)
    }

    /// Tasks of the open superstep that had finished: their writes are folded in first.
    fn finished(&self, entries: &[Entry], placed: &[Placed]) -> Result<Vec<Applied>, RunError> {
        let mut finished = Vec::new();
        for entry in entries.iter().filter(|entry| !self.is_replaced(entry, placed)) {
            finished.extend(entry.finished(&self.pending)?.into_iter().flatten());
        }
        finished.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(finished.into_iter().map(|(_, applied)| applied).collect())
    }

    /// Writes that keep the other tasks of the open superstep pending.
    fn kept(&self, entries: &[Entry], placed: &[Placed]) -> Option<Applied> {
        let layout = &self.graph.layout;
        let mut writes = Vec::new();
        for entry in entries {
            // On a branch, what had finished runs again like everything else.
            let done = !self.superseded() && entry.has_finished(&self.pending);
            if done || self.is_replaced(entry, placed) {
                continue;
            }
            match entry.packet() {
                Some(packet) => writes.push(Write::Send(packet)),
                None => {
                    let marked = layout.nodes[entry.node].triggers.iter().filter(|control| {
                        let branch =
                            matches!(layout.controls[**control].kind, ControlKind::Branch { .. });
                        branch && self.head.controls[**control].is_available()
                    });
                    writes.extend(marked.map(|control| Write::Branch(*control, Mark::Null)));
                }
            }
        }
        (!writes.is_empty()).then_some(Applied { actor: Actor::Input, writes })
    }

    /// What a change writes as its node, edges and routers included.
    async fn writes(
        &self,
        node: usize,
        value: ChangeValue,
        task: &Task,
        id: TaskId,
    ) -> Result<Vec<Write>, RunError> {
        let node_name = &self.graph.layout.nodes[node].name;
        let mut row = self.head.row.clone();
        let output = self.output(value)?;
        if output.target == Target::Parent {
            return Err(RunError::NoParent { node: node_name.clone() });
        }
        let writes = match writes_of(task, node, &mut row, output, Vec::new()) {
            Ok(Written::Now(writes)) => Ok(writes),
            Ok(Written::Later(writes)) => writes.await,
            Err(error) => Err(Unwritten::Failed(error)),
        };
        writes.map_err(|unwritten| match unwritten {
            Unwritten::Failed(error) if error.kind() == "InvalidUpdateError" => {
                RunError::InvalidUpdate { message: format!("{error:#}"), code: error.code() }
            }
            Unwritten::Failed(error) => {
                RunError::Node { node: node_name.clone(), task: id, arg: None, error }
            },
            Unwritten::Suspended(_) => RunError::Invalid(format!(
                "a router of node `{node_name}` asks a question, which nobody can answer in an update"
            )),
        })
    }

    fn output(&self, value: ChangeValue) -> Result<Output, RunError> {
        let layout = &self.graph.layout;
        Ok(match value {
            ChangeValue::Nothing => Output::default(),
            ChangeValue::Output(output) => output,
            ChangeValue::Data(value) if layout.single => {
                let mut writes = crate::state::Writes::new();
                for at in 0..layout.channels.len() {
                    let write = layout.schema.parse_write(at, value.clone())?;
                    writes.list.push((at, write));
                }
                Output::writes(writes)
            }
            ChangeValue::Data(value) => Output::writes(crate::state::Writes::data(value)),
        })
    }
}

fn overwritten(head: &Head, tasks: &[Applied]) -> Vec<usize> {
    let writes = tasks.iter().flat_map(|task| &task.writes);
    writes
        .filter_map(|write| match write {
            Write::State(at, value) if head.row.is_replaced_by(*at, value) => Some(*at),
            _ => None,
        })
        .collect()
}
