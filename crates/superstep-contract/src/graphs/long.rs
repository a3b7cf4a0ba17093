//! A thread of messages that grows by one with each superstep.
//!
//! It is to be stored at the cost of the messages and of a small skeleton for each checkpoint, and to be read back in few
//! pieces, by either engine.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use superstep::prelude::*;
use superstep::state::{Message, Messages};
use superstep::{CompiledGraph, Durability};
use superstep_checkpoint::{AnyCheckpointer, Blob};

use crate::listing::Dice;

/// The name of the thread.
pub const THREAD: &str = "long";

/// The state: messages, of which each superstep adds one.
#[derive(State, Clone, Debug, Default)]
pub struct Chat {
    /// All that was said.
    #[channel(reduce = Messages)]
    pub messages: Vec<Message>,
}

/// What the messages say. A database finds little in it to compress.
pub fn text(nth: usize) -> String {
    let mut dice = Dice(nth as u64);
    (0..93).map(|_| char::from(b'0' + dice.below(64) as u8)).collect()
}

fn assert_said(messages: &[Message], supersteps: usize) {
    assert_eq!(messages.len(), supersteps);
    for (nth, message) in messages.iter().enumerate() {
        assert_eq!(message.content.as_str(), Some(&*text(nth)));
    }
}

/// A graph that says one message in each superstep until there are so many.
///
/// # Panics
/// Never: the graph is a sound one.
pub fn graph(checkpointer: &AnyCheckpointer, supersteps: usize) -> CompiledGraph<Chat> {
    told(checkpointer, supersteps, |_| {})
}

/// The same, with a function that is told of each superstep when it begins.
fn told(
    checkpointer: &AnyCheckpointer,
    supersteps: usize,
    begins: impl Fn(usize) + Send + Sync + 'static,
) -> CompiledGraph<Chat> {
    let say = move |chat: Arc<Chat>| {
        begins(chat.messages.len());
        Chat::update().messages(Message::human(text(chat.messages.len())))
    };
    StateGraph::<Chat>::new()
        .add_node("say", say)
        .add_edge(START, "say")
        .add_conditional_edges("say", ["say", END], move |chat: &Chat| {
            if chat.messages.len() < supersteps { "say" } else { END }
        })
        .compile()
        .expect("a graph")
        .with_any_checkpointer(checkpointer.clone())
}

/// Lets the thread grow to so many messages, each superstep stored before the next begins.
///
/// # Panics
/// The run fails, or ends with something else than the messages.
pub async fn grow(checkpointer: &AnyCheckpointer, supersteps: usize) {
    let run = graph(checkpointer, supersteps).thread(THREAD).invoke(Chat::update());
    let run = run.recursion_limit(supersteps as u64 + 5).durability(Durability::Sync);
    let chat = run.await.expect("a run").done().expect("nothing stops the run");
    assert_said(&chat.messages, supersteps);
    let bytes = Blob::encode(&chat.messages[0]).expect("a message").bytes().len();
    // As many as LangGraph stores for this message: class and method are named in each, which takes 68 of them.
    assert_eq!(bytes, 268, "of a message");
}

/// Prints how long a superstep takes in the first and the last hundred of so many, each the median, for some threads that grow
/// one after the other.
///
/// # Panics
/// A run fails.
pub async fn print_pace(checkpointer: &AnyCheckpointer, supersteps: usize, threads: usize) {
    let mut ratios = Vec::new();
    for nth in 0..threads {
        let begun: Arc<Mutex<Vec<Instant>>> = Arc::default();
        let log = begun.clone();
        let note = move |_| log.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
        let run = told(checkpointer, supersteps, note)
            .thread(format!("pace {nth}"))
            .invoke(Chat::update());
        let run = run.recursion_limit(supersteps as u64 + 5).durability(Durability::Sync);
        run.await.expect("a run").done().expect("nothing stops the run");
        let begun = begun.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let times: Vec<u64> =
            begun.windows(2).map(|two| (two[1] - two[0]).as_nanos() as u64).collect();
        let (first, last) = (median(&times[..100]), median(&times[times.len() - 100..]));
        let ratio = last as f64 / first as f64;
        println!("first hundred {} us, last hundred {} us: {ratio:.2}", first / 1000, last / 1000);
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    println!("last to first, median of {threads} threads: {:.2}", ratios[threads / 2]);
}

/// Asserts that a thread costs what was added: `each` is the bytes of each checkpoint and of what
/// is stored next to it, oldest first.
///
/// # Panics
/// It does not.
pub fn assert_linear(each: &[u64]) {
    let supersteps = &each[1..];
    let parts = supersteps.chunks(supersteps.len() / 10).map(|part| part.iter().sum());
    println!("{} supersteps, by tenths: {:?} bytes", supersteps.len(), parts.collect::<Vec<u64>>());
    let (early, late) = (median(&supersteps[..100]), median(&supersteps[supersteps.len() - 100..]));
    println!("a superstep: {early} bytes at first, {late} at the end");
    assert!(late * 100 <= early * 115, "{early} bytes for a superstep at first, {late} at the end");
    // Whole values come seldom and are large; all of them together cost less than the supersteps themselves.
    let (plain, total) = (early * supersteps.len() as u64, each.iter().sum::<u64>());
    assert!(total <= plain * 2, "{total} bytes, of which {plain} without whole values");
}

fn median(part: &[u64]) -> u64 {
    let mut part = part.to_vec();
    part.sort_unstable();
    part[part.len() / 2]
}

/// How long it takes to load the thread, and to decode its messages once.
#[derive(Clone, Copy, Debug)]
pub struct Loading {
    /// Getting the state from the checkpointer.
    pub load: Duration,
    /// Decoding all messages from one piece of memory.
    pub decode: Duration,
}

impl Loading {
    /// How many times as long loading takes as decoding.
    pub fn ratio(self) -> f64 {
        self.load.as_secs_f64() / self.decode.as_secs_f64()
    }
}

/// Asserts that loading the thread takes less than three times as long as decoding its messages.
///
/// # Panics
/// It does not, or the thread is not what was grown.
pub async fn assert_loads_quickly(checkpointer: &AnyCheckpointer, supersteps: usize) {
    let mut loading = loading(checkpointer, supersteps).await;
    // On a machine that is busy with other things, it may take long until each of the two had its turn undisturbed.
    for _ in 0..10 {
        if loading.ratio() < 3.0 {
            break;
        }
        let again = self::loading(checkpointer, supersteps).await;
        loading.load = loading.load.min(again.load);
        loading.decode = loading.decode.min(again.decode);
    }
    println!("{loading:?}, {:.2} times", loading.ratio());
    assert!(
        loading.ratio() < 3.0,
        "loading takes {:.2} times as long as decoding",
        loading.ratio()
    );
}

/// Times loading the thread and decoding its messages in turn, and gives the quickest of some rounds of each.
///
/// # Panics
/// The thread cannot be loaded, or is not what was grown.
pub async fn loading(checkpointer: &AnyCheckpointer, supersteps: usize) -> Loading {
    let graph = graph(checkpointer, supersteps);
    let expected = graph.thread(THREAD).get_state().await.expect("a state").state().clone();
    assert_said(&expected.messages, supersteps);
    let blob = Blob::encode(&expected.messages).expect("messages");
    let mut quickest = Loading { load: Duration::MAX, decode: Duration::MAX };
    for _ in 0..20 {
        let start = Instant::now();
        let state = graph.thread(THREAD).get_state().await.expect("a state");
        quickest.load = quickest.load.min(start.elapsed());
        assert_eq!(state.state().messages, expected.messages);
        let start = Instant::now();
        let decoded: Vec<Message> = blob.decode().expect("messages");
        quickest.decode = quickest.decode.min(start.elapsed());
        assert_eq!(decoded, expected.messages);
    }
    quickest
}

/// Lets LangGraph read the thread, with its own checkpointer and a graph of its own, and compares.
///
/// `place` is `sqlite FILE` or `postgres URL`. Needs `SUPERSTEP_TEST_PYTHON`; without it nothing is tested, and the output
/// says so.
///
/// # Panics
/// It fails, or finds something else.
pub fn assert_python_reads(place: [&str; 2], supersteps: usize) {
    let Ok(python) = std::env::var("SUPERSTEP_TEST_PYTHON") else {
        println!("NOT RUN: set SUPERSTEP_TEST_PYTHON to a Python that has LangGraph");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/long_thread.py");
    let output = Command::new(python).arg(script).args(place).arg(THREAD).output().expect("Python");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "Python failed:\n{said}");
    let found: Json = serde_json::from_slice(&output.stdout).expect("JSON");
    let said = |field: &str| -> Vec<String> {
        let messages: Vec<Message> =
            serde_json::from_value(found[field].clone()).expect("messages");
        messages.iter().filter_map(|message| Some(message.content.as_str()?.to_owned())).collect()
    };
    let expected: Vec<String> = (0..supersteps).map(text).collect();
    let steps: Vec<i64> = (-1..=supersteps as i64).rev().collect();
    assert_eq!(found["listed"], Json::from(steps));
    assert_eq!(said("head"), expected);
    assert_eq!(found["next"], Json::Array(Vec::new()));
    assert_eq!(said("middle"), expected[..supersteps / 2]);
}
