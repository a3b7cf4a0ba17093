//! Shows that timers and questions of one superstep do not disturb each other: each timer fires at its time, the person can
//! answer at any moment, and the others stay as they are.
//!
//! It could break where all tasks that wait run again because one of them goes on.

use superstep::checkpoint::InterruptId;
use superstep::prelude::*;

use crate::common::{DAY, HOUR, Notes, asked, due, kept, line, lines};

fn graph() -> StateGraph<Notes> {
    let nap = |time| {
        move |task: Task| async move {
            task.sleep(time).await;
            line(task.name())
        }
    };
    StateGraph::new()
        .add_node("a", nap(HOUR))
        .add_node("b", nap(DAY))
        .add_node("c", |task: Task| async move { line(task.interrupt::<String>("c?").await) })
        .add_node("end", || line("end"))
        .add_edge(START, "a")
        .add_edge(START, "b")
        .add_edge(START, "c")
        .add_edge(["a", "b", "c"], "end")
}

#[tokio::test]
async fn in_each_order() {
    for answered_after in 0..3 {
        let (app, clock) = kept(graph());
        let thread = app.thread("t");
        let began = clock.now();
        let questions = asked(thread.invoke(Notes::update()).await);
        assert_eq!(due(&questions), [Some(began + HOUR), Some(began + DAY), None]);
        let ids: Vec<InterruptId> = questions.iter().map(|asked| asked.id.clone()).collect();
        for nth in 0..3 {
            if nth == answered_after {
                // Nobody is asked but one, so no id is needed.
                thread.resume("c").await.expect("a run");
            }
            let open = thread.get_state().await.expect("a state").interrupts.clone();
            let left = usize::from(nth < 1) + usize::from(nth < 2);
            assert_eq!(open.iter().filter(|asked| asked.is_sleep()).count(), left);
            assert!(open.iter().all(|asked| ids.contains(&asked.id)), "the same questions");
            if nth < 2 {
                clock.set(began + [HOUR, DAY][nth]);
                assert_eq!(app.run_due().await.expect("one is due").len(), 1, "{nth}");
            }
        }
        let state = thread.get_state().await.expect("a state");
        assert_eq!(state.state().lines, ["a", "b", "c", "end"], "answered after {answered_after}");
        assert!(state.next.is_empty());
    }
}

/// A question that was answered without a run does not keep the timers beside it from firing.
#[tokio::test]
async fn an_answer_that_was_left_is_taken_along() {
    let memory = MemorySaver::new();
    let app = graph().compile().expect("a graph").with_checkpointer(memory.clone());
    let clock = superstep::testing::Clock::at(std::time::SystemTime::now() + DAY);
    let app = app.with_context(clock.clone());
    let thread = app.thread("t");
    asked(thread.invoke(Notes::update()).await);
    superstep::answer(&memory, "t", None, "c").await.expect("the only one who is asked");
    clock.advance(HOUR);
    let ran = app.run_due().await.expect("a is due");
    assert_eq!(ran.len(), 1);
    clock.advance(DAY);
    let mut last = app.run_due().await.expect("b is due").into_iter();
    assert_eq!(lines(last.next().expect("a run").outcome), ["a", "b", "c", "end"]);
}

/// A timer that goes off while a sibling still runs is not forgotten by those who looked and found the thread busy.
#[tokio::test]
async fn a_timer_that_goes_off_while_a_sibling_runs_fires_afterwards() {
    let told = Arc::new(tokio::sync::Notify::new());
    let (go, asleep) = (told.clone(), Arc::new(tokio::sync::Notify::new()));
    let sleeps = asleep.clone();
    let (app, clock) = kept(
        StateGraph::new()
            .add_node("nap", move |task: Task| {
                let sleeps = sleeps.clone();
                async move {
                    sleeps.notify_one();
                    task.sleep(HOUR).await;
                    line("nap")
                }
            })
            .add_node("work", move || {
                let go = go.clone();
                async move {
                    go.notified().await;
                    line("work")
                }
            })
            .add_edge(START, "nap")
            .add_edge(START, "work"),
    );
    let run = tokio::spawn(app.thread("t").invoke(Notes::update()));
    asleep.notified().await;
    // The question is stored as soon as the task sleeps.
    while app.thread("t").get_state().await.expect("a state").interrupts.is_empty() {
        tokio::task::yield_now().await;
    }
    clock.advance(HOUR);
    let busy = app.run_due().await.expect("somebody runs the thread");
    assert!(busy.is_empty());
    told.notify_one();
    asked(run.await.expect("no panic"));
    let mut due = app.run_due().await.expect("the timer").into_iter();
    assert_eq!(lines(due.next().expect("a run").outcome), ["nap", "work"]);
}
