//! What a caller says to a thread that waits: commands, and answers bound to the questions that are open.

use std::sync::Arc;

use superstep_checkpoint::{Blob, Interrupt, InterruptId, Query, TaskId, TaskWrites, Value};

use crate::engine::drive::clock::{is_due, too_late};
use crate::engine::drive::control::Durability;
use crate::engine::drive::driver::Driver;
use crate::engine::drive::open::Start;
use crate::engine::drive::opening::{CommandInput, Input, Resume};
use crate::engine::drive::run::Answer;
use crate::engine::kernel::head::{Mark, StartValue, Write};
use crate::engine::step::entry::Entry;
use crate::engine::step::output::goto_write;
use crate::engine::step::superstep::lock;
use crate::engine::stored::fits::fits_question;
use crate::engine::stored::ids;
use crate::engine::stored::pending::Pending;
use crate::engine::stored::record::RESUME;
use crate::engine::stored::slots::{self, Unstorable};
use crate::error::RunError;
use crate::state::UpdateProblem;

/// A question that waits for an answer.
pub(in crate::engine) struct Open {
    pub(in crate::engine) question: Interrupt,
    task: TaskId,
    path: String,
    /// The answers the task had when it asked. Not known if the question is that of a graph or a call inside it.
    before: Option<Vec<Value>>,
}

/// Answers that fit open questions.
#[derive(Default)]
pub(in crate::engine) struct Bound {
    /// All answers of a task of this graph, the new one last.
    own: Vec<(TaskId, String, Vec<Value>)>,
    /// Answers that are carried to the asker of the question, which may be a graph or a call inside a task.
    carried: Vec<(InterruptId, Value)>,
}

/// The one question that is asked, beside tasks that sleep.
fn sole_question(open: &[Open]) -> Option<InterruptId> {
    let mut asked = open.iter().filter(|open| !open.question.is_sleep());
    let first = asked.next()?;
    asked.next().is_none().then(|| first.question.id.clone())
}

impl Driver {
    /// Turns a command into writes and answers. On a thread that has not begun, its update is the input.
    pub(in crate::engine) async fn command(
        &mut self,
        command: CommandInput,
        begun: bool,
        start: &Start,
        due: Vec<(InterruptId, Value)>,
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
        if self.setting.checkpointer.is_none() && !resume.is_nothing() {
            return Err(RunError::Resume {
                message: "an answer needs a checkpointer, where the question is kept; add one with `with_checkpointer`".to_owned(),
                pending: Vec::new(),
            });
        }
        let mut new = Vec::new();
        for goto in goto {
            let write = goto_write(&self.setting.layout, goto, Mark::Start)
                .map_err(|text| RunError::Invalid(format!("the command {text}")))?;
            new.extend(write);
        }
        let update = update.resolved(&*self.setting.layout.schema).map_err(|unfit| {
            RunError::InvalidUpdate {
                message: match unfit {
                    UpdateProblem::NotAnUpdate(found) => {
                        format!("the command's update {found} is no map of channels")
                    }
                    UpdateProblem::Problems(text) => text,
                },
                code: None,
            }
        })?;
        let single = match &resume {
            // LangGraph would give an answer without its question to a sleep.
            Resume::One(answer) if due.is_empty() && !self.has_sleeps() => Some(answer.clone()),
            _ => None,
        };
        let bound = self.bind(resume, due, single.is_some(), start)?;
        if !begun {
            writes.extend(new);
            return Ok(Input::Value(StartValue::Writes(update)));
        }
        new.extend(update.list.into_iter().map(|(at, value)| Write::State(at, value)));
        if !start.branches {
            self.store_command(&new, single, bound).await?;
        }
        writes.extend(new);
        Ok(Input::Nothing)
    }

    /// Matches answers with the questions that are open. Nothing changes if one of them does not fit.
    ///
    /// A single answer is also stored without its question, for LangGraph, which would give it to the next question too if
    /// it found it with the task.
    pub(in crate::engine) fn bind(
        &mut self,
        resume: Resume,
        due: Vec<(InterruptId, Value)>,
        single: bool,
        start: &Start,
    ) -> Result<Bound, RunError> {
        if resume.is_nothing() && due.is_empty() {
            return Ok(Bound::default());
        }
        let open = self.open_questions(start);
        let refuse = |message: String| {
            let pending = open.iter().map(|open| open.question.clone()).collect();
            Err(RunError::Resume { message, pending })
        };
        let ids: Vec<_> = open.iter().map(|open| format!("`{}`", open.question.id)).collect();
        let ids = ids.join(", ");
        let answers = match (resume, &open[..]) {
            (Resume::Invalid(Some(id), error), _) => {
                return refuse(format!(
                    "the answer to question `{id}` cannot be serialized: {error}"
                ));
            }
            (Resume::Invalid(None, error), _) => {
                let open = if ids.is_empty() { "none" } else { &ids };
                return refuse(format!(
                    "the answer cannot be serialized: {error}; open questions: {open}"
                ));
            }
            (Resume::One(_), []) => {
                return refuse(
                    "there is no open question to answer; continue the thread with no input"
                        .to_owned(),
                );
            }
            (Resume::One(answer), [open]) => vec![(open.question.id.clone(), answer)],
            (Resume::One(answer), several) if sole_question(several).is_some() => {
                sole_question(several).into_iter().map(|id| (id, answer.clone())).collect()
            }
            (Resume::One(_), several) => {
                let count = several.len();
                return refuse(format!("{count} questions are open; answer them by id: {ids}"));
            }
            (Resume::ById(answers), _) if answers.is_empty() && !self.setting.layout.lenient => {
                return refuse(format!("no answers were given; open questions: {ids}"));
            }
            (Resume::ById(answers), _) => answers,
            (Resume::Nothing, _) => Vec::new(),
        };
        let now = self.setting.run.now();
        let late = |(id, _): &&(InterruptId, Value)| {
            open.iter().any(|open| open.question.id == *id && is_due(&open.question, now))
        };
        if let Some((id, _)) = answers.iter().find(late).filter(|_| !start.branches) {
            return refuse(too_late(id));
        }
        let answers: Vec<_> = answers.into_iter().chain(due).collect();
        let mut bound = Bound::default();
        let mut seeds = Vec::new();
        for (id, answer) in answers {
            let Some(open) = open.iter().find(|open| open.question.id == id) else {
                let open = if ids.is_empty() { "none" } else { &ids };
                return refuse(format!("no open question has the id `{id}`; open are: {open}"));
            };
            if let Err(why) = fits_question(&open.question, &answer) {
                return refuse(why);
            }
            match (&open.before, start.branches) {
                (Some(before), true) => {
                    let answers = [&before[..], &[answer]].concat();
                    seeds.push((open.path.clone(), answers));
                }
                (Some(before), false) if !single => {
                    let answers = [&before[..], &[answer]].concat();
                    bound.own.push((open.task, open.path.clone(), answers));
                }
                (_, false) => bound.carried.push((id, answer)),
                (None, true) => {
                    return refuse(format!(
                        "the question `{id}` was asked by a graph inside a node, which a branch begins anew; run the branch with no input and answer when it asks"
                    ));
                }
            }
        }
        self.asked.seed(seeds);
        Ok(bound)
    }

    /// The questions that wait for an answer, in the order of their tasks.
    pub(in crate::engine) fn open_questions(&mut self, start: &Start) -> Vec<Open> {
        let superstep = self.superstep();
        let mut entries = self.entries(&superstep);
        entries.sort_by_cached_key(|entry| entry.task.path());
        let mut found: Vec<Open> = Vec::new();
        let mut seen = Vec::new();
        for entry in entries {
            let task = entry.task.id();
            let Some(record) = self.pending.task(task) else { continue };
            if record.is_finished() && !start.branches {
                continue;
            }
            for question in &record.questions {
                if seen.contains(&question.id) {
                    continue;
                }
                seen.push(question.id.clone());
                let answers = record.answers();
                let position = (0..=answers.len())
                    .find(|k| ids::interrupt_id(entry.task.namespace(), *k) == question.id);
                let answered = position.is_some_and(|at| at < answers.len())
                    || self.pending.claim.answers.contains_key(question.id.as_str());
                if answered && !start.branches {
                    continue;
                }
                let before = position.map(|at| answers[..at].to_vec());
                let path = entry.task.path();
                let mut open = Open { question: question.clone(), task, path, before };
                if start.branches && open.before.is_none() {
                    self.find_call(&mut open);
                }
                found.push(open);
            }
        }
        // Questions of error handlers are stored under tasks that are not planned.
        let claimed = |id: &InterruptId| self.pending.claim.answers.contains_key(id.as_str());
        let mut others: Vec<_> = self
            .pending
            .questions()
            .filter(|(_, question)| !seen.contains(&question.id) && !claimed(&question.id))
            .map(|(task, question)| Open {
                question: question.clone(),
                task,
                path: String::new(),
                before: None,
            })
            .collect();
        others.sort_by(|a, b| a.question.id.cmp(&b.question.id));
        others.dedup_by(|a, b| a.question.id == b.question.id);
        found.extend(others);
        found
    }

    fn has_sleeps(&self) -> bool {
        self.pending.questions().any(|(_, question)| question.is_sleep())
    }

    /// Finds the recorded call that asked a question its caller shows, too. The path of a call is the same on a branch.
    fn find_call(&self, open: &mut Open) {
        let asked = self.pending.asking(&open.question.id).filter(|(id, _)| *id != open.task);
        let Some((_, record)) = asked.max_by_key(|(_, record)| record.path.len()) else { return };
        let answers = record.answers();
        let before = answers.len() - usize::from(record.is_finished() && !answers.is_empty());
        open.before = Some(answers[..before].to_vec());
        open.path.clone_from(&record.path);
    }

    /// Stores a command beside the checkpoint, so that it is not lost if the run does not get far.
    ///
    /// A run that stores at its end stores where the command leads only if it ends here: the checkpoint would otherwise
    /// keep what belongs to the next one. The answers are stored now, with the claim, so that no other process answers.
    pub(in crate::engine) async fn store_command(
        &mut self,
        new: &[Write],
        single: Option<Value>,
        bound: Bound,
    ) -> Result<(), RunError> {
        if self.setting.checkpointer.is_none() {
            return Ok(());
        }
        let mut all: Vec<(Arc<str>, Blob)> = self.pending.commands.clone();
        for write in new {
            all.extend(slots::encode_write(&self.setting.layout, write)?);
        }
        self.pending.commands.clone_from(&all);
        let at_exit = self.setting.run.durability == Durability::Exit;
        if let Some(answer) = single.filter(|_| !at_exit) {
            let blob = Blob::from_value(&answer);
            all.push((RESUME.into(), blob.map_err(|cause| Unstorable::new("the answer", cause))?));
            self.pending.unbound_answer = Some(answer);
        }
        let mut writes = Vec::new();
        if !all.is_empty() {
            let command = TaskWrites::new(TaskId::NULL, "", all);
            match at_exit {
                true => self.outbox.add(command),
                false => writes.push(command),
            }
        }
        for (task, path, answers) in bound.own {
            self.pending.set_answers(task, answers.clone());
            let answers = Blob::from_value(&Value::List(answers))
                .map_err(|cause| Unstorable::new("the answer", cause))?;
            writes.push(TaskWrites::new(task, path, vec![(RESUME.into(), answers)]));
        }
        for (id, answer) in bound.carried {
            self.pending.claim.answers.insert(id.to_string(), answer);
        }
        self.claim(writes).await
    }

    /// Carries the answers to the graphs and calls inside tasks that asked for them in this run.
    pub(in crate::engine) fn carry_answers(&mut self) {
        if self.pending.claim.answers.is_empty() {
            return;
        }
        let superstep = self.superstep();
        let entries = self.entries(&superstep);
        let mut answers = lock(&self.setting.run.answers);
        for (id, value) in &self.pending.claim.answers {
            // A task that has the answer already must not find it a second time.
            let has = |entry: &Entry| {
                let answers = self.pending.task(entry.task.id()).map_or(0, |r| r.answers().len());
                let ns = entry.task.namespace();
                (0..answers).any(|k| ids::interrupt_id(ns, k).as_str() == id)
            };
            if entries.iter().any(has) {
                continue;
            }
            let sole = entries.iter().find(|entry| {
                let asked = self.pending.task(entry.task.id()).map(|record| &record.questions[..]);
                matches!(asked, Some([question]) if question.id.as_str() == id)
            });
            let sole = sole.map(|entry| entry.task.namespace_shared());
            let answer = Answer { value: value.clone(), sole };
            answers.insert(InterruptId::new(id.as_str()), answer);
        }
    }

    /// An answer that LangGraph accepted, and that no task has taken, reaches the one question that is open.
    pub(in crate::engine) async fn carry_unbound_answer(
        &mut self,
        start: &Start,
    ) -> Result<(), RunError> {
        let Some(value) = self.pending.unbound_answer.clone() else { return Ok(()) };
        let open = self.open_questions(start);
        let [open] = &open[..] else { return Ok(()) };
        if self.is_taken(&value).await? {
            return Ok(());
        }
        let answer = Answer { value, sole: None };
        lock(&self.setting.run.answers).insert(open.question.id.clone(), answer);
        Ok(())
    }

    /// Whether a task of this superstep, or of a graph inside one, was answered with this. It may have been another answer
    /// of the same value: then the question is asked again, which is better than to answer it with what was meant for
    /// another one.
    async fn is_taken(&mut self, value: &Value) -> Result<bool, RunError> {
        let takes = |answers: &[Value]| answers.contains(value);
        let mut claimed = self.pending.claim.answers.values();
        if claimed.any(|answer| answer == value)
            || self.pending.all().any(|(_, record)| takes(record.answers()))
        {
            return Ok(true);
        }
        let (Some(checkpointer), Some(thread)) =
            (&self.setting.checkpointer, &self.setting.run.thread)
        else {
            return Ok(false);
        };
        // What graphs inside have stored is newer than the checkpoint that this superstep began from.
        let mut query = Query { thread: Some(thread.clone()), limit: Some(64), ..Query::default() };
        loop {
            let page = checkpointer.list(query.clone()).await?;
            let inside = page.iter().take_while(|stored| stored.checkpoint.id > self.position.id());
            let inside: Vec<_> = inside.collect();
            for stored in &inside {
                let pending = Pending::from_stored(&stored.writes)?;
                if pending.all().any(|(_, record)| takes(record.answers())) {
                    return Ok(true);
                }
            }
            match inside.last() {
                Some(last) if inside.len() == 64 => query.before = Some(last.checkpoint.id),
                _ => return Ok(false),
            }
        }
    }
}
