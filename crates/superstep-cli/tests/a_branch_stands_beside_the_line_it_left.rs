//! The history of a thread that was changed at an older checkpoint is a tree, and is shown as one.

mod world;

use std::time::Duration;

use superstep::RawSnapshot;
use superstep_cli::demo::{Mail, Office, Pace, THREAD, graph};
use superstep_sqlite::SqliteSaver;
use world::{Dir, json, said, superstep};

#[tokio::test]
async fn a_fork_in_the_history() {
    let dir = Dir::new();
    dir.run_demo("approve");
    let checkpointer = SqliteSaver::open(dir.demo().join("mail.db")).await.expect("a file");
    let graph = graph().expect("a graph").with_context(Office::new(&dir.demo()));
    let thread =
        graph.with_context(Pace(Duration::ZERO)).with_checkpointer(checkpointer).thread(THREAD);
    let past: Vec<RawSnapshot> = thread.get_state_history().raw().await.expect("a history");
    let asked = past.iter().find(|state| *state.next == ["review".into()]).expect("a review");
    let other = Mail::update().draft("something else".to_owned());
    thread.at(asked).update_state(other).as_node("draft").await.expect("a branch");
    drop(thread);

    let db = dir.demo_db();
    let text = said(&superstep(&["--db", &db, "history", THREAD]));
    let rails: Vec<&str> = text.lines().map(rail).collect();
    let left = rails.iter().position(|rail| *rail == "├─●").expect("a branch");
    let trunk = &rails[..left];
    assert!(trunk.iter().all(|rail| *rail == "●"), "{text}");
    assert_eq!(
        rails[left..],
        ["├─●", "│ ●", "●"],
        "the old line goes on beside the new head: {text}"
    );
    assert!(text.trim_end().ends_with("(head)") && text.contains("update"), "{text}");
    let history = json(&superstep(&["--db", &db, "--json", "history", THREAD]));
    let parents = history["checkpoints"].as_array().expect("a list").iter();
    let parents: Vec<_> = parents.map(|checkpoint| checkpoint["parent"].to_string()).collect();
    let twice = parents.iter().filter(|parent| parents.iter().filter(|p| p == parent).count() == 2);
    assert_eq!(twice.count(), 2, "two checkpoints continue one: {history}");
    let changed = json(&superstep(&["--db", &db, "--json", "diff", THREAD, "head~1", "head"]));
    assert_eq!(changed["changes"]["draft"]["after"], "something else");
}

/// What stands before a checkpoint, and its mark.
fn rail(line: &str) -> &str {
    let end = line.find('●').expect("a mark") + '●'.len_utf8();
    &line[..end]
}
