//! Driving one graph: from its input, superstep by superstep, to its end.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use smallvec::SmallVec;
use superstep_checkpoint::{
    AnyCheckpointer, Blob, CheckpointId, Error, Interrupt, InterruptId, Metadata, Put, Source,
    TaskId, TaskWrites, Value,
};
use tracing::{Instrument, Span};

use super::apply::{Actor, Applied, ApplyError, Fault, apply};
use super::emit::Emitter;
use super::entry::Entry;
use super::head::{Head, StartValue, Write};
use super::pending::Pending;
use super::plan::{Cause, plan, plan_each};
use super::record::{self, Recorder};
use super::run::Run;
use super::slots;
use super::span;
use super::step::{Saving, StepEnd};
use super::superstep::{Gate, Setting, Superstep};
use super::{Layout, ids};
use crate::error::{Code, RunError};
use crate::graph::{Breakpoints, Compiled};
use crate::node::{Goto, Output};
use crate::run::Durability;
use crate::state::{Payload, Writes};

/// The recursion limit of a run that was given none.
const RECURSION_LIMIT: u64 = 10_007;

/// What a run begins with.
pub(crate) enum Input {
    /// Go on from where the thread is.
    Nothing,
    Value(StartValue),
    Command(CommandInput),
}

#[derive(Default)]
pub(crate) struct CommandInput {
    pub(crate) resume: Resume,
    pub(crate) update: Writes,
    pub(crate) goto: Vec<Goto>,
    pub(crate) to_parent: bool,
}

#[derive(Default)]
pub(crate) enum Resume {
    #[default]
    Nothing,
    One(Value),
    ById(Vec<(InterruptId, Value)>),
}

impl Resume {
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }
}

/// Everything needed to drive a graph.
pub(crate) struct Opening {
    pub(crate) run: Arc<Run>,
    pub(crate) graph: Arc<Compiled>,
    pub(crate) saver: Option<AnyCheckpointer>,
    pub(crate) ns: Arc<str>,
    /// The namespace that streams show, if it is another one.
    pub(crate) shown: Option<Arc<str>>,
    /// The checkpoints of the graphs around this one.
    pub(crate) parents: Arc<BTreeMap<String, CheckpointId>>,
    pub(crate) at: Option<CheckpointId>,
    pub(crate) input: Input,
    pub(crate) breakpoints: Breakpoints,
    pub(crate) caller: Option<Caller>,
    /// The channels whose values are shown and returned.
    pub(crate) keys: Arc<[usize]>,
}

/// What a nested graph knows of the task it runs in.
pub(crate) struct Caller {
    pub(crate) resuming: Option<bool>,
    /// The checkpoint that the task began from was made from outside, and not by a run.
    pub(crate) touched: bool,
    /// The superstep of the task, whose checkpoint may still be on its way to storage.
    pub(crate) superstep: Arc<Superstep>,
}

/// How a graph ended.
pub(crate) struct Finish {
    pub(crate) head: Head,
    pub(crate) how: How,
    pub(crate) questions: Vec<Interrupt>,
}

pub(crate) enum How {
    Done,
    /// With questions, or at a breakpoint without any.
    Interrupted,
    Drained(Arc<str>),
    /// A command for the graph around this one.
    ForParent(Box<Output>),
}

/// Drives a graph to its end.
pub(crate) async fn drive(opening: Opening) -> Result<Finish, RunError> {
    // Graphs inside tasks are part of the run of the outermost.
    let span = match &opening.caller {
        None => span::run(&opening.run, &opening.graph.layout.name),
        Some(_) => Span::none(),
    };
    let driven = async {
        let mut driver = Driver::open(opening).await?;
        let ended = driver.run().await;
        driver.close(ended).await
    };
    driven.instrument(span).await
}

pub(super) struct Driver {
    pub(super) run: Arc<Run>,
    pub(super) graph: Arc<Compiled>,
    pub(super) layout: Arc<Layout>,
    pub(super) saver: Option<AnyCheckpointer>,
    pub(super) ns: Arc<str>,
    pub(super) parents: Arc<BTreeMap<String, CheckpointId>>,
    pub(super) breakpoints: Breakpoints,
    pub(super) caller: Option<Caller>,
    pub(super) emitter: Arc<Emitter>,
    setting: Arc<Setting>,
    /// What earlier supersteps no longer need, to be used again.
    spare: Spare,
    pub(super) head: Head,
    pub(super) recorder: Recorder,
    pub(super) pending: Pending,
    /// The checkpoint the next superstep starts from.
    pub(super) id: CheckpointId,
    /// The checkpoint that was stored last, which the next one continues.
    pub(super) stored: Option<CheckpointId>,
    /// The head of the thread, as this driver knows it.
    pub(super) known_head: Option<CheckpointId>,
    /// The checkpoint before the current one, as streams show it.
    pub(super) before: Option<CheckpointId>,
    pub(super) metadata: Option<Metadata>,
    pub(super) step: i64,
    pub(super) stop: i64,
    pub(super) limit: u64,
    pub(super) resuming: Option<bool>,
    /// Finished tasks of the first superstep run again instead of getting their stored writes back.
    pub(super) replaying: bool,
    pub(super) seeds: HashMap<String, Vec<Value>>,
    /// Writes that go with the next checkpoint.
    pub(super) unsaved: Vec<TaskWrites>,
    /// What is being stored while tasks run.
    pub(super) background: Option<Saving>,
    /// A checkpoint that was made but, storing only at the end, not stored.
    pub(super) dirty: bool,
}

/// The tasks of a superstep with their writes. Most supersteps have one.
type Ran = SmallVec<[Applied; 1]>;

/// Allocations that outlive their superstep.
#[derive(Default)]
struct Spare {
    entries: Vec<Entry>,
    superstep: Option<Arc<Superstep>>,
}

/// Why the supersteps ended.
pub(super) enum Stop {
    Done,
    Interrupted(Vec<Interrupt>),
    Breakpoint,
    Drained(Arc<str>),
    ForParent(Box<Output>),
}

impl Driver {
    pub(super) fn is_nested(&self) -> bool {
        self.caller.is_some()
    }

    async fn open(opening: Opening) -> Result<Self, RunError> {
        let Opening { run, graph, saver, ns, shown, parents, at, input, breakpoints, caller, keys } =
            opening;
        let layout = graph.layout.clone();
        let limit = run.recursion_limit.unwrap_or(RECURSION_LIMIT);
        if limit < 1 {
            return Err(RunError::Invalid("the recursion limit must be at least 1".to_owned()));
        }
        if saver.is_some() && run.thread.is_none() {
            return Err(RunError::Invalid(
                "a graph with a checkpointer runs on a thread; name one with `thread(id)`"
                    .to_owned(),
            ));
        }
        let shown = shown.unwrap_or_else(|| ns.clone());
        let emitter =
            Arc::new(Emitter { run: run.clone(), layout: layout.clone(), ns: shown, keys });
        let setting = Setting::new(
            run.clone(),
            layout.clone(),
            saver.clone(),
            ns.clone(),
            parents.clone(),
            emitter.clone(),
            graph.store.clone(),
        );
        let mut driver = Self {
            setting: Arc::new(setting),
            spare: Spare::default(),
            head: Head::new(&layout),
            recorder: Recorder::new(&layout),
            pending: Pending::default(),
            id: CheckpointId::from_bytes([0; 16]),
            stored: None,
            known_head: None,
            before: None,
            metadata: None,
            step: -1,
            stop: 0,
            limit,
            resuming: None,
            replaying: false,
            seeds: HashMap::new(),
            unsaved: Vec::new(),
            background: None,
            dirty: false,
            run,
            graph,
            layout,
            saver,
            ns,
            parents,
            breakpoints,
            caller,
            emitter,
        };
        driver.load_and_begin(at, input).await?;
        Ok(driver)
    }

    async fn run(&mut self) -> Result<Stop, RunError> {
        loop {
            let out_of_steps = self.step > self.stop;
            let superstep = self.superstep();
            let mut entries = self.entries(&superstep);
            self.emit_checkpoint(&entries);
            if out_of_steps {
                return Err(RunError::RecursionLimit { limit: self.limit });
            }
            if entries.is_empty() {
                return Ok(Stop::Done);
            }
            if !self.replaying {
                self.hand_back(&superstep, &mut entries)?;
            }
            if self.stops_at(&self.breakpoints.before, entries.iter().map(|entry| entry.node)) {
                return Ok(Stop::Breakpoint);
            }
            if let Some(sink) = &self.run.sink {
                sink.taken().await;
            }
            // Whoever reads the stream may ask for it because of what was just read.
            if let Some(reason) = self.run.control.drain_reason() {
                return Ok(Stop::Drained(reason));
            }
            self.emit_starts(&entries);
            let names: Vec<_> = if self.breakpoints.after.is_empty() {
                Vec::new()
            } else {
                entries.iter().map(|entry| entry.node).collect()
            };
            let span = span::superstep(&superstep, entries.len());
            let executed = self.execute(&superstep, entries).instrument(span.clone()).await;
            let entries = match executed? {
                StepEnd::Finished(entries) => entries,
                StepEnd::Stopped(stop, entries) => {
                    self.keep_for_show(entries);
                    return Ok(stop);
                }
            };
            self.barrier(superstep, entries).instrument(span).await?;
            if self.stops_at(&self.breakpoints.after, names.into_iter()) {
                let superstep = self.superstep();
                let entries = self.entries(&superstep);
                self.emit_checkpoint(&entries);
                return Ok(Stop::Breakpoint);
            }
            self.resuming = None;
        }
    }

    /// What the tasks of the next superstep share.
    pub(super) fn superstep(&mut self) -> Arc<Superstep> {
        let (setting, records) = (self.setting.clone(), self.pending.records());
        let mut superstep = Superstep::new(setting, self.id, self.step, self.stop, records);
        superstep.resuming = self.resuming;
        superstep.touched = self.is_touched();
        superstep.stored = Gate::new(self.background.is_none());
        if !self.seeds.is_empty() {
            superstep.seeds.clone_from(&self.seeds);
        }
        if self.layout.nests {
            superstep.filled.clone_from(&self.head.filled);
        }
        match self.spare.superstep.take() {
            Some(mut spare) => match Arc::get_mut(&mut spare) {
                Some(used) => {
                    *used = superstep;
                    spare
                }
                // A task of it is still known to somebody.
                None => Arc::new(superstep),
            },
            None => Arc::new(superstep),
        }
    }

    fn is_touched(&self) -> bool {
        let outside =
            |metadata: &Metadata| matches!(metadata.source, Source::Update | Source::Fork);
        self.metadata.as_ref().is_some_and(outside)
            || self.caller.as_ref().is_some_and(|caller| caller.touched)
    }

    /// The tasks that are planned, ready to run.
    pub(super) fn entries(&mut self, superstep: &Arc<Superstep>) -> Vec<Entry> {
        let mut entries = std::mem::take(&mut self.spare.entries);
        entries.reserve(self.head.sends.len() + 1);
        let run = |planned| entries.push(Entry::new(superstep, planned));
        plan_each(&self.layout, &self.head, run);
        entries
    }

    /// Gives finished tasks the writes that are stored for them.
    fn hand_back(
        &mut self,
        superstep: &Arc<Superstep>,
        entries: &mut Vec<Entry>,
    ) -> Result<(), RunError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut handlers = Vec::new();
        for entry in &mut *entries {
            let id = entry.task.id();
            if let Some(stored) = self.pending.output(id) {
                let writes =
                    stored.iter().map(|(name, blob)| slots::decode_write(&self.layout, name, blob));
                entry.writes = Some(writes.collect::<Result<_, _>>()?);
                entry.kept = true;
                self.pending.take_up(id);
                continue;
            }
            let def = &self.layout.nodes[entry.node];
            if let (Some(handler), Some(error)) = (def.handler, self.pending.handled_error(id)) {
                entry.handled = true;
                handlers.push(Entry::handler(superstep, entry, handler, error));
            }
        }
        for mut handler in handlers {
            if let Some(stored) = self.pending.output(handler.task.id()) {
                let writes =
                    stored.iter().map(|(name, blob)| slots::decode_write(&self.layout, name, blob));
                handler.writes = Some(writes.collect::<Result<_, _>>()?);
                handler.kept = true;
                self.pending.take_up(handler.task.id());
            }
            entries.push(handler);
        }
        Ok(())
    }

    /// Whether a breakpoint holds: something changed since the last stop, and one of the nodes is listed.
    fn stops_at(&self, nodes: &crate::graph::At, mut running: impl Iterator<Item = usize>) -> bool {
        if nodes.is_empty() {
            return false;
        }
        let seen = self.head.seen_interrupt.as_deref();
        let changed = self
            .head
            .versions
            .iter()
            .enumerate()
            .any(|(slot, version)| *version > seen.map_or(0, |seen| seen[slot]));
        changed
            && running.any(|node| {
                let def = &self.layout.nodes[node];
                nodes.includes(&def.name, def.hidden)
            })
    }

    fn emit_starts(&self, entries: &[Entry]) {
        if self.run.sink.is_none() {
            return;
        }
        for entry in entries {
            let def = &self.layout.nodes[entry.node];
            if !def.hidden && self.emitter.wants_tasks() {
                let input = entry.input_value(&self.layout, &self.head, self.step, self.stop);
                self.emitter.task_start(&entry.task, self.step, &input, &entry.triggers(def));
            }
        }
        for entry in entries {
            if let (Some(writes), false) = (&entry.writes, self.layout.nodes[entry.node].hidden) {
                self.emitter.update(&entry.task.inner.name, writes, true);
            }
        }
    }

    /// Applies a superstep and stores the checkpoint.
    async fn barrier(
        &mut self,
        superstep: Arc<Superstep>,
        mut entries: Vec<Entry>,
    ) -> Result<(), RunError> {
        let mut tasks = self.applied(&superstep, &mut entries);
        self.note_overwrites(&tasks);
        // Storing at the end stores the head, so it must not be left half changed.
        let undo = self.run.durability == Durability::Exit;
        if let Err(error) = apply(&self.layout, &mut self.head, &mut tasks, undo) {
            return Err(Box::pin(self.fail_barrier(&error, &entries)).await);
        }
        entries.clear();
        self.spare = Spare { entries, superstep: Some(superstep) };
        self.emitter.values_if_changed(&self.head);
        if !self.pending.is_clear() {
            self.force_dropped_deltas();
            self.pending.clear();
        }
        self.replaying = false;
        if !self.seeds.is_empty() {
            self.seeds.clear();
        }
        self.save(Source::Loop).await
    }

    /// Stored writes to delta channels of tasks that this run did not take up would be replayed with the others. So these
    /// channels store their whole value.
    pub(super) fn force_dropped_deltas(&mut self) {
        for name in self.pending.dropped_channels() {
            if let Some(at) = self.layout.slot_by_name.get(&name) {
                self.recorder.forced.insert(*at);
            }
        }
    }

    /// The tasks of a superstep in the order in which their writes are folded. The entries are sorted alike.
    pub(super) fn applied(&self, superstep: &Superstep, entries: &mut [Entry]) -> Ran {
        entries.sort_by(|a, b| a.order().cmp(&b.order()));
        let mut tasks: Ran = entries.iter_mut().map(Entry::applied).collect();
        while let Some(name) = superstep.work().calls.pop_first() {
            tasks.push(Applied { actor: Actor::Call(name), writes: Vec::new() });
        }
        tasks
    }

    fn note_overwrites(&mut self, tasks: &[Applied]) {
        use crate::state::{Kind, WriteValue};
        for write in tasks.iter().flat_map(|task| &task.writes) {
            if let Write::State(at, WriteValue::Overwrite(_)) = write
                && matches!(self.layout.channels[*at].kind, Kind::Delta(_))
            {
                self.recorder.forced.insert(*at);
            }
        }
    }

    /// Writes that cannot be applied are taken back, so that their tasks can run again.
    async fn fail_barrier(&mut self, error: &ApplyError, ran: &[Entry]) -> RunError {
        let names: Vec<_> = ran.iter().map(|entry| entry.task.inner.name.clone()).collect();
        let failed = apply_error(error, &names, self.step);
        let undo = self.run.durability == Durability::Exit;
        if self.saver.is_some() {
            let text = format!("{}({:?})", failed.kind(), failed.to_string());
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
            let others = std::mem::take(&mut self.unsaved);
            let others = others.into_iter().filter(|write| !involved.contains(&write.task));
            let all: Vec<TaskWrites> = others.chain(writes).collect();
            if undo {
                self.unsaved = all;
                return failed;
            }
            if self.stored == Some(self.id)
                && let Err(error) = self.put_writes(all).await
            {
                return error.into();
            }
        }
        failed
    }

    /// Makes the checkpoint of the head as it is, and stores it.
    pub(super) async fn save(&mut self, source: Source) -> Result<(), RunError> {
        let id = self.next_id(self.step, Some(self.id));
        if self.run.durability != Durability::Exit {
            self.before = self.stored;
        }
        self.id = id;
        let step = self.step;
        self.step += 1;
        if self.saver.is_none() {
            self.head.news.clear();
            return Ok(());
        }
        self.recorder.count(&self.head);
        let extra = &self.run.metadata;
        let parents = (*self.parents).clone();
        self.metadata = Some(record::metadata(source, step, parents, &self.recorder, extra));
        if self.run.durability == Durability::Exit {
            self.dirty = true;
            self.unsaved.clear();
            return Ok(());
        }
        self.put().await
    }

    /// The id of the next checkpoint.
    ///
    /// A nested graph that is not stored begins anew each time its task runs. Its ids then come from where it is, so that
    /// a question asked in it keeps its id.
    pub(super) fn next_id(&self, step: i64, parent: Option<CheckpointId>) -> CheckpointId {
        let id = self.run.ids.next(step, parent);
        if self.saver.is_some() || !self.is_nested() || !self.run.keeps {
            return id;
        }
        let place = format!("{}{}{step}", self.ns, ids::LEVEL);
        CheckpointId::from_bytes(xxhash_rust::xxh3::xxh3_128(place.as_bytes()).to_be_bytes())
    }

    /// Stores the current checkpoint.
    async fn put(&mut self) -> Result<(), RunError> {
        let (Some(saver), Some(thread)) = (&self.saver, &self.run.thread) else { return Ok(()) };
        let (checkpoint, changed) =
            self.recorder.checkpoint(&self.layout, &mut self.head, self.id)?;
        let mut metadata = match &self.metadata {
            Some(metadata) => metadata.clone(),
            None => Metadata::new(Source::Loop, self.step - 1),
        };
        metadata.delta_counters = self.recorder.delta_counters();
        self.metadata = Some(metadata.clone());
        let put = Put {
            thread: thread.clone(),
            ns: self.ns.clone(),
            parent: self.stored,
            head: self.known_head,
            writes: std::mem::take(&mut self.unsaved),
            checkpoint,
            metadata,
            changed,
        };
        let saver = saver.clone();
        let span = span::commit(&put);
        match self.run.durability {
            Durability::Async => {
                self.settle().await?;
                let around = self.caller.as_ref().map(|caller| caller.superstep.clone());
                let stored = async move {
                    // What a graph inside a task has done must not outlive the superstep that it was done for.
                    if let Some(around) = around {
                        around.stored.pass().await;
                    }
                    saver.put(put).await
                };
                self.background = Some(Box::pin(stored.instrument(span)));
            }
            Durability::Sync | Durability::Exit => saver.put(put).instrument(span).await?,
        }
        self.stored = Some(self.id);
        self.known_head = Some(self.id);
        self.dirty = false;
        Ok(())
    }

    /// Waits until what is being stored is stored.
    async fn settle(&mut self) -> Result<(), Error> {
        match self.background.take() {
            Some(saving) => saving.await,
            None => Ok(()),
        }
    }

    /// Stores writes beside the current checkpoint.
    pub(super) async fn put_writes(&mut self, writes: Vec<TaskWrites>) -> Result<(), Error> {
        self.settle().await?;
        match (&self.saver, &self.run.thread) {
            (Some(saver), Some(thread)) if !writes.is_empty() => {
                saver.put_writes(thread, &self.ns, self.id, writes).await
            }
            _ => Ok(()),
        }
    }

    /// Ends the run: stores what is left to store, and shows the last state.
    async fn close(mut self, ended: Result<Stop, RunError>) -> Result<Finish, RunError> {
        if self.saver.is_some() && self.run.durability == Durability::Exit {
            let plain = matches!(ended, Ok(Stop::Done));
            let own = self.ns.split(ids::LEVEL).all(|level| !level.contains(ids::TASK));
            if !self.is_nested() || !plain || own {
                self.store_at_exit().await?;
            }
        }
        let settled = self.settle().await;
        let ended = ended?;
        settled?;
        let (how, questions) = match ended {
            Stop::Done => (How::Done, Vec::new()),
            Stop::Drained(reason) => (How::Drained(reason), Vec::new()),
            Stop::ForParent(output) => (How::ForParent(output), Vec::new()),
            Stop::Breakpoint => (How::Interrupted, Vec::new()),
            Stop::Interrupted(questions) => (How::Interrupted, questions),
        };
        if matches!(how, How::Interrupted) && !self.is_nested() {
            self.show_finished_siblings();
            if questions.is_empty() {
                self.emitter.stopped();
            }
        }
        Ok(Finish { head: self.head, how, questions })
    }

    async fn store_at_exit(&mut self) -> Result<(), RunError> {
        let writes = std::mem::take(&mut self.unsaved);
        if self.dirty {
            // What was written on the way is not stored, so channels that store writes store their value.
            for at in 0..self.layout.channels.len() {
                self.recorder.forced.insert(at);
            }
            self.put().await?;
        }
        if self.stored == Some(self.id) {
            self.put_writes(writes).await?;
        }
        Ok(())
    }

    /// Keeps the writes of tasks that finished in a superstep that did not, to show them.
    fn keep_for_show(&mut self, entries: Vec<Entry>) {
        self.pending.finished =
            entries.into_iter().filter(|entry| entry.writes.is_some()).collect();
    }

    fn show_finished_siblings(&mut self) {
        let mut entries = std::mem::take(&mut self.pending.finished);
        if entries.is_empty() {
            return;
        }
        let superstep = self.superstep();
        let mut tasks = self.applied(&superstep, &mut entries);
        // The writes are stored; if they conflict, that is found when the superstep completes.
        let mut shown = self.head.clone();
        if apply(&self.layout, &mut shown, &mut tasks, false).is_ok() {
            self.head = shown;
            self.emitter.values_if_changed(&self.head);
        }
    }

    /// The writes of a command or of an update that is no task's.
    pub(super) fn input_writes(&self, writes: Vec<Write>) -> Applied {
        Applied { actor: Actor::Input, writes }
    }

    /// Drops the tasks that are planned: their triggers count as seen.
    pub(super) fn discarded(&self) -> Vec<Applied> {
        let planned = plan(&self.layout, &self.head);
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
        Fault::Panicked(text) => RunError::Reducer {
            channel: channel.clone(),
            nodes,
            message: format!("its reducer panicked: {text}"),
        },
    }
}

/// A run's input as a value that is checked when the first node takes it.
pub(crate) fn value_input(value: Value) -> StartValue {
    StartValue::Arg(Payload::new(value))
}
