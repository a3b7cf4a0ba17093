//! Shows that any process serves any run on one PostgreSQL: its events, its end, a cancel. And that a process that is killed leaves
//! nothing behind: another one goes on with its runs, and readers there see every event once. It would break if anything that
//! a client can ask for were known to one process only.
#![cfg(unix)]

use serde_json::{Value as Json, json};
use superstep_testdb::Schema;

#[path = "world/served.rs"]
mod served;

use served::{Served, ask, json_of};

fn get(server: &Served, path: &str) -> Json {
    json_of(ask(&server.url, "GET", path, None, ""))
}

fn post(server: &Served, path: &str, body: &Json) -> Json {
    json_of(ask(&server.url, "POST", path, None, &body.to_string()))
}

fn id(object: &Json, name: &str) -> String {
    object[name].as_str().unwrap_or_else(|| panic!("no `{name}` in {object}")).to_owned()
}

/// A run of this many supersteps, in the background: its path.
fn begin(server: &Served, ticks: u32) -> String {
    let thread = id(&post(server, "/threads", &json!({})), "thread_id");
    let run = post(server, &format!("/threads/{thread}/runs"), &slow(ticks, true));
    format!("/threads/{thread}/runs/{}", id(&run, "run_id"))
}

fn slow(ticks: u32, resumable: bool) -> Json {
    json!({
        "assistant_id": "slow", "input": { "ticks": ticks, "delay": 0.02 },
        "stream_mode": "updates", "stream_resumable": resumable,
    })
}

/// An event: its number, its name and its data.
type Event = (Option<u64>, String, Json);

fn events(lines: impl Iterator<Item = String>) -> impl Iterator<Item = Event> {
    let (mut lines, mut data) = (lines, Json::Null);
    let mut name = String::new();
    std::iter::from_fn(move || {
        let mut number = None;
        for line in lines.by_ref() {
            match line.split_once(": ") {
                Some(("event", event)) => event.clone_into(&mut name),
                Some(("data", json)) => data = serde_json::from_str(json).expect("JSON"),
                Some(("id", id)) => number = id.split_once('-').and_then(|(_, n)| n.parse().ok()),
                _ if line.is_empty() && !name.is_empty() => {
                    return Some((number, std::mem::take(&mut name), data.take()));
                }
                _ => {}
            }
        }
        None
    })
}

fn count(events: &[Event], wanted: &str) -> usize {
    events.iter().filter(|(_, name, _)| name == wanted).count()
}

/// Every event comes once, and in order. Numbers in between are those of marks in the log, which readers are not shown.
fn assert_in_order(events: &[Event]) {
    let numbers: Vec<_> = events.iter().map(|(number, ..)| number.expect("an id")).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{events:?}");
    assert_eq!(numbers.first(), Some(&1));
}

#[test]
fn a_run_of_one_process_is_followed_and_cancelled_at_another() {
    let place = Schema::new();
    let first = Served::on(&place.url(), &[]);
    let run = begin(&first, 60);
    let long = begin(&first, 1_000_000);
    // It is alone so far, so both are its.
    let second = Served::on(&place.url(), &[]);
    let stream = ask(&second.url, "GET", &format!("{run}/stream"), Some("-1"), "");
    let seen: Vec<_> = events(stream).collect();
    assert_in_order(&seen);
    assert_eq!(count(&seen, "updates"), 60);
    let attempts: Vec<_> = seen.iter().filter(|(_, name, _)| name == "metadata").collect();
    assert_eq!(attempts.len(), 1, "nobody took it over: {attempts:?}");
    assert_eq!(get(&second, &format!("{run}/join"))["done"], 60);
    assert_eq!(get(&second, &long)["status"], "running");
    post(&second, &format!("{long}/cancel?wait=true"), &json!({}));
    assert_eq!(get(&second, &long)["status"], "interrupted");
}

#[test]
fn the_runs_of_a_killed_process_go_on_at_another() {
    let place = Schema::new();
    let first = Served::on(&place.url(), &["--lease", "2"]);
    let run = begin(&first, 100);
    let second = Served::on(&place.url(), &["--lease", "2"]);
    let mut stream = events(ask(&second.url, "GET", &format!("{run}/stream"), Some("-1"), ""));
    let mut seen: Vec<_> = stream.by_ref().take(10).collect();
    assert!(seen.len() == 10 && get(&second, &run)["status"] == "running");
    first.kill();
    seen.extend(stream);
    assert_in_order(&seen);
    let attempts = seen.iter().filter(|(_, name, _)| name == "metadata");
    let attempts: Vec<_> = attempts.map(|(_, _, data)| data["attempt"].clone()).collect();
    assert_eq!(attempts, [json!(1), json!(2)], "the same run, a second time");
    // A superstep that was not stored when the process died is run again; one that was stored just before may have no event.
    assert!((99..=101).contains(&count(&seen, "updates")), "{seen:?}");
    let now = get(&second, &run);
    assert_eq!(
        (&now["status"], get(&second, &format!("{run}/join"))["done"].as_i64()),
        (&json!("success"), Some(100))
    );
}

/// It does not know that its lease has ended. What it does then is refused, and readers see none of it.
#[test]
fn a_paused_process_comes_back_to_a_run_that_is_not_its_own() {
    let place = Schema::new();
    let first = Served::on(&place.url(), &["--lease", "2"]);
    let run = begin(&first, 150);
    let second = Served::on(&place.url(), &["--lease", "2"]);
    let mut stream = events(ask(&second.url, "GET", &format!("{run}/stream"), Some("-1"), ""));
    let mut seen: Vec<_> = stream.by_ref().take(10).collect();
    first.signal("-STOP");
    while count(&seen, "metadata") < 2 {
        seen.push(stream.next().expect("somebody takes it up"));
    }
    first.signal("-CONT");
    seen.extend(stream);
    assert_in_order(&seen);
    assert_eq!(count(&seen, "metadata"), 2, "it was not taken back");
    assert!((149..=151).contains(&count(&seen, "updates")), "{seen:?}");
    for server in [&first, &second] {
        assert_eq!(get(server, &run)["status"], "success");
        assert_eq!(get(server, &format!("{run}/join"))["done"], 150);
    }
}

#[test]
fn a_busy_process_gives_its_runs_to_a_free_one_and_still_serves_them() {
    let place = Schema::new();
    let busy = Served::on(&place.url(), &["--workers", "1"]);
    let long = begin(&busy, 1_000_000);
    let stream = ask(&busy.url, "GET", &format!("{long}/stream"), Some("-1"), "");
    assert_eq!(events(stream).take(3).count(), 3, "its worker is at work");
    let free = Served::on(&place.url(), &[]);
    // Its thread is deleted with its end, which its reader learns all the same.
    let waited = post(&busy, "/runs/wait", &slow(5, false));
    assert_eq!(waited["done"], 5, "{waited}");
    let stream = ask(&busy.url, "POST", "/runs/stream", None, &slow(20, false).to_string());
    let seen: Vec<_> = events(stream).collect();
    assert_eq!((count(&seen, "metadata"), count(&seen, "updates")), (1, 20), "{seen:?}");
    assert_eq!(get(&free, &long)["status"], "running");
}

/// Who is told to end gives its runs away, and ends without waiting for its readers' patience.
#[test]
fn a_process_that_is_told_to_end_hands_its_runs_over() {
    let place = Schema::new();
    let first = Served::on(&place.url(), &[]);
    let run = begin(&first, 60);
    let second = Served::on(&place.url(), &[]);
    let mut stream = events(ask(&second.url, "GET", &format!("{run}/stream"), Some("-1"), ""));
    let mut seen: Vec<_> = stream.by_ref().take(5).collect();
    first.tell_to_end();
    assert!(first.ended().success());
    seen.extend(stream);
    assert_in_order(&seen);
    assert_eq!(count(&seen, "updates"), 60, "each superstep is seen once");
    assert_eq!(get(&second, &run)["status"], "success");
}
