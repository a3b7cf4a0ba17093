//! Shows that recorded calls and workflows sleep as nodes do, and that what ran before does not run again.
//!
//! It could break where a call asks for its caller, and where an answer is carried to a call.

use superstep::prelude::*;
use superstep::testing::{Clock, Journal};

use crate::common::{DAY, HOUR};

#[task]
async fn remind(task: Task, who: String) -> Result<String, NodeError> {
    let answer = task.interrupt(format!("{who}?")).or_after(DAY, "nothing".to_owned()).await;
    Ok(format!("{who}: {answer}"))
}

#[task]
async fn pay(amount: i64) -> Result<i64, NodeError> {
    Ok(amount)
}

#[entrypoint]
async fn order(amount: i64, task: Task) -> Result<String, NodeError> {
    let paid = pay(&task, amount).await?;
    task.sleep(HOUR).await;
    let (a, b) = tokio::join!(remind(&task, "a".to_owned()), remind(&task, "b".to_owned()));
    Ok(format!("{paid}, {}, {}", a?, b?))
}

#[tokio::test]
async fn in_a_workflow_and_its_calls() {
    let (clock, journal) = (Clock::new(), Journal::new());
    let app = order().compile().with_checkpointer(MemorySaver::new());
    let app = app.with_context(clock.clone()).with_context(journal.clone());
    let thread = app.thread("t");
    let asleep = thread.start(42).await.expect("a run").interrupted().expect("a sleep");
    assert!(asleep.is_sleeping());
    clock.advance(HOUR);
    let asked = app.run_due().await.expect("the sleep is over");
    assert!(asked[0].outcome.is_ok(), "{asked:?}");
    assert_eq!(asked.next, Some(clock.now() + DAY));
    let state = thread.get_state().await.expect("a state");
    let b = state.interrupts.iter().find(|asked| asked.value == "b?".into()).expect("b is asked");
    thread.resume_all([(b.id.clone(), "yes")]).await.expect("a run");
    clock.advance(DAY);
    let mut ended = app.run_due().await.expect("the deadline of a").into_iter();
    let outcome = ended.next().expect("a run").outcome.expect("an end");
    assert_eq!(outcome.done().as_deref(), Some("42, a: nothing, b: yes"));
    assert_eq!(journal.times("order/pay"), 1, "{journal:?}");
}
