//! Answering a question without the graph that asked it.

// Stored data is untrusted.
#![cfg_attr(
    not(test),
    warn(clippy::arithmetic_side_effects, clippy::disallowed_methods, clippy::indexing_slicing)
)]

use std::time::SystemTime;

use serde::Serialize;
use superstep_checkpoint::{
    AnyCheckpointer, Blob, Error, Interrupt, InterruptId, Question, Stored, TaskWrites, Value,
    to_value,
};

use crate::engine::names::RESUME;
use crate::engine::{OpenThread, OwnAnswers, fits_question, is_due, too_late};
use crate::error::RunError;

/// Stores the answer to an open question of a thread. Nothing runs: the next run of the thread with
/// no input uses the answer. If the run that asked is still alive, it continues with the answer
/// when its superstep stops.
///
/// This does not need the graph, so a program that only shows questions can answer them. The
/// checkpointer is a reference to any checkpointer, or an [`AnyCheckpointer`]. Without `id`, the
/// one question that is open is answered. Returns the question.
///
/// ```
/// use superstep::prelude::*;
/// # #[derive(State, Clone, Default)]
/// # struct Essay { approved: bool }
/// # async fn review(task: Task) -> EssayUpdate {
/// #     Essay::update().approved(task.interrupt::<bool>("approve?").await)
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// # let app = StateGraph::<Essay>::new().add_node("review", review).add_edge(START, "review").compile()?;
/// let checkpointer = MemorySaver::new();
/// let thread = app.with_checkpointer(checkpointer.clone()).thread("essay-1");
/// thread.invoke(Essay::update()).await?;
///
/// superstep::answer(&checkpointer, "essay-1", None, true).await?;
/// let essay = thread.invoke(()).await?.done().expect("nothing else is asked");
/// assert!(essay.approved);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// The type that the node wants is not known here. If the question came with a schema, the answer
/// is checked against it as far as `type`, `required`, `properties`, `items`, `enum`, `const` and
/// alternatives go. If the node then cannot read the answer, the run fails with
/// [`RunError::Resume`] and the question is open again. Until a run takes it, [`replace_answer`]
/// changes it.
///
/// # Errors
/// - [`RunError::Resume`] if the question is not open, or the answer cannot be serialized; nothing
///   was stored.
/// - [`RunError::Conflict`] if another process answered or ran the thread at the same time; nothing
///   was stored.
/// - The checkpointer failed.
pub async fn answer(
    checkpointer: impl Into<AnyCheckpointer>,
    thread: &str,
    id: Option<&InterruptId>,
    answer: impl Serialize,
) -> Result<Interrupt, RunError> {
    let asked = Asked::on(checkpointer.into(), thread, to_value(&answer)).await?;
    let store = asked.store(&asked.pending, id, "question is open", |open, question| {
        let mut own = open.own(question);
        if let Some(own) = &mut own {
            own.answers.push(asked.answer.clone());
        }
        Ok(own)
    });
    store.await
}

/// Replaces an answer that [`answer`] stored, as long as no run has used it.
///
/// Without `id`, the only stored answer is replaced. Returns the question.
///
/// ```
/// # use superstep::checkpoint::AnyCheckpointer;
/// # use superstep::prelude::*;
/// # #[derive(State, Clone, Default)]
/// # struct Essay { approved: bool }
/// # async fn review(task: Task) -> EssayUpdate {
/// #     Essay::update().approved(task.interrupt::<bool>("approve?").await)
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// # let app = StateGraph::<Essay>::new().add_node("review", review).add_edge(START, "review").compile()?;
/// # let checkpointer = AnyCheckpointer::new(MemorySaver::new());
/// # let thread = app.with_any_checkpointer(checkpointer.clone()).thread("essay-1");
/// # thread.invoke(Essay::update()).await?;
/// superstep::answer(&checkpointer, "essay-1", None, false).await?;
/// superstep::replace_answer(&checkpointer, "essay-1", None, true).await?;
/// assert!(thread.invoke(()).await?.done().expect("nothing else is asked").approved);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// LangGraph does not record that it has used an answer. Do not replace answers while a LangGraph
/// process may be running the thread.
///
/// # Errors
/// - [`RunError::Resume`] if no such answer is stored, a run has used it, or the new one does not
///   fit the schema of the question; nothing was changed.
/// - [`RunError::Conflict`] if another process answered or ran the thread at the same time; nothing
///   was changed.
/// - The checkpointer failed.
pub async fn replace_answer(
    checkpointer: impl Into<AnyCheckpointer>,
    thread: &str,
    id: Option<&InterruptId>,
    answer: impl Serialize,
) -> Result<Interrupt, RunError> {
    let asked = Asked::on(checkpointer.into(), thread, to_value(&answer)).await?;
    let open = OpenThread::new(&asked.head)?;
    let mut left = asked.head.questions()?;
    left.retain(|question| open.is_left(&question.interrupt.id));
    let questions: Vec<_> = left.iter().map(|question| question.interrupt.clone()).collect();
    let what = "answer was left that no run has taken";
    let store = asked.store(&questions, id, what, |_, question| {
        left.iter()
            .find(|left| left.interrupt.id == *question)
            .map_or(Ok(None), |left| asked.replaced(left))
    });
    store.await
}

/// A thread, the questions that are open on it, and an answer to one of them.
struct Asked {
    checkpointer: AnyCheckpointer,
    head: Stored,
    pending: Vec<Interrupt>,
    answer: Value,
}

impl Asked {
    async fn on(
        checkpointer: AnyCheckpointer,
        thread: &str,
        answer: Result<Value, Error>,
    ) -> Result<Self, RunError> {
        let refused = |message| RunError::Resume { message, pending: Vec::new() };
        let answer =
            answer.map_err(|error| refused(format!("the answer cannot be serialized: {error}")))?;
        let head = checkpointer.get(thread, "", None).await?;
        let head = head.ok_or_else(|| refused(format!("there is no thread `{thread}`")))?;
        Ok(Self { checkpointer, pending: head.open_questions()?, head, answer })
    }

    /// Stores the answer to one of `questions`, if the thread is still as it was read. `what` describes them in errors; `own`
    /// gives the answers of the task that asks, with this one.
    async fn store(
        &self,
        questions: &[Interrupt],
        id: Option<&InterruptId>,
        what: &str,
        own: impl FnOnce(&OpenThread<'_>, &InterruptId) -> Result<Option<OwnAnswers>, Error>,
    ) -> Result<Interrupt, RunError> {
        let refused = |message| RunError::Resume { message, pending: self.pending.clone() };
        let open = OpenThread::new(&self.head)?;
        let question = choose(questions, id, what).map_err(refused)?;
        in_time(question).map_err(refused)?;
        fits_question(question, &self.answer).map_err(refused)?;
        let mut writes = vec![open.claim_with(&question.id, &self.answer)?];
        // LangGraph does not know claims and reads the answer here.
        if let Some(own) = own(&open, &question.id)? {
            let answers = Blob::from_value(&Value::List(own.answers))?;
            let writer = TaskWrites::new(own.task, own.path, vec![(RESUME.into(), answers)]);
            writes.push(writer.expecting(RESUME, own.stored));
        }
        let Stored { thread, checkpoint, .. } = &self.head;
        self.checkpointer.put_writes(thread, "", checkpoint.id, writes).await?;
        Ok(question.clone())
    }

    /// The answers of the task that asked `left`, with the new answer in place of the old one. `None` if the answer is not
    /// among them.
    fn replaced(&self, left: &Question) -> Result<Option<OwnAnswers>, Error> {
        let Some(position) = left.position else { return Ok(None) };
        let mut writes = self.head.writes.iter();
        let stored = writes.find(|write| write.task == left.task && &*write.channel == RESUME);
        let Some(stored) = stored else { return Ok(None) };
        let Value::List(mut answers) = stored.value.to_value()? else { return Ok(None) };
        let Some(answer) = answers.get_mut(position) else { return Ok(None) };
        *answer = self.answer.clone();
        let (task, path) = (stored.task, stored.path.clone());
        Ok(Some(OwnAnswers { task, path, answers, stored: Some(stored.value.clone()) }))
    }
}

/// Checks an answer against the schema that its question came with, as [`answer`] does. Nothing is stored.
///
/// # Errors
/// [`RunError::Resume`] if the answer does not fit.
pub fn check_answer(question: &Interrupt, answer: &Value) -> Result<(), RunError> {
    fits_question(question, answer)
        .map_err(|message| RunError::Resume { message, pending: Vec::new() })
}

fn in_time(question: &Interrupt) -> Result<(), String> {
    if is_due(question, SystemTime::now()) { Err(too_late(&question.id)) } else { Ok(()) }
}

/// Returns the question with this id, or the only one. `what` describes the questions in the error
/// message.
fn choose<'a>(
    questions: &'a [Interrupt],
    id: Option<&InterruptId>,
    what: &str,
) -> Result<&'a Interrupt, String> {
    let ids = || {
        let ids: Vec<_> = questions.iter().map(|question| format!("`{}`", question.id)).collect();
        ids.join(", ")
    };
    let mut people = questions.iter().filter(|question| !question.is_sleep());
    match (id, questions) {
        (_, []) => Err(format!("no {what}")),
        (None, [one]) => Ok(one),
        (None, several) => {
            // Tasks that sleep ask nobody.
            if let (Some(one), None) = (people.next(), people.next()) {
                return Ok(one);
            }
            Err(format!("more than one {what} ({}); say which by id: {}", several.len(), ids()))
        }
        (Some(id), _) => questions
            .iter()
            .find(|question| question.id == *id)
            .ok_or_else(|| format!("no {what} with the id `{id}`; choose from {}", ids())),
    }
}
