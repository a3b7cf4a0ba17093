//! Shows that a sleep ends the run, says until when, and goes on when somebody runs what is due: not before, and once.
//!
//! It could break where the alarm is not stored with the question, or is not moved when a thread goes on to another sleep.

use superstep::prelude::*;

use crate::common::{DAY, HOUR, Notes, NotesUpdate, asked, due, ended, kept, line, lines};

async fn nap(task: Task) -> NotesUpdate {
    task.sleep(DAY).await;
    task.sleep(HOUR).await;
    line("awake")
}

fn napping() -> StateGraph<Notes> {
    StateGraph::new().add_node("nap", nap).add_edge(START, "nap")
}

#[tokio::test]
async fn it_goes_on_when_it_is_due() {
    let (app, clock) = kept(napping());
    let thread = app.thread("t");
    let began = clock.now();
    let outcome = thread.invoke(Notes::update()).await.expect("a run").interrupted();
    let outcome = outcome.expect("a sleep");
    assert!(outcome.is_sleeping());
    assert_eq!(outcome.due(), Some(began + DAY));

    clock.advance(DAY - HOUR);
    let early = app.run_due().await.expect("nothing to do");
    assert!(early.is_empty());
    assert_eq!(early.next, Some(began + DAY));

    clock.advance(HOUR);
    let first = app.run_due().await.expect("the first sleep is over");
    assert_eq!(first.len(), 1);
    assert_eq!(first.next, Some(clock.now() + HOUR));
    let again = app.run_due().await.expect("nothing is due");
    assert!(again.is_empty(), "{again:?}");

    clock.advance(HOUR);
    let second = app.run_due().await.expect("the second sleep is over");
    assert_eq!(second.next, None);
    assert_eq!(ended(second), [("t".to_owned(), vec!["awake".to_owned()])]);
    assert!(app.run_due().await.expect("nothing is left").is_empty());
}

#[tokio::test]
async fn any_run_of_the_thread_takes_what_is_due() {
    let (app, clock) = kept(napping());
    let thread = app.thread("t");
    let first = asked(thread.invoke(Notes::update()).await);
    assert_eq!(asked(thread.invoke(()).await), first, "it still sleeps");
    clock.advance(DAY);
    let second = asked(thread.invoke(()).await);
    assert_eq!(due(&second), [Some(clock.now() + HOUR)]);
    clock.advance(HOUR);
    assert_eq!(lines(thread.invoke(()).await), ["awake"]);
}

#[tokio::test]
async fn a_time_that_has_passed_is_not_waited_for() {
    let (app, clock) =
        kept(StateGraph::new().add_edge(START, "nap").add_node("nap", |task: Task| async move {
            task.sleep_until(std::time::UNIX_EPOCH).await;
            task.sleep(std::time::Duration::ZERO).await;
            let asked = task.interrupt("quick?").or_at(std::time::UNIX_EPOCH, 7);
            let answer = asked.await;
            task.sleep(HOUR).await;
            line(format!("{answer}"))
        }));
    let thread = app.thread("t");
    assert_eq!(due(&asked(thread.invoke(Notes::update()).await)), [Some(clock.now() + HOUR)]);
    clock.advance(HOUR);
    assert_eq!(lines(thread.invoke(()).await), ["7"]);
}

#[tokio::test]
async fn a_sleep_without_a_checkpointer_is_refused() {
    let app = napping().compile().expect("a graph");
    let refused = app.invoke(Notes::update()).await.expect_err("nobody could keep it");
    assert!(refused.to_string().contains("with_checkpointer"), "{refused}");
}
