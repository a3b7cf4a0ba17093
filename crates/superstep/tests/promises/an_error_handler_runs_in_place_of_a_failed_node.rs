//! Shows that the handler of a node runs in the superstep in which the node finally failed, sees what failed and why, and
//! that its writes and its command stand for those of the node, whose edges are not followed. Siblings are not stopped. If
//! the handler itself fails, that ends the run, and only the handler runs again. It would break if a handled failure ended
//! the superstep, or if the failed node ran again on resume.

use crate::common;

use crate::common::{Counter, Notes, done, kept, line, says, sleep};
use superstep::prelude::*;

/// `bad` fails; `next` follows it by an edge.
fn graph(tries: &Counter) -> StateGraph<Notes> {
    let tries = tries.clone();
    StateGraph::new()
        .add_node("bad", move || {
            tries.add();
            Err::<(), _>(NodeError::permanent("no luck").named("Unlucky"))
        })
        .on_error(|failure: Failure, notes: Arc<Notes>| {
            line(format!(
                "{}: {} ({}), {}",
                failure.node,
                failure.error,
                failure.error.kind(),
                notes.lines.len()
            ))
        })
        .add_node("next", || line("next"))
        .add_edge(START, "bad")
        .add_edge("bad", "next")
}

#[tokio::test]
async fn it_sees_the_failure_and_the_edges_of_the_node_are_not_followed() {
    let tries = Counter::default();
    let graph = graph(&tries).compile().expect("a graph that compiles");
    let notes = done(graph.invoke(line("in")).await);
    assert_eq!(notes.lines, ["in", "bad: no luck (Unlucky), 1"]);
    assert_eq!(tries.get(), 1);
}

#[tokio::test]
async fn its_command_leads_on() {
    let graph = StateGraph::<Notes>::new()
        .add_node("bad", || Err::<(), _>("no luck"))
        .on_error(|| Command::update(line("mended")).goto("next"))
        .destinations(["next"])
        .add_node("next", || line("next"))
        .add_edge(START, "bad")
        .compile()
        .expect("a graph that compiles");
    assert_eq!(done(graph.invoke(Notes::update()).await).lines, ["mended", "next"]);
}

#[tokio::test(start_paused = true)]
async fn it_runs_after_the_last_attempt_and_siblings_go_on() {
    let tries = Counter::default();
    let tried = tries.clone();
    let graph = StateGraph::<Notes>::new()
        .add_node("bad", move || {
            tried.add();
            Err::<(), _>(NodeError::transient("no luck"))
        })
        .retry(RetryPolicy::attempts(3).initial_interval(common::ms(10)).jitter(false))
        .on_error(|| line("mended"))
        .add_node("slow", || async {
            sleep(1_000).await;
            line("slow")
        })
        .add_node("after", || line("after"))
        .add_edge(START, "bad")
        .add_edge(START, "slow")
        .add_edge("slow", "after");
    let thread = kept(graph).thread("t");
    let notes = done(thread.invoke(Notes::update()).await);
    assert_eq!(notes.lines, ["mended", "slow", "after"]);
    assert_eq!(tries.get(), 3);
    let stored = thread.get_state().await.expect("a look");
    assert_eq!(**stored.state(), notes);
    let steps = thread.get_state_history().raw().await.expect("a history").len();
    assert_eq!(steps, 4, "the handler has no superstep of its own");
}

#[tokio::test]
async fn one_for_each_failed_dispatch() {
    let graph = StateGraph::<Notes>::new()
        .add_node("spread", || (0..3).map(|n: u32| Dispatch::new("work", n)).collect::<Vec<_>>())
        .destinations(["work"])
        .add_node("work", |Arg(n): Arg<u32>| match n {
            1 => Ok(line("1 is fine")),
            _ => Err("no luck"),
        })
        .on_error(|Arg(n): Arg<u32>| line(format!("{n} was mended")))
        .add_edge(START, "spread")
        .compile()
        .expect("a graph that compiles");
    let notes = done(graph.invoke(Notes::update()).await);
    assert_eq!(notes.lines, ["0 was mended", "1 is fine", "2 was mended"]);
}

#[tokio::test]
async fn a_handler_that_fails_ends_the_run_and_only_it_runs_again() {
    let (tries, mends) = (Counter::default(), Counter::default());
    let (tried, mended) = (tries.clone(), mends.clone());
    let graph = StateGraph::<Notes>::new()
        .add_node("bad", move || {
            tried.add();
            Err::<(), _>(NodeError::permanent("no luck").named("Unlucky"))
        })
        .on_error(move |failure: Failure| match mended.add() {
            0 => Err("the handler has no luck either"),
            _ => Ok(line(format!("{} {}", failure.node, failure.error.kind()))),
        })
        .add_edge(START, "bad");
    let thread = kept(graph).thread("t");
    let error = thread.invoke(Notes::update()).await.expect_err("the handler failed");
    says(&error, &["the handler has no luck either"]);
    let notes = done(thread.invoke(()).await);
    assert_eq!(notes.lines, ["bad Unlucky"]);
    assert_eq!((tries.get(), mends.get()), (1, 2));
}

#[tokio::test]
async fn the_handler_of_the_graph_is_for_nodes_without_their_own() {
    let graph = StateGraph::<Notes>::new()
        .default_on_error(|failure: Failure| line(format!("graph: {}", failure.node)))
        .add_node("a", || Err::<(), _>("no luck"))
        .on_error(|failure: Failure| line(format!("own: {}", failure.node)))
        .add_node("b", || Err::<(), _>("no luck"))
        .add_edge(START, "a")
        .add_edge(START, "b");
    let notes = done(kept(graph).thread("t").invoke(Notes::update()).await);
    assert_eq!(notes.lines, ["own: a", "graph: b"]);
}

#[tokio::test]
async fn a_panic_reaches_the_handler_too() {
    let graph = StateGraph::<Notes>::new()
        .add_node("bad", || -> () { panic!("no luck") })
        .on_error(|failure: Failure| line(failure.error.kind()))
        .add_edge(START, "bad")
        .compile()
        .expect("a graph that compiles");
    assert_eq!(done(graph.invoke(Notes::update()).await).lines, ["Panic"]);
}
