//! Shows that SIGTERM ends `superstep serve` within its grace: the running superstep finishes, the stream ends without an error,
//! and at the next start the run goes on and the reader gets the rest, each event once. A deploy would otherwise cost users
//! their runs.
#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use serde_json::{Value as Json, json};

#[path = "world/served.rs"]
mod served;

/// The lines of an answer, as they come, without its head.
fn ask(
    url: &str,
    method: &str,
    path: &str,
    last: Option<&str>,
    body: &str,
) -> impl Iterator<Item = String> + use<> {
    let address = url.strip_prefix("http://").expect("an address");
    let mut stream = TcpStream::connect(address).expect("a server");
    let last = last.map_or_else(String::new, |id| format!("last-event-id: {id}\r\n"));
    // An answer of the older version ends with its connection, and has no chunks.
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nhost: {address}\r\ncontent-type: application/json\r\n{last}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("a request");
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let status = lines.next().expect("a status");
    assert!(status.contains(" 200 "), "{status}");
    lines.skip_while(|line| !line.is_empty()).skip(1)
}

fn json_of(lines: impl Iterator<Item = String>) -> Json {
    let text: String = lines.collect();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

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
