//! A server with the graphs of the demo, and requests to it without a connection.

use std::path::{Path, PathBuf};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::Response;
use serde_json::{Value as Json, json};
use superstep_server::{Database, Running, Server, demo};
use tower::ServiceExt as _;

pub(crate) struct World {
    pub(crate) router: Router,
    pub(crate) running: Running,
}

pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answered {
    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.text).unwrap_or(Json::Null)
    }

    /// The id, name and data of each event.
    pub(crate) fn events(&self) -> Vec<(String, String, Json)> {
        let frames = self.text.split("\r\n\r\n").filter(|frame| frame.starts_with("event"));
        let field = |frame: &str, name: &str| {
            let line = frame.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.unwrap_or_default().to_owned()
        };
        let parse = |frame: &str| {
            let data = serde_json::from_str(&field(frame, "data")).expect("JSON");
            (field(frame, "id"), field(frame, "event"), data)
        };
        frames.map(parse).collect()
    }
}

pub(crate) fn with_graphs(server: Server) -> Server {
    let graphs = demo::graphs().expect("the demo's graphs");
    graphs.into_iter().fold(server, |server, (name, graph)| server.graph(name, graph))
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::start(Server::new()).await
    }

    pub(crate) async fn start(server: Server) -> Self {
        let running = with_graphs(server).start().await.expect("a server");
        Self { router: running.router(), running }
    }

    pub(crate) async fn on(file: &Path) -> Self {
        Self::start(Server::new().database(Database::Sqlite(file.to_owned()))).await
    }

    /// The answer, before its body was read.
    pub(crate) async fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Response {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.into()).expect("a request");
        self.router.clone().oneshot(request).await.expect("an answer")
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answered {
        let (parts, body) = self.open(method, path, headers, body).await.into_parts();
        let bytes = axum::body::to_bytes(body, 1 << 26).await.expect("a body");
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        Answered { status: parts.status, headers: parts.headers, text }
    }

    pub(crate) async fn get(&self, path: &str) -> Answered {
        self.send("GET", path, &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: Json) -> Answered {
        self.send("POST", path, &[], body.to_string()).await
    }

    pub(crate) async fn thread(&self) -> String {
        let made = self.post("/threads", json!({})).await.json();
        made["thread_id"].as_str().expect("a thread").to_owned()
    }

    /// Starts a run in the background.
    pub(crate) async fn run(&self, thread: &str, body: Json) -> String {
        let made = self.post(&format!("/threads/{thread}/runs"), body).await;
        assert_eq!(made.status, StatusCode::OK, "{}", made.text);
        made.json()["run_id"].as_str().expect("a run").to_owned()
    }

    /// Looks at a path until it is as wanted.
    pub(crate) async fn until(&self, path: &str, wanted: impl Fn(&Json) -> bool) -> Json {
        loop {
            let json = self.get(path).await.json();
            if wanted(&json) {
                return json;
            }
            tokio::task::yield_now().await;
        }
    }
}

/// A directory that is removed when it is dropped.
pub(crate) struct Dir(PathBuf);

impl Dir {
    pub(crate) fn new() -> Self {
        let dir = std::env::temp_dir().join(format!("superstep-server-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir_all(&dir).expect("a directory");
        Self(dir)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
