//! A stream that is read event by event while other things are done.

use axum::body::BodyDataStream;
use axum::http::StatusCode;
use futures_util::StreamExt as _;
use serde_json::{Value as Json, json};

use crate::world::World;

pub(crate) struct Live {
    chunks: BodyDataStream,
    text: String,
}

/// An event: its id, its name and its data.
pub(crate) type Event = (String, String, Json);

impl Live {
    pub(crate) async fn open(
        world: &World,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Json,
    ) -> Self {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let response = world.open(method, path, headers, body).await;
        assert_eq!(response.status(), StatusCode::OK);
        Self { chunks: response.into_body().into_data_stream(), text: String::new() }
    }

    /// The events of a session of the thread protocol.
    pub(crate) async fn session(world: &World, thread: &str, params: Json) -> Self {
        Self::open(world, "POST", &format!("/threads/{thread}/stream/events"), &[], &params).await
    }

    /// The next event. Nothing if the stream breaks off.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\r\n\r\n") {
                let frame = frame.to_owned();
                self.text = rest.to_owned();
                if frame.starts_with(':') {
                    continue;
                }
                let field = |name: &str| {
                    let mut lines = frame.lines();
                    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
                };
                let data = serde_json::from_str(field("data").expect("data")).expect("JSON");
                let text = |name| field(name).unwrap_or_default().to_owned();
                return Some((text("id"), text("event"), data));
            }
            let chunk = self.chunks.next().await?.ok()?;
            self.text.push_str(std::str::from_utf8(&chunk).expect("text"));
        }
    }

    /// All events up to the first that is as wanted.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let event = self.next().await.expect("the stream goes on");
            events.push(event);
            if events.last().is_some_and(&wanted) {
                return events;
            }
        }
    }
}

/// Whether an event says that a run of the thread is over.
pub(crate) fn is_end((_, event, data): &Event) -> bool {
    let words = ["completed", "failed", "interrupted"];
    let word = data["params"]["data"]["event"].as_str().unwrap_or_default();
    event == "lifecycle" && data["params"]["namespace"] == json!([]) && words.contains(&word)
}

pub(crate) async fn command(world: &World, thread: &str, method: &str, params: Json) -> Json {
    let body = json!({ "id": 7, "method": method, "params": params });
    let answered = world.post(&format!("/threads/{thread}/commands"), body).await;
    assert_eq!(answered.status, StatusCode::OK, "{}", answered.text);
    let answer = answered.json();
    assert_eq!(answer["id"], 7, "{answer}");
    answer
}
