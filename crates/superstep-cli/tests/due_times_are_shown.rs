//! Shows that whoever looks at open questions sees which of them the clock answers, when, and with what.
//!
//! It could break because a due time is part of what is stored of a question, beside the schema of its answer.

mod world;

use std::time::{Duration, UNIX_EPOCH};

use serde_json::json;
use superstep::prelude::*;
use superstep_sqlite::SqliteSaver;
use world::{Dir, said, superstep};

#[derive(State, Clone, Default)]
struct Form {
    answer: Option<bool>,
}

async fn nap(task: Task) {
    task.sleep_until(UNIX_EPOCH + Duration::from_secs(7_258_118_400)).await;
}

async fn ask(task: Task) -> FormUpdate {
    let asked = task.interrupt("sure?").schema(json!({ "type": "boolean" }));
    let due = UNIX_EPOCH + Duration::from_secs(7_258_204_800);
    Form::update().answer(asked.or_at(due, false).await)
}

#[tokio::test]
async fn in_the_inbox_and_on_a_thread() {
    let dir = Dir::new();
    std::fs::create_dir_all(dir.demo()).expect("a directory");
    let db = dir.demo_db();
    let graph = StateGraph::<Form>::new()
        .add_node("nap", nap)
        .add_node("ask", ask)
        .add_edge(START, "nap")
        .add_edge(START, "ask");
    let file = db.trim_start_matches("sqlite:").trim_start_matches("//");
    let checkpointer = SqliteSaver::open(file).await.expect("a file");
    let app = graph.compile().expect("a graph").with_checkpointer(checkpointer.clone());
    app.thread("t").invoke(Form::update()).await.expect("a run");
    drop(app);
    checkpointer.close().await.expect("a file");

    let inbox = world::json(&superstep(&["--db", &db, "--json", "inbox"]));
    let shown = |nth: usize| (&inbox["questions"][nth]["due"], &inbox["questions"][nth]["sleeps"]);
    assert_eq!(shown(0), (&json!("2200-01-02T00:00:00Z"), &json!(false)));
    assert_eq!(shown(1), (&json!("2200-01-01T00:00:00Z"), &json!(true)));
    for command in [&["inbox"][..], &["show", "t"]] {
        let text = said(&superstep(&[&["--db", &db][..], command].concat()));
        assert!(text.contains("due 2200-01-02T00:00:00Z, then: false"), "{text}");
        assert!(text.contains("sleeps until 2200-01-01T00:00:00Z"), "{text}");
        assert!(text.contains(r#"answer: {"type":"boolean"}"#), "{text}");
    }
}
