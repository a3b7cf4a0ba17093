//! Shows that LangGraph reads a sleep and a question with a deadline as pending interrupts, with values that people can
//! read, and that it can answer them. Afterwards nothing is due here.
//!
//! It would break if the due time were where LangGraph looks for something else, or if it took an alarm for a task.
//!
//! Needs a Python that has LangGraph, named by `SUPERSTEP_TEST_PYTHON`. Without it that part is not tested, and the output
//! says so.

mod world;

use std::process::Command;
use std::time::Duration;

use serde_json::{Value as Json, json};
use superstep::prelude::*;
use superstep::testing::Clock;
use superstep_sqlite::SqliteSaver;
use world::Dir;

#[derive(State, Clone, Default, Debug)]
struct Log {
    #[channel(reduce = Append)]
    log: Vec<String>,
}

const DAY: Duration = Duration::from_secs(86_400);

fn line(text: impl Into<String>) -> LogUpdate {
    Log::update().log([text.into()])
}

async fn nap(task: Task) -> LogUpdate {
    task.sleep(DAY).await;
    line("nap")
}

async fn ask(task: Task) -> LogUpdate {
    line(task.interrupt("sure?").or_after(2 * DAY, "nobody".to_owned()).await)
}

fn graph() -> StateGraph<Log> {
    StateGraph::new()
        .add_node("nap", nap)
        .add_node("ask", ask)
        .add_edge(START, "nap")
        .add_edge(START, "ask")
}

#[tokio::test]
async fn in_a_file_of_sqlite() {
    let dir = Dir::new();
    let clock = Clock::new();
    let checkpointer = SqliteSaver::open(dir.file()).await.expect("a file");
    let app = graph().compile().expect("a graph").with_checkpointer(checkpointer);
    let app = app.with_context(clock.clone());
    app.thread("t").invoke(Log::update()).await.expect("a run").interrupted().expect("both wait");
    app.thread("u").invoke(Log::update()).await.expect("a run");

    if let Ok(python) = std::env::var("SUPERSTEP_TEST_PYTHON") {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/timers.py");
        let output = Command::new(&python).arg(script).arg(dir.file()).output().expect("Python");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let found: Json = serde_json::from_slice(&output.stdout).expect("JSON");
        let asked = json!([
            {
                "value": "sure?",
                "schema": {
                    "default": "nobody",
                    "x-superstep": { "due": "2030-01-03T00:00:00.000000Z" },
                },
            },
            {
                "value": { "type": "sleep", "until": "2030-01-02T00:00:00.000000Z" },
                "schema": {
                    "x-superstep": { "due": "2030-01-02T00:00:00.000000Z", "sleep": true },
                },
            },
        ]);
        assert_eq!(found, json!({ "asked": asked, "log": ["Python", "nap"], "next": [] }));
    } else {
        println!("NOT RUN: set SUPERSTEP_TEST_PYTHON to a Python that has LangGraph");
        app.thread("t").delete().await.expect("a file");
    }

    // What LangGraph has answered is not due; the other thread is.
    clock.advance(DAY);
    let due = app.run_due().await.expect("one is due");
    assert_eq!(due.iter().map(|due| &*due.thread).collect::<Vec<_>>(), ["u"]);
    assert_eq!(due.next, Some(clock.now() + DAY));
    clock.advance(DAY);
    let mut last = app.run_due().await.expect("the deadline").into_iter();
    let ended = last.next().expect("a run").outcome.expect("an end").done().expect("an end");
    assert_eq!(ended.log, ["nobody", "nap"]);
}
