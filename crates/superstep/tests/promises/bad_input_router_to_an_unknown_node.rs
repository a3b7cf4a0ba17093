//! Shows that a router or a command that leads to a node that does not exist is a failed task that
//! names the node and the nearest one; that what its node wrote is not kept (F1); and that the
//! thread can be run again. In the reference the name is ignored, and the graph ends silently
//! (F26).

use crate::common::{Counter, Notes, done, kept, line, next, says};
use superstep::Targets;
use superstep::prelude::*;

/// `write` goes to where `to` says the first time, and to `review` after that.
fn graph(targets: impl Into<Targets>, to: &'static str, writes: &Counter) -> StateGraph<Notes> {
    let (asked, writes) = (Counter::default(), writes.clone());
    StateGraph::new()
        .add_node("write", move || {
            writes.add();
            line("write")
        })
        .add_node("review", || line("review"))
        .add_edge(START, "write")
        .add_conditional_edges("write", targets, move |_: &Notes| match asked.add() {
            0 => to,
            _ => "review",
        })
}

async fn check(graph: StateGraph<Notes>, parts: &[&str]) {
    let thread = kept(graph).thread("t");
    let error = thread.invoke(line("in")).await.expect_err("nowhere to go");
    let RunError::Node { node, .. } = &error else { panic!("{error:?}") };
    assert_eq!(&**node, "write");
    says(&error, parts);
    let snapshot = thread.get_state().await.expect("a look");
    assert_eq!(snapshot.state().lines, ["in"], "what the node wrote is not kept");
    assert_eq!(next(&snapshot), ["write"]);
    assert_eq!(done(thread.invoke(()).await).lines, ["in", "write", "review"]);
}

#[tokio::test]
async fn that_is_none_of_the_declared_targets() {
    let writes = Counter::default();
    let graph = graph(["review", END], "reviw", &writes);
    check(graph, &["`reviw`", "declared targets", "`review`"]).await;
    assert_eq!(writes.get(), 2);
}

#[tokio::test]
async fn when_any_target_is_allowed() {
    let graph = graph(Targets::any(), "reviw", &Counter::default());
    check(graph, &["`write`", "unknown node `reviw`", "did you mean `review`?"]).await;
}

#[tokio::test]
async fn by_a_command() {
    let tries = Counter::default();
    let graph = StateGraph::<Notes>::new()
        .add_node("write", move || {
            let to = if tries.add() == 0 { "reviw" } else { "review" };
            Command::update(line("write")).goto(to)
        })
        .destinations(["review"])
        .add_node("review", || line("review"))
        .add_edge(START, "write");
    check(graph, &["`write`", "unknown node `reviw`", "did you mean `review`?"]).await;
}

#[tokio::test]
async fn by_a_dispatch() {
    let tries = Counter::default();
    let graph = StateGraph::<Notes>::new()
        .add_node("write", move || {
            let to = if tries.add() == 0 { "reviw" } else { "review" };
            Command::update(line("write")).goto(Dispatch::new(to, 1))
        })
        .destinations(["review"])
        .add_node("review", || line("review"))
        .add_edge(START, "write");
    check(graph, &["`write`", "unknown node `reviw`", "did you mean `review`?"]).await;
}

#[tokio::test]
async fn that_gives_no_answer() {
    let asked = Counter::default();
    let graph = StateGraph::<Notes>::new()
        .add_node("write", || line("write"))
        .add_node("review", || line("review"))
        .add_edge(START, "write")
        .add_conditional_edges("write", ["review"], move |_: &Notes| {
            (asked.add() > 0).then_some("review")
        });
    check(graph, &["`write`", "router"]).await;
}

#[tokio::test]
async fn that_goes_back_to_the_start() {
    let graph = graph(Targets::any(), START, &Counter::default());
    check(graph, &["`write`", "router"]).await;
}

#[tokio::test]
async fn by_a_command_given_as_input() {
    let writes = Counter::default();
    let thread = kept(graph(["review"], "review", &writes)).thread("t");
    let before = done(thread.invoke(line("in")).await);
    let command = Command::<Notes>::update(line("x")).goto("reviw");
    let error = thread.invoke(command).await.expect_err("nowhere to go");
    says(&error, &["unknown node `reviw`", "did you mean `review`?"]);
    assert_eq!(**thread.get_state().await.expect("a look").state(), before);
    let command = Command::<Notes>::update(line("x")).goto("review");
    assert_eq!(done(thread.invoke(command).await).lines, ["in", "write", "review", "x", "review"]);
}
