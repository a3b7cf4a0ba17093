//! Shows that a timer fires once, however many callers look for it at the same time, in one process or in several.
//!
//! It could break where two callers read the thread before one of them has taken it. Each caller here has a storage of its
//! own, as far as this process can tell, so that only what is stored keeps them apart.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use superstep::checkpoint::{AnyCheckpointer, Checkpointer, CheckpointerLayer, StorageId};
use superstep::prelude::*;
use superstep::testing::Clock;
use superstep::{CompiledGraph, RunControl};
use tokio::sync::Barrier;

use crate::common::{HOUR, Notes, kept_in, line, lines};

/// The storage of another process: nobody here knows that it is the same.
struct Elsewhere(AnyCheckpointer);

impl CheckpointerLayer for Elsewhere {
    fn inner(&self) -> &AnyCheckpointer {
        &self.0
    }

    fn storage(&self) -> Option<StorageId> {
        None
    }
}

fn app(
    checkpointer: impl Checkpointer,
    clock: &Clock,
    fired: &Arc<AtomicUsize>,
) -> CompiledGraph<Notes> {
    let fired = fired.clone();
    let graph = StateGraph::new().add_edge(START, "nap").add_node("nap", move |task: Task| {
        let fired = fired.clone();
        async move {
            task.sleep(HOUR).await;
            fired.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            line("awake")
        }
    });
    let (app, _) = kept_in(graph, AnyCheckpointer::new(checkpointer));
    app.with_context(clock.clone())
}

async fn race(callers: usize, rounds: usize, is_one_process: bool) {
    let (clock, fired) = (Clock::new(), Arc::new(AtomicUsize::new(0)));
    let memory = AnyCheckpointer::new(MemorySaver::new());
    let began = app(Elsewhere(memory.clone()), &clock, &fired);
    for round in 0..rounds {
        began.thread(format!("t{round}")).invoke(Notes::update()).await.expect("a run");
        clock.advance(HOUR);
        let start = Arc::new(Barrier::new(callers));
        let racing = (0..callers).map(|_| {
            let app = match is_one_process {
                true => began.clone(),
                false => app(Elsewhere(memory.clone()), &clock, &fired),
            };
            let start = start.clone();
            tokio::spawn(async move {
                start.wait().await;
                app.run_due().await.expect("what is due")
            })
        });
        let racing: Vec<_> = racing.collect();
        let mut winners = 0;
        for racer in racing {
            for due in racer.await.expect("no panic") {
                assert_eq!(lines(due.outcome), ["awake"]);
                winners += 1;
            }
        }
        assert_eq!(winners, 1, "round {round}");
        assert_eq!(fired.swap(0, Ordering::SeqCst), 1, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn in_several_processes() {
    race(64, 40, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn in_one_process() {
    race(64, 40, true).await;
}

/// A drained run that was to do what is due is taken up again.
#[tokio::test]
async fn what_was_drained_is_not_lost() {
    let (clock, fired) = (Clock::new(), Arc::new(AtomicUsize::new(0)));
    let app = app(MemorySaver::new(), &clock, &fired);
    let thread = app.thread("t");
    thread.invoke(Notes::update()).await.expect("a run");
    clock.advance(HOUR);
    let control = RunControl::new();
    control.request_drain("shutdown");
    let drained = thread.invoke(superstep::Input::wake()).control(control).await.expect("a run");
    assert!(matches!(drained, Outcome::Drained(_)), "{drained:?}");
    assert_eq!(fired.load(Ordering::SeqCst), 0);
    let later = app.run_due().await.expect("nothing to do yet").next.expect("a time");
    clock.set(later);
    assert_eq!(app.run_due().await.expect("what was left").len(), 1);
    assert_eq!(fired.load(Ordering::SeqCst), 1);
}
