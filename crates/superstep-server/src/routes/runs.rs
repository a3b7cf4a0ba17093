use axum::http::StatusCode;
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::operation::{Action, Content, Limit, Offset, Operation, Resource, delete, get, post};
use super::{Answer, State, json, no_content, page, with_locations};
use crate::access::Caller;
use crate::error::{ApiError, ApiResult};
use crate::queue::{self, submit, submit_all};
use crate::store::{Cancel, ListQuery, RunStatus, Which};
use crate::tenant::id_of;
use crate::wire::{
    Body, Keyed, Object, Path, Query, RunObject, RunRequest, Selected, id_in_path, limit, offset,
    run_json, select,
};

type One = RunObject<'static>;

pub(super) fn operations() -> Vec<Operation> {
    let kind = Resource::Runs;
    let action = "What becomes of what the run did: `interrupt` keeps it, `rollback` deletes it";
    vec![
        get("/threads/{thread_id}/runs", kind, Action::Search, list)
            .summary("List the runs of a thread, newest first")
            .query::<Limit>("limit", "How many runs; 10 if nothing is said")
            .query::<Offset>("offset", "How many runs to skip")
            .query::<RunStatus>("status", "Only runs with this status")
            .query::<Vec<String>>("select", "Only these fields of each run")
            .json::<Vec<Selected<One>>>()
            .refuses([404]),
        post("/threads/{thread_id}/runs", kind, Action::Create, create)
            .summary("Start a run in the background")
            .json::<One>()
            .refuses([400, 404, 409]),
        get("/threads/{thread_id}/runs/{run_id}", kind, Action::Read, find)
            .summary("Get a run")
            .json::<One>()
            .refuses([404]),
        delete("/threads/{thread_id}/runs/{run_id}", kind, Action::Delete, remove)
            .summary("Delete a run; it is stopped first")
            .no_content()
            .refuses([404]),
        post("/threads/{thread_id}/runs/{run_id}/cancel", kind, Action::Write, cancel)
            .summary("Cancel a run")
            .query::<bool>("wait", "Answer when the run has stopped")
            .query::<Cancel>("action", action)
            .json::<Object>()
            .answers(202, Content::Nothing)
            .refuses([404]),
        post("/runs", kind, Action::Create, create_stateless)
            .summary("Start a run without a thread in the background")
            .json::<One>()
            .refuses([400, 404]),
        post("/runs/batch", kind, Action::Create, batch)
            .summary("Start several runs without threads in the background")
            .json::<Vec<One>>()
            .refuses([400, 404]),
        post("/runs/cancel", kind, Action::Write, cancel_many)
            .summary("Cancel several runs")
            .query::<Cancel>("action", action)
            .no_content()
            .refuses([404]),
    ]
}

pub(super) async fn create(
    state: State,
    caller: Caller,
    Path(thread): Path<String>,
    Keyed(request, asked): Keyed<RunRequest>,
) -> Answer {
    let thread = caller.thread(&thread)?;
    let submitted = submit(&state, &caller, Some(&thread), request, asked).await?;
    let run = submitted.run();
    let place = format!("/threads/{}/runs/{}", run.thread(), run.run_id);
    Ok(with_locations(json(run_json(run)), &place, None))
}

pub(super) async fn create_stateless(
    state: State,
    caller: Caller,
    Keyed(request, asked): Keyed<RunRequest>,
) -> Answer {
    let submitted = submit(&state, &caller, None, request, asked).await?;
    let run = submitted.run();
    let place = format!("/runs/{}", run.run_id);
    Ok(with_locations(json(run_json(run)), &place, None))
}

pub(super) async fn batch(
    state: State,
    caller: Caller,
    Keyed(requests, asked): Keyed<Vec<RunRequest>>,
) -> Answer {
    if requests.is_empty() {
        return Err(ApiError::invalid("a batch has at least one run"));
    }
    let runs = submit_all(&state, &caller, requests, asked).await?;
    Ok(json(runs.iter().map(run_json).collect()))
}

fn status(word: &str) -> ApiResult<RunStatus> {
    let known: Vec<_> = RunStatus::ALL.iter().map(|status| status.as_str()).collect();
    RunStatus::from_word(word).ok_or_else(|| {
        ApiError::invalid(format!("`status` is `{word}`; it can be {}", known.join(", ")))
    })
}

pub(super) async fn list(
    state: State,
    caller: Caller,
    Path(thread): Path<String>,
    query: Query,
) -> Answer {
    let thread = caller.thread(&thread)?;
    state.thread(&caller, &thread).await?;
    let mut equal = vec![("thread_id", vec![thread])];
    if let Some(word) = query.get("status").filter(|word| !word.is_empty()) {
        equal.push(("status", vec![status(word)?.as_str().to_owned()]));
    }
    let offset = offset(query.number("offset")?)?;
    let asked = ListQuery {
        equal,
        offset,
        limit: limit(query.number("limit")?, 10)?,
        ..ListQuery::default()
    };
    let fields = query.list("select");
    page(&state.store.runs(asked).await?, offset, |run| select(run_json(run), fields.as_deref()))
}

pub(super) async fn find(
    state: State,
    caller: Caller,
    Path((thread, run)): Path<(String, String)>,
) -> Answer {
    let (thread, run) = (caller.thread(&thread)?, id_in_path("run", &run)?);
    Ok(json(run_json(&state.run(&caller, Some(&thread), &run).await?)))
}

pub(super) async fn remove(
    state: State,
    caller: Caller,
    Path((thread, run)): Path<(String, String)>,
) -> Answer {
    let (thread, run) = (caller.thread(&thread)?, id_in_path("run", &run)?);
    state.see_runs(&caller, &thread).await?;
    let deleted = state.store.delete_run(&thread, &run).await?;
    let deleted = deleted.ok_or_else(|| ApiError::no_run(&run))?;
    match deleted.status {
        RunStatus::Running => {
            state.stop_run(&run, Cancel::Rollback);
            queue::wait_for_end(&state, &run).await?;
        }
        _ => state.drop_run(&run),
    }
    Ok(no_content())
}

fn action(query: &Query) -> ApiResult<Cancel> {
    match query.get("action") {
        None | Some("") => Ok(Cancel::Interrupt),
        Some(word) => Cancel::from_word(word).ok_or_else(|| {
            ApiError::invalid(format!("`action` is `{word}`; it can be interrupt or rollback"))
        }),
    }
}

pub(super) async fn cancel(
    state: State,
    caller: Caller,
    Path((thread, run)): Path<(String, String)>,
    query: Query,
) -> Answer {
    let (thread, run) = (caller.thread(&thread)?, id_in_path("run", &run)?);
    let (wait, action) = (query.flag("wait")?, action(&query)?);
    state.thread(&caller, &thread).await?;
    let place = format!("/threads/{}/runs/{run}", id_of(&thread));
    let which = Which::Runs { thread, runs: vec![run] };
    let running = queue::cancel(&state, which, action).await?;
    if !wait {
        return Ok(with_locations(StatusCode::ACCEPTED.into_response(), &place, None));
    }
    for run in running {
        queue::wait_for_end(&state, &run).await?;
    }
    Ok(with_locations(json(json!({})), &place, Some(&format!("{place}/join"))))
}

#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "RunCancelMany")]
pub(super) struct CancelMany {
    thread_id: Option<String>,
    run_ids: Option<Vec<String>>,
    status: Option<String>,
}

pub(super) async fn cancel_many(
    state: State,
    caller: Caller,
    query: Query,
    Body(body): Body<CancelMany>,
) -> Answer {
    let action = action(&query)?;
    let all = |of| Which::Status { tenant: caller.tenant().to_owned(), of };
    let which = match (body.thread_id, body.run_ids, body.status.as_deref()) {
        (Some(thread), Some(runs), None) => {
            let runs = runs.iter().map(|run| id_in_path("run", run)).collect::<ApiResult<_>>()?;
            Which::Runs { thread: caller.thread(&thread)?, runs }
        }
        (None, None, Some("pending")) => all(vec![RunStatus::Pending]),
        (None, None, Some("running")) => all(vec![RunStatus::Running]),
        (None, None, Some("all")) => all(vec![RunStatus::Pending, RunStatus::Running]),
        _ => {
            return Err(ApiError::invalid(
                "give `thread_id` with `run_ids`, or `status` as pending, running or all",
            ));
        }
    };
    match &which {
        Which::Runs { thread, .. } => state.see_runs(&caller, thread).await?,
        Which::Status { .. } if !caller.filter().is_empty() => {
            return Err(ApiError::new(
                StatusCode::FORBIDDEN,
                "runs are cancelled by their status only by those who see all of their tenant; give `thread_id` and `run_ids`",
            ));
        }
        Which::Status { .. } => {}
    }
    queue::cancel(&state, which, action).await?;
    Ok(no_content())
}

/// What `wait` and `join` answer for a run that is over.
pub(super) fn result(run: &crate::store::Run) -> Json {
    run.result.clone().unwrap_or_else(|| json!({}))
}
