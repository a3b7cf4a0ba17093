//! Shows what a failure does to the other tasks of its superstep: those that had finished keep
//! their writes and do not run again, those that were running are cancelled and recorded as such,
//! and all that did not finish run again when the thread continues. It would break if output were
//! stored only at the barrier, or if a cancelled task counted as finished.

use crate::common::{Counter, Notes, done, kept, line, next, says, sleep, tasks};
use superstep::Durability;
use superstep::prelude::*;

#[derive(Clone, Default)]
struct Ran {
    early: Counter,
    bad: Counter,
    late: Counter,
    dropped: Counter,
    worker: Counter,
}

/// `early` is done before `bad` fails, `late` is not; one of the dispatched tasks is, the other is not.
fn graph(ran: &Ran) -> StateGraph<Notes> {
    let Ran { early, bad, late, dropped, worker } = ran.clone();
    StateGraph::new()
        .add_node("spread", || {
            vec![Dispatch::new("worker", 10_u64), Dispatch::new("worker", 90_u64)]
        })
        .destinations(["worker"])
        .add_node("early", move || {
            early.add();
            async {
                sleep(10).await;
                line("early").total(1)
            }
        })
        .add_node("bad", move || {
            let times = bad.add();
            async move {
                sleep(50).await;
                if times == 0 { Err("not today") } else { Ok(line("bad")) }
            }
        })
        .add_node("late", move || {
            late.add();
            let guard = dropped.on_drop();
            async move {
                sleep(100).await;
                drop(guard);
                line("late")
            }
        })
        .add_node("worker", move |Arg(time): Arg<u64>| {
            worker.add();
            async move {
                sleep(time).await;
                line(time.to_string())
            }
        })
        .add_node("after", || line("after"))
        .add_edge(START, "spread")
        .add_edge("spread", "early")
        .add_edge("spread", "bad")
        .add_edge("spread", "late")
        .add_edge(["early", "bad", "late"], "after")
}

async fn check(durability: Durability) {
    let ran = Ran::default();
    let thread = kept(graph(&ran)).thread("t");
    let error = thread.invoke(Notes::update()).durability(durability).await.expect_err("not today");
    let RunError::Node { node, error, .. } = error else { panic!("{error:?}") };
    assert_eq!(&*node, "bad");
    says(error, &["not today"]);
    assert_eq!(ran.dropped.get(), 1, "`late` was cancelled");

    let snapshot = thread.get_state().await.expect("a look");
    assert_eq!(snapshot.state().lines, ["early", "10"]);
    let mut open = next(&snapshot);
    open.sort_unstable();
    assert_eq!(open, ["bad", "late", "worker"]);
    let mut errors = tasks(&snapshot);
    errors.sort();
    let said: Vec<_> = errors.iter().map(|(name, error)| (&**name, error.is_some())).collect();
    // That a task was cancelled is stored as it happens, and not at the end of the run.
    let told = durability != Durability::Exit;
    let expected =
        [("bad", true), ("early", false), ("late", told), ("worker", false), ("worker", told)];
    assert_eq!(said, expected);
    says(errors[0].1.as_ref().expect("an error"), &["not today"]);
    if told {
        says(errors[2].1.as_ref().expect("an error"), &["CancelledError", "late"]);
    }

    let notes = done(thread.invoke(()).durability(durability).await);
    assert_eq!(notes.lines, ["bad", "early", "late", "10", "90", "after"]);
    assert_eq!(notes.total, 1);
    let counts = [&ran.early, &ran.bad, &ran.late, &ran.worker].map(Counter::get);
    assert_eq!(counts, [1, 2, 2, 3], "early, bad, late, worker");
    let stored = thread.get_state().await.expect("a look");
    assert_eq!(**stored.state(), notes);
}

#[tokio::test(start_paused = true)]
async fn when_each_superstep_is_stored() {
    check(Durability::Sync).await;
}

#[tokio::test(start_paused = true)]
async fn when_only_the_end_is_stored() {
    check(Durability::Exit).await;
}

#[tokio::test(start_paused = true)]
async fn new_input_drops_what_was_finished() {
    let ran = Ran::default();
    let thread = kept(graph(&ran)).thread("t");
    thread.invoke(Notes::update()).await.expect_err("not today");
    let notes = done(thread.invoke(line("again")).await);
    assert_eq!(notes.lines, ["again", "bad", "early", "late", "10", "90", "after"]);
    let stored = thread.get_state().await.expect("a look");
    assert_eq!(**stored.state(), notes, "what is stored is what was returned");
    assert_eq!(ran.early.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_stream_tells_of_the_failure_before_the_error() {
    let thread = kept(graph(&Ran::default())).thread("t");
    let mut run = thread.invoke(Notes::update()).stream([Mode::Tasks]);
    let mut ends = Vec::new();
    let mut failed = None;
    while let Some(event) = run.next().await {
        match event {
            Ok(event) => {
                if let superstep::Data::TaskEnd(end) = event.data {
                    ends.push((end.name.to_string(), end.error.is_some()));
                }
            }
            Err(error) => failed = Some(error),
        }
    }
    assert!(matches!(failed, Some(RunError::Node { .. })), "{failed:?}");
    assert!(ends.contains(&("bad".to_owned(), true)), "{ends:?}");
    assert!(ends.contains(&("early".to_owned(), false)), "{ends:?}");
    assert!(!ends.contains(&("late".to_owned(), false)), "{ends:?}");
}
