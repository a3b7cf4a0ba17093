//! Answers to the questions of a thread.

use std::collections::HashSet;

use serde_json::Value as Json;
use superstep::checkpoint::{Interrupt, Source};
use superstep::{AnyGraph, AnyThread, RawSnapshot, Request};

use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::store::ThreadStatus;
use crate::tenant::id_of;
use crate::wire::Object;

/// How many checkpoints are looked at to find out whether a question was asked before.
const LOOK_BACK: usize = 50;

/// Answers by the ids of their questions; nothing if this is the answer to the one question that is open.
fn by_id(resume: &Json) -> Option<&Object> {
    let is_id = |key: &String| key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit());
    resume.as_object().filter(|answers| answers.keys().all(is_id))
}

/// What people are asked. A task that sleeps is no question.
fn questions(state: &RawSnapshot) -> Vec<&Interrupt> {
    state.interrupts.iter().filter(|asked| !asked.is_sleep()).collect()
}

fn ids(state: &RawSnapshot) -> HashSet<&str> {
    questions(state).into_iter().map(|asked| asked.id.as_str()).collect()
}

/// Takes the answers out of a request that no question waits for: as in the reference, they change nothing.
///
/// Returns an answer that is given later: a client has changed the state while a question was open, so the question is asked
/// again on the new state, and the answer is for that one.
pub(super) async fn keep_expected(thread: &AnyThread, request: &mut Request) -> Option<Json> {
    let command = request.command.as_mut()?.as_object_mut()?;
    let resume = command.get("resume").filter(|resume| !resume.is_null())?;
    // If there is no state, the run itself says what is wrong.
    let state = thread.state(true).await.ok()?;
    let source = state.metadata.as_ref()?.source;
    let open = ids(&state);
    let kept = match by_id(resume) {
        Some(answers) => {
            let kept = answers.iter().filter(|(id, _)| open.contains(id.as_str()));
            let kept: Object = kept.map(|(id, answer)| (id.clone(), answer.clone())).collect();
            (!kept.is_empty()).then_some(Json::Object(kept))
        }
        None if open.is_empty() => None,
        None => Some(resume.clone()),
    };
    let changed = matches!(source, Source::Update | Source::Fork) && !state.next.is_empty();
    let later = (kept.is_none() && changed && by_id(resume).is_none()).then(|| resume.clone());
    match kept {
        Some(kept) => command.insert("resume".to_owned(), kept),
        None => command.remove("resume"),
    };
    let says_nothing = |part: &Json| part.is_null() || part.as_array().is_some_and(Vec::is_empty);
    if command.iter().all(|(name, part)| name != "resume" && says_nothing(part)) {
        request.command = None;
        request.input = None;
    }
    later
}

/// Refuses answers that do not fit their questions, which stay open, and answers to questions that were answered before.
pub(super) async fn check(
    app: &App,
    graph: &AnyGraph,
    thread: &str,
    resume: Option<&Json>,
) -> ApiResult<()> {
    let Some(resume) = resume else { return Ok(()) };
    let known = app.store.thread(thread).await?;
    // What a run in progress will ask is not known yet.
    if known.is_none_or(|thread| thread.status == ThreadStatus::Busy) {
        return Ok(());
    }
    let thread = graph.thread(id_of(thread));
    let state = thread.state(true).await?;
    let answers = by_id(resume);
    let questions = questions(&state);
    for question in &questions {
        let answer = match answers {
            Some(answers) => answers.get(question.id.as_str()),
            None => Some(resume).filter(|_| questions.len() == 1),
        };
        if let Some(answer) = answer {
            superstep::check_answer(question, &answer.clone().into())
                .map_err(|error| ApiError::invalid(error.to_string()))?;
        }
    }
    let Some(answers) = answers.filter(|answers| !answers.is_empty()) else { return Ok(()) };
    let open = ids(&state);
    if answers.keys().any(|id| open.contains(id.as_str())) {
        return Ok(());
    }
    let history = thread.history(LOOK_BACK, None, Object::new()).await?;
    let asked = history.iter().flat_map(|state| &state.tasks).flat_map(|task| &task.interrupts);
    match asked.map(|asked| asked.id.as_str()).find(|id| answers.contains_key(*id)) {
        None => Ok(()),
        Some(id) => Err(ApiError::conflict(format!(
            "the question `{id}` was answered before; GET /threads/{}/state lists those that are open",
            thread.id()
        ))),
    }
}
