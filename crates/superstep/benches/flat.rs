//! What a superstep costs, and that it costs what changed rather than what exists.
//!
//! `cargo bench -p superstep` prints, for each workload, the least time per superstep (or task) of several rounds, once
//! for something small and once for the same thing large, and the ratio of the two.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use superstep::checkpoint::MemorySaver;
use superstep::prelude::*;

const ROUNDS: usize = 15;

#[derive(State, Clone, Default)]
struct Chat {
    #[channel(reduce = Append)]
    messages: Vec<String>,
    turns: u64,
}

#[derive(State, Clone, Default)]
struct Count {
    n: u64,
}

#[derive(State, Clone, Default)]
struct Fan {
    #[channel(reduce = Sum)]
    total: u64,
}

fn message(n: u64) -> String {
    format!("message {n:>180}")
}

/// The time that `supersteps` supersteps of a loop take, each of which adds a message and asks a router.
///
/// The clock starts inside the run, so that taking in ten thousand messages does not count.
async fn chat(start: usize, supersteps: u64, saver: bool) -> Duration {
    const BEFORE: u64 = 20;
    let began = Arc::new(Mutex::new(None::<Instant>));
    let took = Arc::new(Mutex::new(Duration::MAX));
    let (clock, stopped) = (began.clone(), took.clone());
    let graph = StateGraph::<Chat>::new()
        .add_node("turn", move |chat: Arc<Chat>| {
            if chat.turns == BEFORE {
                *clock.lock().expect("no panic") = Some(Instant::now());
            }
            if chat.turns == BEFORE + supersteps {
                let began = clock.lock().expect("no panic").expect("the loop has begun");
                *stopped.lock().expect("no panic") = began.elapsed();
            }
            Chat::update().messages([message(chat.turns)]).turns(chat.turns + 1)
        })
        .add_edge(START, "turn")
        .add_conditional_edges("turn", ["turn", END], move |chat: &Chat| {
            if chat.turns <= BEFORE + supersteps { "turn" } else { END }
        })
        .compile()
        .expect("the graph is sound");
    let messages: Vec<String> = (0..start as u64).map(message).collect();
    let input = Chat::update().messages(messages);
    if saver {
        let thread = graph.with_checkpointer(MemorySaver::new()).thread("t");
        thread.invoke(input).await.expect("the run succeeds");
    } else {
        graph.invoke(input).await.expect("the run succeeds");
    }
    *took.lock().expect("no panic")
}

/// A sequence of `nodes` nodes.
async fn sequence(nodes: usize, saver: bool) -> Duration {
    let mut graph = StateGraph::<Count>::new();
    for at in 0..nodes {
        graph =
            graph.add_node(format!("n{at:04}"), |count: Arc<Count>| Count::update().n(count.n + 1));
        let from = if at == 0 { START.to_owned() } else { format!("n{:04}", at - 1) };
        graph = graph.add_edge(from, format!("n{at:04}"));
    }
    let graph = graph.compile().expect("the graph is sound");
    if saver {
        let thread = graph.with_checkpointer(MemorySaver::new()).thread("t");
        let began = Instant::now();
        thread.invoke(Count::update().n(0)).await.expect("the run succeeds");
        began.elapsed()
    } else {
        let began = Instant::now();
        graph.invoke(Count::update().n(0)).await.expect("the run succeeds");
        began.elapsed()
    }
}

/// A dispatch to `tasks` tasks and a join.
async fn fan_out(tasks: u64) -> Duration {
    let graph = StateGraph::<Fan>::new()
        .add_node("worker", |Arg(n): Arg<u64>| Fan::update().total(n))
        .add_node("end", || ())
        .add_conditional_edges(START, ["worker"], move |_: &Fan| {
            (0..tasks).map(|n| Dispatch::new("worker", n)).collect::<Vec<_>>()
        })
        .add_edge("worker", "end")
        .compile()
        .expect("the graph is sound");
    let began = Instant::now();
    let outcome = graph.invoke(Fan::update()).await.expect("the run succeeds");
    let took = began.elapsed();
    let fan = outcome.done().expect("nothing stops the run");
    assert_eq!(fan.total, tasks * (tasks - 1) / 2);
    took
}

/// The least time of several rounds, divided by what was done in each.
async fn least<F: Future<Output = Duration>>(units: u64, mut run: impl FnMut() -> F) -> f64 {
    let mut least = Duration::MAX;
    for _ in 0..ROUNDS {
        least = least.min(run().await);
    }
    least.as_secs_f64() * 1e6 / units as f64
}

fn report(what: &str, small: f64, large: f64) {
    println!("{what:<58} {small:>9.3} µs {large:>9.3} µs {:>7.2}", large / small);
}

fn main() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        println!("{:<58} {:>12} {:>12} {:>7}", "", "small", "large", "ratio");
        let steps = 60;
        for saver in [false, true] {
            let with = if saver { "in memory" } else { "no checkpointer" };
            let small = least(steps, || chat(10, steps, saver)).await;
            let large = least(steps, || chat(10_000, steps, saver)).await;
            report(&format!("superstep, 10 and 10,000 messages, {with}"), small, large);
        }
        for saver in [false, true] {
            let with = if saver { "in memory" } else { "no checkpointer" };
            let small = least(10, || sequence(10, saver)).await;
            let large = least(1000, || sequence(1000, saver)).await;
            report(&format!("task, sequence of 10 and of 1,000 nodes, {with}"), small, large);
        }
        let small = least(100, || fan_out(100)).await;
        let large = least(1000, || fan_out(1000)).await;
        report("task, dispatch to 100 and to 1,000, no checkpointer", small, large);
    });
}
