//! Running the tasks of one superstep.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use superstep_checkpoint::{Blob, Error, Interrupt, TaskWrites, Value};
use tokio::time::{Instant, timeout_at};

use crate::engine::drive::control::Durability;
use crate::engine::drive::driver::{Driver, Stop};
use crate::engine::kernel::head::Write;
use crate::engine::kernel::layout::NodeDef;
use crate::engine::step::attempt::{Done, End, Job};
use crate::engine::step::entry::Entry;
use crate::engine::step::futures::{Futures, Happened, Running, Saved, Set};
use crate::engine::step::superstep::Superstep;
use crate::engine::stored::record::{ERROR, ERROR_SOURCE, INTERRUPT, RESUME};
use crate::engine::stored::slots::Unstorable;
use crate::engine::task::handle::{Refusal, Suspension, Task};
use crate::error::{NodeError, RunError};
use crate::node::Output;
use crate::state::Row;

/// How the tasks of a superstep ended.
pub(in crate::engine) enum StepEnd {
    /// All of them have writes to apply.
    Finished(Vec<Entry>),
    /// Something stopped the superstep; what was finished is stored.
    Stopped(Stop, Vec<Entry>),
}

impl Driver {
    /// Runs the tasks that have no writes yet.
    pub(in crate::engine) async fn execute(
        &mut self,
        superstep: &Arc<Superstep>,
        mut entries: Vec<Entry>,
    ) -> Result<StepEnd, RunError> {
        if self.setting.cache().is_some() {
            Box::pin(self.use_cache(&mut entries)).await?;
        }
        // A lone task is polled in place, which is much cheaper than through a set.
        let mut lone = pin!(None);
        let mut first = None;
        if let Some(at) = self.lone(&entries) {
            lone.set(Some(self.lone_job(at, &entries).run()));
            if let Poll::Ready((at, end, row)) = once(lone.as_mut()).await {
                lone.set(None);
                match end {
                    End::Done(done) if self.is_quiet(superstep, &entries[at].task) => {
                        self.head.row = row;
                        return self.finish_alone(superstep, entries, at, done);
                    }
                    end => first = Some(Happened::Ended(at, end, row)),
                }
            }
        }
        Box::pin(self.conduct(superstep, entries, lone, first)).await
    }

    /// The task that runs, if it is the only one.
    ///
    /// A superstep with a time limit may be given up with its task and all that the task has. And while a storage operation
    /// is in progress, a task must not continue past its failure.
    fn lone(&self, entries: &[Entry]) -> Option<usize> {
        let mut waiting = waiting(entries);
        let first = waiting.next()?;
        let limited = self.graph.step_timeout.is_some() || self.outbox.is_storing();
        (!limited && waiting.next().is_none()).then_some(first)
    }

    /// The task has the state for itself: its routers can see its writes without a copy.
    fn lone_job(&mut self, at: usize, entries: &[Entry]) -> Job {
        let row = self.head.row.take();
        let mut job = entries[at].job(at, &self.setting.layout, &self.head.controls, row);
        job.held.lent = true;
        job.write_buffer = std::mem::take(&mut self.spare.writes);
        job
    }

    /// Whether a task that has returned leaves nothing behind that would have to be waited for.
    fn is_quiet(&self, superstep: &Superstep, task: &Task) -> bool {
        self.setting.cache().is_none() && superstep.work().is_quiet() && !task.is_waited_for()
    }

    /// The end of a superstep whose only task has returned at once.
    fn finish_alone(
        &mut self,
        superstep: &Superstep,
        mut entries: Vec<Entry>,
        at: usize,
        done: Done,
    ) -> Result<StepEnd, RunError> {
        let entry = &mut entries[at];
        let Done { writes, stored, failed } = done;
        self.show_done(entry, &writes, failed.as_ref())?;
        if self.setting.checkpointer.is_some() {
            self.outbox.add(TaskWrites::new(entry.task.id(), entry.task.path(), stored));
            self.outbox.add_all(&mut superstep.work().unsaved);
        }
        entry.writes = Some(writes);
        Ok(StepEnd::Finished(entries))
    }

    /// Drives the tasks of a superstep until all have ended or something stops them. A lone task has been polled once.
    async fn conduct(
        &mut self,
        superstep: &Arc<Superstep>,
        mut entries: Vec<Entry>,
        mut lone: Pin<&mut Option<impl Future<Output = (usize, End, Row)>>>,
        mut first: Option<Happened>,
    ) -> Result<StepEnd, RunError> {
        let mut futures = Futures::default();
        futures.background = self.outbox.lend_saving();
        if lone.is_some() || first.is_some() {
            futures.running = 1;
            futures.polled = true;
        } else {
            futures.waiting = waiting(&entries).collect();
        }
        let mut state = StepState::default();
        let limit = self.setting.run.max_concurrency.unwrap_or(usize::MAX).max(1);
        let deadline = self.graph.step_timeout.map(|limit| Instant::now() + limit);
        loop {
            let begin = |at: usize| -> Running {
                let (layout, head) = (&self.setting.layout, &self.head);
                Box::pin(entries[at].job(at, layout, &head.controls, head.row.clone()).run())
            };
            let polled = poll_fn(|cx| futures.poll(cx, superstep, limit, lone.as_mut(), begin));
            let happened = match (first.take(), deadline) {
                (Some(happened), _) => happened,
                (None, None) => polled.await,
                (None, Some(deadline)) => {
                    timeout_at(deadline, polled).await.unwrap_or(Happened::TimedOut)
                }
            };
            match happened {
                Happened::Ended(at, end, row) => {
                    if self.head.row.is_hollow() {
                        self.head.row = row;
                    }
                    futures.running -= 1;
                    let ended =
                        self.ended(superstep, &mut futures, &mut entries, &mut state, at, end);
                    if let Err(error) = ended {
                        lone.set(None);
                        return Err(self.fail(superstep, futures, &entries, error).await);
                    }
                }
                Happened::Saved(Ok(())) => {}
                Happened::Saved(Err(error)) => {
                    lone.set(None);
                    return Err(self.give_up(superstep, futures, &entries, error).await);
                }
                Happened::TimedOut => {
                    let limit = self.graph.step_timeout.unwrap_or_default();
                    let error = RunError::StepTimeout { step: self.position.step(), limit };
                    lone.set(None);
                    return Err(self.fail(superstep, futures, &entries, error).await);
                }
                Happened::Stopped => {
                    lone.set(None);
                    return self.stop_now(superstep, futures).await;
                }
                Happened::Idle => break,
            }
        }
        self.outbox.take_back_saving(futures.background.take());
        self.outbox.add_all(&mut futures.take_ended());
        self.outbox.add_all(&mut superstep.work().unsaved);
        self.finish_step(entries, state).await
    }

    /// Takes note of how a task ended.
    ///
    /// # Errors
    /// It ends the superstep.
    fn ended(
        &mut self,
        superstep: &Superstep,
        futures: &mut Futures,
        entries: &mut Vec<Entry>,
        state: &mut StepState,
        at: usize,
        end: End,
    ) -> Result<(), RunError> {
        let entry = &mut entries[at];
        entry.ended = true;
        match end {
            End::Done(Done { writes, stored, failed }) => {
                // Nothing of a task that fails here is stored: it runs again.
                if failed.is_none() {
                    self.keep_in_cache(entry, &writes, futures)?;
                }
                self.show_done(entry, &writes, failed.as_ref())?;
                self.store(futures, &entry.task, stored);
                entry.writes = Some(writes);
                Ok(())
            }
            End::Failed(error) => self.failed(superstep, futures, entries, at, error),
            End::Suspended(suspension) => self.suspended(futures, state, entry, *suspension),
            End::ForParent(output) if self.is_nested() => {
                state.leave(&entry.task, output);
                Ok(())
            }
            End::ForParent(_) => Err(RunError::NoParent { node: entry.task.inner.name.clone() }),
        }
    }

    /// Emits what a task has written, and the failure it was made of, if any.
    fn show_done(
        &self,
        entry: &Entry,
        writes: &[Write],
        failed: Option<&NodeError>,
    ) -> Result<(), RunError> {
        if self.setting.run.sink.is_some() && !self.setting.layout.nodes[entry.node].hidden {
            self.setting.emitter.update(&entry.task, entry.arg(), writes, false)?;
            self.setting.emitter.task_end(
                &entry.task,
                self.position.step(),
                writes,
                failed,
                &[],
            )?;
            self.emit_messages(&entry.task, writes)?;
        }
        Ok(())
    }

    fn failed(
        &mut self,
        superstep: &Superstep,
        futures: &mut Futures,
        entries: &mut Vec<Entry>,
        at: usize,
        error: NodeError,
    ) -> Result<(), RunError> {
        let entry = &mut entries[at];
        let task = entry.task.clone();
        let NodeDef { hidden, handler, .. } = &self.setting.layout.nodes[entry.node];
        if !hidden {
            self.setting.emitter.task_end(&task, self.position.step(), &[], Some(&error), &[])?;
        }
        let mut stored = vec![(ERROR, Value::from(error.stored()))];
        if handler.is_some() {
            stored.push((ERROR_SOURCE, Value::from(&*task.inner.name)));
        }
        if let Some(answers) = task.answers() {
            stored.push((RESUME, Value::List(answers)));
        }
        let Some(handler) = *handler else {
            self.store(futures, &task, encode(stored)?);
            let node = task.inner.name.clone();
            return Err(RunError::Node { node, task: task.id(), arg: entry.brief_arg(), error });
        };
        entry.handled = true;
        let handler = Entry::handler(superstep, entry, handler, error);
        entries.push(handler);
        futures.handlers.push_back(entries.len() - 1);
        self.store(futures, &task, encode(stored)?);
        Ok(())
    }

    fn suspended(
        &mut self,
        futures: &mut Futures,
        state: &mut StepState,
        entry: &Entry,
        suspension: Suspension,
    ) -> Result<(), RunError> {
        let task = &entry.task;
        let Suspension { questions, drained, refused, .. } = suspension;
        state.stopped = true;
        state.refused = state.refused.take().or(refused);
        if questions.is_empty() {
            state.drained = drained.or(state.drained.take());
            return Ok(());
        }
        let mut stored = vec![(INTERRUPT, Interrupt::list_to(&questions))];
        if let Some(answers) = task.answers() {
            stored.push((RESUME, Value::List(answers)));
        }
        let encoded = encode(stored).map_err(|cause| {
            let text = Unstorable::new("a question", cause);
            let error = NodeError::permanent(format!("node `{}` asked {text}", task.name()));
            let (node, arg) = (task.inner.name.clone(), entry.brief_arg());
            RunError::Node { node, task: task.id(), arg, error }
        });
        let alarm = self.alarm(&questions)?;
        self.store(futures, task, encoded?);
        self.store_alarm(futures, task, alarm);
        if !self.setting.layout.nodes[entry.node].hidden {
            self.setting.emitter.interrupted(&self.head, &questions);
            self.setting.emitter.task_end(task, self.position.step(), &[], None, &questions)?;
        }
        state.questions.push((task.path(), questions));
        Ok(())
    }

    /// Sees that what a task did is stored, if anything is: now, meanwhile, or with the checkpoint.
    fn store(&mut self, futures: &mut Futures, task: &Task, writes: Vec<(Arc<str>, Blob)>) {
        if self.setting.checkpointer.is_none() {
            return;
        }
        let writes = TaskWrites::new(task.id(), task.path(), writes);
        match self.setting.run.durability {
            Durability::Sync | Durability::Async => futures.batch.push((task.clone(), writes)),
            Durability::Exit => self.outbox.add(writes),
        }
    }

    /// Sees that an alarm is stored in one operation with the question of this task.
    fn store_alarm(&mut self, futures: &mut Futures, task: &Task, alarm: Option<TaskWrites>) {
        match (alarm, self.setting.run.durability) {
            (Some(alarm), Durability::Sync | Durability::Async) => {
                futures.batch.push((task.clone(), alarm));
            }
            (Some(alarm), Durability::Exit) => self.outbox.add(alarm),
            (None, _) => {}
        }
    }

    /// Drops what runs, and takes back what it was given. What has ended is kept, and what is being stored is still stored.
    fn drop_tasks(&mut self, superstep: &Superstep, mut futures: Futures) -> Set<Saved> {
        self.outbox.add_all(&mut futures.take_ended());
        let Futures { tasks, children, saves, background, .. } = futures;
        drop((tasks, children));
        let mut work = superstep.work();
        if let Some(row) = work.lent.take() {
            self.head.row = row;
        }
        self.outbox.add_all(&mut work.unsaved);
        self.outbox.take_back_saving(background);
        saves
    }

    /// Ends a superstep when storage has failed, or another run has taken the thread.
    ///
    /// Waits for a storage operation in progress, so that it is not left half done. A thread that another run has taken is
    /// left alone. Otherwise the writes of finished tasks are stored if that is possible now, unless all tasks have finished:
    /// the writes that complete a superstep are stored with its checkpoint or not at all.
    async fn give_up(
        &mut self,
        superstep: &Superstep,
        futures: Futures,
        entries: &[Entry],
        error: RunError,
    ) -> RunError {
        let mut saves = self.drop_tasks(superstep, futures);
        let mut usable = !matches!(error, RunError::Conflict { .. });
        while let Some(saved) = saves.next().await {
            usable &= saved.is_ok();
        }
        if self.setting.run.durability == Durability::Exit {
            return error;
        }
        usable &= self.outbox.settle().await.is_ok();
        usable &= waiting(entries).next().is_some();
        let finished = self.outbox.take_unsaved();
        if usable
            && self.outbox.has_stored(self.position.id())
            && let Err(again) = self.put_writes(finished).await
        {
            tracing::debug!(error = %again, "what had finished could not be stored either");
        }
        error
    }

    /// A failed superstep: what runs is dropped, and everything known is stored before the error is told.
    async fn fail(
        &mut self,
        superstep: &Superstep,
        mut futures: Futures,
        entries: &[Entry],
        error: RunError,
    ) -> RunError {
        let waiting = std::mem::take(&mut futures.waiting);
        let begun = |at: &usize| !waiting.contains(at);
        let mut saves = self.drop_tasks(superstep, futures);
        let mut writes = self.outbox.take_unsaved();
        for (at, entry) in entries.iter().enumerate() {
            let open = entry.writes.is_none() && !entry.handled && !entry.ended;
            let stores = self.setting.checkpointer.is_some()
                && self.setting.run.durability != Durability::Exit;
            if !open || !begun(&at) || !stores {
                continue;
            }
            let cancelled = NodeError::cancelled(entry.task.name());
            if let Ok(stored) = encode(vec![(ERROR, Value::from(cancelled.stored()))]) {
                writes.push(TaskWrites::new(entry.task.id(), entry.task.path(), stored));
            }
        }
        if self.setting.run.durability == Durability::Exit {
            self.outbox.put_back(writes);
            return error;
        }
        let mut unsaved: Option<RunError> = None;
        while let Some(saved) = saves.next().await {
            unsaved = unsaved.or(saved.err());
        }
        if !matches!(unsaved, Some(RunError::Conflict { .. })) {
            let stored = self.put_writes(writes).await;
            unsaved = stored.err().map(RunError::from).or(unsaved);
        }
        unsaved.unwrap_or(error)
    }

    /// Stops a superstep at once: what runs is dropped, and what has finished is stored.
    async fn stop_now(
        &mut self,
        superstep: &Superstep,
        futures: Futures,
    ) -> Result<StepEnd, RunError> {
        let mut saves = self.drop_tasks(superstep, futures);
        while let Some(saved) = saves.next().await {
            saved?;
        }
        if self.setting.run.durability != Durability::Exit {
            let writes = self.outbox.take_unsaved();
            self.put_writes(writes).await?;
        }
        let reason = self.setting.run.control.drain_reason().unwrap_or_default();
        Ok(StepEnd::Stopped(Stop::Drained(reason), Vec::new()))
    }

    async fn finish_step(
        &mut self,
        entries: Vec<Entry>,
        state: StepState,
    ) -> Result<StepEnd, RunError> {
        if !state.stopped && state.for_parent.is_none() {
            return Ok(StepEnd::Finished(entries));
        }
        if self.setting.run.durability != Durability::Exit {
            let mut writes = self.outbox.take_unsaved();
            self.set_alarm_again(&state.questions, &mut writes)?;
            self.put_last_writes(writes).await?;
        }
        self.rename_answers().await?;
        let mut asked = state.questions;
        asked.sort_by(|(a, _), (b, _)| a.cmp(b));
        let questions: Vec<_> = asked.into_iter().flat_map(|(_, questions)| questions).collect();
        match state.refused {
            Some(Refusal::Answer(message)) => {
                self.disclaim(&questions).await?;
                return Err(RunError::Resume { message, pending: questions });
            }
            Some(Refusal::Question { node, task, error }) => {
                let asked = entries.iter().find(|entry| entry.task.id() == task);
                let arg = asked.and_then(Entry::brief_arg);
                return Err(RunError::Node { node, task, arg, error });
            }
            None => {}
        }
        // A command for the graph around this one leaves this one, with everything in it that is still open.
        let stop = match (state.for_parent, questions.is_empty(), state.drained) {
            (Some((_, output)), ..) => Stop::ForParent(output),
            (None, false, _) => Stop::Interrupted(questions),
            (None, true, Some(reason)) => Stop::Drained(reason.into()),
            (None, true, None) => Stop::Breakpoint,
        };
        Ok(StepEnd::Stopped(stop, entries))
    }
}

/// The positions of the tasks that have to run.
fn waiting(entries: &[Entry]) -> impl Iterator<Item = usize> {
    let waits = |entry: &Entry| entry.writes.is_none() && !entry.handled;
    entries.iter().enumerate().filter(move |(_, entry)| waits(entry)).map(|(at, _)| at)
}

/// Polls a future once.
async fn once<F: Future>(mut future: Pin<&mut Option<F>>) -> Poll<F::Output> {
    poll_fn(|cx| match future.as_mut().as_pin_mut() {
        Some(future) => Poll::Ready(future.poll(cx)),
        None => Poll::Ready(Poll::Pending),
    })
    .await
}

/// What is known about a superstep that is running.
#[derive(Default)]
struct StepState {
    stopped: bool,
    drained: Option<String>,
    questions: Vec<(String, Vec<Interrupt>)>,
    /// The command for the graph around this one, with the path of the task that gave it.
    for_parent: Option<(String, Box<Output>)>,
    refused: Option<Refusal>,
}

impl StepState {
    /// Takes note of a command for the graph around this one. Of several, the first by path counts, whichever came first.
    fn leave(&mut self, task: &Task, output: Box<Output>) {
        let path = task.path();
        if self.for_parent.as_ref().is_none_or(|(first, _)| path < *first) {
            self.for_parent = Some((path, output));
        }
    }
}

fn encode(writes: Vec<(&'static str, Value)>) -> Result<Vec<(Arc<str>, Blob)>, Error> {
    writes.into_iter().map(|(name, value)| Ok((name.into(), Blob::from_value(&value)?))).collect()
}
