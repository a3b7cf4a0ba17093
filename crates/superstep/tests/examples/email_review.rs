//! Drives `examples/email_review.rs`, which has no room for its tests.

use super::*;

#[tokio::test]
async fn an_approved_draft_is_sent_as_it_is() {
    let email = reviewed(Verdict::Approve).await.expect("a run");
    assert_eq!((&*email.text, email.sent), ("Dear Ada, your order is late.", true));
}

#[tokio::test]
async fn an_edit_carries_the_text_that_is_sent() {
    let email = reviewed(Verdict::Edit("Sorry!".to_owned())).await.expect("a run");
    assert_eq!((&*email.text, email.sent), ("Sorry!", true));
}

#[tokio::test]
async fn a_rejected_draft_is_not_sent() {
    let email = reviewed(Verdict::Reject).await.expect("a run");
    assert_eq!((&*email.text, email.sent), ("Dear Ada, your order is late.", false));
}

#[tokio::test]
async fn what_is_no_verdict_is_refused_and_the_question_stays_open() {
    let thread = app().expect("a graph").thread("t");
    thread.invoke(Email::update().to("Ada")).await.expect("a run");
    let refused = thread.resume("perhaps").await.expect_err("no verdict");
    assert!(refused.to_string().contains("review"), "{refused}");
    assert_eq!(thread.get_state().await.expect("a state").interrupts.len(), 1);
    let email = thread.resume(Verdict::Approve).await.expect("a run").done();
    assert!(email.expect("the end").sent);
}
