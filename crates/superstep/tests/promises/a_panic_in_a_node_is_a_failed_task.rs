//! Shows that a panic in user code, wherever it happens, is a failed task with the text of the
//! panic: the process lives, siblings keep what they finished, and the thread continues. It would
//! break where the engine calls user code without catching what it throws.

use crate::common::{Counter, Notes, done, kept, line, next, says, sleep};
use superstep::prelude::*;

/// Runs a graph whose node `bad` panics the first time, beside a node that is quick.
async fn check(panics: impl Fn(StateGraph<Notes>, Counter) -> StateGraph<Notes>) {
    let (tries, quick) = (Counter::default(), Counter::default());
    let counted = quick.clone();
    let graph = StateGraph::new()
        .add_node("quick", move || {
            counted.add();
            line("quick")
        })
        .add_edge(START, "quick");
    let graph = panics(graph, tries.clone()).add_edge(START, "bad");
    let thread = kept(graph).thread("t");
    let error = thread.invoke(Notes::update()).await.expect_err("a panic");
    let RunError::Node { node, error, .. } = &error else { panic!("{error:?}") };
    assert_eq!(&**node, "bad");
    assert_eq!(error.kind(), "Panic");
    says(error, &["`bad`", "panicked", "out of luck"]);
    let snapshot = thread.get_state().await.expect("a look");
    assert_eq!(next(&snapshot), ["bad"]);
    let notes = done(thread.invoke(()).await);
    assert_eq!(notes.lines, ["bad", "quick"]);
    assert_eq!((tries.get(), quick.get()), (2, 1));
}

fn unlucky(tries: &Counter) {
    if tries.add() == 0 {
        panic!("out of {}", "luck");
    }
}

#[tokio::test(start_paused = true)]
async fn in_a_plain_function() {
    check(|graph, tries| {
        graph.add_node("bad", move |notes: Arc<Notes>| {
            // The other has to be done first, or it is cancelled.
            let _ = notes;
            let tries = tries.clone();
            async move {
                sleep(10).await;
                unlucky(&tries);
                line("bad")
            }
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn in_a_spawned_node() {
    check(|graph, tries| {
        let node = move || {
            let tries = tries.clone();
            async move {
                sleep(10).await;
                unlucky(&tries);
                line("bad")
            }
        };
        graph.add_node("bad", node).spawned()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn in_a_router() {
    check(|graph, tries| {
        let node = || async {
            sleep(10).await;
            line("bad")
        };
        graph.add_node("bad", node).add_conditional_edges("bad", [END], move |_: &Notes| {
            unlucky(&tries);
            END
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn in_a_router_that_is_awaited() {
    check(|graph, tries| {
        let node = || async {
            sleep(10).await;
            line("bad")
        };
        graph.add_node("bad", node).add_conditional_edges("bad", [END], move |_: Arc<Notes>| {
            let tries = tries.clone();
            async move {
                tokio::task::yield_now().await;
                unlucky(&tries);
                END
            }
        })
    })
    .await;
}

#[tokio::test]
async fn before_the_first_await() {
    let (tries, counted) = (Counter::default(), Counter::default());
    let tried = tries.clone();
    let graph = StateGraph::<Notes>::new()
        .add_node("bad", move || {
            unlucky(&tried);
            let counted = counted.clone();
            async move {
                counted.add();
                line("bad")
            }
        })
        .add_edge(START, "bad");
    let thread = kept(graph).thread("t");
    let error = thread.invoke(Notes::update()).await.expect_err("a panic");
    says(&error, &["`bad`", "out of luck"]);
    assert_eq!(done(thread.invoke(()).await).lines, ["bad"]);
}

#[tokio::test]
async fn a_panic_is_not_tried_again_by_default() {
    let tries = Counter::default();
    let tried = tries.clone();
    let graph = StateGraph::<Notes>::new()
        .add_node("bad", move || {
            unlucky(&tried);
            line("bad")
        })
        .retry(RetryPolicy::default())
        .add_edge(START, "bad")
        .compile()
        .expect("a graph that compiles");
    graph.invoke(Notes::update()).await.expect_err("a panic");
    assert_eq!(tries.get(), 1);
}

#[tokio::test]
async fn in_a_retry_predicate() {
    let graph = StateGraph::<Notes>::new()
        .add_node("bad", || Err::<(), _>("a failure"))
        .retry(RetryPolicy::attempts(2).retry_on(|_| panic!("out of luck")))
        .add_edge(START, "bad");
    let error = kept(graph).thread("t").invoke(Notes::update()).await.expect_err("a panic");
    let RunError::Node { node, .. } = &error else { panic!("{error:?}") };
    assert_eq!(&**node, "bad");
}

#[tokio::test]
async fn in_a_cache_key() {
    let policy = superstep::CachePolicy::new().key(|_| panic!("out of luck"));
    let graph = StateGraph::<Notes>::new()
        .add_node("bad", || line("bad"))
        .cache(policy)
        .add_edge(START, "bad");
    let app = kept(graph).with_cache(superstep::checkpoint::MemoryCache::new());
    let error = app.thread("t").invoke(Notes::update()).await.expect_err("a panic");
    says(&error, &["`bad`", "out of luck"]);
}
