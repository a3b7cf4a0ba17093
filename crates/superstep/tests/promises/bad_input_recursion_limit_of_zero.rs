//! Shows that a run that is allowed no superstep is refused before it begins, with the way out, and changes nothing.

use crate::common::{Notes, done, kept, line, says};
use superstep::prelude::*;

#[tokio::test]
async fn it_is_refused_and_the_thread_can_be_run() {
    let graph = StateGraph::new().add_node("node", || line("node")).add_edge(START, "node");
    let thread = kept(graph).thread("t");
    let error = thread.invoke(Notes::update()).recursion_limit(0).await.expect_err("no superstep");
    assert!(matches!(error, RunError::Invalid(_)), "{error:?}");
    says(&error, &["recursion limit", "at least 1"]);
    assert!(thread.get_state().await.expect("a look").metadata.is_none(), "nothing is stored");
    assert_eq!(done(thread.invoke(Notes::update()).await).lines, ["node"]);
    thread.invoke(line("x")).recursion_limit(0).await.expect_err("no superstep");
    assert_eq!(thread.get_state().await.expect("a look").state().lines, ["node"]);
}

#[tokio::test]
async fn a_stream_says_the_same() {
    let graph =
        StateGraph::<Notes>::new().add_node("node", || line("node")).add_edge(START, "node");
    let graph = graph.compile().expect("a graph that compiles");
    let mut run = graph.invoke(Notes::update()).recursion_limit(0).stream([Mode::Updates]);
    let error = run.next().await.expect("an item").expect_err("no superstep");
    says(&error, &["recursion limit", "at least 1"]);
    assert!(run.next().await.is_none(), "an error is the last item");
}
