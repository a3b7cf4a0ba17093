//! Shows that a thread that sleeps, or waits until a deadline, is woken once when it is due, whoever looks, by a run like any
//! other. Time is a clock that the test sets.

use std::time::Duration;

use serde_json::{Value as Json, json};
use superstep::prelude::*;
use superstep::testing::Clock;
use tower::ServiceExt as _;

use super::*;
use crate::server::{Running, Server};

#[derive(State, Clone, Default)]
struct Log {
    #[channel(reduce = Append)]
    lines: Vec<String>,
}

const HOUR: Duration = Duration::from_secs(3_600);

async fn nap(task: Task) -> LogUpdate {
    task.sleep(HOUR).await;
    Log::update().lines(["awake".to_owned()])
}

async fn ask(task: Task) -> LogUpdate {
    let answer = task.interrupt("sure?").or_after(HOUR, "nobody".to_owned()).await;
    Log::update().lines([answer])
}

struct World {
    running: Running,
    clock: Clock,
}

impl World {
    async fn new() -> Self {
        // The server looks at the clock of the process too; this one must not be behind it.
        let clock = Clock::at(std::time::SystemTime::now() + 24 * HOUR);
        let nap = StateGraph::new().add_node("nap", nap).add_edge(START, "nap");
        let ask = StateGraph::new().add_node("ask", ask).add_edge(START, "ask");
        let compiled =
            |graph: StateGraph<Log>| graph.compile().expect("a graph").with_context(clock.clone());
        let server = Server::new().graph("nap", compiled(nap)).graph("ask", compiled(ask));
        Self { running: server.start().await.expect("a server"), clock }
    }

    fn app(&self) -> &App {
        self.running.app()
    }

    fn now(&self) -> Micros {
        self.clock.now().into()
    }

    async fn call(&self, method: &str, path: &str, body: Json) -> Json {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = axum::http::Request::builder().method(method).uri(path);
        let request = request.body(axum::body::Body::from(body)).expect("a request");
        let answer = self.running.router().oneshot(request).await.expect("an answer");
        let status = answer.status();
        let bytes = axum::body::to_bytes(answer.into_body(), 1 << 20).await.expect("a body");
        let body = serde_json::from_slice(&bytes).unwrap_or(Json::Null);
        assert!(status.is_success(), "{method} {path}: {status} {body}");
        body
    }

    /// A thread on which this graph waits.
    async fn waiting(&self, graph: &str) -> String {
        let thread = self.call("POST", "/threads", json!({})).await;
        let thread = thread["thread_id"].as_str().expect("an id").to_owned();
        let run = json!({ "assistant_id": graph, "input": {} });
        self.call("POST", &format!("/threads/{thread}/runs/wait"), run).await;
        assert_eq!(self.thread(&thread).await["status"], "interrupted");
        thread
    }

    async fn thread(&self, id: &str) -> Json {
        self.call("GET", &format!("/threads/{id}"), Json::Null).await
    }

    async fn runs(&self, thread: &str) -> Vec<Json> {
        let runs = self.call("GET", &format!("/threads/{thread}/runs"), Json::Null).await;
        runs.as_array().expect("a list").clone()
    }

    /// Waits for the newest run of a thread, and returns the lines of the thread after it.
    async fn ended(&self, thread: &str) -> Json {
        let runs = self.runs(thread).await;
        let run = runs[0]["run_id"].as_str().expect("an id");
        self.call("GET", &format!("/threads/{thread}/runs/{run}/join"), Json::Null).await;
        let thread = self.thread(thread).await;
        assert_eq!(thread["status"], "idle", "{thread}");
        thread["values"]["lines"].clone()
    }
}

#[tokio::test]
async fn a_thread_that_sleeps_is_woken_when_it_is_due() {
    let world = World::new().await;
    let thread = world.waiting("nap").await;
    let due = Micros(world.now().0 + 3_600_000_000);
    assert_eq!(wake_due(world.app(), world.now()).await.expect("an answer"), Some(due), "not yet");
    assert_eq!(world.runs(&thread).await.len(), 1);
    world.clock.advance(HOUR);
    // Two processes look at the same time.
    let (a, b) =
        tokio::join!(wake_due(world.app(), world.now()), wake_due(world.app(), world.now()));
    a.and(b).expect("both have an answer");
    let runs = world.runs(&thread).await;
    assert_eq!(runs.len(), 2, "{runs:?}");
    assert_eq!(runs[0]["kwargs"]["input"], Json::Null);
    assert_eq!(world.ended(&thread).await, json!(["awake"]));
    wake_due(world.app(), world.now()).await.expect("an answer");
    assert_eq!(world.runs(&thread).await.len(), 2, "it fires once");
}

#[tokio::test]
async fn an_answer_in_time_leaves_nothing_to_wake() {
    let world = World::new().await;
    let (early, never) = (world.waiting("ask").await, world.waiting("ask").await);
    let resume = json!({ "assistant_id": "ask", "command": { "resume": "me" } });
    world.call("POST", &format!("/threads/{early}/runs/wait"), resume).await;
    world.clock.advance(HOUR);
    wake_due(world.app(), world.now()).await.expect("an answer");
    assert_eq!(world.runs(&early).await.len(), 2);
    assert_eq!(world.ended(&early).await, json!(["me"]));
    assert_eq!(world.ended(&never).await, json!(["nobody"]));
}

/// A thread that was woken although nothing of it is due any more is left as it is.
#[tokio::test]
async fn a_run_that_finds_nothing_due_changes_nothing() {
    let world = World::new().await;
    let thread = world.waiting("ask").await;
    let late = Micros(world.now().0 + 3_600_000_000);
    // The clock of this process is ahead of that of the run.
    wake_due(world.app(), late).await.expect("an answer");
    let runs = world.runs(&thread).await;
    assert_eq!(runs.len(), 2);
    let run = runs[0]["run_id"].as_str().expect("an id");
    world.call("GET", &format!("/threads/{thread}/runs/{run}/join"), Json::Null).await;
    assert_eq!(world.thread(&thread).await["status"], "interrupted");
    world.clock.advance(HOUR);
    wake_due(world.app(), world.now()).await.expect("an answer");
    assert_eq!(world.ended(&thread).await, json!(["nobody"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_that_look_at_the_same_time_one_wakes_the_thread() {
    let world = Arc::new(World::new().await);
    let thread = world.waiting("nap").await;
    world.clock.advance(HOUR);
    let looking = (0..64).map(|_| {
        let world = world.clone();
        tokio::spawn(async move { wake_due(world.app(), world.now()).await.map(drop) })
    });
    for looked in looking.collect::<Vec<_>>() {
        looked.await.expect("no panic").expect("an answer");
    }
    assert_eq!(world.runs(&thread).await.len(), 2);
    assert_eq!(world.ended(&thread).await, json!(["awake"]));
}
