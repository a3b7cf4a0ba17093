//! Shows how often a failed node is tried again and how long the waits are: the first policy that matches decides, all
//! policies share one count of attempts, waits grow up to the longest, and without a predicate the error itself says
//! whether trying again may help. Time is virtual, so waits are exact. It would break if each policy counted for itself, or
//! if a later policy were asked when the first has had enough.

use std::io;
use std::sync::Mutex;

use crate::common::{Counter, Notes, done, kept, line, ms};
use superstep::prelude::*;
use tokio::time::Instant;

/// When each attempt was made, in ms after the first.
#[derive(Clone, Default)]
struct Attempts(Arc<Mutex<Vec<Instant>>>);

impl Attempts {
    fn note(&self) -> usize {
        let mut all = self.0.lock().expect("no panic");
        all.push(Instant::now());
        all.len()
    }

    fn at(&self) -> Vec<u64> {
        let all = self.0.lock().expect("no panic");
        all.iter().map(|at| (*at - all[0]).as_millis() as u64).collect()
    }

    fn len(&self) -> usize {
        self.0.lock().expect("no panic").len()
    }
}

fn quick(attempts: u32) -> RetryPolicy {
    RetryPolicy::attempts(attempts).initial_interval(ms(10)).jitter(false)
}

fn kind(kind: &'static str) -> impl Fn(&NodeError) -> bool {
    move |error| error.kind() == kind
}

/// A graph of one node that fails with the error for its attempt, until there is none.
fn failing(
    attempts: &Attempts,
    error: impl Fn(usize) -> Option<NodeError> + Clone + Send + Sync + 'static,
) -> StateGraph<Notes> {
    let attempts = attempts.clone();
    StateGraph::new()
        .add_node("flaky", move || {
            let error = error(attempts.note());
            async move {
                match error {
                    Some(error) => Err(error),
                    None => Ok(line("done")),
                }
            }
        })
        .add_edge(START, "flaky")
}

async fn run(graph: StateGraph<Notes>) -> Result<Outcome<Notes>, RunError> {
    graph.compile().expect("a graph that compiles").invoke(Notes::update()).await
}

#[tokio::test(start_paused = true)]
async fn waits_grow_up_to_the_longest() {
    let attempts = Attempts::default();
    let graph = failing(&attempts, |n| (n < 6).then(|| NodeError::transient("again")));
    let policy = quick(6).backoff_factor(3.0).interval_max(ms(100));
    assert_eq!(done(run(graph.retry(policy)).await).lines, ["done"]);
    // 10, 30, 90, then no longer than 100.
    assert_eq!(attempts.at(), [0, 10, 40, 130, 230, 330]);
}

#[tokio::test(start_paused = true)]
async fn the_default_is_three_attempts_half_a_second_apart_and_jitter_on_top() {
    let attempts = Attempts::default();
    let graph = failing(&attempts, |_| Some(NodeError::transient("again")));
    let error = run(graph.retry(RetryPolicy::default())).await.expect_err("never better");
    assert!(matches!(error, RunError::Node { .. }), "{error:?}");
    let at = attempts.at();
    assert_eq!(at.len(), 3);
    assert!((500..=1_501).contains(&at[1]), "{at:?}");
    assert!((1_000..=2_001).contains(&(at[2] - at[1])), "{at:?}");
}

#[tokio::test(start_paused = true)]
async fn attempts_count_the_first() {
    for max in [1, 2, 5] {
        let attempts = Attempts::default();
        let graph = failing(&attempts, |_| Some(NodeError::transient("again")));
        run(graph.retry(quick(max))).await.expect_err("never better");
        assert_eq!(attempts.len(), max as usize);
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_policy_that_matches_decides() {
    let attempts = Attempts::default();
    let graph = failing(&attempts, |_| Some(NodeError::transient("again").named("Slow")));
    let graph = graph
        .retry(quick(9).retry_on(kind("Other")))
        .retry(quick(2).retry_on(kind("Slow")))
        .retry(quick(9));
    run(graph).await.expect_err("the second policy allows two");
    assert_eq!(attempts.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn policies_share_one_count_of_attempts() {
    // `A`, `B`, `A`, `B`, ...: with a count of its own, each policy would allow more.
    let attempts = Attempts::default();
    let names = ["A", "B"];
    let graph =
        failing(&attempts, move |n| Some(NodeError::transient("again").named(names[(n - 1) % 2])));
    let graph = graph.retry(quick(4).retry_on(kind("A"))).retry(quick(3).retry_on(kind("B")));
    let error = run(graph).await.expect_err("never better");
    // The third failure is an `A`, of which four are allowed; the fourth is a `B`, of which three are.
    assert_eq!(attempts.len(), 4, "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_predicate_is_asked_instead_of_the_error() {
    let attempts = Attempts::default();
    let graph = failing(&attempts, |n| (n < 3).then(|| NodeError::permanent("odd").named("Odd")));
    let graph = graph.retry(quick(5).retry_on(kind("Odd")));
    assert_eq!(done(run(graph).await).lines, ["done"]);
    let attempts = Attempts::default();
    let graph = failing(&attempts, |_| Some(NodeError::transient("even").named("Even")));
    run(graph.retry(quick(5).retry_on(kind("Odd")))).await.expect_err("not that one");
    assert_eq!(attempts.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn by_default_errors_that_say_the_same_each_time_are_not_tried_again() {
    type Make = fn() -> NodeError;
    let cases: [(&str, Make, usize); 7] = [
        ("a text", || "no".into(), 3),
        ("permanent", || NodeError::permanent("no"), 1),
        ("transient", || NodeError::transient("no"), 3),
        ("a number", || "x".parse::<i64>().expect_err("no number").into(), 1),
        ("JSON", || serde_json::from_str::<i64>("x").expect_err("no JSON").into(), 1),
        ("a connection", || io::Error::from(io::ErrorKind::ConnectionReset).into(), 3),
        ("a file", || io::Error::from(io::ErrorKind::NotFound).into(), 1),
    ];
    for (what, make, expected) in cases {
        let attempts = Attempts::default();
        let graph = failing(&attempts, move |_| Some(make()));
        run(graph.retry(quick(3))).await.expect_err("never better");
        assert_eq!(attempts.len(), expected, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_policy_there_is_one_attempt() {
    let attempts = Attempts::default();
    run(failing(&attempts, |_| Some(NodeError::transient("no")))).await.expect_err("it fails");
    assert_eq!(attempts.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_knows_its_attempt_and_the_defaults_of_the_graph_apply() {
    let graph = StateGraph::<Notes>::new()
        .default_retry(quick(3))
        .add_node("flaky", |task: Task| match task.attempt() {
            3 => Ok(line("third")),
            n => Err(NodeError::transient(format!("attempt {n}"))),
        })
        .add_edge(START, "flaky");
    assert_eq!(done(run(graph).await).lines, ["third"]);
}

#[tokio::test(start_paused = true)]
async fn siblings_go_on_while_a_task_waits_to_be_tried_again() {
    let attempts = Attempts::default();
    let ran = Counter::default();
    let counted = ran.clone();
    let graph = failing(&attempts, |n| (n < 3).then(|| NodeError::transient("again")))
        .retry(quick(3))
        .add_node("sibling", move || {
            counted.add();
            line("sibling")
        })
        .add_edge(START, "sibling");
    let thread = kept(graph).thread("t");
    assert_eq!(done(thread.invoke(Notes::update()).await).lines, ["done", "sibling"]);
    assert_eq!(ran.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_router_that_fails_is_part_of_the_attempt() {
    let tries = Counter::default();
    let attempts = Attempts::default();
    let tried = tries.clone();
    let graph = failing(&attempts, |_| None).retry(quick(3)).add_conditional_edges(
        "flaky",
        [END],
        move |notes: &Notes| match tried.add() {
            0 => Err(NodeError::transient(format!("{} lines", notes.lines.len()))),
            _ => Ok(END),
        },
    );
    let notes = done(run(graph).await);
    assert_eq!(notes.lines, ["done"], "what the first attempt wrote is gone");
    assert_eq!((attempts.len(), tries.get()), (2, 2));
}
