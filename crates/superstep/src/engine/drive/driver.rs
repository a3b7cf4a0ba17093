//! Driving one graph: from its input, superstep by superstep, to its end.

use std::pin::pin;
use std::sync::Arc;

use superstep_checkpoint::{AnyCheckpointer, Error, Interrupt, Value};
use tracing::{Instrument, Span};

use crate::engine::drive::asked::Asked;
use crate::engine::drive::at_exit::AtExit;
use crate::engine::drive::control::Durability;
use crate::engine::drive::live::Alive;
use crate::engine::drive::opening::{Caller, Opening};
use crate::engine::drive::outbox::Outbox;
use crate::engine::drive::position::Position;
use crate::engine::kernel::apply::apply;
use crate::engine::kernel::compiled::Compiled;
use crate::engine::kernel::head::{Head, Write};
use crate::engine::kernel::join::unfilled;
use crate::engine::kernel::plan::plan_each;
use crate::engine::step::entry::Entry;
use crate::engine::step::superstep::{Gate, GraphRun, Superstep, lock};
use crate::engine::step::tasks::StepEnd;
use crate::engine::stored::ids;
use crate::engine::stored::pending::Pending;
use crate::engine::stored::record::Recorder;
use crate::engine::stored::slots;
use crate::engine::watch::emit::Emitter;
use crate::engine::watch::span;
use crate::error::RunError;
use crate::node::Output;

/// The recursion limit of a run that was given none.
const RECURSION_LIMIT: u64 = 10_007;

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
        let _alive = match (&opening.caller, &opening.checkpointer, &opening.run.thread) {
            (None, Some(checkpointer), Some(thread)) => {
                let alive = Alive::begin(checkpointer, thread).await?;
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
    pub(in crate::engine) setting: Arc<GraphRun>,
    pub(in crate::engine) graph: Arc<Compiled>,
    pub(in crate::engine) caller: Option<Caller>,
    /// What earlier supersteps no longer need, to be used again.
    pub(in crate::engine) spare: Spare,
    pub(in crate::engine) head: Head,
    pub(in crate::engine) recorder: Recorder,
    pub(in crate::engine) pending: Pending,
    pub(in crate::engine) position: Position,
    pub(in crate::engine) outbox: Outbox,
    pub(in crate::engine) asked: Asked,
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
        let Opening {
            run,
            graph,
            checkpointer,
            ns,
            shown,
            parents,
            at,
            input,
            breakpoints,
            caller,
            keys,
        } = opening;
        let layout = graph.layout.clone();
        let limit = run.recursion_limit.unwrap_or(RECURSION_LIMIT);
        if limit < 1 {
            return Err(RunError::Invalid("the recursion limit must be at least 1".to_owned()));
        }
        if checkpointer.is_some() && run.thread.is_none() {
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
        // The claim on a thread covers the graphs inside it.
        let is_inside =
            caller.as_ref().is_some_and(|caller| caller.superstep.setting.checkpointer.is_some());
        let mut setting = GraphRun::new(run, layout, checkpointer, ns, parents, emitter, store);
        let at_end = setting.run.durability == Durability::Exit && !is_inside;
        let at_exit = setting.checkpointer.clone().filter(|_| at_end).map(AtExit::new);
        if let Some(at_exit) = &at_exit {
            setting.inside = Some(AnyCheckpointer::new(at_exit.clone()));
        }
        let setting = Arc::new(setting);
        let around = caller.as_ref().map(|caller| caller.superstep.clone());
        let mut driver = Self {
            outbox: Outbox::new(setting.clone(), around, at_exit, is_inside),
            setting,
            spare: Spare::default(),
            head,
            recorder,
            pending: Pending::default(),
            position: Position::new(),
            asked: Asked::new(breakpoints, limit),
            graph,
            caller,
        };
        driver.load_and_begin(at, input).await?;
        Ok(driver)
    }

    async fn run(&mut self) -> Result<Stop, RunError> {
        // The superstep has stopped to ask, and the answer came while its other tasks ran.
        let mut again = false;
        loop {
            let out_of_steps = self.position.is_out_of_steps();
            let superstep = self.superstep();
            let mut entries = self.entries(&superstep);
            if !again {
                self.emit_checkpoint(&entries)?;
            }
            if out_of_steps {
                return Err(RunError::RecursionLimit { limit: self.asked.limit() });
            }
            if entries.is_empty() {
                self.check_joins()?;
                return Ok(Stop::Done);
            }
            if !self.asked.is_replaying() {
                self.hand_back(&mut entries)?;
            }
            let nodes = entries.iter().map(|entry| entry.node);
            if self.asked.stops_before(&self.setting.layout, &self.head, nodes) {
                return Ok(Stop::Breakpoint);
            }
            if let Some(sink) = &self.setting.run.sink {
                sink.taken().await;
            }
            // The reader of the stream may ask for a drain because of an event it just read.
            if let Some(reason) = self.setting.run.control.drain_reason() {
                return Ok(Stop::Drained(reason));
            }
            self.emit_starts(&entries, std::mem::take(&mut again))?;
            let nodes: Vec<_> = match self.asked.may_stop_after() {
                true => entries.iter().map(|entry| entry.node).collect(),
                false => Vec::new(),
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
            if self.asked.stops_after(&self.setting.layout, &self.head, nodes.into_iter()) {
                let superstep = self.superstep();
                let entries = self.entries(&superstep);
                self.emit_checkpoint(&entries)?;
                return Ok(Stop::Breakpoint);
            }
            self.asked.resume(None);
        }
    }

    /// Refuses to call the graph done while a join waits for nodes that cannot run any more.
    fn check_joins(&self) -> Result<(), RunError> {
        let joins = unfilled(&self.setting.layout, &self.head);
        if joins.is_empty() { Ok(()) } else { Err(RunError::UnfilledJoin { joins }) }
    }

    /// What the tasks of the next superstep share.
    pub(in crate::engine) fn superstep(&mut self) -> Arc<Superstep> {
        // The previous one is reused unless a task of it is still referenced.
        let spare = self.spare.superstep.take().filter(|spare| Arc::strong_count(spare) == 1);
        let mut superstep = spare.unwrap_or_else(|| Superstep::new(self.setting.clone()).into());
        if let Some(next) = Arc::get_mut(&mut superstep) {
            next.begin(self.position.id(), self.position.step(), self.position.stop());
            next.resuming = self.asked.resuming();
            next.touched = self.is_touched();
            next.stored = Gate::new(!self.outbox.is_storing());
            if !self.pending.is_empty() {
                next.know(self.pending.records());
            }
            if !self.asked.seeds().is_empty() {
                next.seeds.clone_from(self.asked.seeds());
            }
            if self.setting.layout.nests {
                next.filled.clone_from(&self.head.filled);
            }
        }
        superstep
    }

    fn is_touched(&self) -> bool {
        self.position.is_from_outside() || self.caller.as_ref().is_some_and(|caller| caller.touched)
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

    /// The input of a task, as data.
    pub(in crate::engine) fn input_of(&self, entry: &Entry) -> Result<Value, RunError> {
        let (step, stop) = (self.position.step(), self.position.stop());
        entry.input_value(&self.setting.layout, &self.head, step, stop)
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
                let input = self.input_of(entry)?;
                self.setting.emitter.task_start(
                    &entry.task,
                    self.position.step(),
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
        if self.setting.checkpointer.is_some() && self.setting.run.durability == Durability::Exit {
            let plain = matches!(ended, Ok(Stop::Done));
            let own = self.setting.ns.split(ids::LEVEL).all(|level| !level.contains(ids::TASK));
            if !self.is_nested() || !plain || own {
                stored = self.store_at_exit().await;
            } else if self.outbox.known_head().is_some() {
                // If its task does not finish, the next run would take what is stored for its position.
                stored = self.store_at_exit().await;
                lock(&self.setting.run.ended).push(self.position.id());
            }
        }
        let settled = self.outbox.settle().await;
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
        if self.pending.answered_meanwhile {
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
