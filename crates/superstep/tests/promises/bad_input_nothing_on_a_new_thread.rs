//! Shows that continuing with `()` is refused where nothing has begun, with the way out, that an
//! empty command is refused everywhere, and that neither changes anything. In the reference an
//! empty command crashes (F8).

use crate::common::{Counter, Notes, done, kept, line, says};
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
async fn nothing_to_go_on_with() {
    let ran = Counter::default();
    let thread = kept(graph(&ran)).thread("t");
    let error = thread.invoke(()).await.expect_err("nothing has begun");
    assert!(matches!(error, RunError::EmptyInput(_)), "{error:?}");
    says(&error, &["no input", "has not begun"]);
    assert_eq!(ran.get(), 0);
    assert!(thread.get_state().await.expect("a look").is_new(), "nothing is stored");
    assert_eq!(done(thread.invoke(Notes::update()).await).lines, ["node"]);
}

#[tokio::test]
async fn nothing_without_a_thread() {
    let graph = graph(&Counter::default()).compile().expect("a graph that compiles");
    let error = graph.invoke(()).await.expect_err("nothing has begun");
    assert!(matches!(error, RunError::EmptyInput(_)), "{error:?}");
}

#[tokio::test]
async fn an_empty_update_is_an_input() {
    let thread = kept(graph(&Counter::default())).thread("t");
    assert_eq!(done(thread.invoke(serde_json::json!({})).await).lines, ["node"]);
}

#[tokio::test]
async fn an_empty_command() {
    let thread = kept(graph(&Counter::default())).thread("t");
    for _ in 0..2 {
        let error = thread.invoke(Command::<Notes>::new()).await.expect_err("nothing to do");
        assert!(matches!(error, RunError::EmptyInput(_)), "{error:?}");
        says(&error, &["command", "empty"]);
        // The second time round the thread has begun.
        done(thread.invoke(Notes::update()).await);
    }
    assert_eq!(thread.get_state().await.expect("a look").state().lines, ["node", "node"]);
}

#[tokio::test]
async fn a_graph_with_a_checkpointer_and_no_thread() {
    let error = kept(graph(&Counter::default())).invoke(Notes::update()).await.expect_err("where?");
    says(&error, &["`thread(id)`"]);
}
