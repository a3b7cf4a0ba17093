//! Shows that two `.spawned()` nodes that never await run at the same time: each waits, on its own thread, until the other
//! is there. It would break if a spawned node were polled inside the run, one after the other.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::common::{Notes, done, line};
use superstep::prelude::*;

/// A place where two threads meet. Unlike a barrier it gives up, so that a broken promise is a failure and not a hang.
#[derive(Default)]
struct Meeting {
    arrived: Mutex<usize>,
    both: Condvar,
}

impl Meeting {
    fn arrive(&self) -> bool {
        let mut arrived = self.arrived.lock().expect("nobody panics here");
        *arrived += 1;
        self.both.notify_all();
        let patience = Duration::from_secs(20);
        let (arrived, _) = self
            .both
            .wait_timeout_while(arrived, patience, |arrived| *arrived < 2)
            .expect("nobody panics here");
        *arrived >= 2
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_busy_nodes_meet() {
    // A worker that goes to sleep in the moment in which a task is queued behind another one that blocks is woken by nobody,
    // which on a busy machine happens; in a runtime that does anything else, something always wakes it.
    let anything_else = tokio::spawn(async {
        let mut tick = tokio::time::interval(Duration::from_millis(10));
        loop {
            tick.tick().await;
        }
    });
    let meeting = Arc::new(Meeting::default());
    let node = |name: &'static str| {
        let meeting = meeting.clone();
        move || line(format!("{name} met the other: {}", meeting.arrive()))
    };
    let graph = StateGraph::<Notes>::new()
        .add_node("a", node("a"))
        .spawned()
        .add_node("b", node("b"))
        .spawned()
        .add_edge(START, "a")
        .add_edge(START, "b");
    let notes = done(graph.compile().expect("a graph").invoke(Notes::update()).await);
    anything_else.abort();
    assert_eq!(notes.lines, ["a met the other: true", "b met the other: true"]);
}
