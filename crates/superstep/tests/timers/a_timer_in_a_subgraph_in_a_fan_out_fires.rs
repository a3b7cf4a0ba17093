//! Shows that timers are found and fired at any depth: in graphs inside the tasks of a fan-out, each at its own time.
//!
//! It could break where questions of graphs inside are shown by the tasks around them, and where answers are carried back.

use superstep::prelude::*;
use superstep::{CompiledGraph, Memory};

use crate::common::{HOUR, Notes, NotesUpdate, asked, due, kept, line, lines};

async fn nap(Arg(hours): Arg<u32>, task: Task) -> NotesUpdate {
    task.sleep(HOUR * hours).await;
    line(format!("{hours}"))
}

fn inner() -> CompiledGraph<Notes> {
    let graph = StateGraph::new().add_node("nap", nap);
    let hours = |notes: &Notes| {
        let hours = notes.lines.first().and_then(|line| line.parse().ok());
        Dispatch::new("nap", hours.unwrap_or(0_u32))
    };
    graph.add_conditional_edges(START, ["nap"], hours).compile().expect("a graph")
}

fn outer(memory: Memory) -> StateGraph<Notes> {
    let inner = inner();
    StateGraph::new()
        .add_node("each", move |Arg(hours): Arg<u32>, task: Task| {
            let inner = inner.clone().with_memory(memory);
            async move {
                let slept = task.invoke(&inner, line(format!("{hours}"))).await?;
                Ok::<_, NodeError>(line(format!("slept {}", slept.lines.join(", "))))
            }
        })
        .add_conditional_edges(START, ["each"], |_: &Notes| {
            [3_u32, 1, 2].map(|hours| Dispatch::new("each", hours)).to_vec()
        })
}

#[tokio::test]
async fn each_at_its_own_time() {
    for memory in [Memory::PerCall, Memory::Nothing] {
        let (app, clock) = kept(outer(memory));
        let began = clock.now();
        let thread = app.thread("t");
        let times =
            |hours: &[u32]| hours.iter().map(|h| Some(began + HOUR * *h)).collect::<Vec<_>>();
        let questions = asked(thread.invoke(Notes::update()).await);
        assert_eq!(due(&questions), times(&[3, 1, 2]), "{memory:?}");
        for (left, next) in [(&[3, 2][..], 2), (&[3][..], 3)] {
            clock.advance(HOUR);
            let ran = app.run_due().await.expect("one is due");
            assert_eq!((ran.len(), ran.next), (1, Some(began + HOUR * next)), "{memory:?}");
            let state = thread.get_state().await.expect("a state");
            assert_eq!(due(&state.interrupts), times(left), "{memory:?}");
            assert!(app.run_due().await.expect("nothing is due").is_empty());
        }
        clock.advance(HOUR);
        let mut last = app.run_due().await.expect("the last one is due").into_iter();
        let all = lines(last.next().expect("a run").outcome);
        assert_eq!(all, ["slept 3, 3", "slept 1, 1", "slept 2, 2"], "{memory:?}");
    }
}
