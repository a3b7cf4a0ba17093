//! Every exchange that was recorded with the reference server, against ours: the same requests, the same answers.
//!
//! What does not pass is listed with its reason. Something that passes and is listed fails the test too, so the list is true.

mod live;
mod matching;
mod setup;

use std::path::Path;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use matching::Names;
use serde_json::{Value as Json, json};
use superstep_server::{Running, Server, demo};
use tower::ServiceExt as _;

/// What does not pass, and why.
const NOT_PASSING: [(&str, &str); 6] = [
    ("info", "the server names itself and its version"),
    ("thread-create", "a new thread has `interrupts` and `error` too, as every other answer has"),
    ("thread-state-after-error", "the text of a failed task is quoted with double quotes"),
    ("parallel-interrupt-wait", "the values are there too when several questions are open"),
    ("nested-state-subgraphs", "the metadata of a nested checkpoint has no `checkpoint_map`"),
    (
        "assistant-schemas",
        "schemas come from Rust types: fields are optional, and have other titles",
    ),
];

pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answered {
    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.text).unwrap_or(Json::Null)
    }

    /// The events of a stream.
    fn frames(&self) -> Json {
        let frames = self.text.split("\r\n\r\n").filter(|frame| !frame.trim().is_empty());
        let frames = frames.filter(|frame| !frame.starts_with(':'));
        let parse = |frame: &str| {
            let mut json = json!({});
            for line in frame.lines() {
                let (field, value) = line.split_once(": ").expect("a field of an event");
                json[field] = match field {
                    "data" => serde_json::from_str(value).expect("the data of an event is JSON"),
                    _ => value.into(),
                };
            }
            json
        };
        frames.map(parse).collect()
    }
}

pub(crate) struct Client {
    router: Router,
    _server: Running,
}

impl Client {
    async fn new() -> Self {
        let mut server = Server::new();
        for (name, graph) in demo::graphs().expect("the demo's graphs") {
            server = server.graph(name, graph);
        }
        let server = server.start().await.expect("a server");
        Self { router: server.router(), _server: server }
    }

    pub(crate) fn router(&self) -> Router {
        self.router.clone()
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: String,
    ) -> Answered {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(Body::from(body)).expect("a request");
        let response = self.router.clone().oneshot(request).await.expect("an answer");
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, 1 << 24).await.expect("a body");
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        Answered { status: parts.status, headers: parts.headers, text }
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: Json) -> Answered {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send(method, path, &[], body).await
    }
}

fn recordings() -> Vec<(String, Json)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/data");
    let files = std::fs::read_dir(dir).expect("the recordings");
    let mut files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    files.sort();
    let read = |file: &std::path::PathBuf| {
        let text = std::fs::read_to_string(file).expect("a recording");
        let json: Json = serde_json::from_str(&text).expect("a recording is JSON");
        (json["name"].as_str().expect("a name").to_owned(), json)
    };
    files.iter().map(read).collect()
}

/// Sends a recorded request. Returns what differs from the recorded answer.
pub(crate) async fn replay(
    client: &Client,
    names: &mut Names,
    recording: &Json,
) -> Result<(), String> {
    let request = &recording["request"];
    let path = names.fill(request["path"].as_str().expect("a path"));
    let headers = request["headers"].as_object().into_iter().flatten();
    let headers: Vec<_> = headers
        .map(|(name, value)| (name.clone(), names.fill(value.as_str().unwrap_or_default())))
        .collect();
    let body = match (request.get("raw_body"), request.get("body")) {
        (Some(raw), _) => raw.as_str().unwrap_or_default().to_owned(),
        (None, Some(body)) => names.fill_json(body).to_string(),
        (None, None) => String::new(),
    };
    let method = request["method"].as_str().expect("a method");
    let answered = match recording["response"].get("note") {
        Some(_) => live::answer(client, names, recording, (method, &path), body).await,
        None => client.send(method, &path, &headers, body).await,
    };
    let recorded = &recording["response"];
    if recorded["status"].as_u64() != Some(answered.status.as_u16().into()) {
        return Err(format!(
            "{} {}, recorded {}",
            answered.status, answered.text, recorded["status"]
        ));
    }
    for (name, value) in recorded["headers"].as_object().into_iter().flatten() {
        // Of the connection, not of the answer.
        if name == "connection" {
            continue;
        }
        let ours = answered.headers.get(name).and_then(|value| value.to_str().ok());
        names.compare(value, &json!(ours), &format!("header {name}"))?;
    }
    if answered.status.is_client_error() {
        let detail = answered.json()["detail"].as_str().is_some_and(|detail| !detail.is_empty());
        return if detail { Ok(()) } else { Err(format!("no detail: {}", answered.text)) };
    }
    let (recorded, ours) = match recorded.get("sse") {
        Some(frames) => {
            (live::without_numbers(frames)?, live::without_numbers(&answered.frames())?)
        }
        None => (recorded["body"].clone(), answered.json()),
    };
    let recorded = setup::comparable(setup::without_foreign(recorded));
    names.compare(&recorded, &setup::comparable(ours), "body")
}

#[tokio::test]
async fn answers_are_those_that_were_recorded() {
    let all = recordings();
    let mut passed = 0;
    let mut failed = Vec::new();
    for (name, recording) in &all {
        let client = Client::new().await;
        let mut names = Names::default();
        for graph in demo::graphs().expect("the demo's graphs") {
            let body = json!({ "graph_id": graph.0 });
            let found = client.call("POST", "/assistants/search", body).await.json();
            let id = found[0]["assistant_id"].as_str().expect("an assistant").to_owned();
            names.set(&format!("assistant:{}", graph.0), &id);
        }
        setup::prepare(&client, &mut names, name, &all).await;
        match replay(&client, &mut names, recording).await {
            Ok(()) => passed += 1,
            Err(why) => failed.push((name.as_str(), why)),
        }
    }
    println!("{passed} of {} recordings pass", all.len());
    for (name, why) in &failed {
        println!("  {name}: {why}");
    }
    let failed: Vec<&str> = failed.iter().map(|(name, _)| *name).collect();
    let listed: Vec<&str> = NOT_PASSING.iter().map(|(name, _)| *name).collect();
    assert_eq!(failed, listed, "what fails is not what is listed");
}
