//! How a run begins: where the thread is, and what the input means there.

use std::sync::Arc;

use superstep_checkpoint::{
    Blob, CheckpointId, Interrupt, InterruptId, Query, Source, Stored, TaskId, TaskWrites, Value,
};

use super::apply::apply;
use super::attempt::goto_write;
use super::drive::{CommandInput, Driver, Input, Resume, apply_error};
use super::head::{Mark, StartValue, Write};
use super::ids;
use super::layout::ControlKind;
use super::pending::Pending;
use super::plan::plan;
use super::record::RESUME;
use super::slots;
use super::task::lock;
use crate::error::RunError;
use crate::run::Durability;
use crate::state::Unfit;

/// Where a run begins.
struct Start {
    /// The checkpoint is not the head of its thread.
    superseded: bool,
    /// The run goes back in time.
    time_travel: bool,
}

impl Driver {
    /// Loads the thread and applies the input to it.
    pub(super) async fn load_and_begin(
        &mut self,
        at: Option<CheckpointId>,
        input: Input,
    ) -> Result<(), RunError> {
        let (stored, superseded) = self.find(at).await?;
        let answers = matches!(&input, Input::Command(command) if !command.resume.is_nothing());
        let time_travel = superseded && !answers;
        let start = Start { superseded, time_travel };
        match stored {
            Some(stored) => self.load(&stored).await?,
            None => self.id = self.next_id(-2, None),
        }
        self.stop = self.step + i64::try_from(self.limit).unwrap_or(i64::MAX / 2) + 1;
        self.begin(input, &start).await
    }

    /// The checkpoint to begin from, and whether the thread has gone on since.
    async fn find(&mut self, at: Option<CheckpointId>) -> Result<(Option<Stored>, bool), RunError> {
        let (Some(saver), Some(thread)) = (self.saver.clone(), self.run.thread.clone()) else {
            return Ok((None, false));
        };
        if let Some(id) = at {
            let stored = saver.get(&thread, &self.ns, Some(id)).await?;
            let stored =
                stored.ok_or(RunError::UnknownCheckpoint { thread: thread.clone(), id })?;
            let head = saver.get(&thread, &self.ns, None).await?;
            self.known_head = head.map(|head| head.checkpoint.id);
            // The head's own id is where the thread is anyway.
            return Ok((Some(stored), self.known_head != Some(id)));
        }
        let latest = saver.get(&thread, &self.ns, None).await?;
        self.known_head = latest.as_ref().map(|stored| stored.checkpoint.id);
        let Some(replay) = self.run.replay.as_ref().filter(|_| self.is_nested()) else {
            return Ok((latest, false));
        };
        let name = ids::without_task_ids(&self.ns);
        if !lock(&replay.visited).insert(name) {
            return Ok((latest, false));
        }
        if let Some(id) = replay.addressed.get(&*self.ns) {
            let stored = saver.get(&thread, &self.ns, Some(*id)).await?;
            return Ok((stored, true));
        }
        let query = Query {
            thread: Some(thread),
            ns: Some(self.ns.clone()),
            before: Some(replay.before),
            limit: Some(1),
            ..Query::default()
        };
        let older = saver.list(query).await?.into_iter().next();
        Ok((older, false))
    }

    async fn load(&mut self, stored: &Stored) -> Result<(), RunError> {
        if let Some(saver) = &self.saver {
            self.head = self.recorder.load(&self.layout, stored, saver).await?;
        }
        self.pending = Pending::from_stored(&stored.writes)?;
        self.id = stored.checkpoint.id;
        self.stored = Some(self.id);
        self.before = stored.parent;
        self.step = stored.metadata.step + 1;
        self.metadata = Some(stored.metadata.clone());
        Ok(())
    }

    async fn begin(&mut self, input: Input, start: &Start) -> Result<(), RunError> {
        let begun = self.head.newest > 0;
        let told = self.caller.as_ref().and_then(|caller| caller.resuming);
        let told = told.filter(|_| self.run.replay.is_none() || !start.time_travel);
        let continues = matches!(input, Input::Nothing | Input::Command(_));
        let resuming =
            begun && (start.time_travel && self.is_nested() || told.unwrap_or(continues));
        self.replaying = start.superseded;
        if start.time_travel {
            self.pending.forget_answers();
        }
        let mut writes = self.stored_commands()?;
        let input = match input {
            Input::Command(command) => self.command(command, begun, start, &mut writes).await?,
            other => other,
        };
        // Where a command leads on a thread that has not begun is taken in with its update.
        let beside = if begun { Vec::new() } else { std::mem::take(&mut writes) };
        if !writes.is_empty() {
            let tasks = vec![self.input_writes(writes)];
            let before = self.head.updated.take();
            apply(&self.layout, &mut self.head, tasks, false)
                .map_err(|error| apply_error(&error, &[], self.step))?;
            // What was to run before the command is still to run.
            self.head.updated = before.map(|mut updated| {
                updated.extend(self.head.updated.take().unwrap_or_default());
                updated
            });
        }
        if resuming {
            self.head.seen_interrupt = Some(self.head.versions.clone().into());
            self.head.news.interrupt = true;
            if start.superseded {
                self.fork().await?;
            }
            self.emitter.values(&self.head, Vec::new());
        } else if let Input::Value(value) = input {
            self.accept(value, beside).await?;
        } else if told.is_none() {
            return Err(RunError::EmptyInput(if begun {
                "there was no input".to_owned()
            } else {
                "there was no input, and the thread has not begun; give the run an input".to_owned()
            }));
        }
        self.resuming = if self.is_nested() { told } else { Some(resuming) };
        Ok(())
    }

    /// Writes of earlier commands that no superstep has taken up yet.
    fn stored_commands(&self) -> Result<Vec<Write>, RunError> {
        let stored = self.pending.commands.iter();
        let writes = stored.map(|(name, blob)| slots::decode_write(&self.layout, name, blob));
        Ok(writes.collect::<Result<_, _>>()?)
    }

    /// Begins a branch at the checkpoint that was addressed.
    async fn fork(&mut self) -> Result<(), RunError> {
        self.pending.forget_tasks();
        // As after any change from outside, every node is looked at.
        self.head.updated = None;
        for (at, _) in self.layout.channels.iter().enumerate() {
            // Writes stored beside the old checkpoint belong to the other branch.
            self.recorder.forced.insert(at);
        }
        self.save(Source::Fork).await
    }

    /// Takes new input: what was planned is dropped, and the first node gets it.
    async fn accept(&mut self, value: StartValue, mut beside: Vec<Write>) -> Result<(), RunError> {
        let mut tasks = vec![];
        let start = self.layout.controls.iter().position(|c| matches!(c.kind, ControlKind::Start));
        if let Some(control) = start {
            beside.insert(0, Write::Start(control, value));
            tasks.push(self.input_writes(beside));
        }
        tasks.extend(self.discarded());
        apply(&self.layout, &mut self.head, tasks, false)
            .map_err(|error| apply_error(&error, &[], self.step))?;
        self.force_dropped_deltas();
        self.pending.clear();
        self.save(Source::Input).await
    }

    /// Turns a command into writes and answers. On a thread that has not begun, its update is the input.
    async fn command(
        &mut self,
        command: CommandInput,
        begun: bool,
        start: &Start,
        writes: &mut Vec<Write>,
    ) -> Result<Input, RunError> {
        let CommandInput { resume, update, goto, to_parent } = command;
        if to_parent {
            return Err(RunError::InvalidUpdate {
                message: "a command for the parent graph was given to a graph that has none"
                    .to_owned(),
                code: None,
            });
        }
        if resume.is_nothing() && update.is_empty() && goto.is_empty() {
            return Err(RunError::EmptyInput(
                "the command is empty; give it an answer, an update or a place to go to".to_owned(),
            ));
        }
        if self.saver.is_none() && !resume.is_nothing() {
            return Err(RunError::Resume {
                message: "an answer needs a checkpointer, where the question is kept; add one with `with_checkpointer`".to_owned(),
                pending: Vec::new(),
            });
        }
        let mut new = Vec::new();
        for goto in goto {
            let write = goto_write(&self.layout, goto, Mark::Start)
                .map_err(|text| RunError::Invalid(format!("the command {text}")))?;
            new.extend(write);
        }
        let update =
            update.resolved(&*self.layout.schema).map_err(|unfit| RunError::InvalidUpdate {
                message: match unfit {
                    Unfit::NoUpdate(found) => {
                        format!("the command's update {found} is no map of channels")
                    }
                    Unfit::Problems(text) => text,
                },
                code: None,
            })?;
        let single = match &resume {
            Resume::One(answer) => Some(answer.clone()),
            Resume::Nothing | Resume::ById(_) => None,
        };
        let answered = self.bind(resume, start)?;
        if !begun {
            writes.extend(new);
            return Ok(Input::Value(StartValue::Writes(update)));
        }
        new.extend(update.list.into_iter().map(|(at, value)| Write::State(at, value)));
        if !start.superseded {
            self.store_command(&new, single, answered).await?;
        }
        writes.extend(new);
        Ok(Input::Nothing)
    }

    /// Matches answers with the questions that are open. Nothing changes if one of them does not fit.
    fn bind(
        &mut self,
        resume: Resume,
        start: &Start,
    ) -> Result<Vec<(TaskId, Vec<Value>)>, RunError> {
        let open = self.open_questions(start);
        let pending = || open.iter().map(|(_, question)| question.clone()).collect::<Vec<_>>();
        let refuse = |message: String| Err(RunError::Resume { message, pending: pending() });
        let answers: Vec<(InterruptId, Value)> = match resume {
            Resume::Nothing => return Ok(Vec::new()),
            Resume::One(answer) => match &open[..] {
                [] => {
                    return refuse(
                        "there is no open question to answer; continue the thread with no input"
                            .to_owned(),
                    );
                }
                [(_, question)] => vec![(question.id.clone(), answer)],
                several => {
                    let ids: Vec<_> = several.iter().map(|(_, q)| format!("`{}`", q.id)).collect();
                    return refuse(format!(
                        "{} questions are open; answer them by id: {}",
                        several.len(),
                        ids.join(", ")
                    ));
                }
            },
            Resume::ById(answers) => answers,
        };
        for (id, _) in &answers {
            if !open.iter().any(|(_, question)| question.id == *id) {
                let ids: Vec<_> = open.iter().map(|(_, q)| format!("`{}`", q.id)).collect();
                let open = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
                return refuse(format!("no open question has the id `{id}`; open are: {open}"));
            }
        }
        let mut bound = Vec::new();
        for (id, answer) in answers {
            let (task, _) = open
                .iter()
                .find(|(_, question)| question.id == id)
                .ok_or_else(|| RunError::Invalid(format!("the question `{id}` is gone")))?;
            if start.superseded {
                self.seed(*task, &id, answer);
                continue;
            }
            if let Some(answers) = self.own_answers(*task, &id) {
                let mut answers = answers;
                answers.push(answer.clone());
                bound.push((*task, answers));
            }
            lock(&self.run.answers).insert(id, answer);
        }
        Ok(bound)
    }

    /// The questions that wait for an answer, in the order of their tasks.
    fn open_questions(&mut self, start: &Start) -> Vec<(TaskId, Interrupt)> {
        let planned = plan(&self.layout, &self.head);
        let superstep = self.superstep();
        let mut found = Vec::new();
        let mut seen = Vec::new();
        let mut entries = self.entries(&superstep, planned);
        entries.sort_by_cached_key(|entry| entry.task.inner.path.text());
        for entry in entries {
            let id = entry.task.id();
            let Some(task) = self.pending.task(id) else { continue };
            if task.is_finished() && !start.superseded {
                continue;
            }
            for question in &task.questions {
                let open = start.superseded || entry.task.open_question(&question.id);
                let new = !seen.contains(&question.id);
                seen.push(question.id.clone());
                if open && new {
                    found.push((id, question.clone()));
                }
            }
        }
        // Questions of recorded calls and error handlers are stored under tasks that are not planned.
        let mut others: Vec<_> = self
            .pending
            .questions()
            .filter(|(_, question)| !seen.contains(&question.id))
            .map(|(task, question)| (task, question.clone()))
            .collect();
        others.sort_by(|a, b| a.1.id.cmp(&b.1.id));
        others.dedup_by(|a, b| a.1.id == b.1.id);
        found.extend(others);
        found
    }

    /// The answers a task of this graph already has, if the question is its own and not that of a graph inside it.
    fn own_answers(&mut self, task: TaskId, question: &InterruptId) -> Option<Vec<Value>> {
        let planned = plan(&self.layout, &self.head);
        let superstep = self.superstep();
        let entries = self.entries(&superstep, planned);
        let entry = entries.into_iter().find(|entry| entry.task.id() == task)?;
        let answers = self.pending.task(task).map(|task| task.answers().to_vec())?;
        let own = ids::interrupt_id(entry.task.namespace(), answers.len());
        (own == *question).then_some(answers)
    }

    /// Carries an answer to a question of an older checkpoint over to the branch that begins there.
    fn seed(&mut self, task: TaskId, question: &InterruptId, answer: Value) {
        let planned = plan(&self.layout, &self.head);
        let superstep = self.superstep();
        let entries = self.entries(&superstep, planned);
        let Some(entry) = entries.into_iter().find(|entry| entry.task.id() == task) else { return };
        let mut answers = self.pending.task(task).map(|t| t.answers().to_vec()).unwrap_or_default();
        let position = (0..=answers.len())
            .find(|k| ids::interrupt_id(entry.task.namespace(), *k) == *question);
        answers.truncate(position.unwrap_or(0));
        answers.push(answer);
        self.seeds.insert(entry.task.inner.path.text(), answers);
    }

    /// Stores a command beside the checkpoint, so that it is not lost if the run does not get far.
    async fn store_command(
        &mut self,
        new: &[Write],
        single: Option<Value>,
        answered: Vec<(TaskId, Vec<Value>)>,
    ) -> Result<(), RunError> {
        if self.saver.is_none() {
            return Ok(());
        }
        let mut all: Vec<(Arc<str>, Blob)> = self.pending.commands.clone();
        for write in new {
            all.extend(slots::encode_write(&self.layout, write)?);
        }
        self.pending.commands.clone_from(&all);
        if let Some(answer) = single {
            all.push((RESUME.into(), Blob::from_value(&answer)?));
        }
        let mut writes = Vec::new();
        let exit = self.run.durability == Durability::Exit;
        if exit {
            all.retain(|(name, _)| &**name != RESUME);
        }
        if !all.is_empty() {
            writes.push(TaskWrites {
                task: TaskId::NULL,
                path: String::new(),
                writes: all,
                replaces: false,
                expected: None,
            });
        }
        for (task, answers) in answered {
            self.pending.set_answers(task, answers.clone());
            let ids: Vec<_> = lock(&self.run.answers).keys().cloned().collect();
            for id in ids {
                if let Some(question) = self.pending.task(task).map(|t| &t.questions)
                    && question.iter().any(|question| question.id == id)
                {
                    lock(&self.run.answers).remove(&id);
                }
            }
            writes.push(TaskWrites {
                task,
                path: self.path_of(task),
                writes: vec![(RESUME.into(), Blob::from_value(&Value::List(answers))?)],
                replaces: false,
                expected: None,
            });
        }
        if exit {
            self.unsaved.extend(writes);
            return Ok(());
        }
        self.put_writes(writes).await?;
        Ok(())
    }

    fn path_of(&mut self, task: TaskId) -> String {
        let planned = plan(&self.layout, &self.head);
        let superstep = self.superstep();
        let entries = self.entries(&superstep, planned);
        let entry = entries.into_iter().find(|entry| entry.task.id() == task);
        entry.map(|entry| entry.task.inner.path.text()).unwrap_or_default()
    }
}
