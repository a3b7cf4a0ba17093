//! A quirk of the reference that is ours too, because threads move between the two engines: the same thread must come to the
//! same end in both.

use crate::world::{Log, World, done, failed, in_memory, log, look};
use superstep::prelude::*;

/// F21: a limit of N lets N supersteps run and then fails, even if nothing is left to do, because
/// the limit is checked before the plan; and a run that continues gets N + 2.
#[tokio::test(start_paused = true)]
async fn the_recursion_limit_is_one_more_than_the_supersteps() {
    let chain = |nodes: usize| {
        let mut graph = StateGraph::<Log>::new().add_edge(START, "0");
        for n in 0..nodes {
            graph = graph.add_node(n.to_string(), move || log(n.to_string()));
            if n > 0 {
                graph = graph.add_edge((n - 1).to_string(), n.to_string());
            }
        }
        in_memory(graph.compile().expect("a graph"), &World::new()).thread("1")
    };
    let limited = |error: &RunError| matches!(error, RunError::RecursionLimit { limit: 2 });

    let exact = chain(2);
    let (error, _) = failed(exact.invoke(Log::update()).recursion_limit(2).await);
    assert!(limited(&error), "{error:?}");
    assert_eq!(look(&exact).await.state().log, ["0", "1"], "both ran, and are kept");
    assert!(look(&exact).await.next.is_empty());
    assert_eq!(done(exact.invoke(()).recursion_limit(2).await).log, ["0", "1"]);

    let long = chain(9);
    failed(long.invoke(Log::update()).recursion_limit(2).await);
    assert_eq!(look(&long).await.state().log.len(), 2);
    let (error, _) = failed(long.invoke(()).recursion_limit(2).await);
    assert!(limited(&error), "{error:?}");
    assert_eq!(look(&long).await.state().log.len(), 2 + 4, "a run that goes on gets two more");
}

/// F21: and a node is told of its last superstep one too early.
#[tokio::test(start_paused = true)]
async fn the_last_superstep_is_not_the_last_one_that_runs() {
    let graph = StateGraph::<Log>::new()
        .add_node("a", |task: Task| log(format!("{}", task.is_last_step())))
        .add_edge(START, "a")
        .add_conditional_edges("a", ["a"], |_: &Log| "a")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &World::new()).thread("1");
    failed(thread.invoke(Log::update()).recursion_limit(3).await);
    assert_eq!(look(&thread).await.state().log, ["false", "true", "false"]);
}
