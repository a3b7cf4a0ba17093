//! Shows that SIGTERM ends `superstep serve` within its grace: the running superstep finishes, the stream ends without an error,
//! and at the next start the run goes on and the reader gets the rest, each event once. A deploy would otherwise cost users
//! their runs.
#![cfg(unix)]

use serde_json::json;

#[path = "world/served.rs"]
mod served;

use served::{ask, json_of};

/// The ids of events and their names.
fn events(lines: impl Iterator<Item = String>, most: usize) -> Vec<(String, String)> {
    let (mut name, mut all) = (String::new(), Vec::new());
    for line in lines {
        if let Some(event) = line.strip_prefix("event: ") {
            event.clone_into(&mut name);
        } else if let Some(id) = line.strip_prefix("id: ") {
            all.push((id.to_owned(), name.clone()));
            if all.len() == most {
                break;
            }
        }
    }
    all
}

#[test]
fn a_server_that_is_told_to_end_lets_its_readers_go_on() {
    let dir = served::directory("drain");
    let db = dir.join("server.db");
    let server = served::Served::start(&db, None);
    let thread = json_of(ask(&server.url, "POST", "/threads", None, "{}"));
    let thread = thread["thread_id"].as_str().expect("a thread").to_owned();
    let wanted = json!({
        "assistant_id": "slow", "input": { "ticks": 60, "delay": 0.05 },
        "stream_mode": "updates", "stream_resumable": true,
    });
    let path = format!("/threads/{thread}/runs/stream");
    let mut lines = ask(&server.url, "POST", &path, None, &wanted.to_string());
    let mut seen = events(&mut lines, 5);
    server.tell_to_end();
    seen.extend(events(&mut lines, usize::MAX));
    assert!(server.ended().success(), "it ends by itself, and well");
    assert!(seen.len() < 60, "it was in the middle: {seen:?}");

    let server = served::Served::start(&db, None);
    let runs = json_of(ask(&server.url, "GET", &format!("/threads/{thread}/runs"), None, ""));
    let run = runs[0]["run_id"].as_str().expect("a run");
    let path = format!("/threads/{thread}/runs/{run}/stream");
    let last = seen.last().map(|(id, _)| id.clone());
    seen.extend(events(ask(&server.url, "GET", &path, last.as_deref(), ""), usize::MAX));
    let updates = seen.iter().filter(|(_, name)| name == "updates").count();
    assert_eq!(updates, 60, "each superstep is seen once: {seen:?}");
    assert!(seen.iter().all(|(_, name)| name != "error"), "{seen:?}");
    let ids: std::collections::BTreeSet<_> = seen.iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len(), seen.len(), "no event is sent twice");
    drop(server);
    std::fs::remove_dir_all(&dir).expect("it can be removed");
}
