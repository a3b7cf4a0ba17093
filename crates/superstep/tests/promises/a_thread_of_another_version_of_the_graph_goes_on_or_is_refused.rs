//! Shows that a thread stored by a graph that has changed since continues where it still fits, and
//! is refused with the difference where it does not: nothing that was to run is passed over.
//!
//! It could break because a name the graph does not know looks the same as one that does not exist.

use superstep::prelude::*;
use superstep::{CompiledGraph, Thread};

use crate::world::{Log, asked, assert_says, done, failed, log};

fn kept(graph: StateGraph<Log>, checkpointer: &MemorySaver) -> CompiledGraph<Log> {
    graph.compile().expect("a graph").with_checkpointer(checkpointer.clone())
}

fn chain(names: &[&'static str]) -> StateGraph<Log> {
    let mut graph = StateGraph::<Log>::new();
    let mut before = START;
    for name in names.iter().copied() {
        graph = graph.add_node(name, move || log(name)).add_edge(before, name);
        before = name;
    }
    graph
}

/// Runs to the breakpoint before `at`, and continues with another graph.
async fn stopped(old: StateGraph<Log>, at: &'static str, new: StateGraph<Log>) -> Thread<Log> {
    let checkpointer = MemorySaver::new();
    let thread = kept(old, &checkpointer).thread("t");
    thread.invoke(log("in")).interrupt_before([at]).await.expect("a breakpoint");
    kept(new, &checkpointer).thread("t")
}

#[track_caller]
fn stale(outcome: Result<Outcome<Log>, RunError>, parts: &[&str]) {
    let (error, text) = failed(outcome);
    assert!(matches!(error, RunError::Stale { .. }), "{error:?}");
    assert_says(&text, parts);
}

#[tokio::test(start_paused = true)]
async fn what_still_fits_goes_on() {
    let thread = stopped(chain(&["a", "b"]), "b", chain(&["a", "b", "c"])).await;
    assert_eq!(done(thread.invoke(()).await).log, ["in", "a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_renamed() {
    let thread = stopped(chain(&["a", "review"]), "review", chain(&["a", "reviews"])).await;
    stale(
        thread.invoke(()).await,
        &["thread `t`", "another version", "`review` was to run next", "did you mean `reviews`?"],
    );
    // Nothing has changed, and new input drops what was open.
    stale(thread.invoke(()).await, &["`review`"]);
    assert_eq!(done(thread.invoke(log("again")).await).log, ["in", "a", "again", "a", "reviews"]);
    assert_eq!(done(thread.invoke(()).await).log.len(), 5, "and nothing is left over");
}

#[tokio::test(start_paused = true)]
async fn an_answer_for_a_node_that_is_gone_is_not_taken() {
    let checkpointer = MemorySaver::new();
    let ask = |task: Task| async move { log(task.interrupt::<String>("well?").await) };
    let old = StateGraph::<Log>::new().add_node("ask", ask).add_edge(START, "ask");
    assert_eq!(asked(kept(old, &checkpointer).thread("t").invoke(log("in")).await), ["well?"]);
    let new = kept(chain(&["other"]), &checkpointer).thread("t");
    stale(new.resume("yes").await, &["`ask` was to run next", "no such node"]);
    let again = StateGraph::<Log>::new().add_node("ask", ask).add_edge(START, "ask");
    assert_eq!(done(kept(again, &checkpointer).thread("t").resume("yes").await).log, ["in", "yes"]);
}

#[tokio::test(start_paused = true)]
async fn a_dispatch_to_a_node_that_is_gone() {
    let fan = |each: &'static str| {
        StateGraph::<Log>::new()
            .add_node("fan", move || vec![Dispatch::new(each, 1_i64)])
            .destinations([each])
            .add_node(each, |Arg(n): Arg<i64>| log(format!("each {n}")))
            .add_edge(START, "fan")
    };
    let thread = stopped(fan("each"), "each", fan("every")).await;
    stale(thread.invoke(()).await, &["dispatched to node `each`"]);
}

#[tokio::test(start_paused = true)]
async fn a_join_that_is_gone() {
    let two = |joined: bool| {
        let graph = chain(&["a"])
            .add_node("b", || log("b"))
            .add_edge("a", "b")
            .add_node("c", || log("c"))
            .add_node("d", || log("d"));
        let graph = graph.add_edge("b", "c");
        if joined { graph.add_edge(["a", "c"], "d") } else { graph.add_edge("c", "d") }
    };
    let thread = stopped(two(true), "c", two(false)).await;
    stale(thread.invoke(()).await, &["`d` was waiting for `a`, `c`", "no such join"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_had_finished_and_is_led_to_otherwise() {
    let checkpointer = MemorySaver::new();
    let graph = |joined: bool, fails: bool| {
        let graph = StateGraph::<Log>::new()
            .add_node("done", || log("done"))
            .add_node("fails", move || async move {
                // Only when the other one has ended.
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                if fails { Err(NodeError::permanent("no")) } else { Ok(log("mended")) }
            })
            .add_node("late", || log("late"))
            .add_edge(START, "done")
            .add_edge(START, "fails")
            .add_edge("fails", "late");
        if joined { graph.add_edge(["fails", "late"], "done") } else { graph }
    };
    failed(kept(graph(false, true), &checkpointer).thread("t").invoke(log("in")).await);
    let changed = kept(graph(true, false), &checkpointer).thread("t");
    stale(changed.invoke(()).await, &["`done` had finished", "what leads to it has changed"]);
    let same = kept(graph(false, false), &checkpointer).thread("t");
    assert_eq!(done(same.invoke(()).await).log, ["in", "done", "mended", "late"]);
}
