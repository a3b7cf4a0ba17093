//! Answers that take as long as a run: streams, and waiting for the result.

use std::sync::Arc;

use axum::body::{Body as HttpBody, Bytes};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value as Json, json};
use tokio::sync::OwnedSemaphorePermit;

use super::operation::{Action, Content, Operation, Resource, get, post};
use super::runs::result;
use super::{Answer, State, with_locations};
use crate::access::Caller;
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::events::{Active, Feed, Guard, HEARTBEAT, Sse};
use crate::queue::{self, Submitted, submit};
use crate::store::{Asked, Cancel, Run, RunStatus, Which};
use crate::wire::{Keyed, OnDisconnect, Path, Query, RunRequest, id_in_path, json_response};

pub(super) fn operations() -> Vec<Operation> {
    let kind = Resource::Runs;
    let joins = |operation: Operation, summary| {
        operation
            .summary(summary)
            .query::<bool>("cancel_on_disconnect", "Cancel the run when this client leaves")
            .refuses([404])
    };
    let streams = |operation: Operation, summary| {
        joins(operation, summary)
            .query::<Vec<String>>("stream_mode", "Only events of these modes")
            .header::<String>("last-event-id", "Go on after this event; -1 is the beginning")
            .answers(200, Content::Events)
    };
    vec![
        post("/threads/{thread_id}/runs/stream", kind, Action::Create, stream)
            .summary("Start a run and stream its events")
            .answers(200, Content::Events)
            .refuses([400, 404, 409]),
        post("/threads/{thread_id}/runs/wait", kind, Action::Create, wait)
            .summary("Start a run and wait for its result")
            .json::<Json>()
            .refuses([400, 404, 409]),
        joins(
            get("/threads/{thread_id}/runs/{run_id}/join", kind, Action::Read, join),
            "Wait for the result of a run",
        )
        .json::<Json>(),
        streams(
            get("/threads/{thread_id}/runs/{run_id}/stream", kind, Action::Read, join_stream),
            "Stream the events of a run",
        ),
        post("/runs/stream", kind, Action::Create, stream_stateless)
            .summary("Start a run without a thread and stream its events")
            .answers(200, Content::Events)
            .refuses([400, 404]),
        post("/runs/wait", kind, Action::Create, wait_stateless)
            .summary("Start a run without a thread and wait for its result")
            .json::<Json>()
            .refuses([400, 404]),
        joins(
            get("/runs/{run_id}/join", kind, Action::Read, join_stateless),
            "Wait for the result of a run, by its id alone",
        )
        .json::<Json>(),
        streams(
            get("/runs/{run_id}/stream", kind, Action::Read, join_stream_stateless),
            "Stream the events of a run, by its id alone",
        ),
    ]
}

/// Cancels a run when its reader leaves before the end.
struct CancelOnLeave {
    app: Arc<App>,
    /// Given back when the reader is gone.
    _place: OwnedSemaphorePermit,
    run: Option<(String, String)>,
}

impl CancelOnLeave {
    fn new(app: &Arc<App>, place: OwnedSemaphorePermit, run: &Run, cancel: bool) -> Self {
        let run = cancel.then(|| (run.thread_id.clone(), run.run_id.clone()));
        Self { app: app.clone(), _place: place, run }
    }
}

impl Guard for CancelOnLeave {
    fn complete(&mut self) {
        self.run = None;
    }
}

impl Drop for CancelOnLeave {
    fn drop(&mut self) {
        let Some((thread, run)) = self.run.take() else { return };
        let app = self.app.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let which = Which::Runs { thread, runs: vec![run] };
                // A run that has ended meanwhile need not be cancelled.
                let _ = queue::cancel(&app, which, Cancel::Interrupt).await;
            });
        }
    }
}

fn cancels(request: &RunRequest) -> bool {
    request.on_disconnect == Some(OnDisconnect::Cancel)
}

/// What the ids of the events of a run begin with.
fn ids(run: &Run) -> Option<i64> {
    run.resumable().then(|| run.created_at.millis())
}

/// The run of a request that waits for it, and what tells how it goes on; nothing if it is over, as it may be if the request
/// is repeated with an idempotency key.
async fn begin(
    app: &App,
    caller: &Caller,
    thread: Option<&str>,
    request: RunRequest,
    asked: Option<Asked>,
) -> ApiResult<(Run, Option<Active>)> {
    let key = asked.as_ref().map(|asked| asked.key.clone());
    let (first, result) = match submit(app, caller, thread, request, asked).await? {
        Submitted::New(run, active) => return Ok((run, Some(active))),
        Submitted::Known(run, result) => (run, result),
    };
    let ended = |run: Run, result| Ok((Run { status: RunStatus::Success, result, ..run }, None));
    if result.is_some() {
        return ended(first, result);
    }
    let gone = |error: &ApiError| error.status == StatusCode::NOT_FOUND;
    let now = match app.store.run(Some(&first.thread_id), &first.run_id).await? {
        Some(now) => open(app, now).await,
        None => Err(ApiError::no_run(&first.run_id)),
    };
    match (now, key) {
        // A run without a thread ended meanwhile.
        (Err(error), Some(key)) if gone(&error) => {
            let kept = app.store.kept(&key).await?;
            ended(first, kept.and_then(|kept| kept.result))
        }
        (now, _) => now,
    }
}

/// The events of a run that is over: those that are kept, or its result.
async fn events_of(app: &App, run: &Run) -> ApiResult<Arc<Feed>> {
    let feed = Feed::new(&run.run_id, run.resumable(), app.store.clone());
    if run.resumable() {
        feed.take_up().await?;
    } else {
        let error = run.result.as_ref().and_then(|result| result.get("__error__"));
        let start = json!({ "run_id": run.run_id, "attempt": run.attempt.max(1) });
        feed.push("metadata", &start).await?;
        match error {
            Some(error) => feed.push("error", error).await?,
            None => feed.push("values", &result(run)).await?,
        }
    }
    feed.end(Json::Null);
    Ok(feed)
}

/// Starts a run and streams its events.
async fn start_stream(
    app: &Arc<App>,
    caller: &Caller,
    thread: Option<&str>,
    request: RunRequest,
    asked: Option<Asked>,
) -> Answer {
    let place = app.open_stream()?;
    let cancel = cancels(&request);
    let (run, active) = begin(app, caller, thread, request, asked).await?;
    let feed = match &active {
        Some(active) => active.feed.clone(),
        None => events_of(app, &run).await?,
    };
    let sse = Sse {
        reader: Some(feed.after(0)),
        ids: ids(&run),
        wanted: None,
        guard: CancelOnLeave::new(app, place, &run, cancel && active.is_some()),
    };
    let place = match thread {
        Some(_) => format!("/threads/{}/runs/{}", run.thread(), run.run_id),
        None => format!("/runs/{}", run.run_id),
    };
    Ok(with_locations(sse.into_response(), &place, Some(&format!("{place}/stream"))))
}

pub(super) async fn stream(
    state: State,
    caller: Caller,
    Path(thread): Path<String>,
    Keyed(request, asked): Keyed<RunRequest>,
) -> Answer {
    let thread = caller.thread(&thread)?;
    start_stream(&state, &caller, Some(&thread), request, asked).await
}

pub(super) async fn stream_stateless(
    state: State,
    caller: Caller,
    Keyed(request, asked): Keyed<RunRequest>,
) -> Answer {
    start_stream(&state, &caller, None, request, asked).await
}

/// The result of a run as JSON. Until it is there, a newline now and then shows that the server is.
fn waiting(feed: Arc<Feed>, guard: CancelOnLeave) -> Response {
    let body = futures_util::stream::unfold(Some((feed, guard)), |waiting| async {
        let (feed, mut guard) = waiting?;
        match tokio::time::timeout(HEARTBEAT, feed.result()).await {
            Err(_) => Some((Ok(Bytes::from_static(b"\n")), Some((feed, guard)))),
            Ok(Some(result)) => {
                guard.complete();
                Some((Ok(Bytes::from(result.to_string())), None))
            }
            // Another process continues the run. The response breaks off, and the client joins the run there.
            Ok(None) => {
                guard.complete();
                Some((Err(std::io::Error::other("the server stops")), None))
            }
        }
    });
    json_response(HttpBody::from_stream(body))
}

/// Starts a run and waits for its result.
async fn start_wait(
    app: &Arc<App>,
    caller: &Caller,
    thread: Option<&str>,
    request: RunRequest,
    asked: Option<Asked>,
) -> Answer {
    let open = app.open_stream()?;
    let cancel = cancels(&request);
    let (run, active) = begin(app, caller, thread, request, asked).await?;
    let response = match active {
        Some(active) => waiting(active.feed, CancelOnLeave::new(app, open, &run, cancel)),
        None => json_response(result(&run).to_string()),
    };
    let place = format!("/threads/{}/runs/{}", run.thread(), run.run_id);
    Ok(with_locations(response, &place, Some(&format!("{place}/join"))))
}

pub(super) async fn wait(
    state: State,
    caller: Caller,
    Path(thread): Path<String>,
    Keyed(request, asked): Keyed<RunRequest>,
) -> Answer {
    let thread = caller.thread(&thread)?;
    start_wait(&state, &caller, Some(&thread), request, asked).await
}

pub(super) async fn wait_stateless(
    state: State,
    caller: Caller,
    Keyed(request, asked): Keyed<RunRequest>,
) -> Answer {
    start_wait(&state, &caller, None, request, asked).await
}

async fn known(app: &App, caller: &Caller, thread: Option<&str>, run: &str) -> ApiResult<Run> {
    let run = id_in_path("run", run)?;
    let thread = thread.map(|thread| caller.thread(thread)).transpose()?;
    app.run(caller, thread.as_deref(), &run).await
}

/// A run that is not over, with its feed. If it is over by now, the run as it ended.
async fn open(app: &App, run: Run) -> ApiResult<(Run, Option<Active>)> {
    if run.status.is_over() {
        return Ok((run, None));
    }
    match app.hub.get(&run.run_id) {
        Some(active) => Ok((run, Some(active))),
        // It ended meanwhile, or it has not been looked at since the server started.
        None => match app.store.run(Some(&run.thread_id), &run.run_id).await? {
            Some(now) if now.status.is_over() => Ok((now, None)),
            Some(now) => {
                let active = queue::follow_run(app, &now).await?;
                // It may have ended before it was added, and then its feed would never end.
                match app.store.run(Some(&now.thread_id), &now.run_id).await? {
                    Some(now) if !now.status.is_over() => Ok((now, Some(active))),
                    ended => {
                        app.drop_run(&now.run_id);
                        Ok((ended.ok_or_else(|| ApiError::no_run(&now.run_id))?, None))
                    }
                }
            }
            None => Err(ApiError::no_run(&run.run_id)),
        },
    }
}

async fn join_run(app: &Arc<App>, run: Run, query: &Query) -> Answer {
    let cancel = query.flag("cancel_on_disconnect")?;
    let reading = app.open_stream()?;
    let place = format!("/threads/{}/runs/{}", run.thread(), run.run_id);
    let (run, active) = open(app, run).await?;
    let response = match active {
        Some(active) => waiting(active.feed, CancelOnLeave::new(app, reading, &run, cancel)),
        None => json_response(result(&run).to_string()),
    };
    Ok(with_locations(response, &place, Some(&format!("{place}/join"))))
}

pub(super) async fn join(
    state: State,
    caller: Caller,
    Path((thread, run)): Path<(String, String)>,
    query: Query,
) -> Answer {
    let run = known(&state, &caller, Some(&thread), &run).await?;
    join_run(&state, run, &query).await
}

pub(super) async fn join_stateless(
    state: State,
    caller: Caller,
    Path(run): Path<String>,
    query: Query,
) -> Answer {
    let run = known(&state, &caller, None, &run).await?;
    join_run(&state, run, &query).await
}

/// The event after which a reader wants to continue. `None` if the id is not valid.
fn last_event(headers: &HeaderMap, run: &Run) -> Option<Option<u64>> {
    let id = headers.get("last-event-id")?.to_str().unwrap_or_default();
    if matches!(id, "-1" | "0" | "0-0") {
        return Some(Some(0));
    }
    let parts = id.split_once('-');
    let own = run.created_at.millis().to_string();
    Some(parts.filter(|(ms, _)| *ms == own).and_then(|(_, seq)| seq.parse().ok()))
}

async fn join_stream_of(app: &Arc<App>, run: Run, headers: &HeaderMap, query: &Query) -> Answer {
    let cancel = query.flag("cancel_on_disconnect")?;
    let reading = app.open_stream()?;
    let place = format!("/threads/{}/runs/{}", run.thread(), run.run_id);
    let after = last_event(headers, &run);
    let (run, active) = open(app, run).await?;
    let reader = match (active, after) {
        (_, Some(None)) => None,
        (Some(active), Some(Some(after))) => Some(active.feed.after(after)),
        (Some(active), None) => Some(active.feed.from_now()),
        (None, Some(Some(after))) if run.resumable() => {
            let feed = Feed::new(&run.run_id, true, app.store.clone());
            feed.take_up().await?;
            feed.end(Json::Null);
            Some(feed.after(after))
        }
        (None, _) => None,
    };
    let wanted = query.list("stream_mode").filter(|modes| !modes.is_empty());
    let guard = CancelOnLeave::new(app, reading, &run, cancel && reader.is_some());
    let sse = Sse { reader, ids: ids(&run), wanted, guard };
    Ok(with_locations(sse.into_response(), &place, Some(&format!("{place}/stream"))))
}

pub(super) async fn join_stream(
    state: State,
    caller: Caller,
    Path((thread, run)): Path<(String, String)>,
    headers: HeaderMap,
    query: Query,
) -> Answer {
    let run = known(&state, &caller, Some(&thread), &run).await?;
    join_stream_of(&state, run, &headers, &query).await
}

pub(super) async fn join_stream_stateless(
    state: State,
    caller: Caller,
    Path(run): Path<String>,
    headers: HeaderMap,
    query: Query,
) -> Answer {
    let run = known(&state, &caller, None, &run).await?;
    join_stream_of(&state, run, &headers, &query).await
}
