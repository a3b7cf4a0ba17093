//! Changing the state of a thread from outside.

use std::sync::Arc;

use superstep_checkpoint::{
    AnyCheckpointer, CheckpointId, Metadata, Put, Source, Stored, TaskId, TaskWrites, Value,
};
use uuid::Uuid;

use super::apply::{Actor, Applied, apply};
use super::barrier::apply_error;
use super::entry::Entry;
use super::head::{Head, StartValue, Write};
use super::layout::{ControlKind, END, START};
use super::output::{Unwritten, Written, writes_of};
use super::pending::Pending;
use super::plan::plan;
use super::record::Recorder;
use super::run::CheckpointIds;
use super::slots;
use super::snapshot::{Quiet, quiet_superstep};
use super::superstep::Superstep;
use super::task::{Identity, Task};
use crate::error::{RunError, nearest};
use crate::graph::Compiled;
use crate::node::Output;
use crate::state::Payload;

/// One change of the state, as if a node had made it.
pub(crate) struct Change {
    pub(crate) value: ChangeValue,
    pub(crate) as_node: Option<Arc<str>>,
}

pub(crate) enum ChangeValue {
    /// Nothing is written; edges still fire.
    Nothing,
    Output(Output),
    /// Data that has still to be checked against the channels.
    Data(Value),
}

/// Changes to apply to a thread, superstep by superstep.
pub(crate) struct UpdateRequest {
    pub(crate) graph: Arc<Compiled>,
    pub(crate) saver: AnyCheckpointer,
    pub(crate) ids: Arc<dyn CheckpointIds>,
    pub(crate) thread: Arc<str>,
    pub(crate) ns: Arc<str>,
    pub(crate) at: Option<CheckpointId>,
    pub(crate) steps: Vec<Vec<Change>>,
}

const INPUT: &str = "__input__";
const COPY: &str = "__copy__";

fn invalid(message: impl Into<String>) -> RunError {
    RunError::InvalidUpdate { message: message.into(), code: None }
}

/// Applies the changes and returns the checkpoint they lead to.
pub(crate) async fn update(request: UpdateRequest) -> Result<CheckpointId, RunError> {
    let UpdateRequest { graph, saver, ids, thread, ns, at, steps } = request;
    if steps.is_empty() {
        return Err(RunError::Invalid("there are no supersteps to apply".to_owned()));
    }
    if steps.iter().any(Vec::is_empty) {
        return Err(RunError::Invalid("a superstep has no updates".to_owned()));
    }
    let mut at = at;
    for changes in steps {
        let updater = Updater::load(&graph, &saver, &*ids, &thread, &ns, at).await?;
        at = Some(updater.superstep(changes).await?);
    }
    at.ok_or_else(|| RunError::Invalid("there are no supersteps to apply".to_owned()))
}

struct Updater<'a> {
    graph: &'a Arc<Compiled>,
    saver: &'a AnyCheckpointer,
    ids: &'a dyn CheckpointIds,
    thread: &'a Arc<str>,
    ns: &'a Arc<str>,
    stored: Option<Stored>,
    head: Head,
    recorder: Recorder,
    pending: Pending,
    /// The head of the thread.
    latest: Option<CheckpointId>,
    base: CheckpointId,
}

impl<'a> Updater<'a> {
    async fn load(
        graph: &'a Arc<Compiled>,
        saver: &'a AnyCheckpointer,
        ids: &'a dyn CheckpointIds,
        thread: &'a Arc<str>,
        ns: &'a Arc<str>,
        at: Option<CheckpointId>,
    ) -> Result<Self, RunError> {
        let layout = &graph.layout;
        let stored = saver.get(thread, ns, at).await?;
        if let (None, Some(id)) = (&stored, at) {
            return Err(RunError::UnknownCheckpoint { thread: thread.clone(), id });
        }
        let latest = match at {
            Some(_) => saver.get(thread, ns, None).await?.map(|stored| stored.checkpoint.id),
            None => stored.as_ref().map(|stored| stored.checkpoint.id),
        };
        let mut recorder = Recorder::new(layout);
        let (head, pending, base) = match &stored {
            Some(stored) => (
                recorder.load(layout, stored, saver).await?,
                Pending::from_stored(&stored.writes)?,
                stored.checkpoint.id,
            ),
            None => (Head::new(layout), Pending::default(), ids.next(-2, None)),
        };
        Ok(Self { graph, saver, ids, thread, ns, stored, head, recorder, pending, latest, base })
    }

    fn superseded(&self) -> bool {
        self.stored.is_some() && self.latest != Some(self.base)
    }

    fn step(&self) -> i64 {
        self.stored.as_ref().map_or(0, |stored| stored.metadata.step + 1)
    }

    fn quiet_superstep(&self) -> Arc<Superstep> {
        let place = Quiet {
            thread: self.thread.clone(),
            ns: self.ns.clone(),
            around: Arc::default(),
            checkpoint: self.base,
            step: self.step(),
        };
        quiet_superstep(self.graph, self.saver.clone(), place)
    }

    async fn superstep(self, mut changes: Vec<Change>) -> Result<CheckpointId, RunError> {
        let several = changes.len() > 1;
        for change in &changes {
            match change.as_node.as_deref() {
                None if several => {
                    return Err(invalid("several updates in one superstep need `as_node` each"));
                }
                Some(END) if several => {
                    return Err(invalid("clearing the tasks cannot be one of several updates"));
                }
                Some(INPUT) if several => {
                    return Err(invalid("an update as input cannot be one of several updates"));
                }
                Some(COPY) if several => {
                    return Err(invalid("copying a checkpoint cannot be one of several updates"));
                }
                _ => {}
            }
        }
        if let [change] = &mut changes[..] {
            match change.as_node.as_deref() {
                Some(END) => return self.clear(matches!(change.value, ChangeValue::Nothing)).await,
                Some(INPUT) => {
                    let value = std::mem::replace(&mut change.value, ChangeValue::Nothing);
                    return self.given_as_input(value).await;
                }
                Some(COPY) => return self.copy().await,
                Some(_) => {}
                None => change.as_node = Some(self.infer()?),
            }
        }
        self.written_by_nodes(changes).await
    }

    /// The node that ran last.
    fn infer(&self) -> Result<Arc<str>, RunError> {
        let layout = &self.graph.layout;
        let ambiguous =
            || invalid("it is not clear which node the update is from; name it with `as_node`");
        if let [node] = &layout.nodes[..] {
            return Ok(node.name.clone());
        }
        let latest = |seen: &Option<Box<[u64]>>| seen.as_ref()?.iter().max().copied();
        let ran: Vec<(u64, usize)> = (self.head.seen.iter().enumerate())
            .filter_map(|(node, seen)| Some((latest(seen)?, node)))
            .filter(|(version, _)| *version > 0)
            .collect();
        let Some((version, node)) = ran.iter().max().copied() else { return Ok(START.into()) };
        let others = ran.iter().filter(|(other, _)| *other == version).count();
        if others > 1 { Err(ambiguous()) } else { Ok(layout.nodes[node].name.clone()) }
    }

    async fn written_by_nodes(mut self, changes: Vec<Change>) -> Result<CheckpointId, RunError> {
        let layout = self.graph.layout.clone();
        let superstep = self.quiet_superstep();
        let commands = self.pending.commands.iter();
        let commands = commands.map(|(n, blob)| slots::decode_write(&layout, n, blob));
        let commands: Vec<Write> = commands.collect::<Result<_, _>>()?;
        if !commands.is_empty() {
            let task = Applied { actor: Actor::Input, writes: commands };
            apply(&layout, &mut self.head, &mut [task], false)
                .map_err(|error| apply_error(&error, &[], self.step()))?;
        }
        self.head.updated = None;
        let entries: Vec<Entry> = plan(&layout, &self.head)
            .into_iter()
            .map(|planned| Entry::new(&superstep, planned))
            .collect();
        let mut nodes = Vec::with_capacity(changes.len());
        for change in &changes {
            let name = change.as_node.clone().unwrap_or_else(|| START.into());
            let known = layout.nodes.iter().map(|def| &*def.name);
            nodes.push(layout.node(&name).ok_or_else(|| {
                invalid(format!("node `{name}` does not exist{}", nearest(&name, known)))
            })?);
        }
        let takes_over = nodes.iter().any(|node| entries.iter().any(|entry| entry.node == *node));
        let mut tasks = Vec::new();
        let mut stored = Vec::new();
        if !self.superseded() {
            tasks.extend(self.finished(&entries, &nodes)?);
        }
        // Stored writes are replayed in the order of paths, with those that this update drops.
        let mixed = !self.pending.is_empty();
        if takes_over {
            tasks.extend(self.kept(&entries, &nodes));
        }
        for (index, (change, node)) in changes.into_iter().zip(nodes).enumerate() {
            let (task, id) = self.task_for(&superstep, &entries, node, index);
            let output = self.output(change.value)?;
            let mut row = self.head.row.clone();
            let node_name = &layout.nodes[node].name;
            let writes = match writes_of(&task, node, &mut row, output, Vec::new()) {
                Ok(Written::Now(writes)) => Ok(writes),
                Ok(Written::Later(writes)) => writes.await,
                Err(error) => Err(Unwritten::Failed(error)),
            };
            let writes = writes.map_err(|unwritten| match unwritten {
                Unwritten::Failed(error) if error.kind() == "InvalidUpdateError" => {
                    RunError::InvalidUpdate { message: error.to_string(), code: error.code() }
                }
                Unwritten::Failed(error) => {
                    RunError::Node { node: node_name.clone(), task: id, error }
                }
                Unwritten::Suspended(_) => RunError::Invalid(format!(
                    "a router of node `{node_name}` asks a question, which nobody can answer in an update"
                )),
            })?;
            stored.push(self.stored_writes(id, &task, &writes)?);
            let planned = entries.iter().any(|entry| entry.node == node);
            tasks.push(Applied {
                actor: if planned { Actor::StoodIn(node) } else { Actor::Ran(node) },
                writes,
            });
        }
        let names: Vec<_> = tasks.iter().map(|task| task.actor.name(&layout)).collect();
        let overwritten = overwritten(&tasks);
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

    /// Tasks of the open superstep that had finished: their writes are folded in first.
    fn finished(&self, entries: &[Entry], nodes: &[usize]) -> Result<Vec<Applied>, RunError> {
        let mut finished = Vec::new();
        let mut others: Vec<_> =
            entries.iter().filter(|entry| !nodes.contains(&entry.node)).collect();
        others.sort_by_cached_key(|entry| entry.task.path());
        for entry in others {
            let Some(output) = self.pending.output(entry.task.id()) else { continue };
            let layout = &self.graph.layout;
            let writes = output.iter().map(|(n, blob)| slots::decode_write(layout, n, blob));
            finished
                .push(Applied { actor: entry.actor(), writes: writes.collect::<Result<_, _>>()? });
        }
        Ok(finished)
    }

    /// Writes that keep the other tasks of the open superstep pending.
    fn kept(&self, entries: &[Entry], nodes: &[usize]) -> Vec<Applied> {
        let layout = &self.graph.layout;
        let mut writes = Vec::new();
        for entry in entries {
            // On a branch, what had finished runs again like everything else.
            let done = !self.superseded() && self.pending.output(entry.task.id()).is_some();
            if done || nodes.contains(&entry.node) {
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
                    writes.extend(marked.map(|c| Write::Branch(*c, super::head::Mark::Null)));
                }
            }
        }
        if writes.is_empty() {
            return Vec::new();
        }
        vec![Applied { actor: Actor::Input, writes }]
    }

    /// The task whose place the update takes: the planned one of that node, or one of its own.
    fn task_for(
        &self,
        superstep: &Arc<Superstep>,
        entries: &[Entry],
        node: usize,
        index: usize,
    ) -> (Task, TaskId) {
        let free =
            |entry: &&Entry| entry.node == node && self.pending.output(entry.task.id()).is_none();
        if let Some(entry) = entries.iter().find(free) {
            return (entry.task.clone(), entry.task.id());
        }
        let name = self.graph.layout.nodes[node].name.clone();
        let task = Task::new(superstep.clone(), name, Identity::Triggered(node), None);
        let text = match index {
            0 => "__interrupt__".to_owned(),
            index => format!("__interrupt__:{index}"),
        };
        (task, TaskId::from(Uuid::new_v5(&self.base.as_uuid(), text.as_bytes())))
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

    fn stored_writes(
        &self,
        id: TaskId,
        task: &Task,
        writes: &[Write],
    ) -> Result<TaskWrites, RunError> {
        let layout = &self.graph.layout;
        let encoded = writes.iter().filter_map(|w| slots::encode_write(layout, w).transpose());
        Ok(TaskWrites::new(id, task.path(), encoded.collect::<Result<_, _>>()?))
    }

    /// Drops the tasks that are pending; finished ones keep their writes.
    async fn clear(mut self, plain: bool) -> Result<CheckpointId, RunError> {
        if !plain {
            return Err(invalid("the end of the graph takes no values; update as a node"));
        }
        let layout = self.graph.layout.clone();
        let superstep = self.quiet_superstep();
        self.head.updated = None;
        let entries: Vec<Entry> = plan(&layout, &self.head)
            .into_iter()
            .map(|planned| Entry::new(&superstep, planned))
            .collect();
        let mut tasks = Vec::new();
        for entry in entries {
            let output = self.pending.output(entry.task.id()).unwrap_or_default();
            let writes = output.iter().map(|(n, blob)| slots::decode_write(&layout, n, blob));
            let writes = writes.collect::<Result<Vec<_>, _>>()?;
            let state = writes.into_iter().filter(|write| matches!(write, Write::State(..)));
            tasks.push(Applied { actor: entry.actor(), writes: state.collect() });
        }
        apply(&layout, &mut self.head, &mut tasks, false)
            .map_err(|error| apply_error(&error, &[], self.step()))?;
        self.force_snapshots();
        let (step, parent) = (self.step(), self.stored.as_ref().map(|s| s.checkpoint.id));
        self.put(Source::Update, step, parent, Vec::new()).await
    }

    async fn given_as_input(mut self, value: ChangeValue) -> Result<CheckpointId, RunError> {
        let layout = self.graph.layout.clone();
        let start = match value {
            ChangeValue::Nothing => {
                return Err(invalid("an update as input needs a value"));
            }
            ChangeValue::Output(output) => StartValue::Writes(output.writes),
            ChangeValue::Data(value) => StartValue::Arg(Payload::new(value)),
        };
        let control = layout.controls.iter().position(|c| matches!(c.kind, ControlKind::Start));
        let control = control.ok_or_else(|| invalid("the graph takes no input"))?;
        let task =
            Applied { actor: Actor::Input, writes: vec![Write::Start(control, Arc::new(start))] };
        apply(&layout, &mut self.head, &mut [task], false)
            .map_err(|error| apply_error(&error, &[], self.step()))?;
        let step = self.stored.as_ref().map_or(-1, |stored| stored.metadata.step + 1);
        self.force_snapshots();
        let parent = self.stored.as_ref().map(|stored| stored.checkpoint.id);
        self.put(Source::Input, step, parent, Vec::new()).await
    }

    /// A new checkpoint with the same content, beside the old one.
    async fn copy(mut self) -> Result<CheckpointId, RunError> {
        let Some(stored) = &self.stored else {
            return Err(invalid("there is no checkpoint to copy"));
        };
        let (step, parent) = (stored.metadata.step + 1, stored.parent);
        self.force_snapshots();
        self.put(Source::Fork, step, parent, Vec::new()).await
    }

    fn force_snapshots(&mut self) {
        self.recorder.forced.extend(0..self.graph.layout.channels.len());
    }

    async fn put(
        mut self,
        source: Source,
        step: i64,
        parent: Option<CheckpointId>,
        writes: Vec<TaskWrites>,
    ) -> Result<CheckpointId, RunError> {
        let layout = &self.graph.layout;
        let id = self.ids.next(step, Some(self.base));
        self.recorder.count(&self.head);
        self.head.updated = None;
        let (checkpoint, changed) = self.recorder.checkpoint(layout, &mut self.head, id)?;
        let parents = self.stored.as_ref().map(|s| s.metadata.parents.clone()).unwrap_or_default();
        let metadata = Metadata {
            delta_counters: self.recorder.delta_counters(),
            parents,
            ..Metadata::new(source, step)
        };
        let put = Put {
            thread: self.thread.clone(),
            ns: self.ns.clone(),
            parent,
            head: self.latest,
            writes,
            checkpoint,
            metadata,
            changed,
        };
        self.saver.put(put).await?;
        Ok(id)
    }
}

fn overwritten(tasks: &[Applied]) -> Vec<usize> {
    use crate::state::WriteValue;
    let writes = tasks.iter().flat_map(|task| &task.writes);
    writes
        .filter_map(|write| match write {
            Write::State(at, WriteValue::Overwrite(_)) => Some(*at),
            _ => None,
        })
        .collect()
}
