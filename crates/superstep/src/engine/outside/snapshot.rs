//! Looking at a thread without running it.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use superstep_checkpoint::{
    AnyCheckpointer, CheckpointId, IdClock, Interrupt, Map, Metadata, Stored, Value,
};

use crate::engine::Layout;
use crate::engine::drive::control::{Durability, RunControl};
use crate::engine::drive::driver::Driver;
use crate::engine::drive::live::Life;
use crate::engine::drive::run::{Context, Run};
use crate::engine::kernel::apply::{Actor, Applied, apply};
use crate::engine::kernel::compiled::{Compiled, Memory};
use crate::engine::kernel::head::Head;
use crate::engine::kernel::plan::plan;
use crate::engine::outside::view::{
    CheckpointInfo, CheckpointRef, RawSnapshot, SubgraphState, TaskSnapshot,
};
use crate::engine::step::entry::Entry;
use crate::engine::step::superstep::{GraphRun, Superstep};
use crate::engine::stored::ids;
use crate::engine::stored::pending::Pending;
use crate::engine::stored::record::Recorder;
use crate::engine::stored::slots;
use crate::engine::watch::emit::{Emitter, snapshot_result};
use crate::error::RunError;
use crate::node::BoxFuture;

/// How to look at a checkpoint.
#[derive(Clone)]
pub(crate) struct Look {
    pub(crate) graph: Arc<Compiled>,
    pub(crate) checkpointer: AnyCheckpointer,
    /// Show what finished tasks of the open superstep wrote, and only questions that wait.
    pub(crate) live: bool,
    /// Show the states of graphs inside tasks.
    pub(crate) subgraphs: bool,
}

/// The snapshot of a stored checkpoint, or of a thread that has not begun.
pub(crate) fn look(
    look: Look,
    at: CheckpointRef,
    stored: Option<Stored>,
) -> BoxFuture<Result<ThreadView, RunError>> {
    Box::pin(async move {
        let layout = look.graph.layout.clone();
        let Some(stored) = stored else {
            return Ok(ThreadView { head: Head::new(&layout), info: nothing(at), layout });
        };
        let mut recorder = Recorder::new(&layout);
        let mut head = recorder.load(&layout, &stored, &look.checkpointer).await?;
        let pending = Pending::from_stored(&stored.writes)?;
        // What a command has triggered is next; in history, what was next before the command.
        let superstep =
            quiet_superstep(&look.graph, look.checkpointer.clone(), DryRun::from(&stored));
        head.updated = None;
        let before = plan(&layout, &head);
        apply_commands(&layout, &mut head, &pending)?;
        head.updated = None;
        let planned = if look.live { plan(&layout, &head) } else { before };
        let entries: Vec<Entry> =
            planned.into_iter().map(|planned| Entry::new(&superstep, planned)).collect();
        let mut tasks = Vec::with_capacity(entries.len());
        for entry in &entries {
            tasks.push(task_snapshot(&look, entry, &pending, &stored.thread).await?);
        }
        let next = entries
            .iter()
            .filter(|entry| !(look.live && entry.has_finished(&pending)))
            .map(|entry| entry.task.inner.name.clone())
            .collect();
        if look.live {
            head = with_finished(&layout, head, &entries, &pending)?;
        }
        let interrupts = tasks.iter().flat_map(|task| task.interrupts.clone()).collect();
        let info = CheckpointInfo {
            next,
            config: reference(&stored.thread, &stored.ns, stored.checkpoint.id, &stored.metadata),
            parent: stored
                .parent
                .map(|parent| reference(&stored.thread, &stored.ns, parent, &stored.metadata)),
            metadata: Some(stored.metadata.clone()),
            created_at: Some(stored.checkpoint.ts.clone()),
            tasks,
            interrupts,
        };
        Ok(ThreadView { head, info, layout })
    })
}

fn nothing(config: CheckpointRef) -> CheckpointInfo {
    CheckpointInfo {
        next: Vec::new(),
        config,
        parent: None,
        metadata: None,
        created_at: None,
        tasks: Vec::new(),
        interrupts: Vec::new(),
    }
}

fn reference(
    thread: &Arc<str>,
    ns: &Arc<str>,
    id: CheckpointId,
    metadata: &Metadata,
) -> CheckpointRef {
    CheckpointRef {
        thread: thread.clone(),
        ns: ns.clone(),
        id: Some(id),
        parents: metadata.parents.clone(),
    }
}

fn apply_commands(layout: &Layout, head: &mut Head, pending: &Pending) -> Result<(), RunError> {
    if pending.commands.is_empty() {
        return Ok(());
    }
    let writes = slots::decode_writes(layout, &pending.commands)?;
    let command = Applied { actor: Actor::Input, writes };
    let mut changed = head.clone();
    // A look never fails because of what is waiting to be applied.
    if apply(layout, &mut changed, &mut [command], false).is_ok() {
        *head = changed;
    }
    Ok(())
}

/// The head with what finished tasks wrote. If that cannot be applied, the head as it is.
fn with_finished(
    layout: &Layout,
    head: Head,
    entries: &[Entry],
    pending: &Pending,
) -> Result<Head, RunError> {
    let mut finished = Vec::new();
    for entry in entries {
        finished.extend(entry.finished(pending)?.into_iter().flatten());
    }
    if finished.is_empty() {
        return Ok(head);
    }
    finished.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut changed = head.clone();
    let mut tasks: Vec<_> = finished.into_iter().map(|(_, applied)| applied).collect();
    Ok(if apply(layout, &mut changed, &mut tasks, false).is_ok() { changed } else { head })
}

async fn task_snapshot(
    look: &Look,
    entry: &Entry,
    pending: &Pending,
    thread: &Arc<str>,
) -> Result<TaskSnapshot, RunError> {
    let layout = &look.graph.layout;
    let id = entry.task.id();
    let record = pending.task(id);
    let output = record.and_then(crate::engine::stored::pending::TaskRecord::output);
    // What an error handler wrote is the result of the task that it ran in place of.
    let handler = entry.handler_of_failed(pending).filter(|_| look.live);
    let written = output.clone().or_else(|| pending.output(handler?.task.id()));
    let result = match &written {
        Some(written) => {
            let writes = slots::decode_writes(layout, written)?;
            let shown = snapshot_result(layout, &layout.shown, &writes);
            Some(shown.map_err(|hidden| hidden.in_output_of(&entry.task.inner.name))?)
        }
        None => None,
    };
    let questions = record.map(|record| record.questions.clone()).unwrap_or_default();
    let open = |id: &_| {
        let answers = record.map_or(0, |record| record.answers().len());
        !(0..answers).any(|k| ids::interrupt_id(entry.task.namespace(), k) == *id)
    };
    let interrupts = match (look.live, &output) {
        (true, Some(_)) => Vec::new(),
        (true, None) => {
            let waits = |question: &Interrupt| open(&question.id) && !pending.is_claimed(question);
            questions.into_iter().filter(waits).collect()
        }
        (false, _) => questions,
    };
    let mut interrupts = interrupts;
    interrupts.extend(handler_questions(look, entry, pending));
    let inner = layout.nodes[entry.node].inner.clone();
    let state = match inner.filter(|inner| inner.memory != Memory::Nothing) {
        None => None,
        Some(graph) => Some(inner_state(look, entry, graph, thread).await?),
    };
    Ok(TaskSnapshot {
        id,
        name: entry.task.inner.name.clone(),
        path: entry.task.path().into(),
        arg: entry.brief_arg(),
        error: record.and_then(crate::engine::stored::pending::TaskRecord::error),
        interrupts,
        result,
        state,
    })
}

/// What the error handler of a failed task asked.
fn handler_questions(look: &Look, entry: &Entry, pending: &Pending) -> Vec<Interrupt> {
    let Some(handler) = entry.handler_of_failed(pending) else { return Vec::new() };
    let Some(record) = pending.task(handler.task.id()) else { return Vec::new() };
    if record.is_finished() && look.live {
        return Vec::new();
    }
    let answered = |id: &_| {
        let mut answers = 0..record.answers().len();
        answers.any(|k| ids::interrupt_id(handler.task.namespace(), k) == *id)
    };
    let waits = |question: &&Interrupt| !answered(&question.id) && !pending.is_claimed(question);
    record.questions.iter().filter(|question| !look.live || waits(question)).cloned().collect()
}

async fn inner_state(
    look: &Look,
    entry: &Entry,
    graph: Arc<Compiled>,
    thread: &Arc<str>,
) -> Result<SubgraphState, RunError> {
    let ns = entry.task.namespace_shared();
    let at = CheckpointRef::latest(thread.clone()).in_namespace(ns.clone());
    if !look.subgraphs {
        return Ok(SubgraphState::At(at));
    }
    let ns: Arc<str> = match graph.memory {
        Memory::PerThread => ids::without_task_ids(&ns).into(),
        Memory::PerCall | Memory::Nothing => ns,
    };
    let stored = look.checkpointer.get(thread, &ns, None).await?;
    let inside = Look { graph, live: true, ..look.clone() };
    let seen = self::look(inside, at.in_namespace(ns), stored).await?;
    Ok(SubgraphState::Snapshot(Box::new(seen.into_raw()?)))
}

/// Where a superstep is in which nothing runs.
pub(in crate::engine) struct DryRun {
    pub(in crate::engine) thread: Arc<str>,
    pub(in crate::engine) ns: Arc<str>,
    pub(in crate::engine) around: Arc<BTreeMap<String, CheckpointId>>,
    pub(in crate::engine) checkpoint: CheckpointId,
    pub(in crate::engine) step: i64,
}

impl From<&Stored> for DryRun {
    fn from(stored: &Stored) -> Self {
        Self {
            thread: stored.thread.clone(),
            ns: stored.ns.clone(),
            around: Arc::new(stored.metadata.parents.clone()),
            checkpoint: stored.checkpoint.id,
            step: stored.metadata.step + 1,
        }
    }
}

/// A superstep in which nothing runs, to name the tasks of a checkpoint.
pub(in crate::engine) fn quiet_superstep(
    graph: &Compiled,
    checkpointer: AnyCheckpointer,
    place: DryRun,
) -> Arc<Superstep> {
    let DryRun { thread, ns, around, checkpoint, step } = place;
    let layout = graph.layout.clone();
    let run = quiet_run(Some(thread));
    let keys = layout.shown.clone().into();
    let emitter =
        Arc::new(Emitter { run: run.clone(), layout: layout.clone(), ns: ns.clone(), keys });
    let setting = GraphRun::new(run, layout, Some(checkpointer), ns, around, emitter, None);
    let mut superstep = Superstep::new(Arc::new(setting));
    superstep.begin(checkpoint, step, i64::MAX);
    Arc::new(superstep)
}

/// A run that drives nothing.
pub(in crate::engine) fn quiet_run(thread: Option<Arc<str>>) -> Arc<Run> {
    Arc::new(Run {
        thread,
        keeps: true,
        store: None,
        cache: None,
        context: Context::default(),
        control: RunControl::new(),
        durability: Durability::Exit,
        sink: None,
        ids: Arc::new(IdClock::new()),
        metadata: std::collections::BTreeMap::new(),
        max_concurrency: None,
        recursion_limit: None,
        answers: Mutex::default(),
        renamed: Mutex::default(),
        ended: Mutex::default(),
        replay: None,
        life: Life::default(),
        due: Mutex::default(),
    })
}

impl Driver {
    /// Tells the stream about the checkpoint the next superstep starts from.
    pub(in crate::engine) fn emit_checkpoint(&mut self, entries: &[Entry]) -> Result<(), RunError> {
        let (Some(_), Some(thread)) = (&self.setting.checkpointer, &self.setting.run.thread) else {
            return Ok(());
        };
        if !self.setting.emitter.wants_checkpoints() {
            return Ok(());
        }
        let Some(metadata) = self.position.metadata().cloned() else { return Ok(()) };
        let layout = &self.setting.layout;
        let tasks = entries.iter().map(|entry| {
            let record = self.pending.task(entry.task.id());
            let output = record.and_then(crate::engine::stored::pending::TaskRecord::output);
            let result = match output {
                Some(output) => {
                    let writes = slots::decode_writes(layout, &output)?;
                    let shown = snapshot_result(layout, &self.setting.emitter.keys, &writes);
                    Some(shown.map_err(|hidden| hidden.in_output_of(&entry.task.inner.name))?)
                }
                None => None,
            };
            let inner = layout.nodes[entry.node].inner.as_ref();
            let inner = inner.filter(|inner| inner.memory != Memory::Nothing);
            let at = || {
                CheckpointRef::latest(thread.clone()).in_namespace(entry.task.namespace_shared())
            };
            Ok(TaskSnapshot {
                id: entry.task.id(),
                name: entry.task.inner.name.clone(),
                path: entry.task.path().into(),
                arg: entry.brief_arg(),
                error: record.and_then(crate::engine::stored::pending::TaskRecord::error),
                interrupts: record.map(|record| record.questions.clone()).unwrap_or_default(),
                result: result.filter(|result| !is_empty(result)),
                state: inner.map(|_| SubgraphState::At(at())),
            })
        });
        let info = CheckpointInfo {
            next: entries.iter().map(|entry| entry.task.inner.name.clone()).collect(),
            config: reference(thread, &self.setting.ns, self.position.id(), &metadata),
            parent: self
                .position
                .before()
                .map(|id| reference(thread, &self.setting.ns, id, &metadata)),
            created_at: None,
            tasks: tasks.collect::<Result<_, RunError>>()?,
            interrupts: Vec::new(),
            metadata: Some(metadata),
        };
        let values = self.head.shown(layout, &layout.shown)?;
        self.setting.emitter.checkpoint(self.position.step() - 1, RawSnapshot { values, info });
        Ok(())
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Map(map) => map.is_empty(),
        _ => false,
    }
}

/// What a look has found.
pub(crate) struct ThreadView {
    head: Head,
    info: CheckpointInfo,
    layout: Arc<Layout>,
}

impl ThreadView {
    /// With the values as data.
    pub(crate) fn into_raw(self) -> Result<RawSnapshot, RunError> {
        let values = match self.info.metadata {
            Some(_) => self.head.shown(&self.layout, &self.layout.shown)?,
            None => Value::Map(Map::new()),
        };
        Ok(RawSnapshot { values, info: self.info })
    }

    /// With the state, whose type is known outside.
    pub(crate) fn into_parts(self) -> (Arc<dyn Any + Send + Sync>, CheckpointInfo) {
        (self.head.row.cells().clone(), self.info)
    }
}
