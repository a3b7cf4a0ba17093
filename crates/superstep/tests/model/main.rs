//! Shows that nobody waits for what has happened, in whatever order threads meet: a model checker runs the queue between a
//! run and its reader, and the hand-over between a task and its driver, through all orders within a bound.
//!
//! Both are included as source, with the checker's locks in place of the standard library's.

#![expect(dead_code, reason = "the models use a part of what the crate uses")]

#[path = "../../src/engine/task/handover.rs"]
mod handover;
#[path = "../../src/engine/watch/queue.rs"]
mod queue;

mod engine {
    pub(crate) mod sync {
        pub(crate) use loom::sync::atomic::{AtomicBool, Ordering};
        pub(crate) use loom::sync::{Mutex, MutexGuard};

        pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
            mutex.lock().expect("no model panics under a lock")
        }
    }
}

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Poll;

use handover::Handover;
use loom::future::block_on;
use loom::sync::Arc;
use loom::thread;
use queue::{Place, Queue};

/// Tries every order with at most two switches between threads that no thread has asked for, which is what a lost wake-up
/// takes. `LOOM_MAX_PREEMPTIONS=3` tries more, for minutes.
fn in_every_order(model: impl Fn() + Send + Sync + 'static) {
    let mut checker = loom::model::Builder::new();
    checker.preemption_bound = checker.preemption_bound.or(Some(2));
    checker.check(model);
}

async fn next(queue: &Queue<usize>) -> usize {
    poll_fn(|cx| queue.poll_next(cx)).await
}

#[test]
fn a_writer_that_waits_for_its_reader_is_woken() {
    in_every_order(|| {
        let queue = Arc::new(Queue::new());
        let writer = thread::spawn({
            let queue = queue.clone();
            move || {
                block_on(async {
                    for n in 0..2 {
                        queue.push(n);
                        queue.taken().await;
                    }
                });
                queue.push(2);
            }
        });
        block_on(async {
            for n in 0..3 {
                assert_eq!(next(&queue).await, n);
            }
        });
        writer.join().expect("no panic");
    });
}

#[test]
fn a_writer_gets_no_further_than_its_reader_asks() {
    in_every_order(|| {
        let queue = Arc::new(Queue::new());
        let written = std::sync::Arc::new(AtomicUsize::new(0));
        let writer = thread::spawn({
            let (queue, written) = (queue.clone(), written.clone());
            move || {
                block_on(async {
                    for n in 0..3 {
                        written.fetch_add(1, SeqCst);
                        queue.push(n);
                        queue.taken().await;
                    }
                });
            }
        });
        block_on(async {
            for n in 0..2 {
                assert_eq!(next(&queue).await, n);
                assert_eq!(
                    written.load(SeqCst),
                    n + 1,
                    "nothing is written before it is asked for"
                );
            }
        });
        queue.close();
        writer.join().expect("no panic");
    });
}

#[test]
fn every_writer_is_woken() {
    in_every_order(|| {
        let queue = Arc::new(Queue::new());
        let writers = [0, 1].map(|n| {
            let queue = queue.clone();
            thread::spawn(move || {
                queue.push(n);
                block_on(queue.taken());
            })
        });
        block_on(async {
            assert_eq!(next(&queue).await + next(&queue).await, 1);
            // Asks for more, which is what the writers wait for.
            assert!(poll_fn(|cx| Poll::Ready(queue.poll_next(cx).is_pending())).await);
        });
        for writer in writers {
            writer.join().expect("no panic");
        }
    });
}

#[test]
fn writers_are_released_when_the_reader_goes() {
    in_every_order(|| {
        let queue = Arc::new(Queue::new());
        let writer = thread::spawn({
            let queue = queue.clone();
            move || {
                queue.push(0);
                block_on(queue.taken());
                queue.push(1);
                block_on(queue.taken());
            }
        });
        let _ = queue.pop();
        queue.close();
        writer.join().expect("no panic");
        assert_eq!(queue.pop(), None, "what nobody takes is dropped");
    });
}

/// A spawned node is dropped while it waits, and another writer still is woken.
#[test]
fn a_writer_that_leaves_takes_nobody_else_along() {
    in_every_order(|| {
        let queue = Arc::new(Queue::new());
        queue.push(0);
        let waiting = thread::spawn({
            let queue = queue.clone();
            move || block_on(queue.taken())
        });
        let leaving = thread::spawn({
            let queue = queue.clone();
            move || {
                let mut place = Place::default();
                block_on(poll_fn(|cx| {
                    let _ = queue.poll_taken(&mut place, cx.waker());
                    Poll::Ready(())
                }));
                queue.leave(&mut place);
            }
        });
        block_on(async {
            assert_eq!(next(&queue).await, 0);
            assert!(poll_fn(|cx| Poll::Ready(queue.poll_next(cx).is_pending())).await);
        });
        waiting.join().expect("no panic");
        leaving.join().expect("no panic");
    });
}

/// Waits as the driver of a node does.
async fn over(handover: &Handover) {
    poll_fn(|cx| {
        if handover.is_over(cx.waker()) || handover.watch(cx.waker()) {
            return Poll::Ready(());
        }
        Poll::Pending
    })
    .await;
}

#[test]
fn a_driver_learns_that_its_task_has_stopped() {
    in_every_order(|| {
        let handover = Arc::new(Handover::new());
        let task = thread::spawn({
            let handover = handover.clone();
            move || handover.stop()
        });
        block_on(over(&handover));
        assert!(handover.is_stopped());
        task.join().expect("no panic");
    });
}

#[test]
fn a_task_is_over_when_it_has_stopped_and_all_it_has_started_has_ended() {
    in_every_order(|| {
        let handover = Arc::new(Handover::new());
        let ended = std::sync::Arc::new(AtomicUsize::new(0));
        handover.enter();
        handover.enter();
        let started = [false, true].map(|stops| {
            let (handover, ended) = (handover.clone(), ended.clone());
            thread::spawn(move || {
                if stops {
                    handover.stop();
                }
                ended.fetch_add(1, SeqCst);
                handover.leave();
            })
        });
        block_on(over(&handover));
        assert_eq!(ended.load(SeqCst), 2);
        assert!(!handover.is_waited_for());
        for started in started {
            started.join().expect("no panic");
        }
    });
}
