//! Shows that a run does not continue while events wait to be taken: a slow reader slows the run
//! down, and no queue grows. It would break if the run were driven beside its stream, and for nodes
//! that are driven beside the run, if nothing held them back.

use crate::common::{Counter, Notes, NotesUpdate, kept, line, says, sleep};
use superstep::CompiledGraph;
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
    let mut run = thread.invoke(Notes::update()).recursion_limit(1_000).stream([Mode::Updates]);
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

/// A graph whose only node emits numbers, with something to wait for after each.
fn talking(spawned: bool, sent: &Counter, far: &Counter) -> CompiledGraph<Notes> {
    let (sending, getting) = (sent.clone(), far.clone());
    let graph = StateGraph::<Notes>::new().add_node("talk", move |task: Task| {
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
    });
    let graph = if spawned { graph.spawned() } else { graph };
    graph.add_edge(START, "talk").compile().expect("a graph that compiles")
}

#[tokio::test(start_paused = true)]
async fn a_node_that_waits_does_not_go_on_while_its_events_wait() {
    for spawned in [false, true] {
        let (sent, far) = (Counter::default(), Counter::default());
        let graph = talking(spawned, &sent, &far);
        let mut run = graph.invoke(Notes::update()).stream([Mode::Custom]);
        for taken in 1..=20 {
            run.next().await.expect("an event").expect("no error");
            sleep(1_000).await;
            assert_eq!(sent.get(), taken, "the node is where its events are (spawned: {spawned})");
        }
        assert_eq!(far.get(), 0);
        drop(run);
    }
}

/// The runtime polls a spawned node whenever something wakes it, and the reader is elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spawned_node_that_yields_is_one_event_ahead_at_most() {
    let sent = Counter::default();
    let sending = sent.clone();
    let graph = StateGraph::<Notes>::new()
        .add_node("talk", move |task: Task| {
            let sending = sending.clone();
            async move {
                for n in 0..20_000_u32 {
                    sending.add();
                    task.emit(n);
                    tokio::task::yield_now().await;
                }
                line("done")
            }
        })
        .spawned()
        .add_edge(START, "talk")
        .compile()
        .expect("a graph that compiles");
    let mut run = graph.invoke(Notes::update()).stream([Mode::Custom]);
    let mut taken = 0;
    while let Some(event) = run.next().await {
        if event.expect("no error").mode().is_none() {
            break;
        }
        taken += 1;
        assert_eq!(sent.get(), taken);
    }
    assert_eq!(taken, 20_000);
}

/// A graph whose only node emits numbers as fast as it can, and never awaits.
fn shouting(events: u32, spawned: bool, sent: &Counter) -> CompiledGraph<Notes> {
    let sending = sent.clone();
    let graph = StateGraph::<Notes>::new().add_node("shout", move |task: Task| {
        for n in 0..events {
            task.emit(n);
            sending.add();
        }
        line("done")
    });
    let graph = if spawned { graph.spawned() } else { graph };
    graph.add_edge(START, "shout").compile().expect("a graph that compiles")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spawned_node_that_never_awaits_is_blocked() {
    let sent = Counter::default();
    let graph = shouting(300_000, true, &sent);
    let mut run = graph.invoke(Notes::update()).stream([Mode::Custom]);
    let mut taken = 0;
    let mut ahead = 0;
    while let Some(event) = run.next().await {
        if event.expect("no error").mode().is_none() {
            break;
        }
        taken += 1;
        ahead = ahead.max(sent.get().saturating_sub(taken));
    }
    assert_eq!(taken, 300_000, "nothing is lost");
    assert!(ahead <= 1_024, "the node was {ahead} events ahead");
}

/// Nobody is left to take the events, so nobody may wait for that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_node_is_released_when_the_stream_is_dropped() {
    let sent = Counter::default();
    let graph = shouting(300_000, true, &sent);
    let mut run = graph.invoke(Notes::update()).stream([Mode::Custom]);
    run.next().await.expect("an event").expect("no error");
    while sent.get() < 1_023 {
        tokio::task::yield_now().await;
    }
    drop(run);
    while sent.get() < 300_000 {
        tokio::task::yield_now().await;
    }
}

/// Where the reader cannot take anything before the node has returned, to block the node would be
/// to wait forever.
#[tokio::test]
async fn a_node_that_never_awaits_fails_before_its_events_fill_the_memory() {
    for spawned in [false, true] {
        let sent = Counter::default();
        let graph = shouting(300_000, spawned, &sent);
        let mut run = graph.invoke(Notes::update()).stream([Mode::Custom]);
        let mut taken = 0;
        let error = loop {
            match run.next().await.expect("an event or an error") {
                Ok(_) => taken += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(taken, 100_000);
        says(error, &["`shout`", "100000 events", "yield_now"]);
        assert!(run.next().await.is_none());
        let fits = shouting(100_000, spawned, &sent);
        let mut run = fits.invoke(Notes::update()).stream([Mode::Custom]);
        while let Some(event) = run.next().await {
            event.expect("no error");
        }
    }
}

/// What a node has started on its own does not wait for its turn.
#[tokio::test]
async fn what_a_node_has_started_cannot_fill_the_memory_either() {
    let graph = StateGraph::<Notes>::new()
        .add_node("start", |task: Task| async move {
            let other = task.clone();
            tokio::spawn(async move {
                loop {
                    (0..1_000).for_each(|n| other.emit(n));
                    tokio::task::yield_now().await;
                }
            });
            std::future::pending::<NotesUpdate>().await
        })
        .add_edge(START, "start")
        .compile()
        .expect("a graph that compiles");
    let mut run = graph.invoke(Notes::update()).stream([Mode::Custom]);
    run.next().await.expect("an event").expect("no error");
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    let mut taken = 1;
    let error = loop {
        match run.next().await.expect("an event or an error") {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
    };
    assert!((100_000..110_000).contains(&taken), "{taken} events");
    says(error, &["`start`", "100000 events"]);
}
