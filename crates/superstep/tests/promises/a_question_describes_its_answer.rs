//! Shows that a question carries the JSON schema of its answer to whoever shows it, in events, snapshots and storage.

use superstep::prelude::*;

use crate::common::{Notes, kept, line};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Verdict {
    approved: bool,
    comment: Option<String>,
}

fn asks_for_a_verdict() -> StateGraph<Notes> {
    let node = |task: Task| async move {
        let Verdict { approved, comment } = task.interrupt("well?").with_schema().await;
        line(format!("{approved}: {}", comment.unwrap_or_default()))
    };
    StateGraph::new().add_node("ask", node).add_edge(START, "ask")
}

#[tokio::test]
async fn the_schema_of_the_type() {
    let thread = kept(asks_for_a_verdict()).thread("t");
    let asked = thread.invoke(Notes::update()).await.expect("a run").interrupted();
    let asked = asked.expect("a question");
    let schema = asked[0].response_schema.clone().expect("a schema");
    let properties = schema.get("properties").expect("an object");
    assert_eq!(properties.get("approved").and_then(|p| p.get("type")), Some(&"boolean".into()));
    assert!(properties.get("comment").is_some());
    let seen = thread.get_state().await.expect("a state").interrupts.clone();
    assert_eq!(seen[0].response_schema, Some(schema));
    let refused = thread.resume("yes").await.expect_err("no verdict");
    assert!(matches!(&refused, RunError::Resume { pending, .. } if pending.len() == 1));
    let verdict = serde_json::json!({"approved": true, "comment": "good"});
    assert_eq!(crate::common::done(thread.resume(verdict).await).lines, ["true: good"]);
}

#[tokio::test]
async fn a_schema_that_is_given() {
    let node = |task: Task| async move {
        let schema = serde_json::json!({"enum": ["a", "b"]});
        let answer: String = task.interrupt("which?").schema(schema).await;
        line(answer)
    };
    let thread = kept(StateGraph::new().add_node("ask", node).add_edge(START, "ask")).thread("t");
    let asked = thread.invoke(Notes::update()).await.expect("a run").interrupted();
    let schema = asked.expect("a question")[0].response_schema.clone().expect("a schema");
    assert_eq!(schema.get("enum").map(ToString::to_string).as_deref(), Some(r#"["a","b"]"#));
    assert_eq!(crate::common::done(thread.resume("b").await).lines, ["b"]);
}
