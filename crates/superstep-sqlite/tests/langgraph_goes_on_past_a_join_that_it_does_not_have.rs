//! Shows that a thread whose graph has a join of some of its sources can be read and run by LangGraph, which has no such
//! join: it ignores the channel, and fills the joins that it has. It would break if the form of the channel were one that
//! LangGraph cannot decode, or if its name were one that LangGraph takes for another channel.
//!
//! Needs a Python that has LangGraph, named by `SUPERSTEP_TEST_PYTHON`. Without it nothing is tested, and the output says so.

mod world;

use std::process::Command;

use serde_json::{Value as Json, json};
use superstep::Join;
use superstep::prelude::*;
use superstep_sqlite::SqliteSaver;
use world::Dir;

#[derive(State, Clone, Default, Debug)]
struct Log {
    #[channel(reduce = Append)]
    log: Vec<String>,
}

fn note(name: &'static str) -> impl Fn() -> LogUpdate {
    move || Log::update().log([name.to_owned()])
}

fn graph() -> StateGraph<Log> {
    StateGraph::new()
        .add_node("a", note("a"))
        .add_node("b", note("b"))
        .add_node("c", note("c"))
        .add_node("some", note("some"))
        .add_node("all", note("all"))
        .add_edge(START, "a")
        .add_edge("a", "b")
        .add_edge("b", "c")
        .add_edge(Join::at_least(2, ["a", "b", "c"]), "some")
        .add_edge(["a", "c"], "all")
}

#[tokio::test]
async fn before_and_after_the_join_has_fired() {
    let Ok(python) = std::env::var("SUPERSTEP_TEST_PYTHON") else {
        println!("NOT RUN: set SUPERSTEP_TEST_PYTHON to a Python that has LangGraph");
        return;
    };
    let stops = [
        ("b", json!({ "log": ["a"], "next": ["b"], "history": 3, "end": ["a", "b", "c", "all"] })),
        (
            "all",
            json!({
                "log": ["a", "b", "c", "some"], "next": ["all"], "history": 5,
                "end": ["a", "b", "c", "some", "all"],
            }),
        ),
    ];
    for (stop, expected) in stops {
        let dir = Dir::new();
        let checkpointer = SqliteSaver::open(dir.file()).await.expect("a file");
        let app = graph().compile().expect("a graph").with_checkpointer(checkpointer);
        let run = app.thread("t").invoke(Log::update()).interrupt_before([stop]).await;
        run.expect("a run").interrupted().expect("a breakpoint");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/joins.py");
        let output = Command::new(&python).arg(script).arg(dir.file()).output().expect("Python");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let found: Json = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(found, expected, "stopped before `{stop}`");
    }
}
