//! Answering a question without the graph that asked it.

mod schema;

use serde::Serialize;
use superstep_checkpoint::{
    AnyCheckpointer, Blob, Interrupt, InterruptId, Stored, TaskWrites, Value, to_value,
};

use crate::engine::OpenThread;
use crate::engine::names::RESUME;
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
    let (checkpointer, value) = (checkpointer.into(), data(answer)?);
    let asked = Asked::on(&checkpointer, thread).await?;
    let open = asked.open()?;
    let question = choose(&asked.pending, id, "question is open");
    let question = question.map_err(|message| asked.refuse(message))?.clone();
    check(&question, &value).map_err(|message| asked.refuse(message))?;
    let mut writes = vec![open.claim_with(&question.id, &value)?];
    if let Some(own) = open.own(&question.id) {
        // LangGraph does not know claims and reads the answer here.
        let mut answers = own.answers;
        answers.push(value);
        let answers = Blob::from_value(&Value::List(answers))?;
        let writer = TaskWrites::new(own.task, own.path, vec![(RESUME.into(), answers)]);
        writes.push(writer.expecting(RESUME, own.stored));
    }
    checkpointer.put_writes(thread, "", asked.head.checkpoint.id, writes).await?;
    Ok(question)
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
    let (checkpointer, value) = (checkpointer.into(), data(answer)?);
    let asked = Asked::on(&checkpointer, thread).await?;
    let open = asked.open()?;
    let mut left = asked.head.questions()?;
    left.retain(|question| open.is_left(&question.interrupt.id));
    let answered: Vec<Interrupt> = left.iter().map(|question| question.interrupt.clone()).collect();
    let question = choose(&answered, id, "answer was left that no run has taken");
    let question = question.map_err(|message| asked.refuse(message))?;
    check(question, &value).map_err(|message| asked.refuse(message))?;
    let mut writes = vec![open.claim_with(&question.id, &value)?];
    let answered = left.iter().find(|left| left.interrupt.id == question.id);
    if let Some((answered, position)) = answered.and_then(|left| Some((left, left.position?))) {
        let mut own = asked.head.writes.iter();
        let own = own.find(|write| write.task == answered.task && &*write.channel == RESUME);
        if let Some(own) = own
            && let Value::List(mut answers) = own.value.to_value()?
            && let Some(answer) = answers.get_mut(position)
        {
            *answer = value;
            let answers = Blob::from_value(&Value::List(answers))?;
            let writer =
                TaskWrites::new(own.task, own.path.clone(), vec![(RESUME.into(), answers)]);
            writes.push(writer.expecting(RESUME, Some(own.value.clone())));
        }
    }
    checkpointer.put_writes(thread, "", asked.head.checkpoint.id, writes).await?;
    Ok(question.clone())
}

fn data(answer: impl Serialize) -> Result<Value, RunError> {
    to_value(&answer).map_err(|error| {
        let message = format!("the answer cannot be serialized: {error}");
        RunError::Resume { message, pending: Vec::new() }
    })
}

/// A thread, and the questions that are open on it.
struct Asked {
    head: Stored,
    pending: Vec<Interrupt>,
}

impl Asked {
    async fn on(checkpointer: &AnyCheckpointer, thread: &str) -> Result<Self, RunError> {
        let head = checkpointer.get(thread, "", None).await?;
        let head = head.ok_or_else(|| RunError::Resume {
            message: format!("there is no thread `{thread}`"),
            pending: Vec::new(),
        })?;
        Ok(Self { pending: head.open_questions()?, head })
    }

    fn open(&self) -> Result<OpenThread<'_>, RunError> {
        Ok(OpenThread::new(&self.head)?)
    }

    fn refuse(&self, message: String) -> RunError {
        RunError::Resume { message, pending: self.pending.clone() }
    }
}

/// Checks an answer against the schema that its question came with, as [`answer`] does. Nothing is stored.
///
/// # Errors
/// [`RunError::Resume`] if the answer does not fit.
pub fn check_answer(question: &Interrupt, answer: &Value) -> Result<(), RunError> {
    check(question, answer).map_err(|message| RunError::Resume { message, pending: Vec::new() })
}

fn check(question: &Interrupt, value: &Value) -> Result<(), String> {
    let Some(schema) = &question.response_schema else { return Ok(()) };
    schema::check(schema, value).map_err(|why| {
        let id = &question.id;
        format!("the answer does not fit the schema of question `{id}`: {why}")
    })
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
    match (id, questions) {
        (_, []) => Err(format!("no {what}")),
        (None, [one]) => Ok(one),
        (None, several) => {
            Err(format!("more than one {what} ({}); say which by id: {}", several.len(), ids()))
        }
        (Some(id), _) => questions
            .iter()
            .find(|question| question.id == *id)
            .ok_or_else(|| format!("no {what} with the id `{id}`; choose from {}", ids())),
    }
}
