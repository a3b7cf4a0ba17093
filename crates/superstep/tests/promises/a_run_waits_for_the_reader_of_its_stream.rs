//! Shows that a run does not go on while events wait to be taken: a slow reader slows the run down, and no queue grows. It
//! would break if the run were driven beside its stream.

use crate::common::{Counter, Notes, kept, line, sleep};
use superstep::prelude::*;

fn graph(ran: &Counter) -> StateGraph<Notes> {
    let ran = ran.clone();
    StateGraph::new()
        .add_node("turn", move |notes: Arc<Notes>| {
            ran.add();
            line(notes.lines.len().to_string())
        })
        .add_edge(START, "turn")
        .add_edge("turn", "turn")
}

#[tokio::test(start_paused = true)]
async fn no_superstep_runs_ahead_of_the_reader() {
    let ran = Counter::default();
    let thread = kept(graph(&ran)).thread("t");
    let mut run = thread.stream(Notes::update()).recursion_limit(1_000);
    sleep(1_000).await;
    assert_eq!(ran.get(), 0, "nothing runs before the first event is asked for");
    for taken in 1..=50 {
        run.next().await.expect("an event").expect("no error");
        sleep(1_000).await;
        let ahead = ran.get() - taken;
        // Storing in memory takes no waiting, so one poll may get as far as the next event, and no further than it must.
        assert!(ahead <= 1, "after {taken} events the run is {ahead} supersteps ahead");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_waits_does_not_go_on_while_its_events_wait() {
    let (sent, far) = (Counter::default(), Counter::default());
    let (sending, getting) = (sent.clone(), far.clone());
    let graph = StateGraph::<Notes>::new()
        .add_node("talk", move |task: Task| {
            let (sending, getting) = (sending.clone(), getting.clone());
            async move {
                for n in 0..100_u32 {
                    task.emit(n);
                    sending.add();
                    sleep(1).await;
                }
                getting.add();
                line("done")
            }
        })
        .add_edge(START, "talk")
        .compile()
        .expect("a graph that compiles");
    let mut run = graph.stream(Notes::update()).modes([Mode::Custom]);
    for taken in 1..=20 {
        run.next().await.expect("an event").expect("no error");
        sleep(1_000).await;
        assert_eq!(sent.get(), taken, "the node is where its events are");
    }
    assert_eq!(far.get(), 0);
    drop(run);
}
