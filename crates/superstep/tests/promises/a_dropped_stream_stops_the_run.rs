//! Shows that dropping a stream, or the future of an `invoke`, stops the run where it is: nodes
//! that were running are dropped, also spawned ones, what was stored stays, and the thread
//! continues later. It would break if the run lived in a task of its own, or if a half-done
//! superstep left something behind.

use crate::common::{Counter, Notes, done, kept, line, ms, next, sleep};
use superstep::prelude::*;

#[derive(Clone, Default)]
struct Ran {
    first: Counter,
    quick: Counter,
    slow: Counter,
    dropped: Counter,
}

fn graph(ran: &Ran, spawned: bool) -> StateGraph<Notes> {
    let Ran { first, quick, slow, dropped } = ran.clone();
    let graph = StateGraph::new()
        .add_node("first", move || {
            first.add();
            line("first")
        })
        .add_node("quick", move || {
            quick.add();
            line("quick")
        })
        .add_node("slow", move || {
            slow.add();
            let guard = dropped.on_drop();
            async move {
                sleep(1_000).await;
                drop(guard);
                line("slow")
            }
        });
    let graph = if spawned { graph.spawned() } else { graph };
    graph.add_edge(START, "first").add_edge("first", "quick").add_edge("first", "slow")
}

async fn goes_on(thread: &superstep::Thread<Notes>, ran: &Ran) {
    let snapshot = thread.get_state().await.expect("a look");
    assert_eq!(next(&snapshot), ["slow"]);
    assert_eq!(snapshot.state().lines, ["first", "quick"]);
    let notes = done(thread.invoke(()).await);
    assert_eq!(notes.lines, ["first", "quick", "slow"]);
    assert_eq!([&ran.first, &ran.quick, &ran.slow].map(Counter::get), [1, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_running_is_dropped_and_the_thread_goes_on() {
    let ran = Ran::default();
    let thread = kept(graph(&ran, false)).thread("t");
    let mut run = thread.invoke(Notes::update()).stream([Mode::Updates]);
    for name in ["first", "quick"] {
        let event = run.next().await.expect("an event").expect("no error");
        assert!(format!("{event:?}").contains(name), "{event:?}");
    }
    // The write of `quick` is stored while the next event is awaited.
    assert!(tokio::time::timeout(ms(10), run.next()).await.is_err(), "`slow` is still running");
    assert_eq!((ran.slow.get(), ran.dropped.get()), (1, 0));
    drop(run);
    assert_eq!(ran.dropped.get(), 1);
    goes_on(&thread, &ran).await;
}

#[tokio::test(start_paused = true)]
async fn a_spawned_node_does_not_outlive_the_run() {
    let ran = Ran::default();
    let thread = kept(graph(&ran, true)).thread("t");
    let mut run = thread.invoke(Notes::update()).stream([Mode::Values]);
    run.next().await.expect("the values after `first`").expect("no error");
    assert!(tokio::time::timeout(ms(10), run.next()).await.is_err(), "`slow` is still running");
    drop(run);
    // An aborted task is dropped when its runtime gets to it.
    tokio::task::yield_now().await;
    assert_eq!((ran.slow.get(), ran.dropped.get()), (1, 1));
    goes_on(&thread, &ran).await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_invoke_is_the_same() {
    let ran = Ran::default();
    let thread = kept(graph(&ran, false)).thread("t");
    let run = thread.invoke(Notes::update());
    assert!(tokio::time::timeout(ms(10), run).await.is_err(), "`slow` is running");
    assert_eq!(ran.dropped.get(), 1);
    goes_on(&thread, &ran).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_was_never_polled_did_nothing() {
    let ran = Ran::default();
    let thread = kept(graph(&ran, false)).thread("t");
    drop(thread.invoke(Notes::update()).stream([Mode::Updates]));
    sleep(10).await;
    assert_eq!(ran.first.get(), 0);
    assert!(thread.get_state().await.expect("a look").metadata.is_none());
}
