//! Streams that do not end by themselves: what is done while they are read, and how far.

use axum::body::Body;
use axum::http::Request;
use futures_util::StreamExt as _;
use serde_json::{Value as Json, json};
use tower::ServiceExt as _;

use crate::matching::Names;
use crate::{Answered, Client};

/// Opens a stream, does what was done when it was recorded, and reads as many events as were recorded.
pub(crate) async fn answer(
    client: &Client,
    names: &mut Names,
    recording: &Json,
    (method, path): (&str, &str),
    body: String,
) -> Answered {
    let request = Request::builder().method(method).uri(path).body(Body::from(body));
    let response = client.router().oneshot(request.expect("a request")).await.expect("an answer");
    let (parts, body) = response.into_parts();
    let thread = names.get("thread").expect("a thread").to_owned();
    let recorded = recording["response"]["sse"].as_array().expect("events").len();
    let mut text = String::new();
    let mut chunks = body.into_data_stream();
    let read = async {
        while text.matches("event: ").count() < recorded {
            let chunk = chunks.next().await.expect("the stream goes on").expect("a chunk");
            text.push_str(std::str::from_utf8(&chunk).expect("text"));
        }
    };
    let mut learnt = Names::default();
    let done = async {
        match recording["name"].as_str() {
            Some("protocol-events-interrupt") => {
                learnt.set("thread", &thread);
                ask(client, &mut learnt, &thread).await;
                let id = learnt.get("interrupt:1").expect("a question");
                let params = json!({ "namespace": [], "interrupt_id": id, "response": "yes" });
                command(client, &thread, "input.respond", params).await;
            }
            Some("protocol-events-messages") => {
                let input = json!({ "messages": [{ "role": "user", "content": "hi there" }] });
                let params = json!({ "assistant_id": "chat", "input": input });
                command(client, &thread, "run.start", params).await;
            }
            _ => {
                let body =
                    json!({ "assistant_id": "counter", "input": {}, "stream_mode": ["updates"] });
                client.call("POST", &format!("/threads/{thread}/runs"), body).await;
            }
        }
    };
    let ((), ()) = tokio::join!(read, done);
    Answered { status: parts.status, headers: parts.headers, text }
}

async fn command(client: &Client, thread: &str, method: &str, params: Json) -> Json {
    let body = json!({ "id": 1, "method": method, "params": params });
    client.call("POST", &format!("/threads/{thread}/commands"), body).await.json()
}

/// Starts the graph that asks, and waits for its question.
pub(crate) async fn ask(client: &Client, names: &mut Names, thread: &str) {
    let params = json!({ "assistant_id": "approval", "input": { "topic": "cats" } });
    command(client, thread, "run.start", params).await;
    let path = format!("/threads/{thread}");
    loop {
        let thread = client.call("GET", &path, Json::Null).await.json();
        let asked = thread["interrupts"].as_object().and_then(|asked| asked.values().next());
        if let Some(asked) = asked {
            return names.set("interrupt:1", asked[0]["id"].as_str().expect("an id"));
        }
        tokio::task::yield_now().await;
    }
}

/// Events of the thread protocol without their numbers, which must increase. We deliver channels on which the reference is
/// silent, and their events are counted, too. A question has its value under a second name, which one client reads.
pub(crate) fn without_numbers(frames: &Json) -> Result<Json, String> {
    let mut last = 0;
    let mut all = Vec::new();
    for frame in frames.as_array().into_iter().flatten() {
        let mut frame = frame.clone();
        if let Some(seq) = frame["data"]["seq"].as_u64() {
            let id = frame["id"].as_str().and_then(|id| id.parse().ok());
            if seq <= last || id != Some(seq) {
                return Err(format!("{seq} after {last}, with the id {}", frame["id"]));
            }
            last = seq;
            frame["id"] = Json::Null;
            frame["data"]["seq"] = Json::Null;
            if let Some(asked) = frame["data"]["params"]["data"].as_object_mut()
                && asked.contains_key("interrupt_id")
            {
                asked.remove("value");
            }
        }
        all.push(frame);
    }
    Ok(Json::Array(all))
}
