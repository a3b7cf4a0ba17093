//! Answering a question without the graph that asked it.

mod schema;

use serde::Serialize;
use superstep_checkpoint::{
    AnyCheckpointer, Blob, Interrupt, InterruptId, TaskWrites, Value, to_value,
};

use crate::engine::OpenThread;
use crate::engine::names::RESUME;
use crate::error::RunError;

/// Stores the answer to a question that waits on a thread. Nothing runs: the next run of the thread with no input uses the
/// answer. If the run that asked is still alive, it continues with the answer when its superstep stops.
///
/// The graph is not needed, so a program that only shows questions can answer them. The saver is a reference to any
/// saver, or an [`AnyCheckpointer`]. Without `id`, the one question that is open is answered. Returns the question.
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
/// let saver = MemorySaver::new();
/// let thread = app.with_checkpointer(saver.clone()).thread("essay-1");
/// thread.invoke(Essay::update()).await?;
///
/// superstep::answer(&saver, "essay-1", None, true).await?;
/// let essay = thread.invoke(()).await?.done().expect("nothing else is asked");
/// assert!(essay.approved);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// The type that the node wants is not known here. If the question came with a schema, the answer is checked against it as far as
/// `type`, `required`, `properties`, `items`, `enum`, `const` and alternatives go. An answer that the node then cannot take is
/// refused to whoever runs the graph, and the question is open again. Until a run takes it, [`replace_answer`] changes it.
///
/// # Errors
/// - [`RunError::Resume`] if the thread waits for no such answer, or it cannot be made data; nothing was stored.
/// - [`RunError::Conflict`] if somebody else answered, or took the thread up, at the same time; nothing was stored.
/// - The checkpointer failed.
pub async fn answer(
    saver: impl Into<AnyCheckpointer>,
    thread: &str,
    id: Option<&InterruptId>,
    answer: impl Serialize,
) -> Result<Interrupt, RunError> {
    let (saver, value) = (saver.into(), data(answer)?);
    let Some(head) = saver.get(thread, "", None).await? else {
        return Err(no_thread(thread));
    };
    let open = OpenThread::new(&head)?;
    let pending = head.open_questions()?;
    let refuse = |message: String| RunError::Resume { message, pending: pending.clone() };
    let question = choose(&pending, id, "question is open").map_err(refuse)?.clone();
    check(&question, &value).map_err(refuse)?;
    let mut writes = vec![open.claim_with(&question.id, &value)?];
    if let Some(own) = open.own(&question.id) {
        // The other engine knows nothing of claims, and finds the answer here.
        let mut answers = own.answers;
        answers.push(value);
        let answers = Blob::from_value(&Value::List(answers))?;
        let writer = TaskWrites::new(own.task, own.path, vec![(RESUME.into(), answers)]);
        writes.push(writer.expecting(RESUME, own.stored));
    }
    saver.put_writes(thread, "", head.checkpoint.id, writes).await?;
    Ok(question)
}

/// Replaces an answer that [`answer`] left, as long as no run has taken it.
///
/// Without `id`, the one answer that was left is replaced. Returns the question.
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
/// # let saver = AnyCheckpointer::new(MemorySaver::new());
/// # let thread = app.with_any_checkpointer(saver.clone()).thread("essay-1");
/// # thread.invoke(Essay::update()).await?;
/// superstep::answer(&saver, "essay-1", None, false).await?;
/// superstep::replace_answer(&saver, "essay-1", None, true).await?;
/// assert!(thread.invoke(()).await?.done().expect("nothing else is asked").approved);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// LangGraph does not say that it has taken an answer. If its process may be running the thread, do not replace any.
///
/// # Errors
/// - [`RunError::Resume`] if no such answer was left, a run has taken it, or the new one does not fit the schema of the question;
///   nothing was changed.
/// - [`RunError::Conflict`] if somebody else answered, or took the thread up, at the same time; nothing was changed.
/// - The checkpointer failed.
pub async fn replace_answer(
    saver: impl Into<AnyCheckpointer>,
    thread: &str,
    id: Option<&InterruptId>,
    answer: impl Serialize,
) -> Result<Interrupt, RunError> {
    let (saver, value) = (saver.into(), data(answer)?);
    let Some(head) = saver.get(thread, "", None).await? else {
        return Err(no_thread(thread));
    };
    let open = OpenThread::new(&head)?;
    let pending = head.open_questions()?;
    let refuse = |message: String| RunError::Resume { message, pending: pending.clone() };
    let mut left = head.questions()?;
    left.retain(|question| open.is_left(&question.interrupt.id));
    let asked: Vec<Interrupt> = left.iter().map(|question| question.interrupt.clone()).collect();
    let question = choose(&asked, id, "answer was left that no run has taken").map_err(refuse)?;
    check(question, &value).map_err(refuse)?;
    let mut writes = vec![open.claim_with(&question.id, &value)?];
    let answered = left.iter().find(|left| left.interrupt.id == question.id);
    if let Some((answered, position)) = answered.and_then(|left| Some((left, left.position?))) {
        let mut own = head.writes.iter();
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
    saver.put_writes(thread, "", head.checkpoint.id, writes).await?;
    Ok(question.clone())
}

fn data(answer: impl Serialize) -> Result<Value, RunError> {
    to_value(&answer).map_err(|error| {
        let message = format!("the answer cannot be made data: {error}");
        RunError::Resume { message, pending: Vec::new() }
    })
}

fn no_thread(thread: &str) -> RunError {
    let message = format!("there is no thread `{thread}`");
    RunError::Resume { message, pending: Vec::new() }
}

fn check(question: &Interrupt, value: &Value) -> Result<(), String> {
    let Some(schema) = &question.response_schema else { return Ok(()) };
    schema::check(schema, value).map_err(|why| {
        let id = &question.id;
        format!("the answer does not fit the schema of question `{id}`: {why}")
    })
}

/// Chooses a question by its id, or the only one. `what` names what all of them have in common.
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
