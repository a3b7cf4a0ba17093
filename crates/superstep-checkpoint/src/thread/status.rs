//! The status of a thread, computed from its head without its graph.
//!
//! A graph stores which of its nodes are due in channels whose names say so: `__start__`,
//! `branch:to:NODE`, `join:MEMBERS:NODE` and `__pregel_tasks`. The writes with the head tell what
//! happened to their tasks since.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::wire::{JoinName, JoinValue};
use crate::{
    Blob, Checkpoint, Error, Ext, Interrupt, InterruptId, PendingWrite, Stored, TaskId, Value,
};

/// The status of a thread: what its next run finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ThreadStatus {
    /// Nothing is left to run. The thread accepts new input.
    Done,
    /// A run with no input continues: the thread was drained or its process died, a run is active,
    /// or an answer is stored for the next run. Some tasks may have open questions.
    Ready,
    /// Every unfinished task has an open question, and no answer is stored.
    Waiting,
    /// A task failed. A run with no input runs it again.
    Failed,
}

impl ThreadStatus {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Done, Self::Ready, Self::Waiting, Self::Failed];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Ready => "ready",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
        }
    }

    /// The status that a word stands for.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

impl fmt::Display for ThreadStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The indexed information about a thread: its status, and whether it has open questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The status. `None`: the head cannot be read.
    pub status: Option<ThreadStatus>,
    /// Whether it has open questions.
    pub has_questions: bool,
}

/// Verdicts and the words they are stored as. A thread that waits has questions, and one that is done has none.
const WORDS: [(Option<ThreadStatus>, bool, &str); 7] = [
    (None, false, "unreadable"),
    (Some(ThreadStatus::Done), false, "done"),
    (Some(ThreadStatus::Ready), false, "ready"),
    (Some(ThreadStatus::Ready), true, "ready, asks"),
    (Some(ThreadStatus::Waiting), true, "waiting"),
    (Some(ThreadStatus::Failed), false, "failed"),
    (Some(ThreadStatus::Failed), true, "failed, asks"),
];

impl Verdict {
    /// Of a thread whose head cannot be read.
    pub const UNREADABLE: Self = Self { status: None, has_questions: false };

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        WORDS.into_iter().map(|(status, has_questions, _)| Self { status, has_questions })
    }

    /// The word that is stored. It is never empty.
    pub fn as_str(self) -> &'static str {
        let found = WORDS.iter().find(|(status, has_questions, _)| {
            (*status, *has_questions) == (self.status, self.has_questions)
        });
        found.map_or("unreadable", |(_, _, word)| word)
    }

    /// The verdict a stored word stands for. `None`: the thread has to be looked at.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::all().find(|verdict| verdict.as_str() == word)
    }
}

/// A question of a thread, and its stored answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Question {
    /// The question.
    pub interrupt: Interrupt,
    /// The task that asks, or that called what asks.
    pub task: TaskId,
    /// The answer that is stored and not used yet. The next run of the thread uses it.
    pub answer: Option<Value>,
    /// The position of the answer among those of the task itself. `None` if it is stored elsewhere.
    pub position: Option<usize>,
}

/// The stored progress of a task of the open superstep.
#[derive(Default)]
struct TaskSeen {
    path: String,
    is_finished: bool,
    has_failed: bool,
    /// Whether an error handler takes care of the failure.
    is_handled: bool,
    questions: Vec<Interrupt>,
    answers: Vec<Value>,
}

impl Stored {
    /// The nodes that are due at this checkpoint: those whose triggers are set and were not seen, by name, then those that were
    /// dispatched, in their order. A node that was dispatched several times is there several times.
    ///
    /// # Errors
    /// The data it depends on cannot be read.
    pub fn next(&self) -> Result<Vec<Arc<str>>, Error> {
        let mut found = triggered(&self.checkpoint)?;
        if let Some(packets) = self.packets()? {
            found.extend(packets.iter().filter_map(dispatched).map(Arc::from));
        }
        Ok(found)
    }

    /// The status of the thread, if this is its head.
    ///
    /// It depends only on what is stored. LangGraph's `Pregel` graphs, built without `StateGraph`
    /// or `entrypoint`, do not store which nodes are due; their threads count as done unless a task
    /// has stored a question or an error.
    ///
    /// # Errors
    /// The data it depends on cannot be read.
    pub fn status(&self) -> Result<ThreadStatus, Error> {
        self.status_beside(&[])
    }

    /// The status of the thread as if these answers were not there.
    pub(super) fn status_beside(&self, left: &[String]) -> Result<ThreadStatus, Error> {
        let is_left = |id: &InterruptId| left.iter().any(|left| left == id.as_str());
        let due = self.next()?.len();
        if due == 0 && self.writes.is_empty() {
            return Ok(ThreadStatus::Done);
        }
        let tasks = tasks(&self.writes)?;
        let questions = self.questions_of(&tasks)?;
        let (mut handlers, mut accounted, mut waiting) = (0, 0, false);
        for (id, task) in tasks.iter().filter(|(_, task)| !is_call(&task.path)) {
            if task.is_finished {
                accounted += 1;
            } else if task.is_handled {
                (accounted, handlers) = (accounted + 1, handlers + 1);
            } else if task.has_failed {
                return Ok(ThreadStatus::Failed);
            } else if !task.questions.is_empty() {
                let mut own = questions.iter().filter(|question| {
                    task.questions.iter().any(|asked| asked.id == question.interrupt.id)
                        || question.task == *id
                });
                if own.all(|question| question.answer.is_none() || is_left(&question.interrupt.id))
                {
                    (accounted, waiting) = (accounted + 1, true);
                }
            }
        }
        Ok(match (due + handlers).saturating_sub(accounted) {
            0 if waiting => ThreadStatus::Waiting,
            0 if due == 0 => ThreadStatus::Done,
            _ => ThreadStatus::Ready,
        })
    }

    /// The questions of tasks that are not finished, in the order of their tasks, each once.
    ///
    /// # Errors
    /// The stored bytes are not a list of questions.
    pub fn questions(&self) -> Result<Vec<Question>, Error> {
        self.questions_of(&tasks(&self.writes)?)
    }

    /// The questions that wait for an answer here, in the order of their tasks, each once.
    ///
    /// A task that has written something besides its questions and answers is done with them.
    ///
    /// # Errors
    /// The stored bytes are not a list of questions.
    pub fn open_questions(&self) -> Result<Vec<Interrupt>, Error> {
        let open = self.questions()?.into_iter().filter(|question| question.answer.is_none());
        Ok(open.map(|question| question.interrupt).collect())
    }

    fn questions_of(&self, tasks: &[(TaskId, TaskSeen)]) -> Result<Vec<Question>, Error> {
        let is_asking = |task: &TaskSeen| !task.is_finished && !task.questions.is_empty();
        if !tasks.iter().any(|(_, task)| is_asking(task)) {
            return Ok(Vec::new());
        }
        let claimed = self.written(TaskId::CLAIM)?;
        let claimed = claimed.as_ref().and_then(|claim| claim.get("answers"));
        let mut unbound = self.written(TaskId::NULL)?.filter(|answer| !answer.is_null());
        // A task that took it keeps it among its answers.
        let taken = |task: &TaskSeen| task.answers.last() == unbound.as_ref();
        if unbound.is_some() && tasks.iter().any(|(_, task)| taken(task)) {
            unbound = None;
        }
        let packets = self.packets()?;
        let mut found: Vec<Question> = Vec::new();
        for (id, task) in tasks.iter().filter(|(_, task)| is_asking(task)) {
            let ns = namespace(*id, &task.path, packets.as_deref());
            for interrupt in &task.questions {
                if found.iter().any(|known| known.interrupt.id == interrupt.id) {
                    continue;
                }
                let nth = |ns: &String| {
                    (0..task.answers.len())
                        .find(|nth| InterruptId::of_task(ns, *nth) == interrupt.id)
                };
                let position = ns.as_ref().and_then(nth);
                let own = position.and_then(|nth| task.answers.get(nth)).cloned();
                let claimed = claimed.and_then(|all| all.get(interrupt.id.as_str())).cloned();
                let (interrupt, task) = (interrupt.clone(), *id);
                found.push(Question { interrupt, task, answer: own.or(claimed), position });
            }
        }
        // An answer that names no question is for the one that is open.
        let mut open = found.iter_mut().filter(|question| question.answer.is_none());
        if let (Some(first), None) = (open.next(), open.next()) {
            first.answer = unbound;
        }
        Ok(found)
    }

    /// The content of a task's slot for answers.
    pub(super) fn written(&self, task: TaskId) -> Result<Option<Value>, Error> {
        let mut writes = self.writes.iter();
        let found = writes.find(|write| write.task == task && &*write.channel == "__resume__");
        found.map(|write| write.value.to_value()).transpose()
    }

    /// The dispatches at this checkpoint, in order.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn packets(&self) -> Result<Option<Vec<Value>>, Error> {
        let packets = self.checkpoint.value("__pregel_tasks").map(Blob::to_value).transpose()?;
        match packets {
            None | Some(Value::Null) => Ok(None),
            Some(Value::List(packets)) => Ok(Some(packets)),
            Some(other) => {
                Err(Error::codec(format_args!("dispatches are a list, found {}", other.kind())))
            }
        }
    }
}

/// The nodes whose triggers are set and were not seen, by name.
fn triggered(checkpoint: &Checkpoint) -> Result<Vec<Arc<str>>, Error> {
    let mut found: Vec<Arc<str>> = Vec::new();
    for (channel, blob) in &checkpoint.channel_values {
        let join = JoinName::parse(channel);
        let node = match (channel.strip_prefix("branch:to:"), &**channel, &join) {
            (Some(node), _, _) => node,
            (None, "__start__", _) => "__start__",
            (None, _, Some(join)) => join.target,
            (None, _, None) => continue,
        };
        let seen = checkpoint.versions_seen.get(node).and_then(|seen| seen.get(channel));
        let is_new = |version| seen.is_none_or(|seen| version > seen);
        if !checkpoint.version(channel).is_some_and(is_new) {
            continue;
        }
        let complete = |join: JoinName<'_>| {
            Ok::<_, Error>(join.is_complete(&JoinValue::from_value(blob.to_value()?)?))
        };
        if join.map_or(Ok(true), complete)? {
            found.push(node.into());
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

fn dispatched(packet: &Value) -> Option<&str> {
    match packet {
        Value::Ext(ext) => match &**ext {
            Ext::Send(packet) => Some(&packet.node),
            _ => None,
        },
        _ => None,
    }
}

/// The tasks that have stored something, in the order of their paths.
fn tasks(writes: &[PendingWrite]) -> Result<Vec<(TaskId, TaskSeen)>, Error> {
    let mut found: Vec<(TaskId, TaskSeen)> = Vec::new();
    let mut places: BTreeMap<TaskId, usize> = BTreeMap::new();
    for write in writes.iter().filter(|write| !write.task.is_reserved()) {
        let at = *places.entry(write.task).or_insert_with(|| {
            let seen = TaskSeen { path: write.path.clone(), ..TaskSeen::default() };
            found.push((write.task, seen));
            found.len() - 1
        });
        let Some((_, task)) = found.get_mut(at) else { continue };
        match &*write.channel {
            "__error__" => task.has_failed = true,
            "__error_source_node__" => task.is_handled = true,
            "__interrupt__" => task.questions = Interrupt::list_from(&write.value.to_value()?)?,
            "__resume__" => {
                task.answers = match write.value.to_value()? {
                    Value::List(answers) => answers,
                    answer => vec![answer],
                };
            }
            _ if write.index >= 0 => task.is_finished = true,
            _ => {}
        }
    }
    Ok(found)
}

/// Whether this is the path of a call that a task made.
fn is_call(path: &str) -> bool {
    path.trim_start_matches('~')
        .strip_prefix("__pregel_push, ")
        .is_some_and(|at| at.starts_with('~'))
}

/// The namespace of a task of an outermost graph; `None` for calls.
fn namespace(task: TaskId, path: &str, packets: Option<&[Value]>) -> Option<String> {
    let bare = path.trim_start_matches('~');
    let node = match bare.strip_prefix("__pregel_pull, ") {
        Some(rest) => rest.split(", ").next()?,
        None => {
            let nth = bare.strip_prefix("__pregel_push, ")?.split(", ").next()?;
            dispatched(packets?.get(nth.parse::<usize>().ok()?)?)?
        }
    };
    Some(format!("{node}:{task}"))
}
