//! Driving one graph: from its input, superstep by superstep, to its end.

use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::Arc;

use superstep_checkpoint::{
    AnyCheckpointer, CheckpointId, Error, Interrupt, InterruptId, Metadata, Put, TaskWrites, Value,
};
use tracing::{Instrument, Span};

use crate::engine::drive::at_exit::AtExit;
use crate::engine::drive::control::Durability;
use crate::engine::drive::live::Alive;
use crate::engine::drive::run::Run;
use crate::engine::kernel::apply::apply;
use crate::engine::kernel::breakpoint::Breakpoints;
use crate::engine::kernel::compiled::Compiled;
use crate::engine::kernel::head::{Head, StartValue, Write};
use crate::engine::kernel::plan::plan_each;
use crate::engine::step::entry::Entry;
use crate::engine::step::futures::Saving;
use crate::engine::step::superstep::{Gate, Setting, Superstep, lock};
use crate::engine::step::tasks::StepEnd;
use crate::engine::stored::ids;
use crate::engine::stored::pending::Pending;
use crate::engine::stored::record::Recorder;
use crate::engine::stored::slots;
use crate::engine::watch::emit::Emitter;
use crate::engine::watch::span;
use crate::error::RunError;
use crate::node::{Goto, Output};
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
    /// An answer that cannot be made data, and the question it was given for, if it was named.
    Unfit(Option<InterruptId>, Error),
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
    /// Nobody can have called the graph here before, so nothing is stored for it.
    pub(crate) first: bool,
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
    let thread = opening.run.thread.clone().filter(|_| opening.caller.is_none());
    let driven = async {
        let _alive = match (&opening.caller, &opening.saver, &opening.run.thread) {
            (None, Some(saver), Some(thread)) => {
                let alive = Alive::begin(saver, thread).await?;
                opening.run.life.begins(&alive);
                Some(alive)
            }
            _ => None,
        };
        let mut driver = Driver::open(opening).await?;
        let ended = driver.run().await;
        driver.close(ended).await
    };
    driven.instrument(span).await.map_err(|error| match thread {
        Some(thread) => on_thread(error, &thread),
        None => error,
    })
}

/// A failure of storage, with the thread it befell.
pub(crate) fn on_thread(error: RunError, thread: &str) -> RunError {
    let RunError::Checkpoint(cause) = error else { return error };
    let message = match &*cause {
        Error::Backend { message, .. } if !message.contains(&format!("`{thread}`")) => {
            format!("{message} (thread `{thread}`)")
        }
        _ => return RunError::Checkpoint(cause),
    };
    let named = match Arc::try_unwrap(cause) {
        Ok(Error::Backend { source, .. }) => Error::Backend { message, source },
        Ok(other) => other,
        Err(shared) => Error::backend(message, shared),
    };
    RunError::Checkpoint(Arc::new(named))
}

pub(in crate::engine) struct Driver {
    pub(in crate::engine) setting: Arc<Setting>,
    pub(in crate::engine) graph: Arc<Compiled>,
    pub(in crate::engine) breakpoints: Breakpoints,
    pub(in crate::engine) caller: Option<Caller>,
    /// What earlier supersteps no longer need, to be used again.
    pub(in crate::engine) spare: Spare,
    pub(in crate::engine) head: Head,
    pub(in crate::engine) recorder: Recorder,
    pub(in crate::engine) pending: Pending,
    /// The checkpoint the next superstep starts from.
    pub(in crate::engine) id: CheckpointId,
    /// The checkpoint that was stored last, which the next one continues.
    pub(in crate::engine) stored: Option<CheckpointId>,
    /// The head of the thread, as this driver knows it.
    pub(in crate::engine) known_head: Option<CheckpointId>,
    /// The checkpoint before the current one, as streams show it.
    pub(in crate::engine) before: Option<CheckpointId>,
    pub(in crate::engine) metadata: Option<Metadata>,
    pub(in crate::engine) step: i64,
    pub(in crate::engine) stop: i64,
    pub(in crate::engine) limit: u64,
    pub(in crate::engine) resuming: Option<bool>,
    /// Finished tasks of the first superstep run again instead of getting their stored writes back.
    pub(in crate::engine) replaying: bool,
    pub(in crate::engine) seeds: HashMap<String, Vec<Value>>,
    /// Writes that go with the next checkpoint.
    pub(in crate::engine) unsaved: Vec<TaskWrites>,
    /// A checkpoint that is stored together with the next one.
    pub(in crate::engine) held: Option<Box<Put>>,
    /// What is being stored while tasks run.
    pub(in crate::engine) background: Option<Saving>,
    /// A checkpoint that was made but, storing only at the end, not stored.
    pub(in crate::engine) dirty: bool,
    /// What the graphs inside have stored, if everything is stored at the end of this one.
    pub(in crate::engine) at_exit: Option<AtExit>,
    /// Nobody else takes up what this graph works on: this run has stored something on the thread.
    pub(in crate::engine) owns: bool,
    /// Somebody has left an answer since the run took the thread.
    pub(in crate::engine) answered_meanwhile: bool,
}

/// Allocations that outlive their superstep.
#[derive(Default)]
pub(in crate::engine) struct Spare {
    pub(in crate::engine) entries: Vec<Entry>,
    pub(in crate::engine) superstep: Option<Arc<Superstep>>,
    pub(in crate::engine) writes: Vec<Write>,
}

/// Why the supersteps ended.
pub(in crate::engine) enum Stop {
    Done,
    Interrupted(Vec<Interrupt>),
    Breakpoint,
    Drained(Arc<str>),
    ForParent(Box<Output>),
}

impl Driver {
    pub(in crate::engine) fn is_nested(&self) -> bool {
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
        let head = Head::new(&layout);
        let recorder = Recorder::new(&layout);
        let store = graph.store.clone();
        // Whoever has the thread has the graphs inside it, too.
        let is_inside =
            caller.as_ref().is_some_and(|caller| caller.superstep.setting.saver.is_some());
        let mut setting = Setting::new(run, layout, saver, ns, parents, emitter, store);
        let at_end = setting.run.durability == Durability::Exit && !is_inside;
        let at_exit = setting.saver.clone().filter(|_| at_end).map(AtExit::new);
        if let Some(at_exit) = &at_exit {
            setting.inside = Some(AnyCheckpointer::new(at_exit.clone()));
        }
        let mut driver = Self {
            setting: Arc::new(setting),
            spare: Spare::default(),
            head,
            recorder,
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
            held: None,
            background: None,
            dirty: false,
            at_exit,
            owns: is_inside,
            answered_meanwhile: false,
            graph,
            breakpoints,
            caller,
        };
        driver.load_and_begin(at, input).await?;
        Ok(driver)
    }

    async fn run(&mut self) -> Result<Stop, RunError> {
        // The superstep has stopped to ask, and the answer came while its other tasks ran.
        let mut again = false;
        loop {
            let out_of_steps = self.step > self.stop;
            let superstep = self.superstep();
            let mut entries = self.entries(&superstep);
            if !again {
                self.emit_checkpoint(&entries)?;
            }
            if out_of_steps {
                return Err(RunError::RecursionLimit { limit: self.limit });
            }
            if entries.is_empty() {
                return Ok(Stop::Done);
            }
            if !self.replaying {
                self.hand_back(&mut entries)?;
            }
            if self.stops_at(&self.breakpoints.before, entries.iter().map(|entry| entry.node)) {
                return Ok(Stop::Breakpoint);
            }
            if let Some(sink) = &self.setting.run.sink {
                sink.taken().await;
            }
            // Whoever reads the stream may ask for it because of what was just read.
            if let Some(reason) = self.setting.run.control.drain_reason() {
                return Ok(Stop::Drained(reason));
            }
            self.emit_starts(&entries, std::mem::take(&mut again))?;
            let names: Vec<_> = if self.breakpoints.after.is_empty() {
                Vec::new()
            } else {
                entries.iter().map(|entry| entry.node).collect()
            };
            let span = span::superstep(&superstep, entries.len());
            let executed = span::within(&span, pin!(self.execute(&superstep, entries))).await;
            let entries = match executed? {
                StepEnd::Finished(entries) => entries,
                StepEnd::Stopped(Stop::Interrupted(_), _) if self.take_up_answers().await? => {
                    again = true;
                    continue;
                }
                StepEnd::Stopped(stop, entries) => {
                    self.keep_for_show(entries);
                    return Ok(stop);
                }
            };
            let folded = span.in_scope(|| {
                let folded = self.barrier(superstep, entries)?;
                self.commit(folded)
            });
            match folded {
                Ok(None) => {}
                Ok(Some(put)) => span::within(&span, pin!(self.store_put(put))).await?,
                Err(unfit) => {
                    return Err(Box::pin(self.fail_barrier(unfit)).instrument(span).await);
                }
            }
            if self.stops_at(&self.breakpoints.after, names.into_iter()) {
                let superstep = self.superstep();
                let entries = self.entries(&superstep);
                self.emit_checkpoint(&entries)?;
                return Ok(Stop::Breakpoint);
            }
            self.resuming = None;
        }
    }

    /// What the tasks of the next superstep share.
    pub(in crate::engine) fn superstep(&mut self) -> Arc<Superstep> {
        // If a task of the one before is still known to somebody, that one stays as it is.
        let spare = self.spare.superstep.take().filter(|spare| Arc::strong_count(spare) == 1);
        let mut superstep = spare.unwrap_or_else(|| Superstep::new(self.setting.clone()).into());
        if let Some(next) = Arc::get_mut(&mut superstep) {
            next.begin(self.id, self.step, self.stop);
            next.resuming = self.resuming;
            next.touched = self.is_touched();
            next.stored = Gate::new(self.background.is_none());
            if !self.pending.is_empty() {
                next.know(self.pending.records());
            }
            if !self.seeds.is_empty() {
                next.seeds.clone_from(&self.seeds);
            }
            if self.setting.layout.nests {
                next.filled.clone_from(&self.head.filled);
            }
        }
        superstep
    }

    fn is_touched(&self) -> bool {
        self.is_from_outside() || self.caller.as_ref().is_some_and(|caller| caller.touched)
    }

    /// The tasks that are planned, ready to run.
    pub(in crate::engine) fn entries(&mut self, superstep: &Arc<Superstep>) -> Vec<Entry> {
        let mut entries = std::mem::take(&mut self.spare.entries);
        entries.reserve(self.head.sends.len() + 1);
        let run = |planned| entries.push(Entry::new(superstep, planned));
        plan_each(&self.setting.layout, &self.head, run);
        entries
    }

    /// Gives finished tasks the writes that are stored for them.
    fn hand_back(&mut self, entries: &mut Vec<Entry>) -> Result<(), RunError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut handlers = Vec::new();
        for entry in &mut *entries {
            if self.hand_back_to(entry)? {
                continue;
            }
            if let Some(handler) = entry.handler_of_failed(&self.pending) {
                entry.handled = true;
                handlers.push(handler);
            }
        }
        for mut handler in handlers {
            self.hand_back_to(&mut handler)?;
            entries.push(handler);
        }
        Ok(())
    }

    /// Gives a task the writes that are stored for it. Returns whether there are any.
    fn hand_back_to(&mut self, entry: &mut Entry) -> Result<bool, RunError> {
        let id = entry.task.id();
        let Some(stored) = self.pending.output(id) else { return Ok(false) };
        entry.writes = Some(slots::decode_writes(&self.setting.layout, &stored)?);
        entry.kept = true;
        self.pending.take_up(id);
        Ok(true)
    }

    /// Whether a breakpoint holds: something changed since the last stop, and one of the nodes is listed.
    fn stops_at(
        &self,
        nodes: &crate::engine::kernel::breakpoint::At,
        mut running: impl Iterator<Item = usize>,
    ) -> bool {
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
                let def = &self.setting.layout.nodes[node];
                nodes.includes(&def.name, def.hidden)
            })
    }

    /// Shows which tasks start, and what those have done that do not. What runs again was shown before.
    fn emit_starts(&self, entries: &[Entry], again: bool) -> Result<(), RunError> {
        if self.setting.run.sink.is_none() {
            return Ok(());
        }
        let shown = |entry: &&Entry| !(again && entry.writes.is_some());
        for entry in entries.iter().filter(shown) {
            let def = &self.setting.layout.nodes[entry.node];
            if !def.hidden && self.setting.emitter.wants_tasks() {
                let input =
                    entry.input_value(&self.setting.layout, &self.head, self.step, self.stop)?;
                self.setting.emitter.task_start(
                    &entry.task,
                    self.step,
                    &input,
                    &entry.triggers(def),
                );
            }
        }
        for entry in entries.iter().filter(shown) {
            if let (Some(writes), false) =
                (&entry.writes, self.setting.layout.nodes[entry.node].hidden)
            {
                self.setting.emitter.update(&entry.task, entry.arg(), writes, true)?;
            }
        }
        Ok(())
    }

    /// Ends the run: stores what is left to store, and shows the last state.
    async fn close(mut self, ended: Result<Stop, RunError>) -> Result<Finish, RunError> {
        let mut stored = Ok(());
        if self.setting.saver.is_some() && self.setting.run.durability == Durability::Exit {
            let plain = matches!(ended, Ok(Stop::Done));
            let own = self.setting.ns.split(ids::LEVEL).all(|level| !level.contains(ids::TASK));
            if !self.is_nested() || !plain || own {
                stored = self.store_at_exit().await;
            } else if self.known_head.is_some() {
                // What is stored of it would be taken for where it is, should its task not come to its end.
                stored = self.store_at_exit().await;
                lock(&self.setting.run.ended).push(self.id);
            }
        }
        let settled = self.settle().await;
        // Of two failures of storage, the first one tells.
        let ended = match (ended, stored) {
            (Err(first @ (RunError::Checkpoint(_) | RunError::Conflict { .. })), _) => Err(first),
            (_, Err(unstored)) => Err(unstored),
            (ended, Ok(())) => ended,
        }?;
        settled?;
        let (how, mut questions) = match ended {
            Stop::Done => (How::Done, Vec::new()),
            Stop::Drained(reason) => (How::Drained(reason), Vec::new()),
            Stop::ForParent(output) => (How::ForParent(output), Vec::new()),
            Stop::Breakpoint => (How::Interrupted, Vec::new()),
            Stop::Interrupted(questions) => (How::Interrupted, questions),
        };
        if self.answered_meanwhile {
            questions.retain(|question| !self.pending.is_claimed(question));
        }
        if matches!(how, How::Interrupted) && !self.is_nested() {
            self.show_finished_siblings();
            if questions.is_empty() {
                self.setting.emitter.stopped();
            }
        }
        Ok(Finish { head: self.head, how, questions })
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
        if apply(&self.setting.layout, &mut shown, &mut tasks, false).is_ok() {
            self.head = shown;
            self.setting.emitter.values_if_changed(&self.head);
        }
    }
}

/// A run's input as a value that is checked when the first node takes it.
pub(crate) fn value_input(value: Value) -> StartValue {
    StartValue::Arg(Payload::new(value))
}
