//! Accepting runs. A run is stored before it is acknowledged.

use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::answers;
use crate::access::Caller;
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::events::Active;
use crate::protocol::hide;
use crate::store::{
    Admission, Admitted, Asked, Assistant, Cancel, Create, Kept, Made, Multitask, OnCompletion,
    Origin, Run, RunStatus, StoreError, Thread, Which,
};
use crate::tenant::id_of;
use crate::time::Micros;
use crate::wire::{Object, RunRequest};

/// A run that was asked for.
pub(crate) enum Submitted {
    /// It is stored now.
    New(Run, Active),
    /// It was stored by an earlier request with the same idempotency key; the run as it was then. If it is not kept any more,
    /// its result is.
    Known(Run, Option<Json>),
}

impl Submitted {
    /// The run as it was when it was stored.
    pub(crate) fn run(&self) -> &Run {
        match self {
            Self::New(run, _) | Self::Known(run, _) => run,
        }
    }
}

/// Finds what is wrong with a request before anything is created.
async fn check(
    app: &App,
    caller: &Caller,
    thread: Option<&str>,
    request: &RunRequest,
) -> ApiResult<Assistant> {
    request.check(thread.is_none())?;
    request.check_webhook(app.webhooks.allows_private())?;
    if app.is_stopping() {
        return Err(ApiError::overloaded());
    }
    let assistant = app.assistant(caller, &request.assistant_id).await?;
    if let Some(thread) = thread {
        hide(app, caller, thread).await?;
        if let Some(graph) = app.graph_of(caller.tenant(), &assistant.graph_id) {
            let resume = request.command.as_ref().and_then(|command| command.resume.as_ref());
            answers::check(app, &graph, thread, resume).await?;
        }
    }
    Ok(assistant)
}

/// Stores a run on a thread, or without one. With an idempotency key it is stored once.
pub(crate) async fn submit(
    app: &App,
    caller: &Caller,
    thread: Option<&str>,
    request: RunRequest,
    asked: Option<Asked>,
) -> ApiResult<Submitted> {
    if let Some(asked) = &asked
        && let Some(kept) = app.store.kept(&asked.key).await?
        && kept.fingerprint == asked.fingerprint
    {
        // What was right when it was asked first may be a second answer by now.
        return known(kept);
    }
    let assistant = check(app, caller, thread, &request).await?;
    let mut admission = admission(app, caller, &assistant, thread, &request, Micros::now());
    admission.run.origin.once = asked.as_ref().map(|asked| asked.key.clone());
    // Readers are there before the run is, so that they miss nothing.
    let active = app.active(&admission.run);
    let id = admission.run.run_id.clone();
    let admitted = match asked.clone() {
        None => app.store.admit(admission).await.map_err(ApiError::from),
        Some(asked) => match app.create(Some(asked), Create::Runs(vec![admission])).await {
            Ok(Ok(Made::Runs(mut admitted))) => admitted.pop().ok_or_else(ApiError::overloaded),
            Ok(Ok(_)) => Err(Made::unexpected().into()),
            Ok(Err(kept)) => {
                app.hub.remove(&id);
                return known(kept);
            }
            Err(error) => Err(error),
        },
    };
    let admitted = match admitted {
        Ok(admitted) => admitted,
        Err(error) => {
            app.hub.remove(&id);
            return Err(error);
        }
    };
    match (admitted, thread) {
        (Admitted::NoThread, Some(thread)) => {
            app.hub.remove(&id);
            // A thread of another program may be taken in.
            app.thread(caller, thread).await?;
            Box::pin(submit(app, caller, Some(thread), request, asked)).await
        }
        (admitted, _) => {
            let (run, active) = settle_admission(app, &id, active, admitted)?;
            Ok(Submitted::New(run, active))
        }
    }
}

fn known(kept: Kept) -> ApiResult<Submitted> {
    let result = kept.result.clone();
    let runs: Vec<Run> = kept.row()?;
    let run = runs.into_iter().next();
    let run = run.ok_or_else(|| StoreError::Failed("nothing is kept of a run".to_owned()))?;
    Ok(Submitted::Known(run, result))
}

/// Stores runs without threads, all of them or none.
pub(crate) async fn submit_all(
    app: &App,
    caller: &Caller,
    requests: Vec<RunRequest>,
    asked: Option<Asked>,
) -> ApiResult<Vec<Run>> {
    let mut admissions = Vec::new();
    for request in &requests {
        let assistant = check(app, caller, None, request).await?;
        admissions.push(admission(app, caller, &assistant, None, request, Micros::now()));
    }
    let active: Vec<_> = admissions
        .iter_mut()
        .map(|admission| {
            admission.run.origin.once = asked.as_ref().map(|asked| asked.key.clone());
            (admission.run.run_id.clone(), app.active(&admission.run))
        })
        .collect();
    let forget = || active.iter().for_each(|(id, _)| drop(app.hub.remove(id)));
    match app.create(asked, Create::Runs(admissions)).await {
        Ok(Ok(Made::Runs(admitted))) if admitted.len() == active.len() => {
            let each = active.into_iter().zip(admitted);
            let runs = each.map(|((id, active), admitted)| {
                settle_admission(app, &id, active, admitted).map(|(run, _)| run)
            });
            runs.collect()
        }
        Ok(Err(kept)) => {
            forget();
            Ok(kept.row()?)
        }
        Ok(Ok(_)) => {
            forget();
            Err(ApiError::overloaded())
        }
        Err(error) => {
            forget();
            Err(error)
        }
    }
}

/// What a run asks to be admitted with.
pub(crate) fn admission(
    app: &App,
    caller: &Caller,
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
                ..Thread::new(id.to_owned(), caller.filter().clone(), now)
            });
            (id.to_owned(), None, new)
        }
        None => {
            let id = caller.new_key();
            let new = Thread::new(id.clone(), caller.filter().clone(), now);
            (id, Some(request.on_completion.unwrap_or(OnCompletion::Delete)), Some(new))
        }
    };
    Admission {
        thread_metadata: [
            ("graph_id".to_owned(), assistant.graph_id.clone().into()),
            ("assistant_id".to_owned(), id_of(&assistant.assistant_id).into()),
        ]
        .into_iter()
        .chain(caller.filter().clone())
        .collect(),
        thread_config: thread_config(request),
        run: new_run(caller, assistant, request, thread_id, stateless, app.store.worker(), now),
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
            active.feed.admitted();
            stop.iter().for_each(|(run, action)| app.stop_run(run, *action));
            dropped.iter().for_each(|run| app.drop_run(run));
            app.run_is_ready();
            return Ok((*run, active));
        }
        Admitted::NoThread => ApiError::not_found("the thread of the run is gone"),
        Admitted::Busy => ApiError::conflict(
            "the thread has a run in progress; wait for it, or choose another `multitask_strategy` than `reject`",
        ),
        Admitted::Full => ApiError::overloaded(),
        Admitted::Answered(question) => {
            let question = question.map_or_else(String::new, |id| format!(" `{id}`"));
            ApiError::conflict(format!(
                "the question{question} was answered already; nothing of this request was used"
            ))
        }
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
    caller: &Caller,
    assistant: &Assistant,
    request: &RunRequest,
    thread_id: String,
    stateless: Option<OnCompletion>,
    worker: &str,
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
        ("thread_id", id_of(&thread_id)),
        ("graph_id", &assistant.graph_id),
        ("assistant_id", id_of(&assistant.assistant_id)),
        ("user_id", caller.id().unwrap_or_default()),
    ];
    configurable.extend(own.map(|(key, value)| (key.to_owned(), value.into())));
    name_caller(caller, &mut configurable);
    let created_by = assistant.metadata.get("created_by").cloned();
    let mut metadata: Object = request.metadata.clone();
    metadata.insert("created_by".to_owned(), created_by.unwrap_or_else(|| "user".into()));
    metadata.insert("graph_id".to_owned(), assistant.graph_id.clone().into());
    metadata.insert("assistant_id".to_owned(), id_of(&assistant.assistant_id).into());
    note_answer(caller, request, &mut metadata);
    caller.stamp(&mut metadata);
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
        worker: None,
        epoch: 0,
        admitted_by: Some(worker.to_owned()),
        followed: false,
        cancel: None,
        stateless,
        result: None,
        session: request.session,
        origin: Origin { by: caller.id().map(str::to_owned), once: None },
    }
}

/// Says in the metadata of a run, and so in those of its checkpoints, who gave the answer that it takes, and why.
fn note_answer(caller: &Caller, request: &RunRequest, metadata: &mut Object) {
    let Some(command) = request.command.as_ref().filter(|command| command.resume.is_some()) else {
        return;
    };
    let said = [("answered_by", caller.id()), ("answer_comment", command.comment.as_deref())];
    let said = said.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text?.into())));
    metadata.extend(said);
}

/// Tells nodes who asked for their run. Nobody else can say that.
fn name_caller(caller: &Caller, configurable: &mut Object) {
    configurable.retain(|key, _| !key.starts_with("langgraph_auth_"));
    let Some(identity) = caller.identity() else { return };
    let permissions = json!([identity.role.as_str()]);
    let user = json!({
        "identity": identity.id, "display_name": identity.id, "is_authenticated": true,
        "permissions": permissions, "tenant": identity.tenant, "role": identity.role.as_str(),
    });
    let known = [
        ("langgraph_auth_user_id", identity.id.as_str().into()),
        ("langgraph_auth_user", user),
        ("langgraph_auth_permissions", permissions),
    ];
    configurable.extend(known.map(|(key, value)| (key.to_owned(), value)));
}

/// Cancels runs. Returns those that were running, which end soon.
pub(crate) async fn cancel(app: &App, which: Which, action: Cancel) -> ApiResult<Vec<String>> {
    let cancelled = app.store.cancel(which, action).await?;
    if cancelled.pending.is_empty() && cancelled.running.is_empty() {
        return Err(ApiError::not_found(
            "no run to cancel: none of them is pending or running on this thread",
        ));
    }
    cancelled.running.iter().for_each(|run| app.stop_run(run, action));
    cancelled.pending.iter().for_each(|run| app.drop_run(run));
    app.run_is_ready();
    Ok(cancelled.running)
}
