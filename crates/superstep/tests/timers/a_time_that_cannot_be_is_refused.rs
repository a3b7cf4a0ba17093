//! Shows what becomes of times that are no times: a sleep that never ends, a clock before 1970, a default that is no answer.
//!
//! It could break where a duration is added to the clock, and where a time is written as text.

use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use superstep::prelude::*;
use superstep::testing::Clock;

use crate::common::{DAY, Notes, asked, due, kept, line};

#[tokio::test]
async fn a_sleep_that_never_ends_is_refused() {
    for duration in [Duration::MAX, Duration::from_secs(u64::MAX), DAY * 365 * 9_000] {
        let (app, _) = kept(StateGraph::new().add_edge(START, "nap").add_node(
            "nap",
            move |task: Task| async move {
                task.sleep(duration).await;
                line("awake")
            },
        ));
        let thread = app.thread("t");
        let refused = thread.invoke(Notes::update()).await.expect_err("no such time");
        assert!(refused.to_string().contains("after the year 9999"), "{refused}");
        assert!(app.run_due().await.expect("nothing to do").is_empty());
    }
}

#[tokio::test]
async fn a_clock_before_1970_is_one_at_its_beginning() {
    let (app, _) =
        kept(StateGraph::new().add_edge(START, "nap").add_node("nap", |task: Task| async move {
            task.sleep(DAY).await;
            line("awake")
        }));
    let before = UNIX_EPOCH.checked_sub(DAY * 2).expect("a time");
    let app = app.with_context(Clock::at(before));
    // It would end before 1970, which is not written.
    assert_eq!(due(&asked(app.thread("t").invoke(Notes::update()).await)), [Some(UNIX_EPOCH)]);
    let app = app.with_context(Clock::at(UNIX_EPOCH));
    assert_eq!(
        due(&asked(app.thread("u").invoke(Notes::update()).await)),
        [Some(UNIX_EPOCH + DAY)]
    );
}

/// What is written is not what is read.
#[derive(Clone, Serialize)]
struct Odd {
    written: u8,
}

impl<'de> Deserialize<'de> for Odd {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self { written: u8::deserialize(deserializer)? })
    }
}

#[tokio::test]
async fn a_default_that_is_no_answer_is_refused() {
    let (app, _) =
        kept(StateGraph::new().add_edge(START, "ask").add_node("ask", |task: Task| async move {
            let odd = task.interrupt("odd?").or_after(DAY, Odd { written: 1 }).await;
            line(odd.written.to_string())
        }));
    let refused = app.thread("t").invoke(Notes::update()).await.expect_err("no default");
    assert!(refused.to_string().contains("default"), "{refused}");
}
