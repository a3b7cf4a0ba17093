//! Changing the state of a thread from outside.

mod nodes;
mod special;

use std::collections::BTreeMap;
use std::sync::Arc;

use superstep_checkpoint::{
    AnyCheckpointer, CheckpointId, Metadata, Put, Source, Stored, TaskWrites, Value,
};

use crate::engine::drive::barrier::apply_error;
use crate::engine::drive::driver::on_thread;
use crate::engine::drive::run::CheckpointIds;
use crate::engine::kernel::apply::{Actor, Applied, apply};
use crate::engine::kernel::compiled::Compiled;
use crate::engine::kernel::head::Head;
use crate::engine::kernel::layout::{END, START};
use crate::engine::kernel::plan::plan;
use crate::engine::outside::snapshot::{DryRun, quiet_superstep};
use crate::engine::step::entry::Entry;
use crate::engine::step::superstep::Superstep;
use crate::engine::stored::pending::Pending;
use crate::engine::stored::record::Recorder;
use crate::engine::stored::slots;
use crate::error::RunError;
use crate::node::Output;

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
    pub(crate) checkpointer: AnyCheckpointer,
    pub(crate) ids: Arc<dyn CheckpointIds>,
    pub(crate) thread: Arc<str>,
    pub(crate) ns: Arc<str>,
    pub(crate) at: Option<CheckpointId>,
    pub(crate) steps: Vec<Vec<Change>>,
    /// Stored with each checkpoint that is not a copy of another one.
    pub(crate) metadata: BTreeMap<String, Value>,
}

const INPUT: &str = "__input__";
const COPY: &str = "__copy__";

fn invalid(message: impl Into<String>) -> RunError {
    RunError::InvalidUpdate { message: message.into(), code: None }
}

/// Applies the changes and returns the checkpoint they lead to.
pub(crate) async fn update(request: UpdateRequest) -> Result<CheckpointId, RunError> {
    let thread = request.thread.clone();
    make(request).await.map_err(|error| on_thread(error, &thread))
}

async fn make(request: UpdateRequest) -> Result<CheckpointId, RunError> {
    let UpdateRequest { graph, checkpointer, ids, thread, ns, at, steps, metadata } = request;
    if steps.is_empty() {
        return Err(RunError::Invalid("there are no supersteps to apply".to_owned()));
    }
    if steps.iter().any(Vec::is_empty) {
        return Err(RunError::Invalid("a superstep has no updates".to_owned()));
    }
    let mut at = at;
    for changes in steps {
        let updater = Updater::load(&graph, &checkpointer, &*ids, &thread, &ns, at).await?;
        let updater = Updater { metadata: metadata.clone(), ..updater };
        at = Some(updater.superstep(changes).await?);
    }
    at.ok_or_else(|| RunError::Invalid("there are no supersteps to apply".to_owned()))
}

struct Updater<'a> {
    graph: &'a Arc<Compiled>,
    checkpointer: &'a AnyCheckpointer,
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
    metadata: BTreeMap<String, Value>,
}

impl<'a> Updater<'a> {
    async fn load(
        graph: &'a Arc<Compiled>,
        checkpointer: &'a AnyCheckpointer,
        ids: &'a dyn CheckpointIds,
        thread: &'a Arc<str>,
        ns: &'a Arc<str>,
        at: Option<CheckpointId>,
    ) -> Result<Self, RunError> {
        let layout = &graph.layout;
        let stored = checkpointer.get(thread, ns, at).await?;
        if let (None, Some(id)) = (&stored, at) {
            return Err(RunError::UnknownCheckpoint { thread: thread.clone(), id });
        }
        let latest = match at {
            Some(_) => checkpointer.get(thread, ns, None).await?.map(|stored| stored.checkpoint.id),
            None => stored.as_ref().map(|stored| stored.checkpoint.id),
        };
        let mut recorder = Recorder::new(layout);
        let (head, pending, base) = match &stored {
            Some(stored) => (
                recorder.load(layout, stored, checkpointer).await?,
                Pending::from_stored(&stored.writes)?,
                stored.checkpoint.id,
            ),
            None => (Head::new(layout), Pending::default(), ids.next(-2, None)),
        };
        let mut updater = Self {
            graph,
            checkpointer,
            ids,
            thread,
            ns,
            stored,
            head,
            recorder,
            pending,
            latest,
            base,
            metadata: BTreeMap::new(),
        };
        updater.apply_commands()?;
        Ok(updater)
    }

    /// Commands that no run has taken up yet are part of what is changed: otherwise the change would drop them.
    fn apply_commands(&mut self) -> Result<(), RunError> {
        let layout = &self.graph.layout;
        let writes = slots::decode_writes(layout, &self.pending.commands)?;
        if writes.is_empty() {
            return Ok(());
        }
        let command = Applied { actor: Actor::Input, writes };
        let applied = apply(layout, &mut self.head, &mut [command], false);
        applied.map_err(|error| apply_error(&error, &[], self.step()))
    }

    fn superseded(&self) -> bool {
        self.stored.is_some() && self.latest != Some(self.base)
    }

    fn step(&self) -> i64 {
        self.stored.as_ref().map_or(0, |stored| stored.metadata.step + 1)
    }

    fn quiet_superstep(&self) -> Arc<Superstep> {
        let place = DryRun {
            thread: self.thread.clone(),
            ns: self.ns.clone(),
            around: Arc::default(),
            checkpoint: self.base,
            step: self.step(),
        };
        quiet_superstep(self.graph, self.checkpointer.clone(), place)
    }

    /// The tasks that are due, in a superstep that runs none of them.
    fn planned(&mut self) -> (Arc<Superstep>, Vec<Entry>) {
        let superstep = self.quiet_superstep();
        self.head.updated = None;
        let planned = plan(&self.graph.layout, &self.head).into_iter();
        let entries = planned.map(|planned| Entry::new(&superstep, planned)).collect();
        (superstep, entries)
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
                Some(COPY) => {
                    let value = std::mem::replace(&mut change.value, ChangeValue::Nothing);
                    return self.copy(value).await;
                }
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
        if parent == Some(self.base) {
            // What tasks had stored and this change did not fold in is left behind.
            let mut dropped = self.pending.dropped_channels();
            let written = |name: &Arc<str>| {
                layout.slot_by_name.get(name).is_some_and(|slot| self.head.versions[*slot] > 0)
            };
            dropped.retain(|name| !written(name));
            dropped.iter().for_each(|name| self.recorder.seal(layout, name));
        }
        self.recorder.count(&self.head);
        self.head.updated = None;
        let (checkpoint, changed) = self.recorder.checkpoint(layout, &mut self.head, id)?;
        let parents = self.stored.as_ref().map(|s| s.metadata.parents.clone()).unwrap_or_default();
        let metadata = Metadata {
            delta_counters: self.recorder.delta_counters(),
            parents,
            extra: if source == Source::Fork { BTreeMap::new() } else { self.metadata },
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
        self.checkpointer.put(put).await?;
        Ok(id)
    }
}
