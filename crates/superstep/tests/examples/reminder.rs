//! Drives `examples/reminder.rs`, which has no room for its tests.

use superstep::testing::Clock;

use super::*;

#[tokio::test]
async fn silence_for_three_days_is_a_no() {
    let clock = Clock::new();
    let app = app().expect("a graph").with_context(clock.clone());
    let thread = app.thread("t");
    thread.invoke(Leave::update().who("Ada")).await.expect("a run");
    for _ in 0..3 {
        assert!(app.run_due().await.expect("nothing is due").is_empty());
        clock.advance(DAY);
        assert_eq!(app.run_due().await.expect("a day is over").len(), 1);
    }
    let leave = thread.get_state().await.expect("a state").state().clone();
    assert_eq!((&leave.reminded[..], leave.granted), (&[1, 2, 3][..], false));
}

#[tokio::test]
async fn an_answer_ends_the_reminders() {
    let clock = Clock::new();
    let app = app().expect("a graph").with_context(clock.clone());
    let thread = app.thread("t");
    thread.invoke(Leave::update().who("Ada")).await.expect("a run");
    clock.advance(DAY);
    assert_eq!(app.run_due().await.expect("a day is over").len(), 1);
    let leave = thread.resume(Reply::Grant).await.expect("a run").done().expect("an end");
    assert_eq!((&leave.reminded[..], leave.granted), (&[1][..], true));
}
