//! Shows that a thread continues from wherever LangGraph has left it: with an answer that no node
//! has taken yet, with one that was taken before, inside a graph that a recorded call runs, and
//! after a run that stored only at its end.
//!
//! Needs a Python that has LangGraph, named by `SUPERSTEP_TEST_PYTHON`. Without it nothing is tested, and the output says so.

mod world;

use std::process::Command;

use superstep::func::Entrypoint;
use superstep::prelude::*;
use superstep::{CompiledGraph, Thread};
use superstep_sqlite::SqliteSaver;
use world::Dir;

#[derive(State, Clone, Default, Debug)]
struct Log {
    #[channel(reduce = Append)]
    log: Vec<String>,
}

async fn ask(task: Task) -> LogUpdate {
    let first: String = task.interrupt("first?").await;
    let second: String = task.interrupt("second?").await;
    Log::update().log([first, second])
}

fn graph() -> CompiledGraph<Log> {
    let graph = StateGraph::new().add_node("ask", ask).add_edge(START, "ask");
    graph.compile().expect("a graph")
}

/// The file with the threads that LangGraph has left.
fn left() -> Option<Dir> {
    let Ok(python) = std::env::var("SUPERSTEP_TEST_PYTHON") else {
        println!("NOT RUN: set SUPERSTEP_TEST_PYTHON to a Python that has LangGraph");
        return None;
    };
    let dir = Dir::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/left.py");
    let output = Command::new(python).arg(script).arg(dir.file()).output().expect("Python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(dir)
}

async fn thread(dir: &Dir, id: &str) -> Thread<Log> {
    let checkpointer = SqliteSaver::open(dir.file()).await.expect("the file");
    graph().with_checkpointer(checkpointer).thread(id)
}

fn asked<O: std::fmt::Debug>(outcome: Result<Outcome<O>, RunError>) -> Vec<String> {
    let asked = outcome.expect("a run").interrupted().expect("a question");
    asked.iter().map(|question| question.value.as_str().unwrap_or_default().to_owned()).collect()
}

fn done<O: std::fmt::Debug>(outcome: Result<Outcome<O>, RunError>) -> O {
    outcome.expect("a run").done().expect("the end")
}

#[tokio::test]
async fn an_answer_that_nobody_has_taken_is_taken() {
    let Some(dir) = left() else { return };
    let thread = thread(&dir, "answered").await;
    assert_eq!(asked(thread.invoke(()).await), ["second?"]);
    // It is not the answer to the next question.
    assert_eq!(asked(thread.invoke(()).await), ["second?"]);
    assert_eq!(done(thread.resume("two").await).log, ["in", "one", "two"]);
}

#[tokio::test]
async fn another_answer_takes_its_place() {
    let Some(dir) = left() else { return };
    let thread = thread(&dir, "answered").await;
    assert_eq!(asked(thread.resume("other").await), ["second?"]);
    assert_eq!(done(thread.resume("two").await).log, ["in", "other", "two"]);
}

/// F3: LangGraph itself would take it a second time.
#[tokio::test]
async fn an_answer_that_was_taken_is_not_taken_again() {
    let Some(dir) = left() else { return };
    let thread = thread(&dir, "stale").await;
    assert_eq!(asked(thread.invoke(()).await), ["second?"]);
    assert_eq!(done(thread.resume("two").await).log, ["in", "one", "two"]);
}

#[tokio::test]
async fn a_graph_inside_a_recorded_call_is_found_where_it_was() {
    let Some(dir) = left() else { return };
    let checkpointer = SqliteSaver::open(dir.file()).await.expect("the file");
    let flow = Entrypoint::new("workflow", |_: Value, task: Task| async move {
        let call = task.call_with("call", |task: Task| async move {
            let log = task.invoke(&graph(), Log::update().log(["in".to_owned()])).await?;
            Ok::<_, NodeError>(log.log)
        });
        call.await
    });
    let thread = flow.compile().with_checkpointer(checkpointer).thread("called");
    assert_eq!(asked(thread.resume("one").await), ["second?"]);
    let log = done(thread.resume("two").await);
    assert_eq!(log, ["in", "one", "two"]);
}

#[tokio::test]
async fn the_history_of_a_run_that_stored_at_its_end_can_be_walked() {
    let Some(dir) = left() else { return };
    let thread = thread(&dir, "stub").await;
    let history = thread.get_state_history().raw().await.expect("a history");
    let steps: Vec<_> =
        history.iter().flat_map(|past| &past.metadata).map(|past| past.step).collect();
    assert_eq!(steps, [0, -2]);
    assert_eq!(asked(thread.resume("one").await), ["second?"]);
    assert_eq!(done(thread.resume("two").await).log, ["in", "one", "two"]);
}
