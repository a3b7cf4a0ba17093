//! Open questions across threads, and who answered which.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::operation::{Action, Limit, Operation, Resource, get, post};
use super::{Answer, State, json};
use crate::access::Caller;
use crate::app::App;
use crate::crons::parse_time;
use crate::error::{ApiError, ApiResult};
use crate::store::{InboxPlace, Thread, contains_all};
use crate::tenant;
use crate::time::Micros;
use crate::wire::{
    AnswerObject, Body, Object, Path, Query, QuestionObject, answer_json, limit, or_default,
    question_json,
};

/// How many threads are read at a time.
const THREADS_READ: usize = 100;

pub(super) fn operations() -> Vec<Operation> {
    let kind = Resource::Threads;
    vec![
        post("/inbox/search", kind, Action::Search, search)
            .summary("List open questions of all threads, those that have waited longest first")
            .json::<Found>()
            .refuses([404]),
        get("/threads/{thread_id}/answers", kind, Action::Read, answers)
            .summary("List the answers that were given on a thread, newest first")
            .query::<Limit>("limit", "How many answers; 100 if nothing is said")
            .json::<Vec<AnswerObject<'static>>>()
            .refuses([404]),
    ]
}

#[derive(Default, Deserialize, JsonSchema)]
#[schemars(rename = "InboxSearch")]
pub(super) struct Search {
    /// Only questions of this graph.
    graph_id: Option<String>,
    /// Only questions of threads whose last run was of this assistant: its id, or the name of its graph.
    assistant_id: Option<String>,
    /// Only questions of this thread.
    thread_id: Option<String>,
    /// Parts that the metadata of the thread must contain.
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Object>")]
    metadata: Object,
    /// Only questions that the clock answers before this time.
    due_before: Option<String>,
    /// Only questions with this text in them, in upper or lower case.
    text: Option<String>,
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<i64>,
    /// Go on after an earlier page: its `next`.
    cursor: Option<String>,
}

/// Open questions, and how to go on.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "InboxFound")]
struct Found {
    questions: Vec<QuestionObject<'static>>,
    /// The cursor of the next page; null if there is none.
    next: Option<String>,
}

/// A place in the list: after this question of this thread.
struct Cursor {
    at: Micros,
    thread: String,
    question: String,
}

impl Cursor {
    fn read(caller: &Caller, text: &str) -> ApiResult<Self> {
        let parts: Vec<_> = text.split('_').collect();
        let [at, thread, question] = &*parts else { return Err(bad_cursor(text)) };
        let at = Micros(at.parse().map_err(|_| bad_cursor(text))?);
        let thread = caller.thread(thread).map_err(|_| bad_cursor(text))?;
        Ok(Self { at, thread, question: (*question).to_owned() })
    }

    fn write(thread: &Thread, question: &str) -> String {
        format!("{}_{}_{question}", thread.state_updated_at.0, thread.id())
    }
}

fn bad_cursor(text: &str) -> ApiError {
    ApiError::invalid(format!("`cursor` is `{text}`, which is not the `next` of a page"))
}

/// Whether a text occurs in the strings of a value.
fn has_text(value: &Json, text: &str) -> bool {
    match value {
        Json::String(string) => string.to_lowercase().contains(text),
        Json::Array(values) => values.iter().any(|value| has_text(value, text)),
        Json::Object(values) => values.values().any(|value| has_text(value, text)),
        _ => false,
    }
}

/// What a question must be like.
struct Wanted {
    metadata: Object,
    graph: Option<String>,
    assistant: Option<String>,
    thread: Option<String>,
    due: Option<Micros>,
    text: Option<String>,
}

impl Wanted {
    async fn read(app: &App, caller: &Caller, body: &Search) -> ApiResult<Self> {
        let assistant = match &body.assistant_id {
            Some(id) => {
                let known = app.assistant(caller, id).await?;
                Some(tenant::id_of(&known.assistant_id).to_owned())
            }
            None => None,
        };
        let due = body.due_before.as_deref().map(|due| parse_time("due_before", due));
        Ok(Self {
            metadata: body.metadata.clone(),
            graph: body.graph_id.clone(),
            assistant,
            thread: body.thread_id.as_deref().map(|id| caller.thread(id)).transpose()?,
            due: due.transpose()?,
            text: body.text.as_deref().map(str::to_lowercase),
        })
    }

    fn wants_thread(&self, caller: &Caller, thread: &Thread) -> bool {
        let is = |name: &str, wanted: &Option<String>| {
            wanted.as_deref().is_none_or(|wanted| {
                thread.metadata.get(name).and_then(Json::as_str) == Some(wanted)
            })
        };
        caller.sees(&thread.metadata)
            && is("graph_id", &self.graph)
            && is("assistant_id", &self.assistant)
            && self.thread.as_ref().is_none_or(|wanted| *wanted == thread.thread_id)
            && contains_all(&Json::Object(thread.metadata.clone()), &self.metadata)
    }

    fn wants(&self, asked: &Json) -> bool {
        // Nobody is asked by a task that sleeps.
        if asked["sleep"] == true {
            return false;
        }
        let is_due = |before: &Micros| {
            let due = asked["due"].as_str().and_then(|due| parse_time("due", due).ok());
            due.is_some_and(|due| due < *before)
        };
        self.due.as_ref().is_none_or(is_due)
            && self.text.as_ref().is_none_or(|text| has_text(&asked["value"], text))
    }
}

pub(super) async fn search(state: State, caller: Caller, Body(body): Body<Search>) -> Answer {
    let limit = limit(body.limit, 10)?;
    let wanted = Wanted::read(&state, &caller, &body).await?;
    let cursor = body.cursor.as_deref().map(|text| Cursor::read(&caller, text)).transpose()?;
    let mut skip_to = cursor.map(|cursor| (cursor.at, cursor.thread, cursor.question));
    // The thread of the cursor is looked at again: it may have further questions.
    let mut place = skip_to.as_ref().map(|(at, thread, _)| InboxPlace {
        state_updated_at: Micros(at.0.saturating_sub(1)),
        thread_id: thread.clone(),
    });
    let mut found: Vec<(String, Json)> = Vec::new();
    loop {
        let threads = state.store.waiting_threads(caller.tenant(), place, THREADS_READ).await?;
        for thread in &threads {
            let here = (thread.state_updated_at, &thread.thread_id);
            let mut after = match &skip_to {
                Some((at, known, _)) if here < (*at, known) => continue,
                Some((at, known, question))
                    if here == (*at, known)
                        // It may have been answered since.
                        && questions(thread).any(|(_, asked)| asked["id"] == **question) =>
                {
                    Some(question.clone())
                }
                _ => None,
            };
            if !wanted.wants_thread(&caller, thread) {
                continue;
            }
            for (task, asked) in questions(thread) {
                if let Some(last) = &after {
                    if asked["id"].as_str() == Some(last) {
                        after = None;
                    }
                    continue;
                }
                if !wanted.wants(asked) {
                    continue;
                }
                if found.len() == limit {
                    let next = found.last().map(|(cursor, _)| cursor.clone());
                    return Ok(page(found, next));
                }
                let id = asked["id"].as_str().unwrap_or_default();
                found.push((Cursor::write(thread, id), question_json(thread, task, asked)));
            }
        }
        match threads.last() {
            Some(last) if threads.len() == THREADS_READ => {
                skip_to = None;
                place = Some(InboxPlace {
                    state_updated_at: last.state_updated_at,
                    thread_id: last.thread_id.clone(),
                });
            }
            _ => return Ok(page(found, None)),
        }
    }
}

fn page(found: Vec<(String, Json)>, next: Option<String>) -> axum::response::Response {
    let questions: Vec<_> = found.into_iter().map(|(_, question)| question).collect();
    json(json!({ "questions": questions, "next": next }))
}

/// The open questions of a thread, with the tasks that asked them.
fn questions(thread: &Thread) -> impl Iterator<Item = (&str, &Json)> {
    thread.interrupts.iter().flat_map(|(task, asked)| {
        asked.as_array().into_iter().flatten().map(move |asked| (&**task, asked))
    })
}

pub(super) async fn answers(
    state: State,
    caller: Caller,
    Path(id): Path<String>,
    query: Query,
) -> Answer {
    let key = caller.thread(&id)?;
    let limit = limit(query.number("limit")?, 100)?;
    state.thread(&caller, &key).await?;
    let answers = state.store.answers(&key, limit).await?;
    Ok(json(answers.iter().map(answer_json).collect()))
}
