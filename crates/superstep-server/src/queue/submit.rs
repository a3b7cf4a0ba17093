//! Accepting runs. A run is stored before it is acknowledged.

use serde_json::{Map, Value as Json, json};
use uuid::Uuid;

use super::answers;
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::events::Active;
use crate::store::{
    Admission, Admitted, Assistant, Cancel, Multitask, OnCompletion, Run, RunStatus, Thread, Which,
};
use crate::time::Micros;
use crate::wire::{Object, RunRequest};

/// Stores a run on a thread, or without one.
pub(crate) async fn submit(
    app: &App,
    thread: Option<&str>,
    request: RunRequest,
) -> ApiResult<(Run, Active)> {
    request.check(thread.is_none())?;
    request.check_webhook(app.webhooks.allows_private())?;
    if app.is_stopping() {
        return Err(ApiError::overloaded());
    }
    let assistant = app.assistant(&request.assistant_id).await?;
    if let (Some(thread), Some(graph)) = (thread, app.graph(&assistant.graph_id)) {
        let resume = request.command.as_ref().and_then(|command| command.resume.as_ref());
        answers::check(app, graph, thread, resume).await?;
    }
    let admission = admission(app, &assistant, thread, &request, Micros::now());
    // Readers are there before the run is, so that they miss nothing.
    let active = app.active(&admission.run);
    let id = admission.run.run_id.clone();
    let admitted = match app.store.admit(admission).await {
        Ok(admitted) => admitted,
        Err(error) => {
            app.hub.remove(&id);
            return Err(error.into());
        }
    };
    match (admitted, thread) {
        (Admitted::NoThread, Some(thread)) => {
            app.hub.remove(&id);
            // A thread of another program may be taken in.
            app.thread(thread).await?;
            Box::pin(submit(app, Some(thread), request)).await
        }
        (admitted, _) => settle_admission(app, &id, active, admitted),
    }
}

/// What a run asks to be admitted with.
pub(crate) fn admission(
    app: &App,
    assistant: &Assistant,
    thread: Option<&str>,
    request: &RunRequest,
    now: Micros,
) -> Admission {
    let (thread_id, stateless, new_thread) = match thread {
        Some(id) => {
            let create = request.if_not_exists == Some(crate::wire::IfNotExists::Create);
            let new = create.then(|| Thread {
                session: request.session || app.hub.has_session(id),
                ..Thread::new(id.to_owned(), Map::new(), now)
            });
            (id.to_owned(), None, new)
        }
        None => {
            let id = Uuid::now_v7().to_string();
            let new = Thread::new(id.clone(), Map::new(), now);
            (id, Some(request.on_completion.unwrap_or(OnCompletion::Delete)), Some(new))
        }
    };
    Admission {
        thread_metadata: [
            ("graph_id".to_owned(), assistant.graph_id.clone().into()),
            ("assistant_id".to_owned(), assistant.assistant_id.clone().into()),
        ]
        .into_iter()
        .collect(),
        thread_config: thread_config(request),
        run: new_run(assistant, request, thread_id, stateless, now),
        new_thread,
        pending_max: app.pending_max,
    }
}

/// Does what follows from an admission, whose run is known here already.
pub(crate) fn settle_admission(
    app: &App,
    id: &str,
    active: Active,
    admitted: Admitted,
) -> ApiResult<(Run, Active)> {
    let refusal = match admitted {
        Admitted::Stored { run, stop, dropped } => {
            stop.iter().for_each(|(run, action)| app.stop_run(run, *action));
            dropped.iter().for_each(|run| app.drop_run(run));
            app.wake.notify_one();
            return Ok((*run, active));
        }
        Admitted::NoThread => ApiError::not_found("the thread of the run is gone"),
        Admitted::Busy => ApiError::conflict(
            "the thread has a run in progress; wait for it, or choose another `multitask_strategy` than `reject`",
        ),
        Admitted::Full => ApiError::overloaded(),
    };
    app.hub.remove(id);
    Err(refusal)
}

fn thread_config(request: &RunRequest) -> Json {
    // What a run was configured with may be secret, and is not the thread's.
    let mut config = json!({ "configurable": {} });
    if let Some(tags) = &request.config.tags {
        config["tags"] = tags.clone().into();
    }
    if let Some(limit) = request.config.recursion_limit {
        config["recursion_limit"] = limit.into();
    }
    config
}

fn new_run(
    assistant: &Assistant,
    request: &RunRequest,
    thread_id: String,
    stateless: Option<OnCompletion>,
    now: Micros,
) -> Run {
    let run_id = Uuid::now_v7().to_string();
    // What the run says wins over what its assistant says.
    let mut context: Object = assistant.context.as_object().cloned().unwrap_or_default();
    context.extend(request.context.clone());
    context.extend(request.config.configurable.clone());
    let mut configurable: Object = context.clone();
    let own = [
        ("run_id", run_id.as_str()),
        ("thread_id", &thread_id),
        ("graph_id", &assistant.graph_id),
        ("assistant_id", &assistant.assistant_id),
        ("user_id", ""),
    ];
    configurable.extend(own.map(|(key, value)| (key.to_owned(), value.into())));
    let created_by = assistant.metadata.get("created_by").cloned();
    let mut metadata: Object = request.metadata.clone();
    metadata.insert("created_by".to_owned(), created_by.unwrap_or_else(|| "user".into()));
    metadata.insert("graph_id".to_owned(), assistant.graph_id.clone().into());
    metadata.insert("assistant_id".to_owned(), assistant.assistant_id.clone().into());
    let mut kwargs = request.kwargs(&context, &configurable);
    kwargs.insert("temporary".to_owned(), (stateless == Some(OnCompletion::Delete)).into());
    Run {
        run_id,
        thread_id,
        assistant_id: assistant.assistant_id.clone(),
        graph_id: assistant.graph_id.clone(),
        created_at: now.plus_seconds(request.after_seconds.unwrap_or(0.0)),
        updated_at: now,
        status: RunStatus::Pending,
        metadata,
        kwargs,
        multitask: request.multitask_strategy.unwrap_or(Multitask::Enqueue),
        attempt: 0,
        begun: false,
        cancel: None,
        stateless,
        result: None,
        session: request.session,
    }
}

/// Cancels runs. Returns those that were running, which end soon.
pub(crate) async fn cancel(app: &App, which: Which, action: Cancel) -> ApiResult<Vec<Active>> {
    let cancelled = app.store.cancel(which, action).await?;
    if cancelled.pending.is_empty() && cancelled.running.is_empty() {
        return Err(ApiError::not_found(
            "no run to cancel: none of them is pending or running on this thread",
        ));
    }
    let running = cancelled.running.iter().filter_map(|run| app.hub.get(run)).collect();
    cancelled.running.iter().for_each(|run| app.stop_run(run, action));
    cancelled.pending.iter().for_each(|run| app.drop_run(run));
    app.wake.notify_one();
    Ok(running)
}
