//! Shows that a person who answers before the deadline is heard, and that the default is the answer from then on.
//!
//! It could break where the answer of the clock and that of a person are stored: only one of them may count, and whoever
//! came too late has to be told, even if no run has taken the default yet.

use superstep::prelude::*;

use crate::common::{DAY, HOUR, Notes, NotesUpdate, asked, ended, kept, line, lines};

async fn review(task: Task) -> NotesUpdate {
    let approved = task.interrupt("approve?").or_after(DAY, false).await;
    line(if approved { "approved" } else { "rejected" })
}

fn reviewing() -> StateGraph<Notes> {
    StateGraph::new().add_node("review", review).add_edge(START, "review")
}

#[tokio::test]
async fn an_early_answer_counts() {
    let (app, clock) = kept(reviewing());
    let thread = app.thread("t");
    let questions = thread.invoke(Notes::update()).await.expect("a run").interrupted();
    let questions = questions.expect("a question");
    assert!(!questions.is_sleeping(), "somebody is asked");
    assert_eq!(questions[0].value, "approve?".into());
    assert_eq!(questions.due(), Some(clock.now() + DAY));
    clock.advance(HOUR);
    assert_eq!(lines(thread.resume(true).await), ["approved"]);
    clock.advance(DAY);
    assert!(app.run_due().await.expect("nothing to do").is_empty());
}

#[tokio::test]
async fn a_late_answer_is_refused_and_the_default_counts() {
    let (app, clock) = kept(reviewing());
    let thread = app.thread("t");
    let questions = asked(thread.invoke(Notes::update()).await);
    clock.advance(DAY);
    for late in [thread.resume(true), thread.resume_all([(questions[0].id.clone(), true)])] {
        let refused = late.await.expect_err("too late");
        assert!(matches!(refused, RunError::Resume { .. }), "{refused:?}");
        assert!(refused.to_string().contains("too late"), "{refused}");
    }
    let due = app.run_due().await.expect("the deadline has passed");
    assert_eq!(ended(due), [("t".to_owned(), vec!["rejected".to_owned()])]);
}

#[tokio::test]
async fn an_answer_that_was_left_in_time_counts() {
    let checkpointer = MemorySaver::new();
    let clock = superstep::testing::Clock::at(std::time::SystemTime::now());
    let app = reviewing().compile().expect("a graph").with_checkpointer(checkpointer.clone());
    let thread = app.with_context(clock.clone()).thread("t");
    asked(thread.invoke(Notes::update()).await);
    superstep::answer(&checkpointer, "t", None, true).await.expect("in time");
    clock.advance(DAY);
    assert_eq!(lines(thread.invoke(()).await), ["approved"]);
}

#[tokio::test]
async fn an_answer_is_not_left_too_late() {
    let checkpointer = MemorySaver::new();
    // The deadline is a day after this, and so in the past for everybody else.
    let clock = superstep::testing::Clock::at(std::time::UNIX_EPOCH + DAY);
    let app = reviewing().compile().expect("a graph").with_checkpointer(checkpointer.clone());
    let thread = app.with_context(clock.clone()).thread("t");
    asked(thread.invoke(Notes::update()).await);
    let late = superstep::answer(&checkpointer, "t", None, true).await.expect_err("too late");
    assert!(late.to_string().contains("too late"), "{late}");
    clock.advance(DAY);
    assert_eq!(lines(thread.invoke(()).await), ["rejected"]);
}

#[tokio::test]
async fn a_sleep_ends_early_with_any_answer() {
    let (app, _) =
        kept(StateGraph::new().add_edge(START, "nap").add_node("nap", |task: Task| async move {
            task.sleep(DAY).await;
            line("awake")
        }));
    let thread = app.thread("t");
    asked(thread.invoke(Notes::update()).await);
    assert_eq!(lines(thread.resume("get up").await), ["awake"]);
}
