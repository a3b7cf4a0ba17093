//! What is stored beside a checkpoint: the work of a superstep that is not complete.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::SystemTime;

use superstep_checkpoint::wire::UtcTime;
use superstep_checkpoint::{Blob, Error, Interrupt, InterruptId, Map, PendingWrite, TaskId, Value};

use crate::engine::step::entry::Entry;
use crate::engine::step::superstep::Record;
use crate::engine::stored::record::{
    ARGS, ERROR, ERROR_SOURCE, INTERRUPT, NO_WRITES, RESUME, RETURN,
};

#[derive(Default)]
pub(crate) struct Pending {
    /// Writes of commands, which belong to no task.
    pub(crate) commands: Vec<(Arc<str>, Blob)>,
    /// Who runs the thread.
    pub(crate) claim: Claim,
    /// An answer that is stored without the question it was given for, as LangGraph does. A task that takes it stores it
    /// again, as its own, and leaves this one where it is.
    pub(crate) unbound_answer: Option<Value>,
    /// The alarm that this run has set for its open superstep, once it has set one.
    pub(crate) alarm: Option<Alarmed>,
    /// Somebody has left an answer since the run took the thread.
    pub(crate) answered_meanwhile: bool,
    tasks: HashMap<TaskId, TaskRecord>,
    /// Tasks whose stored writes were handed back to them.
    taken_up: HashSet<TaskId>,
    /// Tasks that finished in a superstep that stopped.
    pub(crate) finished: Vec<Entry>,
}

/// The times that the alarm of an open superstep is made of.
#[derive(Clone, Copy)]
pub(crate) struct Alarmed {
    /// The earliest due time of questions that were stored before this run.
    pub(crate) waiting: Option<SystemTime>,
    /// The time that was stored last.
    pub(crate) set: Option<SystemTime>,
}

/// The run that took the thread last, and the answers it was given for graphs and calls inside tasks.
#[derive(Clone, Default)]
pub(crate) struct Claim {
    pub(crate) stored: Option<Blob>,
    /// The run; nothing if none has taken the thread since its checkpoint, and somebody has only left answers.
    pub(crate) run: Option<String>,
    pub(crate) answers: Map,
    /// The questions whose answers were left since a run last took the thread. Until one does, they can be replaced.
    pub(crate) left: Vec<String>,
    /// The clock has answered, and until this time the thread is left to the run that took the answer.
    pub(crate) again: Option<SystemTime>,
}

#[derive(Clone, Default)]
pub(crate) struct TaskRecord {
    pub(crate) path: String,
    output: Vec<(Arc<str>, Blob)>,
    pub(crate) questions: Vec<Interrupt>,
    error: Option<Value>,
    handled: bool,
    answers: Vec<Value>,
    /// What a recorded call returned.
    returned: Option<Value>,
    /// What the arguments of a recorded call came to.
    args: Option<Value>,
}

impl Claim {
    fn from_stored(blob: &Blob) -> Result<Self, Error> {
        let mut claim = Self { stored: Some(blob.clone()), ..Self::default() };
        if let Value::Map(mut fields) = blob.to_value()? {
            if let Some(Value::Map(answers)) = fields.swap_remove("answers") {
                claim.answers = answers;
            }
            if let Some(Value::Str(run)) = fields.swap_remove("run") {
                claim.run = Some(run);
            }
            if let Some(Value::List(left)) = fields.swap_remove("left") {
                claim.left = left.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            }
            if let Some(Value::Str(again)) = fields.swap_remove("again") {
                claim.again = UtcTime::parse(&again);
            }
        }
        Ok(claim)
    }
}

impl TaskRecord {
    pub(crate) fn is_finished(&self) -> bool {
        !self.output.is_empty()
    }

    pub(crate) fn output(&self) -> Option<Vec<(Arc<str>, Blob)>> {
        let written = self.output.iter().filter(|(name, _)| &**name != NO_WRITES);
        self.is_finished().then(|| written.cloned().collect())
    }

    pub(crate) fn error(&self) -> Option<String> {
        self.error.as_ref().map(|error| match error {
            Value::Str(text) => text.clone(),
            other => other.to_string(),
        })
    }

    fn due(&self) -> Vec<(InterruptId, SystemTime)> {
        let due = |asked: &Interrupt| Some((asked.id.clone(), asked.due()?));
        self.questions.iter().filter_map(due).collect()
    }

    pub(crate) fn answers(&self) -> &[Value] {
        &self.answers
    }
}

impl Pending {
    pub(crate) fn from_stored(writes: &[PendingWrite]) -> Result<Self, Error> {
        let mut pending = Self::default();
        for write in writes {
            if write.task == TaskId::NULL {
                match &*write.channel {
                    RESUME => {
                        pending.unbound_answer =
                            Some(write.value.to_value()?).filter(|answer| !answer.is_null());
                    }
                    _ => pending.commands.push((write.channel.clone(), write.value.clone())),
                }
                continue;
            }
            if write.task == TaskId::CLAIM {
                pending.claim = Claim::from_stored(&write.value)?;
                continue;
            }
            if write.task == TaskId::ALARM {
                continue;
            }
            let task = pending.tasks.entry(write.task).or_default();
            task.path.clone_from(&write.path);
            match &*write.channel {
                ERROR => task.error = Some(write.value.to_value()?),
                ERROR_SOURCE => task.handled = true,
                INTERRUPT => task.questions = Interrupt::list_from(&write.value.to_value()?)?,
                RESUME => {
                    task.answers = match write.value.to_value()? {
                        Value::List(answers) => answers,
                        answer => vec![answer],
                    };
                }
                name => {
                    let read = || {
                        write.value.to_value().map_err(|error| {
                            let (id, path) = (write.task, &write.path);
                            Error::codec(format_args!(
                                "the record of task {id} (`{path}`) cannot be read: {error}"
                            ))
                        })
                    };
                    match name {
                        RETURN => task.returned = Some(read()?),
                        ARGS => task.args = Some(read()?),
                        _ => {}
                    }
                    task.output.push((write.channel.clone(), write.value.clone()));
                }
            }
        }
        Ok(pending)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Whether there is nothing to clear.
    pub(crate) fn is_clear(&self) -> bool {
        let Self {
            commands,
            claim,
            unbound_answer,
            alarm: _,
            answered_meanwhile: _,
            tasks,
            taken_up,
            finished: _,
        } = self;
        let unclaimed = claim.stored.is_none() && claim.answers.is_empty();
        unclaimed
            && unbound_answer.is_none()
            && commands.is_empty()
            && tasks.is_empty()
            && taken_up.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.claim = Claim::default();
        self.alarm = None;
        self.unbound_answer = None;
        self.commands.clear();
        self.tasks.clear();
        self.taken_up.clear();
    }

    /// Takes note that the stored writes of a task were handed back to it.
    pub(crate) fn take_up(&mut self, id: TaskId) {
        self.taken_up.insert(id);
    }

    /// The channels that have stored writes of tasks that nobody took up.
    pub(crate) fn dropped_channels(&self) -> Vec<Arc<str>> {
        let dropped = self.tasks.iter().filter(|(id, _)| !self.taken_up.contains(id));
        dropped.flat_map(|(_, task)| task.output.iter().map(|(name, _)| name.clone())).collect()
    }

    pub(crate) fn task(&self, id: TaskId) -> Option<&TaskRecord> {
        self.tasks.get(&id)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (TaskId, &TaskRecord)> {
        self.tasks.iter().map(|(id, task)| (*id, task))
    }

    /// The writes of a task that has finished.
    pub(crate) fn output(&self, id: TaskId) -> Option<Vec<(Arc<str>, Blob)>> {
        self.tasks.get(&id).and_then(TaskRecord::output)
    }

    /// The error of a task that failed into an error handler.
    pub(crate) fn handled_error(&self, id: TaskId) -> Option<String> {
        self.tasks.get(&id).filter(|task| task.handled).and_then(TaskRecord::error)
    }

    /// The questions of tasks that have not finished, with the task that shows them.
    pub(crate) fn questions(&self) -> impl Iterator<Item = (TaskId, &Interrupt)> {
        let open = self.tasks.iter().filter(|(_, task)| !task.is_finished());
        open.flat_map(|(id, task)| task.questions.iter().map(|question| (*id, question)))
    }

    /// Whether a run has taken an answer to a question of a graph or a call inside a task.
    pub(crate) fn is_claimed(&self, question: &Interrupt) -> bool {
        self.claim.answers.contains_key(question.id.as_str())
    }

    /// The tasks that show this question.
    pub(crate) fn asking(&self, id: &InterruptId) -> impl Iterator<Item = (TaskId, &TaskRecord)> {
        let asking = |task: &TaskRecord| task.questions.iter().any(|question| question.id == *id);
        self.tasks.iter().filter(move |(_, task)| asking(task)).map(|(id, task)| (*id, task))
    }

    pub(crate) fn forget_answers(&mut self) {
        self.unbound_answer = None;
        for task in self.tasks.values_mut() {
            task.answers.clear();
        }
    }

    pub(crate) fn set_answers(&mut self, id: TaskId, answers: Vec<Value>) {
        self.tasks.entry(id).or_default().answers = answers;
    }

    pub(crate) fn forget_tasks(&mut self) {
        self.claim = Claim::default();
        self.alarm = None;
        self.unbound_answer = None;
        self.tasks.clear();
    }

    pub(crate) fn records(&self) -> HashMap<TaskId, Record> {
        if self.is_empty() {
            return HashMap::new();
        }
        let record = |task: &TaskRecord| Record {
            answers: task.answers.clone(),
            due: task.due(),
            returned: task.returned.clone(),
            error: task.error(),
            args: task.args.clone(),
        };
        self.tasks.iter().map(|(id, task)| (*id, record(task))).collect()
    }
}
