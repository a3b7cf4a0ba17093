//! Shows when the target of a join runs: once in each round, when as many sources have run as the join needs; that late
//! sources change nothing; and when the next round begins. It would break if a late source ran the target again, or if a
//! round that is over swallowed the first arrival of the next.

use superstep::prelude::*;
use superstep::{BreakAt, Join};

use crate::common::{Notes, done, kept, line};

/// `a`, `b` and `c` run in the first three supersteps, one after the other.
fn staggered(join: Join) -> StateGraph<Notes> {
    StateGraph::new()
        .add_node("a", || line("a"))
        .add_node("wait", || ())
        .add_node("b", || line("b"))
        .add_node("wait_longer", || ())
        .add_node("c", || line("c"))
        .add_node("end", || line("end"))
        .add_edge(START, "a")
        .add_edge(START, "wait")
        .add_edge("wait", "b")
        .add_edge("wait", "wait_longer")
        .add_edge("wait_longer", "c")
        .add_edge(join, "end")
}

async fn lines(join: Join) -> Vec<String> {
    let thread = kept(staggered(join)).thread("t");
    let once = done(thread.invoke(Notes::update()).await).lines;
    let twice = done(thread.invoke(Notes::update()).await).lines;
    assert_eq!(twice, [once.clone(), once.clone()].concat(), "a turn leaves nothing behind");
    once
}

#[tokio::test]
async fn all_of_them() {
    assert_eq!(lines(Join::all(["a", "b", "c"])).await, ["a", "b", "c", "end"]);
    assert_eq!(lines(Join::at_least(3, ["a", "b", "c"])).await, ["a", "b", "c", "end"]);
}

#[tokio::test]
async fn the_first_of_them() {
    assert_eq!(lines(Join::any(["a", "b", "c"])).await, ["a", "b", "end", "c"]);
}

#[tokio::test]
async fn some_of_them() {
    assert_eq!(lines(Join::at_least(2, ["a", "b", "c"])).await, ["a", "b", "c", "end"]);
    assert_eq!(lines(Join::at_least(2, ["c", "a"])).await, ["a", "b", "c", "end"]);
}

/// A round survives a stop at every superstep, before and after the target has run.
#[tokio::test]
async fn a_round_is_stored() {
    for (needed, expected) in [(1, ["a", "b", "end", "c"]), (2, ["a", "b", "c", "end"])] {
        let join = Join::at_least(needed, ["a", "b", "c"]);
        let thread = kept(staggered(join)).thread("t");
        let mut run = thread.invoke(Notes::update()).interrupt_before(BreakAt::all()).await;
        let mut stops = 0;
        while let Ok(Outcome::Interrupted(_)) = run {
            stops += 1;
            run = thread.invoke(()).interrupt_before(BreakAt::all()).await;
        }
        assert_eq!(done(run).lines, expected);
        assert!(stops >= 3, "{stops}");
    }
}

/// A router takes one of two ways in each round of a loop: the way not taken is not waited for.
#[tokio::test]
async fn in_a_loop_each_round_takes_another_way() {
    let graph =
        StateGraph::<Notes>::new()
            .add_node("plan", || Notes::update().total(1))
            .add_node("left", || line("left"))
            .add_node("right", || line("right"))
            .add_node("end", |notes: Arc<Notes>| line(format!("end {}", notes.total)))
            .add_edge(START, "plan")
            .add_conditional_edges("plan", ["left", "right"], |notes: &Notes| {
                if notes.total % 2 == 0 { "left" } else { "right" }
            })
            .add_edge(Join::any(["left", "right"]), "end")
            .add_conditional_edges("end", ["plan", END], |notes: &Notes| {
                if notes.total < 3 { "plan" } else { END }
            });
    let notes = done(kept(graph).thread("t").invoke(Notes::update()).await);
    assert_eq!(notes.lines, ["right", "end 1", "left", "end 2", "right", "end 3"]);
}

/// A source that runs again before the last one has come begins the next round.
#[tokio::test]
async fn a_source_that_runs_again_begins_the_next_round() {
    let graph =
        StateGraph::<Notes>::new()
            .add_node("fast", || line("fast"))
            .add_node("slow_1", || ())
            .add_node("slow_2", || ())
            .add_node("slow_3", || ())
            .add_node("slow", || line("slow"))
            .add_node("end", || Notes::update().lines(["end".to_owned()]).total(1))
            .add_edge(START, "fast")
            .add_edge(START, "slow_1")
            .add_edge("slow_1", "slow_2")
            .add_edge("slow_2", "slow_3")
            .add_edge("slow_3", "slow")
            .add_edge(Join::any(["fast", "slow"]), "end")
            .add_conditional_edges("end", ["fast", END], |notes: &Notes| {
                if notes.total == 1 { "fast" } else { END }
            });
    let notes = done(kept(graph).thread("t").invoke(Notes::update()).await);
    assert_eq!(notes.lines, ["fast", "end", "fast", "end", "slow"]);
}

/// Tasks of the same node in one superstep are one arrival.
#[tokio::test]
async fn dispatches_of_one_source_count_once() {
    let graph = StateGraph::<Notes>::new()
        .add_node("spread", || (0..3).map(|n| Dispatch::new("work", n)).collect::<Vec<_>>())
        .destinations(["work"])
        .add_node("work", |Arg(n): Arg<i64>| line(n.to_string()))
        .add_node("check_1", || ())
        .add_node("check", || line("check"))
        .add_node("end", || line("end"))
        .add_edge(START, "spread")
        .add_edge("spread", "check_1")
        .add_edge("check_1", "check")
        .add_edge(Join::at_least(2, ["work", "check"]), "end");
    let notes = done(kept(graph).thread("t").invoke(Notes::update()).await);
    assert_eq!(notes.lines, ["0", "1", "2", "check", "end"]);
}

/// A deferred target waits for the end of everything else, and then for as many sources as it needs.
#[tokio::test]
async fn a_deferred_target_waits_for_the_end_of_everything_else() {
    let graph = StateGraph::<Notes>::new()
        .add_node("a", || line("a"))
        .add_node("b", || line("b"))
        .add_node("c", || line("c"))
        .add_node("never", || line("never"))
        .add_node("end", || line("end"))
        .defer()
        .add_edge(START, "a")
        .add_edge("a", "b")
        .add_conditional_edges("b", ["c", "never"], |_: &Notes| "c")
        .add_edge(Join::any(["a", "never"]), "end");
    let notes = done(kept(graph).thread("t").invoke(Notes::update()).await);
    assert_eq!(notes.lines, ["a", "b", "c", "end"]);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let problems = |join: Join| {
        let error = staggered(join).compile().expect_err("a join that cannot be meant");
        error.problems().join("\n")
    };
    let says = |join, parts: &[&str]| crate::common::says(problems(join), parts);
    says(Join::at_least(3, ["a", "b"]), &["`end`", "needs 3", "waits for 2", "`a`, `b`"]);
    says(Join::at_least(0, ["a", "b"]), &["`end`", "needs none"]);
    says(Join::any(Vec::<&str>::new()), &["`end`", "waits for no node"]);
    says(Join::any(["a", "a"]), &["`end`", "`a` twice"]);
    says(Join::any(["a", "x"]), &["`end`", "unknown node `x`"]);
    let twice =
        staggered(Join::all(["a", "b"])).add_edge(Join::all(["a", "b"]).across_runs(), "end");
    crate::common::says(twice.compile().expect_err("both"), &["`end`", "twice", "across runs"]);
}

#[test]
fn a_drawing_shows_the_kind() {
    let drawn = |join| kept(staggered(join)).to_mermaid();
    assert!(drawn(Join::all(["a", "b"])).contains("a -->|\"all\"| end_2"));
    assert!(drawn(Join::any(["a", "b"])).contains("a -->|\"any\"| end_2"));
    let some = kept(staggered(Join::at_least(2, ["a", "b", "c"])));
    assert!(some.to_ascii().contains("--> \"end\"  (2 of 3)"), "{}", some.to_ascii());
}
