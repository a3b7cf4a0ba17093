//! An axum service that runs a graph: events over SSE, tokens with ids, an inbox of open questions, answers, graceful shutdown.
//!
//! ```sh
//! cargo run -p superstep-examples --bin service -- desk.db 127.0.0.1:8080
//! curl -N localhost:8080/threads/mail-1 -d 'Where is my parcel?'
//! curl localhost:8080/inbox
//! curl -N localhost:8080/threads/mail-1/answer -H 'content-type: application/json' -d true
//! ```

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Path, State as AppState};
use axum::response::sse::{Event, Sse};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::{Stream, StreamExt};
use serde::Serialize;
use serde_json::{Value as AnyJson, json};
use superstep::checkpoint::{AnyCheckpointer, ThreadQuery};
use superstep::prelude::*;
use superstep::{CompiledGraph, Run, RunControl, shutdown};
use superstep_sqlite::SqliteSaver;

#[derive(State, Clone, Default, Serialize)]
struct Desk {
    #[channel(reduce = Messages)]
    messages: Vec<Message>,
    sent: bool,
}

/// Drafts an answer token by token. The chunks and the message have one id, so that a reader can put them together.
async fn draft(desk: Arc<Desk>, task: Task) -> DeskUpdate {
    let asked = desk.messages.last().map(Message::text).unwrap_or_default();
    let answer = format!("You asked: {asked}");
    let id = task.id().to_string();
    for token in answer.split_inclusive(' ') {
        task.emit_message(Message::ai_chunk(token).with_id(&*id));
        tokio::task::yield_now().await; // lets the reader take it
    }
    Desk::update().messages([Message::ai(answer).with_id(id)])
}

async fn send(task: Task) -> DeskUpdate {
    let approved: bool = task.interrupt("send it?").await;
    Desk::update().sent(approved)
}

#[derive(Clone)]
struct App {
    graph: CompiledGraph<Desk>,
    checkpointer: AnyCheckpointer,
    control: RunControl,
}

type Events = Sse<std::pin::Pin<Box<dyn Stream<Item = Result<Event, Infallible>> + Send>>>;

/// Streams a run. A reader that leaves drops the run; the next request continues the thread.
fn events(run: Run<Desk>, control: RunControl) -> Events {
    let events = run.control(control).stream([Mode::Messages, Mode::Updates]).map(|event| {
        let sent = event.map_err(|error| error.to_string()).and_then(|event| {
            let name = event.mode().map_or("outcome", Mode::as_str);
            let data = event.to_value().map_err(|error| error.to_string())?;
            Event::default().event(name).json_data(data).map_err(|error| error.to_string())
        });
        Ok(sent.unwrap_or_else(|error| Event::default().event("error").data(error)))
    });
    Sse::new(events.boxed())
}

async fn ask(AppState(app): AppState<App>, Path(id): Path<String>, text: String) -> Events {
    let input = Desk::update().messages([Message::human(text)]);
    events(app.graph.thread(id).invoke(input), app.control)
}

async fn answer(
    AppState(app): AppState<App>,
    Path(id): Path<String>,
    Json(answer): Json<AnyJson>,
) -> Events {
    events(app.graph.thread(id).resume(answer), app.control)
}

/// Every open question of every thread.
async fn inbox(AppState(app): AppState<App>) -> Result<Json<Vec<AnyJson>>, String> {
    let query = ThreadQuery::new(100).questions(true);
    let page = app.checkpointer.threads(query).await.map_err(|error| error.to_string())?;
    let questions = page.threads.iter().flat_map(|info| {
        let of = |asked: &superstep::checkpoint::Interrupt| {
            json!({ "thread": &*info.thread, "id": asked.id.as_str(), "question": asked.value })
        };
        info.pending.iter().map(of).collect::<Vec<_>>()
    });
    Ok(Json(questions.collect()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().unwrap_or_else(|| "desk.db".to_owned());
    let address = args.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());

    let checkpointer = AnyCheckpointer::new(SqliteSaver::open(file).await?);
    let graph = StateGraph::<Desk>::new()
        .add_node("draft", draft)
        .add_node("send", send)
        .add_edge(START, "draft")
        .add_edge("draft", "send")
        .compile()?
        .with_any_checkpointer(checkpointer.clone());
    let control = RunControl::new();
    shutdown::on_sigterm(control.clone(), Duration::from_secs(25))?;

    let router = Router::new()
        .route("/threads/{id}", post(ask))
        .route("/threads/{id}/answer", post(answer))
        .route("/inbox", get(inbox))
        .with_state(App { graph, checkpointer, control: control.clone() });
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("http://{}", listener.local_addr()?);
    axum::serve(listener, router).with_graceful_shutdown(control.draining()).await?;
    control.drained().await;
    println!("every run has stopped");
    Ok(())
}
