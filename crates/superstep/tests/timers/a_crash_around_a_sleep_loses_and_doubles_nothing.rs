//! Shows that a process may end before or after each thing that it stores around a sleep and a deadline, and that others
//! then come to the same end: no timer is lost, none fires twice, and no recorded call runs again whose result was stored.
//!
//! It could break where the alarm and the question are stored one after the other, where the clock has answered and the
//! process ends before the node has run, and where an alarm is moved.

use std::time::Duration;

use superstep::checkpoint::AnyCheckpointer;
use superstep::prelude::*;
use superstep::testing::{Clock, Crash, CrashSaver, Journal, virtual_time};
use superstep::{CompiledGraph, Durability};

use crate::common::{DAY, HOUR, Notes, NotesUpdate, line};

async fn nap(task: Task) -> Result<NotesUpdate, NodeError> {
    task.sleep(HOUR).await;
    let called = task.call("call", || async { Ok::<_, NodeError>(1) }).await?;
    task.sleep(HOUR).await;
    Ok(line(format!("nap {called}")))
}

async fn ask(task: Task) -> NotesUpdate {
    let answer = task.interrupt("now?").or_after(2 * HOUR, "default".to_owned()).await;
    line(answer)
}

fn app(checkpointer: AnyCheckpointer, clock: &Clock, journal: &Journal) -> CompiledGraph<Notes> {
    let graph = StateGraph::<Notes>::new()
        .add_node("nap", nap)
        .add_node("ask", ask)
        .add_node("end", || line("end"))
        .add_edge(START, "nap")
        .add_edge(START, "ask")
        .add_edge(["nap", "ask"], "end");
    let graph = graph.compile().expect("a graph").with_any_checkpointer(checkpointer);
    graph.with_context(clock.clone()).with_context(journal.clone())
}

/// Whether the process of a checkpointer has ended. Whatever runs beside what never returns finds that.
fn has_ended(error: &RunError) -> bool {
    format!("{error:#}").contains("has ended")
}

/// Runs until nothing is due, an hour after the other. Returns the state and whether it is done.
async fn play(
    app: &CompiledGraph<Notes>,
    clock: &Clock,
    durability: Durability,
) -> (Vec<String>, bool) {
    let thread = app.thread("t");
    let state = thread.get_state().await.expect("a state");
    if state.is_new() {
        let run = thread.invoke(Notes::update()).durability(durability).await;
        run.expect("a run");
    } else if state.tasks.iter().any(|task| task.interrupts.is_empty()) {
        // Whoever finds a run that has died goes on with it, as without timers.
        thread.invoke(()).durability(durability).await.expect("a run");
    }
    for _ in 0..4 {
        clock.advance(HOUR);
        let due = match app.run_due().durability(durability).await {
            Err(error) if has_ended(&error) => std::future::pending().await,
            due => due.expect("what is due"),
        };
        for due in due {
            due.outcome.expect("a run");
        }
    }
    let state = thread.get_state().await.expect("a state");
    let is_done = state.next.is_empty();
    (state.state().lines.clone(), is_done)
}

#[test]
fn at_every_operation() {
    let mut crashes = 0;
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        virtual_time(async {
            let memory = || AnyCheckpointer::new(MemorySaver::new());
            let whole = CrashSaver::over(memory(), Crash::Never);
            let (clock, journal) = (Clock::new(), Journal::new());
            let app_of = |saver: &CrashSaver, clock: &Clock, journal: &Journal| {
                app(AnyCheckpointer::new(saver.clone()), clock, journal)
            };
            let expected = play(&app_of(&whole, &clock, &journal), &clock, durability).await;
            let lines = ["default", "nap 1", "end"].map(str::to_owned).to_vec();
            assert_eq!(expected, (lines, true), "{durability:?}");
            for crash in Crash::points(whole.operations()) {
                crashes += 1;
                let saver = CrashSaver::over(memory(), crash);
                let (clock, journal) = (Clock::new(), Journal::new());
                let first = app_of(&saver, &clock, &journal);
                let ended = saver.run(play(&first, &clock, durability)).await;
                assert!(ended.is_none(), "{durability:?}: the process ended {crash:?}");
                // The next process is there before the first one is taken for dead.
                let second = app(saver.survivor(), &clock, &journal);
                let found = play(&second, &clock, durability).await;
                assert_eq!(found, expected, "{durability:?}, {crash:?}: {journal:?}");
                let calls = journal.times("nap/call");
                assert!(calls <= 2, "{durability:?}, {crash:?}: {journal:?}");
            }
        });
    }
    assert!(crashes > 40, "{crashes} crashes");
}

/// A process that has fired a timer and then dies is not waited for longer than a few minutes.
#[test]
fn others_take_up_what_a_dead_process_has_fired() {
    virtual_time(async {
        let (clock, journal) = (Clock::new(), Journal::new());
        let memory = AnyCheckpointer::new(MemorySaver::new());
        let first = app(memory.clone(), &clock, &journal);
        first.thread("t").invoke(Notes::update()).await.expect("a run");
        clock.advance(DAY);
        // The first thing that is stored is the claim, with the answer of the clock.
        let saver = CrashSaver::over(memory, Crash::After(1));
        let dying = app(AnyCheckpointer::new(saver.clone()), &clock, &journal);
        assert!(saver.run(dying.run_due().into_future()).await.is_none());
        let next = app(saver.survivor(), &clock, &journal);
        let early = next.run_due().await.expect("nothing to do yet");
        assert!(early.is_empty(), "the other one may be alive: {early:?}");
        let again = early.next.expect("a time to look again");
        assert!(again <= clock.now() + Duration::from_secs(600));
        clock.set(again);
        assert_eq!(next.run_due().await.expect("what was left").len(), 1);
    });
}
