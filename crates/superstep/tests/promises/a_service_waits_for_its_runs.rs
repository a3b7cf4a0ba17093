//! A service that is told to stop learns of it through the control of its runs, and waits for them: `draining` completes when a
//! drain is asked for, `drained` when in addition no run is left.

use std::sync::Arc;

use once::{is_pending, is_ready};
use tokio::sync::Semaphore;

use crate::common::{Notes, kept, line};
use superstep::prelude::*;
use superstep::{RunControl, Thread};

/// What tests of futures need: one poll.
mod once {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    pub(super) fn is_pending<F: Future>(future: Pin<&mut F>) -> bool {
        poll(future).is_pending()
    }

    pub(super) fn is_ready<F: Future>(future: Pin<&mut F>) -> bool {
        poll(future).is_ready()
    }
}

/// A thread whose first node waits until it is let through.
fn held(gate: &Arc<Semaphore>) -> Thread<Notes> {
    let gate = gate.clone();
    let graph = StateGraph::<Notes>::new()
        .add_node("first", move || {
            let gate = gate.clone();
            async move {
                gate.acquire().await.expect("the gate stays").forget();
                line("first")
            }
        })
        .add_node("second", || line("second"))
        .add_edge(START, "first")
        .add_edge("first", "second");
    kept(graph).thread("t")
}

/// Lets everything run that can.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn that_nobody_else_waits_for() {
    let (gate, control) = (Arc::new(Semaphore::new(0)), RunControl::new());
    let thread = held(&gate);
    let run = tokio::spawn(thread.invoke(Notes::update()).control(control.clone()));
    settle().await;
    assert_eq!(control.running(), 1);
    let server = tokio::spawn(control.draining());
    let service = tokio::spawn(control.drained());
    settle().await;
    assert!(!server.is_finished(), "nobody has asked");

    control.request_drain("deploy");
    server.await.expect("it stops accepting requests");
    settle().await;
    assert!(!service.is_finished(), "a run is still there");

    gate.add_permits(1);
    service.await.expect("it ends when the run has");
    let outcome = run.await.expect("no panic").expect("a run");
    assert!(matches!(outcome, Outcome::Drained(_)), "{outcome:?}");
    assert_eq!(control.running(), 0);
}

#[tokio::test]
async fn until_the_last_of_them_has_ended_or_was_dropped() {
    let (gate, control) = (Arc::new(Semaphore::new(0)), RunControl::new());
    let (one, two) = (held(&gate), held(&gate));
    let mut one = Box::pin(one.invoke(Notes::update()).control(control.clone()));
    let mut two = two.invoke(Notes::update()).control(control.clone()).stream([Mode::Updates]);
    let never_polled = held(&gate).invoke(Notes::update()).control(control.clone());
    assert!(is_pending(one.as_mut()));
    assert!(is_pending(std::pin::pin!(two.next())));
    assert_eq!(control.running(), 2);

    let mut drained = Box::pin(control.drained());
    control.stop_now("deploy");
    assert!(is_pending(drained.as_mut()));
    drop(two);
    assert!(is_pending(drained.as_mut()));
    let outcome = one.await.expect("a run");
    assert!(matches!(outcome, Outcome::Drained(_)), "{outcome:?}");
    assert!(is_ready(drained.as_mut()));
    drop(never_polled);
}

#[tokio::test]
async fn at_once_if_there_are_none() {
    let control = RunControl::new();
    let mut drained = Box::pin(control.drained());
    assert!(is_pending(drained.as_mut()), "nobody has asked");
    control.request_drain("deploy");
    assert!(is_ready(drained.as_mut()));
    assert!(is_ready(std::pin::pin!(control.draining())), "and whoever asks later is told too");
}

/// A node that waits for something outside may look at it, too.
#[tokio::test]
async fn and_a_node_may_return_early() {
    let control = RunControl::new();
    let graph = StateGraph::<Notes>::new()
        .add_node("listen", |task: Task| async move {
            tokio::select! {
                () = task.control().draining() => line("nothing came"),
                () = std::future::pending() => line("never"),
            }
        })
        .add_edge(START, "listen");
    let thread = kept(graph).thread("t");
    let run = tokio::spawn(thread.invoke(Notes::update()).control(control.clone()));
    settle().await;
    control.request_drain("deploy");
    let outcome = run.await.expect("no panic").expect("a run");
    assert_eq!(outcome.done().expect("nothing was left to run").lines, ["nothing came"]);
}
