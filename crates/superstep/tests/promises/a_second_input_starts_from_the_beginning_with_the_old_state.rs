//! Shows that a thread that is done takes new input: it runs from START again, on the state it had.
//! It would break if the triggers of the first run still counted as seen, or if the state were made
//! again.

use crate::common::{Notes, done, kept, line};
use superstep::prelude::*;

fn graph() -> StateGraph<Notes> {
    let count = |name: &'static str| {
        move |notes: Arc<Notes>| line(format!("{name} saw {}", notes.lines.len())).total(1)
    };
    StateGraph::new()
        .add_node("one", count("one"))
        .add_node("two", count("two"))
        .add_edge(START, "one")
        .add_edge("one", "two")
}

#[tokio::test]
async fn the_old_state_is_there_and_every_node_runs_again() {
    let thread = kept(graph()).thread("t");
    done(thread.invoke(line("hello")).await);
    let notes = done(thread.invoke(line("again")).await);
    assert_eq!(notes.lines, ["hello", "one saw 1", "two saw 2", "again", "one saw 4", "two saw 5"]);
    assert_eq!(notes.total, 4);
}

#[tokio::test]
async fn steps_go_on_counting() {
    let thread = kept(graph()).thread("t");
    done(thread.invoke(line("hello")).await);
    done(thread.invoke(line("again")).await);
    let history = thread.get_state_history().raw().await.expect("a history");
    let steps: Vec<_> = history
        .iter()
        .map(|snapshot| {
            let metadata = snapshot.metadata.as_ref().expect("metadata");
            (metadata.step, metadata.source.as_str())
        })
        .collect();
    let expected = [
        (6, "loop"),
        (5, "loop"),
        (4, "loop"),
        (3, "input"),
        (2, "loop"),
        (1, "loop"),
        (0, "loop"),
        (-1, "input"),
    ];
    assert_eq!(steps, expected);
}

#[tokio::test]
async fn another_thread_has_nothing_of_it() {
    let app = kept(graph());
    done(app.thread("t").invoke(line("hello")).await);
    let other = done(app.thread("u").invoke(line("hello")).await);
    assert_eq!(other.lines.len(), 3);
}

#[tokio::test]
async fn going_on_with_nothing_left_to_do_runs_nothing() {
    let thread = kept(graph()).thread("t");
    let first = done(thread.invoke(line("hello")).await);
    assert_eq!(done(thread.invoke(()).await), first);
    let history = thread.get_state_history().raw().await.expect("a history");
    assert_eq!(history.len(), 4);
}
