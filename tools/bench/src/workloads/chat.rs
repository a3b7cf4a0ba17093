//! Lists of messages that grow.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use superstep::prelude::*;

use crate::failure::Failure;
use crate::protocol::Measured;
use crate::setting::{Setting, done, nanos};

/// What is said, by whom.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Said {
    role: String,
    content: String,
}

#[derive(State, Clone, Default)]
struct Chat {
    #[channel(reduce = Append)]
    messages: Vec<Said>,
    turns: u64,
}

/// A message of 200 bytes. To format it with that width would take as long as the superstep in which it is said.
fn said(role: &str, n: u64) -> Said {
    let number = n.to_string();
    let zeros = "0".repeat(200 - number.len());
    Said { role: role.to_owned(), content: zeros + &number }
}

/// An agent that calls a tool in each round, so that the list grows by two.
pub(super) async fn react(setting: &mut Setting, rounds: usize) -> Result<Measured, Failure> {
    let rounds = rounds as u64;
    let graph = StateGraph::<Chat>::new()
        .add_node("agent", |chat: Arc<Chat>| {
            Chat::update().messages([said("ai", chat.turns)]).turns(chat.turns + 1)
        })
        .add_node("tools", |chat: Arc<Chat>| Chat::update().messages([said("tool", chat.turns)]))
        .add_edge(START, "agent")
        .add_conditional_edges("agent", ["tools", END], move |chat: &Chat| {
            if chat.turns <= rounds { "tools" } else { END }
        })
        .add_edge("tools", "agent")
        .compile()?;
    let graph = setting.equip(graph);
    let mut measured = Measured { units: rounds, ..Measured::default() };
    for _ in 0..setting.rounds {
        let began = setting.start().await?;
        let input = Chat::update().messages([said("human", 0)]);
        let chat = done(setting.invoke(&graph, input).await?)?;
        measured.nanos.push(nanos(began.elapsed()));
        assert_eq!(chat.messages.len() as u64, 2 + 2 * rounds, "two messages a round");
    }
    Ok(measured)
}

/// One more question and answer in a thread that has many messages already: everything that one call does.
pub(super) async fn turn(setting: &mut Setting, messages: usize) -> Result<Measured, Failure> {
    let graph = StateGraph::<Chat>::new()
        .add_node("answer", |chat: Arc<Chat>| {
            Chat::update().messages([said("ai", chat.turns)]).turns(chat.turns + 1)
        })
        .add_edge(START, "answer")
        .compile()?;
    let graph = setting.equip(graph);
    let thread = setting.thread(&graph);
    let before: Vec<Said> = (0..messages as u64).map(|n| said("human", n)).collect();
    setting.with_options(thread.invoke(Chat::update().messages(before))).await?;
    let mut measured = Measured { units: 1, ..Measured::default() };
    for _ in 0..setting.rounds {
        let began = setting.start().await?;
        let question = Chat::update().messages([said("human", 1)]);
        setting.with_options(thread.invoke(question)).await?;
        measured.nanos.push(nanos(began.elapsed()));
    }
    Ok(measured)
}

/// Supersteps of one run that began with many messages. The clock starts inside the run, so that taking in the
/// messages does not count.
pub(super) async fn superstep(setting: &mut Setting, messages: usize) -> Result<Measured, Failure> {
    const BEFORE: u64 = 20;
    const COUNTED: u64 = 60;
    let times = Times::default();
    let clock = times.clone();
    let graph = StateGraph::<Chat>::new()
        .add_node("turn", move |chat: Arc<Chat>| {
            clock.note();
            Chat::update().messages([said("ai", chat.turns)]).turns(chat.turns + 1)
        })
        .add_edge(START, "turn")
        .add_conditional_edges("turn", ["turn", END], |chat: &Chat| {
            if chat.turns <= BEFORE + COUNTED { "turn" } else { END }
        })
        .compile()?;
    let graph = setting.equip(graph);
    let before: Vec<Said> = (0..messages as u64).map(|n| said("human", n)).collect();
    let mut measured = Measured { units: COUNTED, ..Measured::default() };
    for _ in 0..setting.rounds {
        setting.start().await?;
        let input = Chat::update().messages(before.clone());
        done(setting.invoke(&graph, input).await?)?;
        let took = times.take();
        measured.nanos.push(nanos(took.between(BEFORE as usize, (BEFORE + COUNTED) as usize)));
    }
    Ok(measured)
}

/// A thread to which each superstep appends one message: what the first and the last hundred cost.
pub(super) async fn long(setting: &mut Setting, supersteps: usize) -> Result<Measured, Failure> {
    const PART: usize = 100;
    if supersteps < 2 * PART {
        return Err(format!("a long thread has at least {} supersteps", 2 * PART).into());
    }
    let times = Times::default();
    let (clock, last) = (times.clone(), supersteps as u64);
    let graph =
        StateGraph::<Chat>::new()
            .add_node("turn", move |chat: Arc<Chat>| {
                clock.note();
                Chat::update().messages([said("ai", chat.turns)]).turns(chat.turns + 1)
            })
            .add_edge(START, "turn")
            .add_conditional_edges("turn", ["turn", END], move |chat: &Chat| {
                if chat.turns <= last { "turn" } else { END }
            })
            .compile()?;
    let graph = setting.equip(graph);
    let mut measured = Measured { units: supersteps as u64, ..Measured::default() };
    for _ in 0..setting.rounds {
        let began = setting.start().await?;
        done(setting.invoke(&graph, Chat::update().turns(0)).await?)?;
        measured.nanos.push(nanos(began.elapsed()));
        let took = times.take();
        let (first, last) = (took.between(0, PART), took.between(supersteps - PART, supersteps));
        measured.also.push(("first".to_owned(), first.as_nanos() as f64 / PART as f64));
        measured.also.push(("last".to_owned(), last.as_nanos() as f64 / PART as f64));
    }
    Ok(measured)
}

/// When the supersteps of a run began.
#[derive(Clone, Default)]
struct Times(Arc<Mutex<Vec<Instant>>>);

impl Times {
    fn note(&self) {
        self.0.lock().expect("nothing panics while it holds this").push(Instant::now());
    }

    /// Those of the run that has ended.
    fn take(&self) -> Taken {
        Taken(std::mem::take(&mut self.0.lock().expect("nothing panics while it holds this")))
    }
}

struct Taken(Vec<Instant>);

impl Taken {
    fn between(&self, from: usize, to: usize) -> Duration {
        self.0[to] - self.0[from]
    }
}
