//! The thread protocol over HTTP and over a websocket.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value as Json, json};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use uuid::Uuid;

use schemars::JsonSchema;

use super::operation::{Action, Content, Operation, Resource, get, post};
use super::{Answer, State, json as answer};
use crate::app::{App, stopped};
use crate::error::{ApiError, ApiResult};
use crate::events::{HEARTBEAT_COMMENT, sse_response};
use crate::protocol::{
    CommandError, Envelope, Filter, Next, Session, SessionReader, follow, run_command,
};
use crate::wire::{Path, RawBody, id_in_path};

/// The largest command over a websocket, in bytes.
const FRAME_MAX: usize = 1 << 20;
/// How many subscriptions a websocket may have.
const SUBSCRIPTIONS_MAX: usize = 32;
/// How many events wait for a slow client. The rest stays in the log.
const WAITING_MAX: usize = 16;

/// A command to a thread.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is a schema")]
pub(super) struct CommandObject {
    id: u64,
    method: String,
    params: Option<serde_json::Map<String, Json>>,
}

/// The answer to a command.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is a schema")]
struct CommandAnswer {
    /// `success` or `error`.
    r#type: String,
    id: Option<u64>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    result: Option<Json>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    meta: Option<Json>,
    /// Why the command was refused.
    #[schemars(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// Which events of a thread a client wants.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is a schema")]
pub(super) struct SubscribeObject {
    /// `values`, `updates`, `messages`, `tools`, `lifecycle`, `input`, `tasks`, `custom`, `custom:NAME`, `checkpoints`.
    channels: Vec<String>,
    /// Prefixes of namespaces.
    namespaces: Option<Vec<Vec<String>>>,
    /// How many levels below a prefix.
    depth: Option<u64>,
    /// Only events after this number.
    since: Option<u64>,
}

pub(super) fn operations() -> Vec<Operation> {
    let (kind, events_path) = (Resource::Threads, "/threads/{thread_id}/stream/events");
    vec![
        post("/threads/{thread_id}/commands", Resource::Runs, Action::Create, command)
            .summary("Send a command of the thread protocol")
            .json::<CommandAnswer>()
            .refuses([400, 429]),
        post(events_path, kind, Action::Read, events)
            .summary("Stream the events of all runs of a thread, by the thread protocol")
            .answers(200, Content::Events)
            .refuses([400]),
        get(events_path, Resource::Runs, Action::Create, websocket)
            .summary("Open a websocket for commands and events of the thread protocol")
            .answers(101, Content::Nothing)
            .refuses([400, 426]),
    ]
}

/// The command does not have the form of one.
fn malformed(why: &str) -> Response {
    let mut body = Envelope::error(None, "invalid_argument", why);
    body["detail"] = why.into();
    let mut response = answer(body);
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}

pub(super) async fn command(
    state: State,
    Path(thread): Path<String>,
    RawBody(body, _): RawBody<CommandObject>,
) -> Answer {
    let thread = id_in_path("thread", &thread)?;
    let command = match Envelope::read(&body) {
        Ok(command) => command,
        Err(why) => return Ok(malformed(&why)),
    };
    Ok(answer(match run_command(&state, &thread, &command).await {
        Ok((result, applied)) => command.success(result, applied),
        Err(CommandError::Refused { code, message }) => {
            Envelope::error(Some(command.id), code, &message)
        }
        Err(CommandError::Failed(error)) => return Err(error),
    }))
}

async fn reader(app: &Arc<App>, thread: &str, filter: Filter) -> ApiResult<SessionReader> {
    // The session is there before the thread is looked at, so that a run that is started meanwhile tells it.
    let session = Session::open(app, thread).await?;
    follow(app, thread).await?;
    Ok(SessionReader::new(app, session, filter))
}

pub(super) async fn events(
    state: State,
    Path(thread): Path<String>,
    RawBody(body, _): RawBody<SubscribeObject>,
) -> Answer {
    let thread = id_in_path("thread", &thread)?;
    let params: Json = serde_json::from_slice(&body)
        .map_err(|error| ApiError::bad_request(format!("the body is not JSON: {error}")))?;
    let filter = Filter::read(&params).map_err(ApiError::bad_request)?;
    let reader = reader(&state, &thread, filter).await?;
    let frames = futures_util::stream::unfold(Some(reader), |reader| async move {
        let mut reader = reader?;
        let bytes = match reader.next().await {
            Ok(Next::Event { seq, method, text }) => {
                Bytes::from(format!("event: {method}\r\ndata: {text}\r\nid: {seq}\r\n\r\n"))
            }
            Ok(Next::Silence) => Bytes::from_static(HEARTBEAT_COMMENT),
            // Breaks off, so that the client comes back with the last number it has seen.
            Ok(Next::Stopping) => {
                return Some((Err(std::io::Error::other("the server stops")), None));
            }
            Err(error) => {
                tracing::error!(%error, "the session of a thread could not be read");
                return Some((Err(std::io::Error::other(error)), None));
            }
        };
        Some((Ok(bytes), Some(reader)))
    });
    Ok(sse_response(frames))
}

pub(super) async fn websocket(
    state: State,
    Path(thread): Path<String>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer {
    let thread = id_in_path("thread", &thread)?;
    let upgrade = upgrade.map_err(|why| ApiError::new(why.status(), why.body_text()))?;
    let app = state.0.clone();
    let upgrade = upgrade.max_message_size(FRAME_MAX);
    Ok(upgrade.on_upgrade(move |socket| Connection::new(app, thread).serve(socket)))
}

/// A websocket of one client.
struct Connection {
    app: Arc<App>,
    thread: String,
    subscriptions: HashMap<String, AbortHandle>,
    readers: JoinSet<()>,
    events: mpsc::Sender<Option<String>>,
    waiting: Option<mpsc::Receiver<Option<String>>>,
}

impl Connection {
    fn new(app: Arc<App>, thread: String) -> Self {
        let (events, waiting) = mpsc::channel(WAITING_MAX);
        let (subscriptions, readers) = (HashMap::new(), JoinSet::new());
        Self { app, thread, subscriptions, readers, events, waiting: Some(waiting) }
    }

    async fn serve(mut self, mut socket: WebSocket) {
        let Some(mut waiting) = self.waiting.take() else { return };
        let mut stopping = self.app.stopping.subscribe();
        loop {
            let text = tokio::select! {
                frame = socket.recv() => match frame {
                    Some(Ok(Message::Text(text))) => self.command(text.as_bytes()).await.to_string(),
                    Some(Ok(Message::Binary(bytes))) => self.command(&bytes).await.to_string(),
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                },
                Some(event) = waiting.recv() => match event {
                    Some(text) => text,
                    // The reader cannot continue here. The client reconnects.
                    None => return close(socket).await,
                },
                () = stopped(&mut stopping) => return close(socket).await,
            };
            if socket.send(Message::text(text)).await.is_err() {
                return;
            }
        }
    }

    async fn command(&mut self, bytes: &[u8]) -> Json {
        let command = match Envelope::read(bytes) {
            Ok(command) => command,
            Err(why) => return Envelope::error(None, "invalid_argument", &why),
        };
        let done = match &*command.method {
            "subscription.subscribe" => self.subscribe(&command.params).await,
            "subscription.unsubscribe" => self.unsubscribe(&command.params),
            _ => run_command(&self.app, &self.thread, &command).await,
        };
        match done {
            Ok((result, applied)) => command.success(result, applied),
            Err(CommandError::Refused { code, message }) => {
                Envelope::error(Some(command.id), code, &message)
            }
            Err(CommandError::Failed(error)) => {
                Envelope::error(Some(command.id), "unknown_error", &error.detail)
            }
        }
    }

    async fn subscribe(&mut self, params: &Json) -> Result<(Json, Option<u64>), CommandError> {
        let invalid = |message: String| CommandError::Refused { code: "invalid_argument", message };
        let filter = Filter::read(params).map_err(invalid)?;
        if self.subscriptions.len() >= SUBSCRIPTIONS_MAX {
            return Err(invalid(format!(
                "a connection has at most {SUBSCRIPTIONS_MAX} subscriptions"
            )));
        }
        let mut reader = reader(&self.app, &self.thread, filter).await?;
        let events = self.events.clone();
        let reading = self.readers.spawn(async move {
            loop {
                let event = match reader.next().await {
                    Ok(Next::Event { text, .. }) => Some(text),
                    Ok(Next::Silence) => continue,
                    Ok(Next::Stopping) => None,
                    Err(error) => {
                        tracing::error!(%error, "the session of a thread could not be read");
                        None
                    }
                };
                let last = event.is_none();
                if events.send(event).await.is_err() || last {
                    return;
                }
            }
        });
        let id = Uuid::new_v4().to_string();
        self.subscriptions.insert(id.clone(), reading);
        Ok((json!({ "subscription_id": id }), None))
    }

    fn unsubscribe(&mut self, params: &Json) -> Result<(Json, Option<u64>), CommandError> {
        let id = params["subscription_id"].as_str().unwrap_or_default();
        match self.subscriptions.remove(id) {
            Some(reading) => {
                reading.abort();
                Ok((json!({}), None))
            }
            None => Err(CommandError::Refused {
                code: "no_such_subscription",
                message: format!("there is no subscription `{id}` on this connection"),
            }),
        }
    }
}

async fn close(mut socket: WebSocket) {
    let reason = "the stream breaks off; connect again".into();
    let frame = CloseFrame { code: close_code::RESTART, reason };
    // The client may be gone already.
    let _ = socket.send(Message::Close(Some(frame))).await;
}
