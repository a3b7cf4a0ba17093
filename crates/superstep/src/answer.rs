//! Answering a question without the graph that asked it.

mod schema;

use superstep_checkpoint::{AnyCheckpointer, Blob, Interrupt, InterruptId, TaskWrites, Value};

use crate::engine::OpenThread;
use crate::engine::names::RESUME;
use crate::error::RunError;

/// Stores the answer to a question that waits on a thread. Nothing runs: whoever runs the graph next with no input takes the
/// answer up. If the run that asked is still alive, it goes on with the answer when its superstep stops.
///
/// The graph is not needed, so a program that only shows questions can answer them. Without `id`, the one question that is
/// open is answered. Returns the question.
///
/// ```
/// use superstep::checkpoint::AnyCheckpointer;
/// use superstep::prelude::*;
/// # #[derive(State, Clone, Default)]
/// # struct Essay { approved: bool }
/// # async fn review(task: Task) -> EssayUpdate {
/// #     Essay::update().approved(task.interrupt::<bool>("approve?").await)
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// # let app = StateGraph::<Essay>::new().add_node("review", review).add_edge(START, "review").compile()?;
/// let saver = AnyCheckpointer::new(MemorySaver::new());
/// let thread = app.with_any_checkpointer(saver.clone()).thread("essay-1");
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
/// refused to whoever runs the graph, and the question is open again.
///
/// # Errors
/// - [`RunError::Resume`] if the thread waits for no such answer; nothing was stored.
/// - [`RunError::Conflict`] if somebody else answered, or took the thread up, at the same time; nothing was stored.
/// - The checkpointer failed.
pub async fn answer(
    saver: &AnyCheckpointer,
    thread: &str,
    id: Option<&InterruptId>,
    value: impl Into<Value>,
) -> Result<Interrupt, RunError> {
    let value = value.into();
    let Some(head) = saver.get(thread, "", None).await? else {
        let message = format!("there is no thread `{thread}`");
        return Err(RunError::Resume { message, pending: Vec::new() });
    };
    let open = OpenThread::new(&head)?;
    let pending = head.open_questions()?;
    let refuse = |message: String| RunError::Resume { message, pending: pending.clone() };
    let question = choose(&pending, id).map_err(refuse)?.clone();
    if let Some(schema) = &question.response_schema {
        schema::check(schema, &value).map_err(|why| {
            let id = &question.id;
            refuse(format!("the answer does not fit the schema of question `{id}`: {why}"))
        })?;
    }
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

fn choose<'a>(pending: &'a [Interrupt], id: Option<&InterruptId>) -> Result<&'a Interrupt, String> {
    let ids = || {
        let ids: Vec<_> = pending.iter().map(|question| format!("`{}`", question.id)).collect();
        ids.join(", ")
    };
    match (id, pending) {
        (_, []) => Err("no question is open".to_owned()),
        (None, [one]) => Ok(one),
        (None, several) => {
            Err(format!("{} questions are open; say which by id: {}", several.len(), ids()))
        }
        (Some(id), _) => pending
            .iter()
            .find(|question| question.id == *id)
            .ok_or_else(|| format!("no open question has the id `{id}`; open are: {}", ids())),
    }
}
