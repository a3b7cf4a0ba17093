//! Shows that the figures for Prometheus count what happened: runs by their end, requests by operation and status, calls of the
//! store. An operator who is told nothing of failures would learn of them from users.

use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn in_the_format_of_prometheus_and_as_json() {
    let world = World::new().await;
    let thread = world.thread().await;
    let wait = format!("/threads/{thread}/runs/wait");
    world.post(&wait, json!({ "assistant_id": "counter", "input": {} })).await;
    world.post(&wait, json!({ "assistant_id": "failing", "input": {} })).await;
    world.post("/runs/wait", json!({ "assistant_id": "counter", "input": {} })).await;
    world.post(&wait, json!({ "assistant_id": "nope" })).await;
    let figures = world.get("/metrics").await;
    assert_eq!(figures.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let operation = r#"method="POST",path="/threads/{thread_id}/runs/wait""#;
    for line in [
        "superstep_runs_pending 0".to_owned(),
        "superstep_runs_running 0".to_owned(),
        r#"superstep_runs_ended_total{end="success"} 1"#.to_owned(),
        r#"superstep_runs_ended_total{end="error"} 1"#.to_owned(),
        r#"superstep_runs_ended_total{end="deleted"} 1"#.to_owned(),
        format!(r#"superstep_requests_total{{{operation},status="2xx"}} 2"#),
        format!(r#"superstep_requests_total{{{operation},status="4xx"}} 1"#),
        format!("superstep_request_seconds_count{{{operation}}} 3"),
    ] {
        assert!(figures.text.lines().any(|known| known == line), "{line}\n{}", figures.text);
    }
    let series = figures.text.lines().filter(|line| !line.starts_with('#'));
    for line in series {
        let value = line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok());
        assert!(value.is_some(), "{line}");
    }
    let figures = world.get("/metrics?format=json").await.json();
    assert_eq!(figures["queue"], json!({ "n_pending": 0, "n_running": 0 }));
    assert_eq!(figures["runs_ended"]["success"], 1);
    assert!(figures["store_calls"].as_u64() > Some(5), "{figures}");
}
