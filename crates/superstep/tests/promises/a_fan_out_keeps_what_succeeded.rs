//! A node that collects its failures does not end the run: each of its tasks counts as finished,
//! with what it wrote or with what happened to its failure, in the order of the dispatches, and
//! what comes after it runs.
//!
//! It could break if the order depended on who finished first, if a task that was collected ran again, or if an edge was not
//! followed when all tasks fail.

use std::time::Duration;

use crate::common::{Counter, Notes, NotesUpdate, done, kept, line, ms, says, sleep};
use superstep::checkpoint::MemoryCache;
use superstep::prelude::*;
use superstep::{CachePolicy, Data, Durability};

const ALL: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

fn spread(tasks: u64) -> impl Fn() -> Vec<Dispatch> + Send + Sync + 'static {
    move || (0..tasks).map(|n| Dispatch::new("work", n)).collect()
}

fn collected(Arg(n): Arg<u64>, failed: Failure) -> NotesUpdate {
    line(format!("{n} failed in {}: {}", failed.node, failed.error))
}

/// Dispatches to `work`, whose failures are collected, and ends with `after`.
fn graph<M>(tasks: u64, work: impl superstep::IntoNode<Notes, M>) -> StateGraph<Notes> {
    StateGraph::<Notes>::new()
        .add_node("spread", spread(tasks))
        .destinations(["work"])
        .add_node("after", || line("after"))
        .add_edge(START, "spread")
        .add_edge("work", "after")
        .add_node("work", work)
        .collect_failures(collected)
}

#[tokio::test(start_paused = true)]
async fn in_the_order_of_the_dispatches() {
    for durability in ALL {
        let ran = Counter::default();
        let counted = ran.clone();
        let thread = kept(graph(200, move |Arg(n): Arg<u64>| {
            counted.add();
            async move {
                // The last dispatch finishes first.
                sleep(200 - n).await;
                if n % 50 == 7 { Err(NodeError::from("no luck")) } else { Ok(line(n.to_string())) }
            }
        }))
        .thread("t");
        let lines = done(thread.invoke(Notes::update()).durability(durability).await).lines;
        let expected = (0..200).map(|n| match n % 50 {
            7 => format!("{n} failed in work: no luck"),
            _ => n.to_string(),
        });
        assert_eq!(lines, expected.chain(["after".to_owned()]).collect::<Vec<_>>());
        assert_eq!(ran.get(), 200);
        assert_eq!(thread.get_state().await.expect("a look").state().lines, lines);
    }
}

#[tokio::test(start_paused = true)]
async fn even_if_nothing_succeeded() {
    let work = |Arg(n): Arg<u64>| async move {
        match n {
            0 => panic!("a bug"),
            1 => sleep(3_600_000).await,
            _ => return Err::<NotesUpdate, _>(NodeError::permanent("no luck")),
        }
        Ok(line("never"))
    };
    let graph = graph(3, work).timeout(TimeoutPolicy::run(Duration::from_secs(1)));
    let lines = done(kept(graph).thread("t").invoke(Notes::update()).await).lines;
    says(&lines[0], &["0 failed", "a bug"]);
    says(&lines[1], &["1 failed", "1s"]);
    assert_eq!(lines[2..], ["2 failed in work: no luck", "after"]);
}

#[tokio::test(start_paused = true)]
async fn after_all_attempts() {
    let ran = Counter::default();
    let counted = ran.clone();
    let graph = graph(1, move |Arg(_): Arg<u64>| {
        counted.add();
        Err::<NotesUpdate, _>(NodeError::from("no luck"))
    });
    let thread = kept(graph.retry(RetryPolicy::attempts(3).jitter(false))).thread("t");
    assert_eq!(done(thread.invoke(Notes::update()).await).lines.len(), 2);
    assert_eq!(ran.get(), 3);
}

/// A question next to it leaves the superstep open. What was collected is stored, and the task does
/// not run again.
#[tokio::test]
async fn and_a_failure_that_was_collected_stays() {
    for durability in ALL {
        let ran = Counter::default();
        let counted = ran.clone();
        let work = move |Arg(n): Arg<u64>, task: Task| {
            let counted = counted.clone();
            async move {
                if n == 1 {
                    return Ok(line(task.interrupt::<String>("which?").await));
                }
                counted.add();
                Err(NodeError::from("no luck"))
            }
        };
        let thread = kept(graph(2, work)).thread("t");
        let asked = thread.invoke(Notes::update()).durability(durability).await.expect("a run");
        assert_eq!(asked.interrupted().expect("a question").len(), 1);
        let ended = done(thread.resume("this").durability(durability).await);
        assert_eq!(ended.lines, ["0 failed in work: no luck", "this", "after"]);
        assert_eq!(ran.get(), 1, "{durability:?}");
    }
}

#[tokio::test]
async fn and_the_stream_shows_which_failed() {
    let work = |Arg(n): Arg<u64>| match n {
        1 => Err(NodeError::from("no luck")),
        n => Ok(line(n.to_string())),
    };
    let app = graph(3, work).compile().expect("a graph");
    let mut events = app.invoke(Notes::update()).stream([Mode::Tasks]);
    let mut failed = Vec::new();
    while let Some(event) = events.next().await {
        if let Data::TaskEnd(end) = event.expect("no error").data
            && let Some(error) = end.error
        {
            failed.push((end.name.to_string(), error.to_string(), end.result.to_string()));
        }
    }
    let [(name, error, result)] = &failed[..] else { panic!("{failed:?}") };
    assert_eq!((&**name, &**error), ("work", "no luck"));
    says(result, &["1 failed in work"]);
}

#[tokio::test]
async fn but_a_cache_keeps_no_failure() {
    let ran = Counter::default();
    let counted = ran.clone();
    let work = move |Arg(n): Arg<u64>| match n {
        1 if counted.add() == 0 => Err(NodeError::from("no luck")),
        n => Ok(line(n.to_string())),
    };
    let graph = graph(2, work).cache(CachePolicy::new());
    let app = graph.compile().expect("a graph").with_cache(MemoryCache::new());
    let first = done(app.invoke(Notes::update()).await).lines;
    assert_eq!(first, ["0", "1 failed in work: no luck", "after"]);
    assert_eq!(done(app.invoke(Notes::update()).await).lines, ["0", "1", "after"]);
}

/// Its routers see what happened to the failure.
#[tokio::test]
async fn and_routers_are_asked() {
    let graph = StateGraph::<Notes>::new()
        .add_node("work", || Err::<NotesUpdate, _>(NodeError::from("no luck")))
        .collect_failures(|failed: Failure| line(failed.error.to_string()))
        .add_node("mend", || line("mended"))
        .add_edge(START, "work")
        .add_conditional_edges("work", ["mend", END], |notes: &Notes| {
            if notes.lines == ["no luck"] { "mend" } else { END }
        });
    assert_eq!(
        done(kept(graph).thread("t").invoke(Notes::update()).await).lines,
        ["no luck", "mended"]
    );
}

#[tokio::test]
async fn and_a_collector_that_fails_or_asks_fails_its_task() {
    let failing = || Err::<NotesUpdate, _>(NodeError::from("no luck"));
    let with = |graph: StateGraph<Notes>| {
        let graph = graph.add_edge(START, "work").compile().expect("a graph");
        graph.with_checkpointer(MemorySaver::new()).thread("t")
    };
    let work = || StateGraph::<Notes>::new().add_node("work", failing);
    let fails = work().collect_failures(|| Err::<NotesUpdate, _>(NodeError::from("no paper")));
    says(with(fails).invoke(Notes::update()).await.expect_err("an error"), &["`work`", "no paper"]);
    let panics = work().collect_failures(|| -> NotesUpdate { panic!("no pen") });
    says(with(panics).invoke(Notes::update()).await.expect_err("an error"), &["`work`", "no pen"]);
    let asks = work().collect_failures(|task: Task| async move {
        let answer: String = task.interrupt("what now?").await;
        line(answer)
    });
    let run = tokio::time::timeout(ms(60_000), with(asks).invoke(Notes::update())).await;
    says(
        run.expect("it does not wait").expect_err("an error"),
        &["`work`", "cannot ask", "`on_error`"],
    );
}

#[test]
fn a_node_collects_its_failures_or_has_a_handler() {
    let graph = StateGraph::<Notes>::new()
        .add_node("work", || line("work"))
        .on_error(|failed: Failure| line(failed.error.to_string()))
        .collect_failures(|failed: Failure| line(failed.error.to_string()))
        .add_edge(START, "work");
    let error = graph.compile().expect_err("both");
    says(error, &["`work`", "`on_error`", "`collect_failures`"]);
}
