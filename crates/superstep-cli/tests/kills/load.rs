//! The load: what clients do, and what must be true of it whenever the server was killed.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use serde_json::{Value as Json, json};

use crate::client::{Answer, Broken, Place, ask};

/// Numbers that a seed determines.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// What a run that was acknowledged must have come to.
#[derive(Debug)]
enum Expected {
    /// This result.
    Result(Json),
    /// It was cancelled before its end.
    Cancelled,
    /// It was asked to be cancelled, and nobody knows whether it was.
    PerhapsCancelled(Json),
}

#[derive(Debug)]
struct Acknowledged {
    thread: String,
    run: String,
    expected: Expected,
}

/// What was found in the end.
#[derive(Default)]
pub(crate) struct Report {
    runs: usize,
    cancelled: usize,
    given_up: usize,
    reconnects: u64,
    events: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, cancelled, given_up, reconnects, events } = self;
        write!(f, "{runs} runs acknowledged, {cancelled} cancelled, {given_up} begun too often, ")?;
        write!(f, "{events} events of streams that were taken up {reconnects} times")
    }
}

pub(crate) struct Load {
    place: Place,
    /// How many answers and events clients have seen.
    seen: (Mutex<u64>, Condvar),
    stopped: AtomicBool,
    /// Whether a client has found a fault.
    pub(crate) failed: AtomicBool,
    /// How many clients are in the middle of the stream of a run.
    pub(crate) in_run: AtomicU64,
    reconnects: AtomicU64,
    events: AtomicU64,
    acknowledged: Mutex<Vec<Acknowledged>>,
}

/// Tells that a client has found a fault, so that the others do not go on.
struct Fault<'a>(&'a Load);

impl Drop for Fault<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.failed.store(true, SeqCst);
            self.0.stop();
            self.0.seen.1.notify_all();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Load {
    pub(crate) fn new(place: Place) -> Self {
        Self {
            place,
            seen: Default::default(),
            stopped: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            in_run: AtomicU64::new(0),
            reconnects: AtomicU64::new(0),
            events: AtomicU64::new(0),
            acknowledged: Mutex::default(),
        }
    }

    pub(crate) fn seen(&self) -> u64 {
        *lock(&self.seen.0)
    }

    fn saw_something(&self) {
        *lock(&self.seen.0) += 1;
        self.seen.1.notify_all();
    }

    /// Waits until clients have seen so much.
    pub(crate) fn wait_for(&self, seen: u64) {
        let goes_on = |now: &mut u64| *now < seen && !self.failed.load(SeqCst);
        let wait = self.seen.1.wait_while(lock(&self.seen.0), goes_on);
        drop(wait.unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn stop(&self) {
        self.stopped.store(true, SeqCst);
    }

    /// Does one thing after the other until it is stopped.
    pub(crate) fn run(&self, mut random: Random) {
        let _told = Fault(self);
        while !self.stopped.load(SeqCst) {
            // What breaks off is not tried again: whether it was done is found out in the end.
            let _ = match random.below(6) {
                0 => self.wait(),
                1 | 2 => self.stream(&mut random),
                3 => self.answer(),
                4 => self.cancel(&mut random),
                _ => self.update(),
            };
        }
    }

    fn ask(&self, method: &str, path: &str, body: &Json) -> Result<Answer, Broken> {
        let answer = ask(&self.place, method, path, None, body)?;
        assert!(answer.status < 500, "{method} {path}: {}", answer.status);
        if method != "GET" {
            self.saw_something();
        }
        Ok(answer)
    }

    /// A request that is repeated until it is answered, because it changes nothing.
    fn get(&self, path: &str) -> Json {
        loop {
            if let Ok(json) = self.ask("GET", path, &Json::Null).and_then(Answer::json) {
                return json;
            }
        }
    }

    fn thread(&self) -> Result<String, Broken> {
        let made = self.ask("POST", "/threads", &json!({}))?.json()?;
        Ok(made["thread_id"].as_str().expect("a thread").to_owned())
    }

    /// Remembers a run that the head of an answer has acknowledged.
    fn acknowledge(&self, answer: &Answer, expected: Expected) -> (String, String) {
        let place = answer.content_location.as_deref().expect("where the run is");
        let parts: Vec<&str> = place.split('/').collect();
        let ["", "threads", thread, "runs", run] = parts[..] else { panic!("{place}") };
        let (thread, run) = (thread.to_owned(), run.to_owned());
        let known = Acknowledged { thread: thread.clone(), run: run.clone(), expected };
        lock(&self.acknowledged).push(known);
        (thread, run)
    }

    fn wait(&self) -> Result<(), Broken> {
        let thread = self.thread()?;
        let body = json!({ "assistant_id": "counter", "input": { "count": 10, "log": ["in"] } });
        let answer = self.ask("POST", &format!("/threads/{thread}/runs/wait"), &body)?;
        let expected = json!({ "count": 13, "log": ["in", "a", "b", "c"] });
        self.acknowledge(&answer, Expected::Result(expected.clone()));
        assert_eq!(answer.json()?, expected);
        Ok(())
    }

    /// Reads the stream of a run to its end, and takes it up whenever it breaks off.
    fn stream(&self, random: &mut Random) -> Result<(), Broken> {
        let thread = self.thread()?;
        let ticks = i64::try_from(5 + random.below(20)).expect("it is small");
        let input = json!({ "ticks": ticks, "delay": 0.002 });
        let body = json!({
            "assistant_id": "slow", "input": input, "stream_mode": ["values", "updates"], "stream_resumable": true,
        });
        let mut end = input;
        end["done"] = ticks.into();
        let mut answer = self.ask("POST", &format!("/threads/{thread}/runs/stream"), &body)?;
        let (thread, run) = self.acknowledge(&answer, Expected::Result(end));
        let path = format!("/threads/{thread}/runs/{run}");
        self.in_run.fetch_add(1, SeqCst);
        let mut all: Vec<(String, String, Json)> = Vec::new();
        loop {
            while let Some(event) = answer.event() {
                all.push(event);
                self.events.fetch_add(1, SeqCst);
                self.saw_something();
            }
            // As clients do: the run says whether this was the end.
            let status = self.get(&path)["status"].as_str().expect("a status").to_owned();
            let last = all.last().map_or("-1", |(id, ..)| id);
            let is_over = status != "pending" && status != "running";
            let again = ask(&self.place, "GET", &format!("{path}/stream"), Some(last), &Json::Null);
            if let Ok(stream) = again {
                answer = stream;
                self.reconnects.fetch_add(1, SeqCst);
                if is_over {
                    // What came between the last event and the end.
                    while let Some(event) = answer.event() {
                        all.push(event);
                    }
                    if self.is_whole(&path, &all, ticks) {
                        break;
                    }
                }
            }
        }
        self.in_run.fetch_sub(1, SeqCst);
        Ok(())
    }

    /// Whether the events are those of a whole run. A rest that broke off, because the server was killed, is read again.
    fn is_whole(&self, path: &str, all: &[(String, String, Json)], ticks: i64) -> bool {
        let numbers: Vec<u64> = all
            .iter()
            .map(|(id, ..)| id.split_once('-').expect("an id").1.parse().expect("a number"))
            .collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{path}: an event came twice: {numbers:?}");
        let done: Vec<i64> = (all.iter().filter(|(_, event, _)| event == "values"))
            .map(|(_, _, data)| data["done"].as_i64().expect("a number"))
            .collect();
        let counted: Vec<i64> = (0..).take(done.len()).collect();
        assert_eq!(done, counted, "{path}: each state comes once");
        let updates = all.iter().filter(|(_, event, _)| event == "updates").count();
        if done.last() == Some(&ticks) {
            assert_eq!(i64::try_from(updates), Ok(ticks), "{path}: each update comes once");
            return true;
        }
        // A run that was begun too often ends without the rest.
        is_given_up(&self.get(&format!("{path}/join")))
    }

    fn answer(&self) -> Result<(), Broken> {
        let thread = self.thread()?;
        let path = format!("/threads/{thread}/runs/wait");
        let body = json!({ "assistant_id": "approval", "input": { "topic": "cats" } });
        self.ask("POST", &path, &body)?.json()?;
        let body = json!({ "assistant_id": "approval", "command": { "resume": "yes" } });
        let answer = self.ask("POST", &path, &body)?;
        let expected = json!({
            "topic": "cats", "draft": "draft about cats", "decision": "yes", "log": ["write", "review", "publish:yes"],
        });
        self.acknowledge(&answer, Expected::Result(expected.clone()));
        assert_eq!(answer.json()?, expected);
        Ok(())
    }

    fn cancel(&self, random: &mut Random) -> Result<(), Broken> {
        let thread = self.thread()?;
        let input = json!({ "ticks": 400, "delay": 0.01 });
        let body =
            json!({ "assistant_id": "slow", "input": input, "config": { "recursion_limit": 500 } });
        let made = self.ask("POST", &format!("/threads/{thread}/runs"), &body)?;
        let end = json!({ "ticks": 400, "delay": 0.01, "done": 400 });
        let (thread, run) = self.acknowledge(&made, Expected::PerhapsCancelled(end));
        let wait = random.below(2);
        let path = format!("/threads/{thread}/runs/{run}/cancel?wait={wait}");
        let answer = self.ask("POST", &path, &Json::Null)?;
        if answer.status < 300 {
            let mut known = lock(&self.acknowledged);
            let known = known.iter_mut().find(|known| known.run == run).expect("it is known");
            known.expected = Expected::Cancelled;
        }
        Ok(())
    }

    /// Changes the state several times. What was acknowledged counts once, and what was not counts once or not at all.
    fn update(&self) -> Result<(), Broken> {
        let thread = self.thread()?;
        let body = json!({ "assistant_id": "counter", "input": { "count": 0 } });
        self.ask("POST", &format!("/threads/{thread}/runs/wait"), &body)?.json()?;
        let (mut least, mut most) = (3, 3);
        for _ in 0..5 {
            most += 1;
            let body = json!({ "values": { "count": 1 } });
            let answer = self.ask("POST", &format!("/threads/{thread}/state"), &body);
            if answer.and_then(Answer::json).is_ok_and(|made| made["checkpoint_id"].is_string()) {
                least += 1;
            }
        }
        let state = self.get(&format!("/threads/{thread}/state"));
        let count = state["values"]["count"].as_i64().expect("a number");
        assert!((least..=most).contains(&count), "{count} is not between {least} and {most}");
        Ok(())
    }

    /// Finds out what became of everything that was acknowledged.
    pub(crate) fn check_all(&self) -> Report {
        let mut report = Report {
            reconnects: self.reconnects.load(SeqCst),
            events: self.events.load(SeqCst),
            ..Report::default()
        };
        for Acknowledged { thread, run, expected } in lock(&self.acknowledged).drain(..) {
            let path = format!("/threads/{thread}/runs/{run}");
            let result = self.get(&format!("{path}/join"));
            let status = self.get(&path)["status"].clone();
            let stands =
                || format!("{path} is {status}, with {result}, and should be {expected:?}");
            report.runs += 1;
            if is_given_up(&result) {
                report.given_up += 1;
                continue;
            }
            match &expected {
                Expected::Result(end) => {
                    assert!(status == "success" && result == *end, "{}", stands());
                }
                Expected::Cancelled => {
                    report.cancelled += 1;
                    assert_eq!(status, "interrupted", "{}", stands());
                }
                Expected::PerhapsCancelled(end) => {
                    let ended = status == "success" && result == *end;
                    assert!(ended || status == "interrupted", "{}", stands());
                }
            }
            let thread = self.get(&format!("/threads/{thread}"));
            assert_ne!(thread["status"], "busy", "{}", stands());
        }
        assert!(report.given_up * 4 < report.runs, "few runs are begun three times: {report}");
        report
    }
}

fn is_given_up(result: &Json) -> bool {
    result["__error__"]["error"] == "WorkerDied"
}
