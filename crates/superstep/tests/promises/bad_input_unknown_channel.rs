//! Shows that an update given as data with a key that is not a channel is refused with the key and
//! the nearest channel, before anything runs or is stored, and that the thread can be run
//! afterwards. In the reference such keys are dropped silently (F26).

use crate::common::{Counter, Notes, done, kept, line, says};
use serde_json::json;
use superstep::prelude::*;

fn graph(ran: &Counter) -> StateGraph<Notes> {
    let ran = ran.clone();
    StateGraph::new()
        .add_node("node", move || {
            ran.add();
            line("node")
        })
        .add_edge(START, "node")
}

#[tokio::test]
async fn in_the_input_of_a_new_thread() {
    let ran = Counter::default();
    let thread = kept(graph(&ran)).thread("t");
    let error = thread.invoke(json!({ "lins": ["x"], "total": 1 })).await.expect_err("no channel");
    assert!(matches!(error, RunError::InvalidUpdate { .. }), "{error:?}");
    says(&error, &["`lins`", "did you mean `lines`?"]);
    assert_eq!(ran.get(), 0);
    assert!(thread.get_state().await.expect("a look").metadata.is_none(), "nothing is stored");
    let notes = done(thread.invoke(json!({ "lines": ["x"], "total": 1 })).await);
    assert_eq!((notes.lines, notes.total), (vec!["x".to_owned(), "node".to_owned()], 1));
}

#[tokio::test]
async fn in_the_input_of_a_thread_that_has_a_state() {
    let ran = Counter::default();
    let thread = kept(graph(&ran)).thread("t");
    let before = done(thread.invoke(line("x")).await);
    let error = thread.invoke(json!({ "lines": ["y"], "totl": 1 })).await.expect_err("no channel");
    says(&error, &["`totl`", "did you mean `total`?"]);
    let snapshot = thread.get_state().await.expect("a look");
    assert_eq!(**snapshot.state(), before, "nothing is half applied");
    assert_eq!(snapshot.metadata.as_ref().map(|metadata| metadata.step), Some(1));
    assert_eq!(done(thread.invoke(line("y")).await).lines, ["x", "node", "y", "node"]);
}

#[tokio::test]
async fn all_problems_are_named_at_once() {
    let thread = kept(graph(&Counter::default())).thread("t");
    let input = json!({ "lins": [], "xyzzy": 1, "total": "many" });
    let error = thread.invoke(input).await.expect_err("three problems");
    says(&error, &["`lins`", "`xyzzy`", "`total`"]);
    assert!(!error.to_string().contains("`xyzzy`; did"), "nothing is near: {error}");
}

#[tokio::test]
async fn in_an_update_of_the_state() {
    let thread = kept(graph(&Counter::default())).thread("t");
    let before = done(thread.invoke(line("x")).await);
    let update = superstep::StateUpdate::data(json!({ "lins": ["y"] })).as_node("node");
    let error = thread.bulk_update_state([vec![update]]).await.expect_err("no channel");
    says(&error, &["`lins`", "did you mean `lines`?"]);
    let snapshot = thread.get_state().await.expect("a look");
    assert_eq!(**snapshot.state(), before);
    let history = thread.get_state_history().raw().await.expect("a history");
    assert_eq!(history.len(), 3, "no checkpoint was made");
}

#[tokio::test]
async fn what_is_no_update_at_all() {
    let thread = kept(graph(&Counter::default())).thread("t");
    for input in [json!([1, 2]), json!("text"), json!(7), json!(null)] {
        let error = thread.invoke(input.clone()).await.expect_err("no map");
        assert!(matches!(error, RunError::InvalidUpdate { .. }), "{input}: {error:?}");
        says(&error, &["input", "map"]);
    }
    assert!(thread.get_state().await.expect("a look").metadata.is_none(), "nothing is stored");
}
