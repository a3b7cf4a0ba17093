//! Shows that the due time is decided when it is reached first, whatever makes the node run again.
//!
//! It could break wherever a node runs again: with another answer, in a further attempt, in another process, after a
//! question at the same position.

use superstep::prelude::*;
use superstep::testing::Clock;

use crate::common::{DAY, HOUR, Notes, asked, due, kept, kept_in, line, lines};
use superstep::checkpoint::AnyCheckpointer;

#[tokio::test]
async fn a_run_in_between_does_not_move_it() {
    let (app, clock) = kept(
        StateGraph::new()
            .add_node("nap", |task: Task| async move {
                task.sleep(DAY).await;
                line("awake")
            })
            .add_node(
                "ask",
                |task: Task| async move { line(task.interrupt::<String>("name?").await) },
            )
            .add_edge(START, "nap")
            .add_edge(START, "ask"),
    );
    let thread = app.thread("t");
    let expected = clock.now() + DAY;
    let questions = asked(thread.invoke(Notes::update()).await);
    assert_eq!(due(&questions), [None, Some(expected)]);
    clock.advance(HOUR);
    assert_eq!(due(&asked(thread.invoke(()).await)), [None, Some(expected)]);
    clock.advance(HOUR);
    // The only one who asks a person is answered; the sleep stays.
    assert_eq!(due(&asked(thread.resume("Ada").await)), [Some(expected)]);
    clock.set(expected);
    assert_eq!(lines(thread.invoke(()).await), ["Ada", "awake"]);
}

#[tokio::test]
async fn another_process_has_the_same_due_time() {
    let checkpointer = AnyCheckpointer::new(MemorySaver::new());
    let graph = || {
        StateGraph::new().add_edge(START, "ask").add_node("ask", |task: Task| async move {
            let answer = task.interrupt("go on?").or_after(DAY, 1).await;
            line(format!("{answer}"))
        })
    };
    let (app, clock) = kept_in(graph(), checkpointer.clone());
    let expected = clock.now() + DAY;
    assert_eq!(due(&asked(app.thread("t").invoke(Notes::update()).await)), [Some(expected)]);
    let later = Clock::at(clock.now() + HOUR);
    let (other, _) = kept_in(graph(), checkpointer);
    let thread = other.with_context(later).thread("t");
    assert_eq!(due(&asked(thread.invoke(()).await)), [Some(expected)]);
}

/// A branch has tasks of its own, and so timers of its own.
#[tokio::test]
async fn a_branch_has_its_own() {
    let (app, clock) = kept(
        StateGraph::new()
            .add_node("first", || line("first"))
            .add_node("nap", |task: Task| async move {
                task.sleep(DAY).await;
                line("awake")
            })
            .add_edge(START, "first")
            .add_edge("first", "nap"),
    );
    let thread = app.thread("t");
    let first = clock.now() + DAY;
    assert_eq!(due(&asked(thread.invoke(Notes::update()).await)), [Some(first)]);
    let asleep = thread.get_state().await.expect("a state");
    clock.advance(HOUR);
    let before = asleep.parent.clone().expect("a parent");
    let branch = thread.at(before).invoke(()).await;
    assert_eq!(due(&asked(branch)), [Some(first + HOUR)]);
    clock.set(first);
    let nothing = app.run_due().await.expect("the branch sleeps on");
    assert!(nothing.is_empty(), "{nothing:?}");
    assert_eq!(nothing.next, Some(first + HOUR));
    clock.advance(HOUR);
    assert_eq!(app.run_due().await.expect("the branch is due").len(), 1);
    // What was left behind can still be gone on with, from where it was.
    let old = thread.at(&asleep).resume("now").await;
    assert_eq!(lines(old), ["first", "awake"]);
}

/// A clock that goes back delays what is due and does nothing else.
#[tokio::test]
async fn a_clock_that_goes_back_does_not_move_it() {
    let (app, clock) =
        kept(StateGraph::new().add_edge(START, "nap").add_node("nap", |task: Task| async move {
            task.sleep(DAY).await;
            line("awake")
        }));
    let thread = app.thread("t");
    let expected = clock.now() + DAY;
    asked(thread.invoke(Notes::update()).await);
    clock.set(std::time::UNIX_EPOCH);
    assert!(app.run_due().await.expect("nothing to do").is_empty());
    assert_eq!(due(&asked(thread.invoke(()).await)), [Some(expected)]);
    clock.set(expected);
    assert_eq!(lines(thread.invoke(()).await), ["awake"]);
}
