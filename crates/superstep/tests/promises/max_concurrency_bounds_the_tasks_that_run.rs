//! Shows that `max_concurrency(2)` never has more than two tasks running, uses both places, and starts tasks in the order
//! of the plan. It would break if the limit counted tasks that wait, or only those of the first batch.

use crate::common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{Notes, done, line, ms, sleep};
use superstep::prelude::*;
use tokio::time::Instant;

#[derive(Clone, Default)]
struct Gauge {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Gauge {
    fn enter(&self) -> Inside {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        Inside(self.clone())
    }
}

struct Inside(Gauge);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Six triggered nodes and six dispatches in one superstep, each 100 ms long.
fn graph(gauge: &Gauge) -> StateGraph<Notes> {
    let work = {
        let gauge = gauge.clone();
        move |name: String| {
            let gauge = gauge.clone();
            async move {
                let inside = gauge.enter();
                sleep(100).await;
                drop(inside);
                line(name)
            }
        }
    };
    let mut graph = StateGraph::new()
        .add_node("spread", || (0..6).map(|n: u32| Dispatch::new("worker", n)).collect::<Vec<_>>())
        .destinations(["worker"])
        .add_edge(START, "spread");
    for name in ["a", "b", "c", "d", "e", "f"] {
        let work = work.clone();
        graph = graph.add_node(name, move || work(name.to_owned())).add_edge("spread", name);
    }
    graph.add_node("worker", move |Arg(n): Arg<u32>| work(n.to_string()))
}

const ALL: [&str; 12] = ["a", "b", "c", "d", "e", "f", "0", "1", "2", "3", "4", "5"];

#[tokio::test(start_paused = true)]
async fn two_at_a_time() {
    let gauge = Gauge::default();
    let graph = graph(&gauge).compile().expect("a graph that compiles");
    let began = Instant::now();
    let notes = done(graph.invoke(Notes::update()).max_concurrency(2).await);
    let took = began.elapsed();
    assert_eq!(notes.lines, ALL);
    assert_eq!(gauge.most.load(Ordering::SeqCst), 2);
    assert!(took >= ms(600) && took < ms(620), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_all_at_once() {
    let gauge = Gauge::default();
    let graph = graph(&gauge).compile().expect("a graph that compiles");
    let notes = done(graph.invoke(Notes::update()).await);
    assert_eq!(notes.lines, ALL);
    assert_eq!(gauge.most.load(Ordering::SeqCst), 12);
}

#[tokio::test(start_paused = true)]
async fn one_at_a_time_with_a_stream_and_a_checkpointer() {
    // The reference deadlocks here (F12): whoever waits for events takes the only place.
    let gauge = Gauge::default();
    let app = common::kept(graph(&gauge));
    let thread = app.thread("t");
    let run = thread.invoke(Notes::update()).max_concurrency(1);
    let notes = common::done(run.stream([Mode::Custom, Mode::Values]).into_outcome().await);
    assert_eq!(notes.lines, ALL);
    assert_eq!(gauge.most.load(Ordering::SeqCst), 1);
}
