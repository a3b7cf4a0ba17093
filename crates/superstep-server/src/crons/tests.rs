//! Shows that a cron fires once when it is due, however many processes look, and never for a date that was missed. Time is an argument.

use serde_json::{Value as Json, json};
use tower::ServiceExt as _;

use super::*;
use crate::demo;
use crate::server::{Running, Server};

struct World {
    running: Running,
}

impl World {
    async fn new() -> Self {
        let graphs = demo::graphs().expect("the demo's graphs");
        let server = graphs
            .into_iter()
            .fold(Server::new(), |server, (name, graph)| server.graph(name, graph));
        Self { running: server.start().await.expect("a server") }
    }

    fn app(&self) -> &App {
        self.running.app()
    }

    async fn call(&self, method: &str, path: &str, body: Json) -> (u16, Json) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = axum::http::Request::builder().method(method).uri(path);
        let request = request.body(axum::body::Body::from(body)).expect("a request");
        let answer = self.running.router().oneshot(request).await.expect("an answer");
        let status = answer.status().as_u16();
        let bytes = axum::body::to_bytes(answer.into_body(), 1 << 20).await.expect("a body");
        (status, serde_json::from_slice(&bytes).unwrap_or(Json::Null))
    }

    /// A cron that is due once an hour, and when it is due next.
    async fn hourly(&self, path: &str, more: Json) -> (String, Micros) {
        let mut body =
            json!({ "assistant_id": "counter", "schedule": "0 * * * *", "input": { "count": 1 } });
        for (name, value) in more.as_object().expect("fields") {
            body[name] = value.clone();
        }
        let (status, cron) = self.call("POST", path, body).await;
        assert_eq!(status, 200, "{cron}");
        let id = cron["cron_id"].as_str().expect("an id").to_owned();
        (id, self.due(&cron))
    }

    fn due(&self, cron: &Json) -> Micros {
        let due = cron["next_run_date"].as_str().expect("a date");
        crate::crons::parse_time("next_run_date", due).expect("a time")
    }

    async fn cron(&self, id: &str) -> Json {
        self.call("GET", &format!("/runs/crons/{id}"), Json::Null).await.1
    }

    async fn runs(&self, thread: &str) -> Vec<Json> {
        let (_, runs) = self.call("GET", &format!("/threads/{thread}/runs"), Json::Null).await;
        runs.as_array().expect("a list").clone()
    }

    async fn thread(&self) -> String {
        let (_, thread) = self.call("POST", "/threads", json!({})).await;
        thread["thread_id"].as_str().expect("an id").to_owned()
    }
}

const HOUR: i64 = 3_600_000_000;

#[tokio::test]
async fn a_due_cron_fires_once_and_moves_to_the_next_date() {
    let world = World::new().await;
    let thread = world.thread().await;
    let path = format!("/threads/{thread}/runs/crons");
    let (id, due) = world.hourly(&path, json!({ "metadata": { "m": 1 } })).await;
    let before = Micros(due.0 - 1);
    assert_eq!(fire_due(world.app(), before).await.expect("an answer"), Some(due), "not yet");
    assert!(world.runs(&thread).await.is_empty());
    // Two processes see the same date at the same time.
    let (a, b) = tokio::join!(fire_due(world.app(), due), fire_due(world.app(), due));
    a.and(b).expect("both have an answer");
    let runs = world.runs(&thread).await;
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!(runs[0]["kwargs"]["config"]["configurable"]["cron_id"], id.as_str());
    assert_eq!(runs[0]["metadata"]["m"], 1);
    assert_eq!(world.due(&world.cron(&id).await), Micros(due.0 + HOUR));
    assert_eq!(runs[0]["created_at"], due.rfc3339(), "a worker takes it when that time has come");
}

#[tokio::test]
async fn a_date_that_was_missed_is_skipped() {
    let world = World::new().await;
    let thread = world.thread().await;
    let path = format!("/threads/{thread}/runs/crons");
    let (id, due) = world.hourly(&path, json!({})).await;
    let late = Micros(due.0 + 5 * HOUR + 1 + i64::try_from(LATE_MAX.as_micros()).expect("small"));
    fire_due(world.app(), late).await.expect("an answer");
    assert!(world.runs(&thread).await.is_empty(), "nobody ran the server then");
    assert_eq!(world.due(&world.cron(&id).await), Micros(due.0 + 6 * HOUR));
    let little_late = Micros(due.0 + 6 * HOUR + 1_000_000);
    fire_due(world.app(), little_late).await.expect("an answer");
    assert_eq!(world.runs(&thread).await.len(), 1);
}

#[tokio::test]
async fn a_cron_ends_pauses_and_goes_with_what_it_belongs_to() {
    let world = World::new().await;
    let (_, due) = world.hourly("/runs/crons", json!({})).await;
    let end = Micros(due.0 + HOUR - 1).rfc3339();
    let (id, _) =
        world.hourly("/runs/crons", json!({ "end_time": end, "on_run_completed": "keep" })).await;
    fire_due(world.app(), due).await.expect("an answer");
    assert_eq!(
        world.cron(&id).await["next_run_date"],
        Json::Null,
        "the next date is after the end"
    );
    let path = format!("/runs/crons/{id}");
    let (_, open) = world.call("PATCH", &path, json!({ "end_time": null })).await;
    assert!(open["next_run_date"].is_string() && open["end_time"].is_null(), "{open}");
    let (_, paused) = world.call("PATCH", &path, json!({ "enabled": false })).await;
    assert!(paused["next_run_date"].is_string(), "it is said when it would be due");
    let far = Micros(due.0 + 100 * HOUR);
    fire_due(world.app(), far).await.expect("an answer");
    assert_eq!(world.cron(&id).await["updated_at"], paused["updated_at"], "it is not due");
    let (status, _) = world.call("PATCH", &path, json!({ "schedule": "x" })).await;
    assert_eq!(status, 422, "a schedule is read, whether the cron is enabled or not");
    assert_eq!(world.call("POST", "/runs/crons/count", json!({ "enabled": false })).await.1, 1);
    let (_, found) = world.call("POST", "/threads/search", json!({ "limit": 100 })).await;
    let kept = found
        .as_array()
        .expect("a list")
        .iter()
        .filter(|thread| thread["metadata"]["graph_id"] == "counter");
    assert!(kept.count() >= 1, "`keep` keeps the thread of the run");

    let thread = world.thread().await;
    let (bound, _) = world.hourly(&format!("/threads/{thread}/runs/crons"), json!({})).await;
    world.call("DELETE", &format!("/threads/{thread}"), Json::Null).await;
    let body = json!({ "graph_id": "counter" });
    let (_, assistant) = world.call("POST", "/assistants", body).await;
    let assistant = assistant["assistant_id"].as_str().expect("an id").to_owned();
    let (owned, _) = world.hourly("/runs/crons", json!({ "assistant_id": assistant })).await;
    world.call("DELETE", &format!("/assistants/{assistant}"), Json::Null).await;
    for gone in [bound, owned] {
        assert_eq!(world.call("GET", &format!("/runs/crons/{gone}"), Json::Null).await.0, 404);
    }
    assert_eq!(world.call("DELETE", &path, Json::Null).await.0, 204);
    assert_eq!(world.call("DELETE", &path, Json::Null).await.0, 404);
}

#[tokio::test]
async fn what_makes_no_sense_creates_no_cron() {
    let world = World::new().await;
    let good = json!({ "assistant_id": "counter", "schedule": "0 * * * *" });
    for (field, value, status, part) in [
        ("schedule", Json::Null, 422, "`schedule`"),
        ("schedule", json!("* * * * * *"), 422, "`schedule`"),
        ("schedule", json!("x * * * *"), 422, "`schedule`"),
        ("timezone", json!("Mars"), 422, "`timezone`"),
        ("end_time", json!("soon"), 422, "`end_time`"),
        ("assistant_id", Json::Null, 422, "`assistant_id`"),
        ("assistant_id", json!("nothing"), 404, "`nothing`"),
        ("stream_mode", json!("all"), 422, "`all`"),
        ("durability", json!("never"), 422, "`never`"),
    ] {
        let mut body = good.clone();
        body[field] = value.clone();
        let (answered, detail) = world.call("POST", "/runs/crons", body).await;
        let detail = detail["detail"].as_str().unwrap_or_default().to_owned();
        assert_eq!(answered, status, "{field} {value}: {detail}");
        assert!(detail.contains(part), "{field} {value}: {detail}");
    }
    let thread = uuid::Uuid::new_v4();
    assert_eq!(
        world.call("POST", &format!("/threads/{thread}/runs/crons"), good.clone()).await.0,
        404
    );
    assert_eq!(world.call("POST", "/runs/crons/count", json!({})).await.1, 0);
    let (_, cron) = world.call("POST", "/runs/crons", good).await;
    let path = format!("/runs/crons/{}", cron["cron_id"].as_str().expect("an id"));
    assert_eq!(world.call("PATCH", &path, json!({})).await.0, 400);
    assert_eq!(world.call("PATCH", &path, json!({ "schedule": "x" })).await.0, 422);
    assert_eq!(world.cron(path.rsplit('/').next().expect("an id")).await["schedule"], "0 * * * *");
}
