//! Threads with messages of every class and values of many types, which LangGraph begins, which
//! continue here and which LangGraph looks at in the end.
//!
//! Every message must be what it was, and what a node passes on or does not touch must be stored byte for byte as it was.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use superstep::CompiledGraph;
use superstep::prelude::*;
use superstep_checkpoint::{AnyCheckpointer, Blob, Value};

/// The number of threads.
const THREADS: usize = 24;

/// The state of `python/messages.py`.
#[derive(State, Clone, Debug, Default)]
struct Said {
    /// Messages that are stored whole.
    #[channel(reduce = Messages, delta = false)]
    whole: Vec<Message>,
    /// Messages that are stored as they are added, and whole after each update.
    #[channel(reduce = Messages, delta = 1)]
    deltas: Vec<Message>,
    /// Messages without a reducer, pieces and requests to remove among them.
    last: Vec<Message>,
    /// What the node passes on.
    other: Value,
    /// What the node does not touch.
    untouched: Value,
}

fn graph(checkpointer: &AnyCheckpointer) -> CompiledGraph<Said> {
    let rust = |said: Arc<Said>| {
        let added = Message::ai("from Rust").with_id("rust");
        let mut last = said.last.clone();
        last.push(added.clone());
        let other = said.other.clone();
        Said::update().whole([added.clone()]).deltas([added]).last(last).other(other)
    };
    StateGraph::<Said>::new()
        .add_node("python", || -> SaidUpdate { unreachable!("LangGraph has run it") })
        .add_node("rust", rust)
        .add_edge(START, "python")
        .add_edge("python", "rust")
        .add_edge("rust", END)
        .compile()
        .expect("a graph")
        .with_any_checkpointer(checkpointer.clone())
}

async fn stored(checkpointer: &AnyCheckpointer, thread: &str) -> [Option<Blob>; 2] {
    let stored =
        checkpointer.get(thread, "", None).await.expect("a checkpoint").expect("a checkpoint");
    ["other", "untouched"].map(|name| stored.checkpoint.channel_values.get(name).cloned())
}

fn python(task: &str, [kind, place]: [&str; 2], seed: u64) -> bool {
    let Ok(python) = std::env::var("SUPERSTEP_TEST_PYTHON") else {
        println!("NOT RUN: set SUPERSTEP_TEST_PYTHON to a Python that has LangGraph");
        return false;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/messages.py");
    let mut command = Command::new(python);
    // The order of a set in Python depends on it.
    command.env("PYTHONHASHSEED", "0").arg(script).args([task, kind, place]);
    command.args([seed.to_string(), THREADS.to_string()]);
    let output = command.output().expect("Python");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "with the seed {seed}, `{task}` failed:\n{said}");
    true
}

/// Lets LangGraph begin the threads, lets them continue here, and lets LangGraph compare.
///
/// `place` is `sqlite FILE` or `postgres URL`, and `checkpointer` opens the same one once LangGraph has made the tables. Needs
/// `SUPERSTEP_TEST_PYTHON`; without it nothing is tested, and the output says so.
///
/// # Panics
/// Something is not as it was.
pub async fn assert_nothing_is_lost<F: Future<Output = AnyCheckpointer>>(
    place: [&str; 2],
    seed: u64,
    checkpointer: impl FnOnce() -> F,
) {
    if !python("make", place, seed) {
        return;
    }
    let checkpointer = checkpointer().await;
    let graph = graph(&checkpointer);
    for nth in 0..THREADS {
        let thread = format!("messages {nth}");
        let before = stored(&checkpointer, &thread).await;
        let outcome = graph.thread(&*thread).invoke(()).await;
        outcome
            .unwrap_or_else(|error| panic!("seed {seed}, thread {nth}: {error:?}"))
            .done()
            .expect("an end");
        let after = stored(&checkpointer, &thread).await;
        assert_eq!(before, after, "with the seed {seed}, in thread {nth}");
    }
    assert!(python("check", place, seed));
}
