//! Shows that a task which has returned, but has spawned a recorded call that still runs, counts as running: when the
//! superstep stops, it is not kept, so that the next run makes it run again and its call with it. Siblings that have ended
//! meanwhile are kept.
//!
//! It would break if what a node returned were stored as soon as it returns: nobody would run the call again.

use std::sync::Arc;

use crate::common::{Counter, Notes, done, kept, line, next, sleep};
use superstep::prelude::*;
use superstep::{Durability, RunControl, Thread};

const MODES: [Durability; 2] = [Durability::Sync, Durability::Async];

#[derive(Clone, Default)]
struct Ran {
    caller: Counter,
    call: Counter,
    beside: Counter,
    bad: Counter,
}

/// `caller` returns at once; its call never ends in the first run. `beside` ends after 10 ms, `bad` fails after 50 if it is
/// there.
fn thread(ran: &Ran, fails: bool) -> Thread<Notes> {
    let Ran { caller, call, beside, bad } = ran.clone();
    let mut graph = StateGraph::new()
        .add_node("caller", move |task: Task| {
            caller.add();
            let call = call.clone();
            task.call("call", move || {
                let first = call.add() == 0;
                async move {
                    if first {
                        sleep(1_000_000).await;
                    }
                    Ok::<_, NodeError>(1)
                }
            })
            .spawn();
            line("caller")
        })
        .add_node("beside", move || {
            beside.add();
            async {
                sleep(10).await;
                line("beside")
            }
        })
        .add_node("after", |notes: Arc<Notes>| line(format!("after {}", notes.lines.len())))
        .add_edge(START, "caller")
        .add_edge(START, "beside")
        .add_edge(["caller", "beside"], "after");
    if fails {
        let bad = move || {
            let times = bad.add();
            async move {
                sleep(50).await;
                if times == 0 { Err("not today") } else { Ok(line("bad")) }
            }
        };
        graph = graph.add_node("bad", bad).add_edge(START, "bad");
    }
    kept(graph).thread("t")
}

#[tokio::test(start_paused = true)]
async fn when_the_run_is_stopped_at_once() {
    for durability in MODES {
        let ran = Ran::default();
        let thread = thread(&ran, false);
        let control = RunControl::new();
        let run = thread.invoke(line("in")).durability(durability).control(control.clone());
        let stop = async {
            sleep(100).await;
            control.stop_now("now");
        };
        let (ended, ()) = tokio::join!(run, stop);
        assert!(matches!(ended, Ok(Outcome::Drained(_))), "{ended:?}");
        assert_eq!(next(&thread.get_state().await.expect("a look")), ["caller"], "{durability:?}");
        let notes = done(thread.invoke(()).durability(durability).await);
        assert_eq!(notes.lines, ["in", "beside", "caller", "after 3"]);
        let counts = (ran.caller.get(), ran.call.get(), ran.beside.get());
        assert_eq!(counts, (2, 2, 1), "{durability:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn when_a_sibling_fails() {
    for durability in MODES {
        let ran = Ran::default();
        let thread = thread(&ran, true);
        let failed = thread.invoke(line("in")).durability(durability).await;
        assert!(
            matches!(&failed, Err(RunError::Node { node, .. }) if &**node == "bad"),
            "{failed:?}"
        );
        let open = thread.get_state().await.expect("a look");
        assert_eq!(next(&open), ["caller", "bad"], "{durability:?}");
        let notes = done(thread.invoke(()).durability(durability).await);
        assert_eq!(notes.lines, ["in", "bad", "beside", "caller", "after 4"]);
        let counts = (ran.caller.get(), ran.call.get(), ran.beside.get(), ran.bad.get());
        assert_eq!(counts, (2, 2, 1, 2), "{durability:?}");
    }
}

/// Neither runs again if nothing stops the superstep, and the next one begins when the call has ended.
#[tokio::test(start_paused = true)]
async fn and_the_superstep_waits_for_them() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let ran = Ran::default();
        ran.call.add();
        let notes = done(thread(&ran, false).invoke(line("in")).durability(durability).await);
        assert_eq!(notes.lines, ["in", "beside", "caller", "after 3"]);
        assert_eq!((ran.caller.get(), ran.call.get(), ran.beside.get()), (1, 2, 1));
    }
}
