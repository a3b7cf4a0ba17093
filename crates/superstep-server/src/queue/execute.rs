//! Driving one run, and writing down how it ended.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use superstep::checkpoint::{AnyCheckpointer, Interrupt, MemorySaver};
use superstep::{
    AnyGraph, AnyThread, BreakAt, Durability, Mode, Outcome, RawSnapshot, Request, RunError,
    SubgraphState,
};

use super::answers::keep_expected;
use super::drive::{Tell, drive};
use super::takeover::{Told, catch_up};
use crate::app::{App, LOST, SHUTDOWN, cancel_reason};
use crate::events::{Active, Feed};
use crate::protocol::{MODES, Publisher, publish_failure};
use crate::store::records::ThreadEnd;
use crate::store::{
    Cancel, Claimed, Ended, News, OnCompletion, Run, RunStatus, StoreError, ThreadStatus,
};
use crate::tenant::tenant_of;
use crate::time::Micros;
use crate::wire::{CheckpointArg, Frames, Object, as_object, engine_modes, interrupts_json};

/// How long a worker waits when the store does not answer.
const STORE_DOWN: Duration = Duration::from_secs(1);

/// Drives a run to its end.
pub(super) async fn execute(app: Arc<App>, claimed: Claimed) {
    let Claimed { run, again, .. } = claimed;
    let active = app.active(&run);
    if let Some(action) = run.cancel {
        // It was cancelled, and its process died before it had stopped.
        active.control.stop_now(cancel_reason(action));
    }
    let mut publisher = None;
    let ended = match attempt(&app, &run, &active, again, &mut publisher).await {
        Ok(ended) => ended,
        Err(StoreError::Superseded) => return let_go(&app, &run, &active, publisher.as_ref()),
        Err(error) => {
            tracing::error!(run = %run.run_id, %error, "the events of a run could not be stored");
            Ended::PutBack
        }
    };
    let told_of = match &mut publisher {
        Some(publisher) => publisher.end(&ended).await.unwrap_or_else(|error| {
            tracing::error!(run = %run.run_id, %error, "the session of a thread is not told of the end of a run");
            Vec::new()
        }),
        None => Vec::new(),
    };
    let result = result_of(&ended);
    // Readers learn of the end of a run after it is stored.
    let told = loop {
        match app.store.finish(&run, ended.clone(), told_of.clone()).await {
            Ok(true) => {
                count(&app, &ended);
                if let Some(publisher) = &publisher {
                    publisher.ended(told_of);
                }
                break result;
            }
            Ok(false) if is_elsewhere(&app, &run).await => {
                return let_go(&app, &run, &active, publisher.as_ref());
            }
            Ok(false) => {
                publisher.iter().for_each(Publisher::give_up);
                tracing::warn!(run = %run.run_id, "a run was deleted, or ended by another process");
                break Some(json!({}));
            }
            Err(error) => {
                tracing::error!(run = %run.run_id, %error, "the end of a run cannot be stored");
                if app.is_stopping() {
                    break None;
                }
                tokio::time::sleep(STORE_DOWN).await;
            }
        }
    };
    active.feed.end(told);
    app.hub.remove(&run.run_id);
    if app.store.has_others() {
        app.store.tell(News::Run(run.run_id.clone()));
    }
    app.webhook_wake.notify_one();
    app.timer_wake.notify_one();
    // The next run of the thread may be ready now.
    app.run_is_ready();
}

/// Whether another process has taken over the run.
async fn is_elsewhere(app: &App, run: &Run) -> bool {
    let now = app.store.run(None, &run.run_id).await;
    now.is_ok_and(|now| now.is_some_and(|now| now.epoch != run.epoch || !now.status.is_over()))
}

/// Another process drives the run. What this one did since is refused by the store, and its readers are to come back.
fn let_go(app: &App, run: &Run, active: &Active, publisher: Option<&Publisher>) {
    publisher.into_iter().for_each(Publisher::give_up);
    tracing::warn!(run = %run.run_id, "another process has taken over a run");
    active.feed.end(None);
    app.hub.remove(&run.run_id);
}

fn count(app: &App, ended: &Ended) {
    match ended {
        Ended::Over { status, .. } => app.metrics.ended(*status),
        Ended::Deleted { .. } => app.metrics.deleted(),
        Ended::PutBack => {}
    }
}

/// Ends a run whose worker failed.
pub(super) async fn give_up(app: &App, run: &Run) {
    let error =
        json!({ "error": "InternalError", "message": "the server failed while it drove the run" });
    let end = thread_end(ThreadStatus::Error, Rest::default(), error.clone());
    let result = json!({ "__error__": error });
    let over = Ended::Over { status: RunStatus::Error, result: result.clone(), thread: end };
    let told = match app.store.finish(run, over.clone(), Vec::new()).await {
        Ok(true) => {
            count(app, &over);
            publish_failure(app, run, &over).await
        }
        Ok(false) => Ok(()),
        Err(error) => Err(error),
    };
    if let Err(error) = told {
        tracing::error!(run = %run.run_id, %error, "the end of a run could not be stored");
    }
    if let Some(active) = app.hub.remove(&run.run_id) {
        active.feed.end(result);
    }
}

fn result_of(ended: &Ended) -> Option<Json> {
    match ended {
        Ended::Over { result, .. } => Some(result.clone()),
        Ended::Deleted { result, .. } => Some(result.clone()),
        Ended::PutBack => None,
    }
}

/// One attempt of a run: its events, and how it is to be ended.
async fn attempt(
    app: &App,
    run: &Run,
    active: &Active,
    again: bool,
    publisher: &mut Option<Publisher>,
) -> Result<Ended, StoreError> {
    let Active { feed, control, .. } = active;
    feed.drive(run.epoch);
    if run.followed && app.store.has_others() {
        feed.store_all();
    }
    if again {
        feed.take_up().await?;
    }
    app.hub.started(run, feed);
    *publisher = Publisher::open(app, run).await?;
    feed.push("metadata", &json!({ "run_id": run.run_id, "attempt": run.attempt })).await?;
    let Some(graph) = app.graph_of(run.tenant(), &run.graph_id) else {
        let text = format!("the server no longer has the graph `{}`", run.graph_id);
        return fail(feed, run, None, &RunError::Invalid(text)).await;
    };
    // What a stateless run does is not kept, so it needs no place in the database.
    let graph = match run.stateless {
        Some(OnCompletion::Delete) => {
            graph.with_checkpointer(AnyCheckpointer::new(MemorySaver::new()))
        }
        _ => graph,
    };
    let latest = graph.thread(run.thread());
    let at = match at(run) {
        Ok(at) => at,
        Err(error) => return fail(feed, run, Some(&latest), &error).await,
    };
    let mut request = to_request(run);
    request.control = control.clone();
    let mut frames = Frames::new(run);
    let (mut taken_up, mut told) = (false, Told::default());
    if again {
        let state = latest.state(false).await.ok();
        let stored = state.as_ref().filter(|state| is_of_run(state, run));
        taken_up = stored.is_some() || state.as_ref().is_some_and(|state| is_answered(state, run));
        told = catch_up(feed, run, &latest, stored, &frames).await?;
    }
    // What an earlier attempt has stored is newer than where the run was to begin.
    let thread = at.filter(|_| !taken_up).map_or_else(|| latest.clone(), |at| latest.at(at));
    if taken_up {
        request.input = None;
        request.command = None;
    }
    // What an earlier attempt has answered for the clock is not due any more, and still to be done.
    request.wake &= !again;
    let later = keep_expected(&thread, &mut request).await;
    let mut tell = Tell { feed, frames: &mut frames, told, barriers: run.resumable(), publisher };
    let end = match drive(thread, request, later, &mut tell).await? {
        Ok(end) => end,
        Err(RunError::NotDue { .. }) => {
            feed.flush().await?;
            return Ok(rested(&latest).await);
        }
        Err(error) => return fail(feed, run, Some(&latest), &error).await,
    };
    let rolled_back = control.drain_reason().as_deref() == Some(cancel_reason(Cancel::Rollback));
    let ended = match end {
        _ if rolled_back => roll_back(app, run, &latest).await,
        Outcome::Done(values) => {
            let rest = Rest { values: Some(values.clone()), ..Rest::default() };
            over(RunStatus::Success, values, thread_end(ThreadStatus::Idle, rest, Json::Null))
        }
        Outcome::Interrupted(asked) => {
            let mut result = asked.state().cloned().unwrap_or_default();
            if !asked.is_empty() {
                result["__interrupt__"] = interrupts_json(&asked);
            }
            let rest = rest(&latest).await;
            let end = thread_end(ThreadStatus::Interrupted, rest, Json::Null);
            over(RunStatus::Success, result, end)
        }
        Outcome::Drained(reason) if [SHUTDOWN, LOST].contains(&&*reason) => Ended::PutBack,
        Outcome::Drained(_) => {
            let error = json!({ "error": "UserInterrupt", "message": "the run was cancelled by a request" });
            let state = latest.state(true).await.ok();
            let unfinished = state.as_ref().is_some_and(|state| !state.next.is_empty());
            let status = if unfinished { ThreadStatus::Interrupted } else { ThreadStatus::Idle };
            let rest = state.map_or_else(Rest::default, |state| parts(&state));
            over(RunStatus::Interrupted, json!({}), thread_end(status, rest, error))
        }
        // Later kinds of ends leave the thread as it is.
        _ => Ended::PutBack,
    };
    feed.flush().await?;
    Ok(forget_if_temporary(run, ended))
}

fn over(status: RunStatus, result: Json, thread: Box<ThreadEnd>) -> Ended {
    Ended::Over { status, result, thread }
}

/// The thread of a stateless run goes with it.
fn forget_if_temporary(run: &Run, ended: Ended) -> Ended {
    match ended {
        Ended::Over { status, result, .. } if run.stateless == Some(OnCompletion::Delete) => {
            Ended::Deleted { status: Some(status), result, thread_too: true, thread: None }
        }
        ended => ended,
    }
}

async fn fail(
    feed: &Feed,
    run: &Run,
    thread: Option<&AnyThread>,
    error: &RunError,
) -> Result<Ended, StoreError> {
    let error = error_json(error);
    feed.push("error", &error).await?;
    feed.flush().await?;
    let rest = match thread {
        Some(thread) => rest(thread).await,
        None => Rest::default(),
    };
    let end = thread_end(ThreadStatus::Error, rest, error.clone());
    let ended = over(RunStatus::Error, json!({ "__error__": error }), end);
    Ok(forget_if_temporary(run, ended))
}

/// The name and the text of an error; those of the node, if a node failed.
fn error_json(error: &RunError) -> Json {
    let message = match error {
        RunError::Node { error, .. } => format!("{error:#}"),
        error => format!("{error:#}"),
    };
    json!({ "error": error.kind(), "message": message })
}

fn thread_end(status: ThreadStatus, rest: Rest, error: Json) -> Box<ThreadEnd> {
    let Rest { values, interrupts, due } = rest;
    Box::new(ThreadEnd { status, values, interrupts, error, due })
}

/// Deletes what a run has stored, as if it had never run.
async fn roll_back(app: &App, run: &Run, thread: &AnyThread) -> Ended {
    if let Err(error) = app.checkpointer.delete_for_runs(std::slice::from_ref(&run.run_id)).await {
        tracing::error!(run = %run.run_id, %error, "the checkpoints of a run could not be deleted");
    }
    let state = thread.state(true).await.ok();
    let begun = state.as_ref().is_some_and(|state| state.metadata.is_some());
    let next = state.as_ref().is_some_and(|state| !state.next.is_empty());
    let status = if next { ThreadStatus::Interrupted } else { ThreadStatus::Idle };
    let mut rest = state.map_or_else(Rest::default, |state| parts(&state));
    if !begun {
        rest.values = Some(Json::Null);
    }
    let error =
        json!({ "error": "UserRollback", "message": "the run was rolled back by a request" });
    let thread = Some(thread_end(status, rest, error));
    let thread_too = run.stateless == Some(OnCompletion::Delete);
    Ended::Deleted { status: None, result: json!({}), thread_too, thread }
}

/// Where a thread is after a run that did not finish.
#[derive(Default)]
struct Rest {
    values: Option<Json>,
    interrupts: Object,
    due: Option<Micros>,
}

async fn rest(thread: &AnyThread) -> Rest {
    match thread.state(true).await {
        Ok(state) => parts(&state),
        Err(error) => {
            tracing::warn!(thread = thread.id(), %error, "the state of a thread could not be read");
            Rest::default()
        }
    }
}

fn parts(state: &RawSnapshot) -> Rest {
    let values = state.metadata.is_some().then(|| Json::from(state.values.clone()));
    let mut interrupts = Object::new();
    open_questions(state, &mut interrupts);
    // A failure has to be looked at first.
    let has_failed = state.tasks.iter().any(|task| task.error.is_some());
    let due = state.interrupts.iter().filter_map(Interrupt::due).min().filter(|_| !has_failed);
    Rest { values, interrupts, due: due.map(Micros::from) }
}

/// The end of a run that was to do what is due, and found that nothing is.
async fn rested(thread: &AnyThread) -> Ended {
    let rest = rest(thread).await;
    let waits = !rest.interrupts.is_empty();
    let status = if waits { ThreadStatus::Interrupted } else { ThreadStatus::Idle };
    let values = rest.values.clone().unwrap_or_else(|| json!({}));
    over(RunStatus::Success, values, thread_end(status, rest, Json::Null))
}

/// Open questions by the innermost task that asked them.
pub(crate) fn open_questions(state: &RawSnapshot, found: &mut Object) {
    for task in &state.tasks {
        let before = found.len();
        if let Some(SubgraphState::Snapshot(inner)) = &task.state {
            open_questions(inner, found);
        }
        if found.len() == before && !task.interrupts.is_empty() {
            let asked = |asked: &Interrupt| {
                let mut json =
                    json!({ "id": asked.id.as_str(), "value": Json::from(asked.value.clone()) });
                // Clients do not see it here; answers are compared with it.
                if let Some(schema) = &asked.response_schema {
                    json["response_schema"] = schema.clone().into();
                }
                if let Some(due) = asked.due() {
                    json["due"] = Micros::from(due).rfc3339().into();
                }
                if asked.is_sleep() {
                    json["sleep"] = true.into();
                }
                json
            };
            found.insert(task.id.to_string(), task.interrupts.iter().map(asked).collect());
        }
    }
}

/// Whether a state was stored by this run.
fn is_of_run(state: &RawSnapshot, run: &Run) -> bool {
    let by = state.metadata.as_ref().and_then(|metadata| metadata.extra.get("run_id"));
    by.and_then(|id| id.as_str()) == Some(&*run.run_id)
}

/// Whether the answer that a run gives has been taken: it is stored before the first checkpoint that follows from it.
fn is_answered(state: &RawSnapshot, run: &Run) -> bool {
    !run.asked("command")["resume"].is_null() && state.interrupts.is_empty()
}

/// Where the run begins, if not at the head. What was stored is read again, so it may be damaged.
fn at(run: &Run) -> Result<Option<superstep::CheckpointRef>, RunError> {
    let unread = |error: &str| {
        RunError::Invalid(format!("the stored checkpoint of the run cannot be read: {error}"))
    };
    let at: Option<CheckpointArg> = serde_json::from_value(run.asked("checkpoint").clone())
        .map_err(|error| unread(&error.to_string()))?;
    at.map(|at| at.to_ref(run.thread()).map_err(|error| unread(&error.detail))).transpose()
}

/// What the engine is asked for.
fn to_request(run: &Run) -> Request {
    let modes = run.asked("stream_mode").as_array().into_iter().flatten();
    let modes: Vec<String> = modes.filter_map(Json::as_str).map(str::to_owned).collect();
    let config = run.asked("config");
    let mut metadata: Map<String, Json> = Map::new();
    let configurable = config["configurable"].as_object().into_iter().flatten();
    let scalar = configurable.filter(|(_, value)| !value.is_object() && !value.is_array());
    metadata.extend(scalar.map(|(key, value)| (key.clone(), value.clone())));
    metadata.extend(run.metadata.clone());
    metadata.insert("run_attempt".to_owned(), run.attempt.into());
    let is_traced = modes.iter().any(|mode| mode == "events");
    let mut engine_modes = engine_modes(&modes);
    // The log of a resumable run says where its checkpoints are.
    if run.resumable() && !engine_modes.contains(&Mode::Checkpoints) {
        engine_modes.push(Mode::Checkpoints);
    }
    if run.session {
        engine_modes.extend(
            MODES.into_iter().filter(|mode| !engine_modes.contains(mode)).collect::<Vec<_>>(),
        );
    }
    Request {
        input: Some(run.asked("input").clone()).filter(|input| !input.is_null()),
        command: command(run),
        context: run.asked("context").clone(),
        modes: engine_modes,
        subgraphs: run.session || is_traced || run.asked("subgraphs") == &Json::Bool(true),
        durability: match run.asked("durability").as_str() {
            Some("exit") => Durability::Exit,
            Some("sync") => Durability::Sync,
            _ => Durability::Async,
        },
        wake: run.asked("wake") == &Json::Bool(true),
        recursion_limit: config["recursion_limit"].as_u64(),
        interrupt_before: break_at(run.asked("interrupt_before")),
        interrupt_after: break_at(run.asked("interrupt_after")),
        metadata: metadata.into_iter().collect(),
        run_id: Some(run.run_id.clone()),
        ..Request::default()
    }
}

/// The command, with an update that was given as pairs as an object.
fn command(run: &Run) -> Option<Json> {
    let mut command = Some(run.asked("command").clone()).filter(|command| !command.is_null())?;
    if let Some(update) = command.get("update").and_then(as_object) {
        command["update"] = update.into();
    }
    // It is for people.
    command.as_object_mut().map(|command| command.remove("comment"));
    Some(command)
}

fn break_at(nodes: &Json) -> Option<BreakAt> {
    match nodes {
        Json::String(all) if all == "*" => Some(BreakAt::all()),
        Json::String(one) => Some(BreakAt::from([one.as_str()])),
        Json::Array(nodes) if nodes.iter().any(|node| node == "*") => Some(BreakAt::all()),
        Json::Array(nodes) => {
            Some(BreakAt::from(nodes.iter().filter_map(Json::as_str).collect::<Vec<_>>()))
        }
        _ => None,
    }
}

/// The graph of a thread, if it has had a run.
pub(crate) fn graph_of(app: &App, thread: &crate::store::Thread) -> Option<AnyGraph> {
    let graph = thread.metadata.get("graph_id")?.as_str()?;
    app.graph_of(tenant_of(&thread.thread_id), graph)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Multitask;

    fn run_at(checkpoint: Json) -> Run {
        Run {
            run_id: "r".to_owned(),
            thread_id: "t".to_owned(),
            assistant_id: "a".to_owned(),
            graph_id: "g".to_owned(),
            created_at: Micros::now(),
            updated_at: Micros::now(),
            status: RunStatus::Pending,
            metadata: Object::new(),
            kwargs: Object::from_iter([("checkpoint".to_owned(), checkpoint)]),
            multitask: Multitask::Enqueue,
            attempt: 1,
            begun: false,
            worker: None,
            epoch: 0,
            admitted_by: None,
            followed: false,
            cancel: None,
            stateless: None,
            result: None,
            session: false,
            origin: Default::default(),
        }
    }

    /// A run from an old checkpoint must not silently become one from the head.
    #[test]
    fn a_checkpoint_that_cannot_be_read_is_an_error_and_not_the_head() {
        assert!(at(&run_at(Json::Null)).is_ok_and(|at| at.is_none()));
        let id = "1f0a0c1e-0000-6000-8000-000000000000";
        let named = at(&run_at(json!({ "checkpoint_id": id }))).expect("a place");
        assert_eq!(named.and_then(|at| at.id).map(|id| id.to_string()).as_deref(), Some(id));
        for damaged in [json!({ "checkpoint_id": "x" }), json!([1]), json!({ "checkpoint_id": 1 })]
        {
            let error = at(&run_at(damaged)).expect_err("no place");
            assert!(error.to_string().contains("stored checkpoint"), "{error}");
        }
    }
}
