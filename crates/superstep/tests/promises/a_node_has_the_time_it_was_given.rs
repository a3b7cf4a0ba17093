//! Shows that a limit on the whole time of an attempt is never extended, that one on idle time is extended by every sign
//! of life, that a node whose time is up is dropped and counts as a failure that may be tried again, and that a dispatch
//! can bring a limit of its own. It would break if the limits were of a task rather than of an attempt.

use crate::common;

use crate::common::{Counter, Notes, done, line, ms, says, sleep};
use superstep::prelude::*;
use tokio::time::Instant;

async fn run(graph: StateGraph<Notes>) -> Result<Outcome<Notes>, RunError> {
    graph.compile().expect("a graph that compiles").invoke(Notes::update()).await
}

fn timed_out(ended: Result<Outcome<Notes>, RunError>) -> NodeError {
    match ended {
        Err(RunError::Node { error, .. }) => {
            assert_eq!(error.kind(), "NodeTimeoutError", "{error}");
            error
        }
        other => panic!("no time limit was hit: {other:?}"),
    }
}

/// A node that shows a sign of life every so often, five times.
fn working(every: u64, sign: fn(&Task)) -> StateGraph<Notes> {
    StateGraph::new()
        .add_node("work", move |task: Task| async move {
            for _ in 0..5 {
                sleep(every).await;
                sign(&task);
            }
            line("done")
        })
        .add_edge(START, "work")
}

#[tokio::test(start_paused = true)]
async fn the_whole_time_is_never_extended() {
    let began = Instant::now();
    let graph = working(50, Task::heartbeat).timeout(TimeoutPolicy::run(ms(120)));
    let error = timed_out(run(graph).await);
    says(error, &["`work`", "120ms"]);
    let took = began.elapsed();
    assert!(took >= ms(120) && took < ms(125), "{took:?}");
    let graph = working(50, Task::heartbeat).timeout(TimeoutPolicy::run(ms(300)));
    assert_eq!(done(run(graph).await).lines, ["done"]);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_extends_the_idle_time() {
    let graph = working(50, Task::heartbeat).timeout(TimeoutPolicy::idle(ms(60)));
    assert_eq!(done(run(graph).await).lines, ["done"]);
    let graph = working(50, |task| task.emit("on it")).timeout(TimeoutPolicy::idle(ms(60)));
    assert_eq!(done(run(graph).await).lines, ["done"]);
}

#[tokio::test(start_paused = true)]
async fn without_a_sign_of_life_the_idle_time_runs_out() {
    let began = Instant::now();
    let graph = working(50, |_| {}).timeout(TimeoutPolicy::idle(ms(60)));
    let error = timed_out(run(graph).await);
    says(error, &["`work`", "60ms", "progress"]);
    let took = began.elapsed();
    assert!(took >= ms(60) && took < ms(65), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn both_limits_hold_together() {
    let policy = TimeoutPolicy::run(ms(220)).and_idle(ms(60));
    timed_out(run(working(50, Task::heartbeat).timeout(policy)).await);
    timed_out(run(working(70, Task::heartbeat).timeout(policy)).await);
    assert_eq!(done(run(working(40, Task::heartbeat).timeout(policy)).await).lines, ["done"]);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_ran_out_of_time_is_dropped_and_tried_again() {
    for spawned in [false, true] {
        let dropped = Counter::default();
        let counted = dropped.clone();
        let graph = StateGraph::new()
            .add_node("work", move |task: Task| {
                let guard = counted.on_drop();
                async move {
                    if task.attempt() < 3 {
                        sleep(1_000).await;
                    }
                    drop(guard);
                    line(format!("attempt {}", task.attempt()))
                }
            })
            .timeout(TimeoutPolicy::run(ms(100)))
            .retry(RetryPolicy::attempts(3).initial_interval(ms(10)).jitter(false))
            .add_edge(START, "work");
        let graph = if spawned { graph.spawned() } else { graph };
        let began = Instant::now();
        assert_eq!(done(run(graph).await).lines, ["attempt 3"]);
        assert_eq!(dropped.get(), 3);
        // Two attempts of 100 ms, and waits of 10 and 20 between them.
        let took = began.elapsed();
        assert!(took >= ms(230) && took < ms(240), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dispatch_brings_its_own_limit() {
    let graph = |limit: Option<TimeoutPolicy>| {
        StateGraph::<Notes>::new()
            .add_node("spread", move || {
                let dispatch = Dispatch::new("work", 50_u64);
                match limit {
                    Some(limit) => dispatch.timeout(limit),
                    None => dispatch,
                }
            })
            .destinations(["work"])
            .add_node("work", |Arg(time): Arg<u64>| async move {
                sleep(time).await;
                line("done")
            })
            .timeout(TimeoutPolicy::run(ms(20)))
            .add_edge(START, "spread")
    };
    says(timed_out(run(graph(None)).await), &["20ms"]);
    let longer = TimeoutPolicy::run(ms(100));
    assert_eq!(done(run(graph(Some(longer))).await).lines, ["done"]);
    says(timed_out(run(graph(Some(TimeoutPolicy::run(ms(10))))).await), &["10ms"]);
}

#[tokio::test(start_paused = true)]
async fn the_default_limit_is_for_nodes_without_their_own() {
    let graph = working(50, |_| {}).default_timeout(TimeoutPolicy::run(ms(100)));
    timed_out(run(graph).await);
    let graph = working(50, |_| {})
        .timeout(TimeoutPolicy::run(ms(1_000)))
        .default_timeout(TimeoutPolicy::run(ms(100)));
    assert_eq!(done(run(graph).await).lines, ["done"]);
}

#[tokio::test(start_paused = true)]
async fn a_superstep_has_a_limit_too() {
    let graph = StateGraph::<Notes>::new()
        .add_node("quick", || line("quick"))
        .add_node("slow", || async {
            sleep(1_000).await;
            line("slow")
        })
        .add_edge(START, "quick")
        .add_edge(START, "slow")
        .step_timeout(ms(100));
    let thread = common::kept(graph).thread("t");
    let error = thread.invoke(Notes::update()).await.expect_err("too slow");
    assert!(matches!(error, RunError::StepTimeout { step: 1, .. }), "{error:?}");
    let snapshot = thread.get_state().await.expect("a look");
    assert_eq!(common::next(&snapshot), ["slow"]);
    assert_eq!(snapshot.state().lines, ["quick"]);
}
