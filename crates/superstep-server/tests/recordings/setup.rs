//! What happened before an exchange was recorded.

use serde_json::{Value as Json, json};

use crate::matching::Names;
use crate::{Client, replay};

/// Keys that say something about the reference's own surroundings.
const FOREIGN: [&str; 4] =
    ["langsmith_session_name", "ls_provider", "ls_model_type", "lc_versions"];

pub(crate) fn without_foreign(json: Json) -> Json {
    match json {
        Json::Array(items) => items.into_iter().map(without_foreign).collect(),
        Json::Object(map) => {
            let kept = map.into_iter().filter(|(key, _)| !FOREIGN.contains(&&**key));
            kept.map(|(key, value)| (key, without_foreign(value))).collect()
        }
        other => other,
    }
}

/// The same answer in the form in which it is compared: texts of errors are those of each engine, and the edges of a graph
/// have no order.
pub(crate) fn comparable(mut json: Json) -> Json {
    if let Some(edges) = json.get_mut("edges").and_then(Json::as_array_mut) {
        edges.sort_by_key(ToString::to_string);
    }
    without_texts(json)
}

fn without_texts(json: Json) -> Json {
    match json {
        Json::Array(items) => items.into_iter().map(without_texts).collect(),
        Json::Object(mut map) => {
            let is_error = map.len() == 2 && map.get("error").is_some_and(Json::is_string);
            if is_error && map.get("message").is_some_and(Json::is_string) {
                map.insert("message".to_owned(), "a text".into());
            }
            map.into_iter().map(|(key, value)| (key, without_texts(value))).collect()
        }
        other => other,
    }
}

/// Does what was done on the same thread before.
pub(crate) async fn prepare(
    client: &Client,
    names: &mut Names,
    name: &str,
    all: &[(String, Json)],
) {
    let metadata = match name {
        "thread-get-after-run" | "thread-state-after-run" | "thread-history" | "run-create" => {
            json!({ "k": 2 })
        }
        _ => json!({}),
    };
    let thread = uuid::Uuid::now_v7().to_string();
    names.set("thread", &thread);
    if !matches!(
        name,
        "thread-create" | "thread-get-missing" | "run-missing-thread" | "run-wait-stateless"
    ) {
        let body = json!({ "thread_id": thread, "metadata": metadata });
        client.call("POST", "/threads", body).await;
    }
    if matches!(name, "thread-create" | "run-wait-stateless") {
        names.forget("thread");
    }
    let before: &[&str] = match name {
        "thread-get-after-run" | "thread-state-after-run" | "thread-history" => &["run-wait"],
        "run-join" => &["run-wait", "run-create"],
        "thread-get-after-error" | "thread-state-after-error" => &["stream-error"],
        "join-stream-replay-all" | "join-stream-from-id" => &["stream-multi-resumable"],
        "interrupt-thread" | "interrupt-state" | "interrupt-run-status" | "interrupt-resume" => {
            &["interrupt-stream"]
        }
        "parallel-resume-without-id" | "parallel-resume-by-id" => &["parallel-interrupt-stream"],
        "nested-state-subgraphs" => &["nested-interrupt-stream"],
        "assistant-patch" => &["assistant-create"],
        _ => &[],
    };
    for name in before {
        let (_, recording) = all.iter().find(|(other, _)| other == name).expect("a recording");
        // Whether it passes is asked elsewhere.
        let _ = replay(client, names, recording).await;
        if !name.starts_with("parallel") {
            names.forget_numbered();
        }
        names.forget("run");
    }
    surroundings(client, names, name, &thread).await;
}

async fn surroundings(client: &Client, names: &mut Names, name: &str, thread: &str) {
    let runs = format!("/threads/{thread}/runs");
    match name {
        "run-join" | "join-stream-replay-all" | "join-stream-from-id" => {
            let newest = client.call("GET", &runs, Json::Null).await.json();
            let run = newest[0].clone();
            names.set("run", run["run_id"].as_str().expect("a run"));
            if name == "join-stream-from-id" {
                let stream = format!("{runs}/{}/stream", names.get("run").expect("a run"));
                let headers = [("last-event-id".to_owned(), "-1".to_owned())];
                let text = client.send("GET", &stream, &headers, String::new()).await.text;
                let ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
                // The recording goes on after what `a` did: the metadata, the input, its update, and the values after it.
                names.set("sid:1", ids.take(4).last().expect("an id"));
            }
        }
        "update-state-fork" | "run-from-fork" | "state-update-bad-node" => {
            let body =
                json!({ "assistant_id": "counter", "input": { "count": 10, "log": ["in"] } });
            client.call("POST", &format!("{runs}/wait"), body).await;
            let history = format!("/threads/{thread}/history");
            let history = client.call("POST", &history, json!({ "limit": 10 })).await.json();
            let at = history
                .as_array()
                .expect("a list")
                .iter()
                .find(|state| state["next"] == json!(["b"]));
            let at = at.expect("a checkpoint before `b`")["checkpoint_id"]
                .as_str()
                .expect("an id")
                .to_owned();
            names.set("ckpt:1", &at);
            if name == "run-from-fork" {
                let body = json!({
                    "values": { "count": 100, "log": ["forked"] }, "checkpoint": { "checkpoint_id": at }, "as_node": "a",
                });
                client.call("POST", &format!("/threads/{thread}/state"), body).await;
            }
        }
        "multitask-reject" | "run-cancel-wait" | "thread-after-cancel" => {
            let body = json!({ "assistant_id": "slow", "input": { "ticks": 8, "delay": 0.3 } });
            let run = client.call("POST", &runs, body).await.json();
            let run = run["run_id"].as_str().expect("a run").to_owned();
            names.set("run", &run);
            if name == "thread-after-cancel" {
                // Two ticks are over, as when it was recorded.
                loop {
                    let state =
                        client.call("GET", &format!("/threads/{thread}/state"), Json::Null).await;
                    if state.json()["values"]["done"] == 2 {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
                client.call("POST", &format!("{runs}/{run}/cancel?wait=1"), Json::Null).await;
            }
        }
        "protocol-input-respond" => crate::live::ask(client, names, thread).await,
        "run-cancel-finished" => {
            let body = json!({ "assistant_id": "counter", "input": {} });
            client.call("POST", &format!("{runs}/wait"), body).await;
            let newest = client.call("GET", &runs, Json::Null).await.json();
            names.set("run", newest[0]["run_id"].as_str().expect("a run"));
        }
        "store-search" => {
            let body = json!({ "namespace": ["a", "b"], "key": "k1", "value": { "x": 1 } });
            client.call("PUT", "/store/items", body).await;
        }
        "assistant-patch" => {
            let body = json!({ "metadata": { "team": "x" } });
            let made = client.call("POST", "/assistants/search", body).await.json();
            names.set("uuid:1", made[0]["assistant_id"].as_str().expect("an assistant"));
        }
        _ => {}
    }
}
