//! Shows that a node with a cache policy does not run again for an equal input while its result is kept: across threads,
//! until its time is over or the cache is cleared, and for two tasks of one superstep with equal inputs (F17b). It would
//! break if the key took in more than the input, such as the thread, or if a failure were kept.

use crate::common::{Counter, Notes, done, line, ms};
use superstep::checkpoint::MemoryCache;
use superstep::prelude::*;
use superstep::{CachePolicy, CompiledGraph, UpdatesEvent};

/// `slow` doubles the total; `after` shows that edges are followed from a cached result as well.
fn graph(ran: &Counter, policy: CachePolicy) -> CompiledGraph<Notes> {
    let ran = ran.clone();
    StateGraph::new()
        .add_node("slow", move |notes: Arc<Notes>| {
            ran.add();
            Notes::update().total(notes.total).last("slow".to_owned())
        })
        .cache(policy)
        .add_node("after", || line("after"))
        .add_edge(START, "slow")
        .add_edge("slow", "after")
        .compile()
        .expect("a graph that compiles")
        .with_cache(MemoryCache::new())
}

#[tokio::test(start_paused = true)]
async fn an_equal_input_finds_the_result() {
    let ran = Counter::default();
    let graph = graph(&ran, CachePolicy::new());
    for (total, expected, runs) in [(1, 2, 1), (1, 2, 1), (2, 4, 2), (1, 2, 2)] {
        let notes = done(graph.invoke(Notes::update().total(total)).await);
        assert_eq!((notes.total, notes.last.as_deref()), (expected, Some("slow")));
        assert_eq!(notes.lines, ["after"], "edges are followed");
        assert_eq!(ran.get(), runs);
    }
}

#[tokio::test(start_paused = true)]
async fn other_threads_find_it_too() {
    let ran = Counter::default();
    let graph = graph(&ran, CachePolicy::new()).with_checkpointer(MemorySaver::new());
    for thread in ["t", "u", "v"] {
        let notes = done(graph.thread(thread).invoke(Notes::update().total(1)).await);
        assert_eq!(notes.total, 2);
        let stored = graph.thread(thread).get_state().await.expect("a look");
        assert_eq!(**stored.state(), notes);
    }
    assert_eq!(ran.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn its_time_is_over_after_its_ttl() {
    let ran = Counter::default();
    let graph = graph(&ran, CachePolicy::new().ttl(ms(1_000)));
    let run = || graph.invoke(Notes::update().total(1));
    done(run().await);
    tokio::time::advance(ms(900)).await;
    done(run().await);
    assert_eq!(ran.get(), 1);
    tokio::time::advance(ms(200)).await;
    assert_eq!(done(run().await).total, 2);
    assert_eq!(ran.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_key_function_says_which_inputs_are_equal() {
    let ran = Counter::default();
    let parity = CachePolicy::new().key(|input| {
        let total = input.get("total").and_then(Value::as_i64).unwrap_or_default();
        (total % 2).to_string()
    });
    let graph = graph(&ran, parity);
    assert_eq!(done(graph.invoke(Notes::update().total(1)).await).total, 2);
    // 3 is as odd as 1, so what was written for 1 is written again.
    assert_eq!(done(graph.invoke(Notes::update().total(3)).await).total, 4);
    assert_eq!(done(graph.invoke(Notes::update().total(2)).await).total, 4);
    assert_eq!(ran.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_cleared_cache_knows_nothing() {
    let ran = Counter::default();
    let graph = graph(&ran, CachePolicy::new());
    done(graph.invoke(Notes::update().total(1)).await);
    graph.clear_cache(Some(&["after"])).await.expect("a cache");
    done(graph.invoke(Notes::update().total(1)).await);
    assert_eq!(ran.get(), 1);
    graph.clear_cache(Some(&["slow"])).await.expect("a cache");
    done(graph.invoke(Notes::update().total(1)).await);
    assert_eq!(ran.get(), 2);
    graph.clear_cache(None).await.expect("a cache");
    done(graph.invoke(Notes::update().total(1)).await);
    assert_eq!(ran.get(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_stream_says_that_a_result_was_cached() {
    let graph = graph(&Counter::default(), CachePolicy::new());
    for expected in [false, true] {
        let mut run = graph.invoke(Notes::update().total(1)).stream([Mode::Updates]);
        let mut seen = Vec::new();
        while let Some(event) = run.next().await {
            if let superstep::Data::Updates(UpdatesEvent::Task { node, cached, .. }) =
                event.expect("a run that does not fail").data
            {
                seen.push((node.to_string(), cached));
            }
        }
        assert_eq!(seen, [("slow".to_owned(), expected), ("after".to_owned(), false)]);
    }
}

#[tokio::test(start_paused = true)]
async fn equal_tasks_of_one_superstep_are_all_found() {
    let ran = Counter::default();
    let counted = ran.clone();
    let graph = StateGraph::<Notes>::new()
        .add_node("spread", || vec![Dispatch::new("work", 7_i64), Dispatch::new("work", 7_i64)])
        .destinations(["work"])
        .add_node("work", move |Arg(n): Arg<i64>| {
            counted.add();
            Notes::update().total(n)
        })
        .cache(CachePolicy::new())
        .add_edge(START, "spread")
        .compile()
        .expect("a graph that compiles")
        .with_cache(MemoryCache::new());
    assert_eq!(done(graph.invoke(Notes::update()).await).total, 14);
    let first = ran.get();
    assert_eq!(done(graph.invoke(Notes::update()).await).total, 14);
    assert_eq!(ran.get(), first, "neither of the two runs again");
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_not_kept() {
    let ran = Counter::default();
    let counted = ran.clone();
    let graph = StateGraph::<Notes>::new()
        .add_node("work", move || match counted.add() {
            0 => Err("no luck"),
            _ => Ok(line("done")),
        })
        .cache(CachePolicy::new())
        .add_edge(START, "work")
        .compile()
        .expect("a graph that compiles")
        .with_cache(MemoryCache::new());
    graph.invoke(Notes::update()).await.expect_err("no luck");
    assert_eq!(done(graph.invoke(Notes::update()).await).lines, ["done"]);
    assert_eq!(done(graph.invoke(Notes::update()).await).lines, ["done"]);
    assert_eq!(ran.get(), 2);
}
