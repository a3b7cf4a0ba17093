//! One stream over all runs of a thread.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::HeaderMap;
use serde_json::{Value as Json, json};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use super::operation::{Action, Content, Operation, Resource, get};
use super::{Answer, State};
use crate::access::Caller;
use crate::app::{App, stopped};
use crate::error::{ApiError, ApiResult};
use crate::events::{
    Feed, FeedReader, HEARTBEAT, HEARTBEAT_COMMENT, Started, frame_text, sse_response,
};
use crate::store::{ListQuery, Run, RunStatus, StoreError, Stored};
use crate::wire::{Path, Query};

pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/threads/{thread_id}/stream", Resource::Threads, Action::Read, stream)
            .summary("Stream the events of all runs of a thread")
            .query::<Vec<String>>("stream_modes", "run_modes, lifecycle or state_update")
            .query::<Vec<String>>("stream_mode", "The same under the name that clients send")
            .header::<String>("last-event-id", "Go on after this event; -1 is the beginning")
            .answers(200, Content::Events)
            .refuses([404]),
    ]
}

/// What a reader wants to see.
#[derive(Clone, Copy, Default)]
struct Wanted {
    /// All events of runs.
    runs: bool,
    /// The start and the end of each run.
    lifecycle: bool,
}

/// Where a reader continues: the time of a run in microseconds, and the number of the event it saw last.
#[derive(Clone, Copy)]
struct Place {
    run: i64,
    seq: u64,
}

fn wanted(query: &Query) -> ApiResult<Wanted> {
    let mut wanted = Wanted::default();
    let modes = query.list("stream_modes").or_else(|| query.list("stream_mode"));
    for mode in
        modes.filter(|modes| !modes.is_empty()).unwrap_or_else(|| vec!["run_modes".to_owned()])
    {
        match &*mode {
            "run_modes" => wanted.runs = true,
            "lifecycle" => wanted.lifecycle = true,
            // Such events have no form that any client reads.
            "state_update" => {}
            other => {
                return Err(ApiError::invalid(format!(
                    "unknown mode `{other}` of a thread's stream; there are run_modes, lifecycle and state_update"
                )));
            }
        }
    }
    Ok(wanted)
}

fn place(headers: &HeaderMap) -> ApiResult<Option<Place>> {
    let Some(id) = headers.get("last-event-id") else { return Ok(None) };
    let id = id.to_str().unwrap_or_default();
    if matches!(id, "-1" | "0" | "0-0") {
        return Ok(Some(Place { run: 0, seq: 0 }));
    }
    let parts = id.split_once('-');
    let place =
        parts.and_then(|(run, seq)| Some(Place { run: run.parse().ok()?, seq: seq.parse().ok()? }));
    place.map(Some).ok_or_else(|| {
        ApiError::invalid(format!(
            "`Last-Event-ID` is `{id}`; send the id of an event of this stream"
        ))
    })
}

/// A run that is shown, from some event on.
struct Shown {
    run_id: String,
    time: i64,
    reader: FeedReader,
    feed: Arc<Feed>,
    last: u64,
}

impl Shown {
    fn new(started: Started, after: u64) -> Self {
        let Started { run_id, created_at, feed } = started;
        Self { run_id, time: created_at.0, reader: feed.after(after), feed, last: after }
    }
}

struct Stream {
    wanted: Wanted,
    started: broadcast::Receiver<Started>,
    stopping: watch::Receiver<bool>,
    /// Runs that are shown before those that start from now on.
    earlier: VecDeque<(Started, u64)>,
    shown: Option<Shown>,
    /// The run that was shown last, and how far: it may continue after a pause.
    before: Option<(String, u64)>,
    sent: Instant,
}

fn frame(time: i64, frame: &Stored) -> Bytes {
    frame_text(frame, Some(&format!("{time}-{}", frame.seq))).into()
}

impl Stream {
    /// Text for the reader. Nothing if the stream breaks off, and the reader is to come back.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let due = self.sent + HEARTBEAT;
            let told = tokio::select! {
                told = step(&mut self.shown, &mut self.earlier, &mut self.started) => told,
                () = tokio::time::sleep_until(due) => {
                    self.sent = Instant::now();
                    return Some(Bytes::from_static(HEARTBEAT_COMMENT));
                }
                () = stopped(&mut self.stopping) => return None,
            };
            let bytes = match told {
                Ok(Step::Start(started, after)) => {
                    self.start(started, after);
                    None
                }
                Ok(Step::Event(event)) => self.event(&event),
                Ok(Step::End) => self.end().await,
                Ok(Step::Behind) => return None,
                Err(error) => {
                    tracing::error!(%error, "the stream of a thread could not be read");
                    return None;
                }
            };
            if bytes.is_some() {
                self.sent = Instant::now();
                return bytes;
            }
        }
    }

    fn start(&mut self, started: Started, after: u64) {
        let seen = self.before.as_ref().filter(|(run, _)| *run == started.run_id);
        let after = seen.map_or(after, |(_, last)| after.max(*last));
        self.shown = Some(Shown::new(started, after));
    }

    fn event(&mut self, event: &Stored) -> Option<Bytes> {
        let shown = self.shown.as_mut()?;
        shown.last = event.seq;
        let is_start = event.event == "metadata";
        let wanted = self.wanted.runs || (self.wanted.lifecycle && is_start);
        wanted.then(|| frame(shown.time, event))
    }

    async fn end(&mut self) -> Option<Bytes> {
        let shown = self.shown.take()?;
        self.before = Some((shown.run_id.clone(), shown.last));
        // A run without a result was put back, and continues later.
        shown.feed.result().await?;
        let data = json!({ "status": "run_done", "run_id": shown.run_id });
        // The last events may be some that are not shown.
        let seq = shown.last.max(shown.feed.shown()) + 1;
        let end = Stored { seq, event: "metadata".to_owned(), data: data.to_string() };
        (self.wanted.runs || self.wanted.lifecycle).then(|| frame(shown.time, &end))
    }
}

enum Step {
    Start(Started, u64),
    Event(Arc<Stored>),
    /// The run that is shown has no more events.
    End,
    /// The reader missed the start of a run.
    Behind,
}

async fn step(
    shown: &mut Option<Shown>,
    earlier: &mut VecDeque<(Started, u64)>,
    started: &mut broadcast::Receiver<Started>,
) -> Result<Step, StoreError> {
    if let Some(shown) = shown {
        return Ok(shown.reader.next().await?.map_or(Step::End, Step::Event));
    }
    if let Some((started, after)) = earlier.pop_front() {
        return Ok(Step::Start(started, after));
    }
    Ok(started.recv().await.map_or(Step::Behind, |started| Step::Start(started, 0)))
}

/// The runs that a reader sees before new ones: the one that is running, and those that it missed.
async fn earlier(
    app: &App,
    thread: &str,
    place: Option<Place>,
) -> ApiResult<VecDeque<(Started, u64)>> {
    let mut found = VecDeque::new();
    let mut offset = 0;
    loop {
        let query = ListQuery {
            equal: vec![("thread_id", vec![thread.to_owned()])],
            offset,
            limit: 100,
            ..ListQuery::default()
        };
        let page = app.store.runs(query).await?;
        offset += page.rows.len();
        for run in &page.rows {
            let from = place.map_or(i64::MAX, |place| place.run);
            if run.created_at.0 < from && run.status != RunStatus::Running {
                if place.is_some() {
                    return Ok(found);
                }
                continue;
            }
            if let Some(at) = resume(app, run, place).await? {
                found.push_front(at);
            }
        }
        if !page.more || place.is_none() {
            return Ok(found);
        }
    }
}

/// Where a reader continues in a run; `None` if it cannot.
async fn resume(app: &App, run: &Run, place: Option<Place>) -> ApiResult<Option<(Started, u64)>> {
    if run.status == RunStatus::Pending {
        return Ok(None);
    }
    let seen = place.filter(|place| place.run == run.created_at.0).map(|place| place.seq);
    let active = app.hub.get(&run.run_id).filter(|_| !run.status.is_over());
    let (feed, after) = match active {
        Some(active) => {
            let now = active.feed.shown();
            let missed = place.is_some() && run.resumable();
            let after = if missed { seen.unwrap_or(0) } else { now };
            (active.feed, after)
        }
        None if run.resumable() && run.status.is_over() => {
            let feed = Feed::new(&run.run_id, true, app.store.clone());
            feed.take_up().await?;
            feed.end(Json::Null);
            // Its end has been seen, too.
            if seen.is_some_and(|seen| seen > feed.shown()) {
                return Ok(None);
            }
            (feed, seen.unwrap_or(0))
        }
        None => return Ok(None),
    };
    Ok(Some((Started::new(run, &feed), after)))
}

pub(super) async fn stream(
    state: State,
    caller: Caller,
    Path(thread): Path<String>,
    headers: HeaderMap,
    query: Query,
) -> Answer {
    let thread = caller.thread(&thread)?;
    let (wanted, place) = (wanted(&query)?, place(&headers)?);
    state.thread(&caller, &thread).await?;
    // Runs that start from here on are not missed.
    let started = state.hub.watch(&thread);
    let earlier = earlier(&state, &thread, place).await?;
    let before = earlier.back().map(|(run, after)| (run.run_id.clone(), *after));
    let stream = Stream {
        wanted,
        started,
        stopping: state.stopping.subscribe(),
        earlier,
        shown: None,
        before,
        sent: Instant::now(),
    };
    let frames = futures_util::stream::unfold(Some(stream), |stream| async move {
        let mut stream = stream?;
        match stream.next().await {
            Some(bytes) => Some((Ok(bytes), Some(stream))),
            // Breaks off, so that the reader comes back.
            None => Some((Err(std::io::Error::other("the stream of the thread breaks off")), None)),
        }
    });
    Ok(sse_response(frames))
}
