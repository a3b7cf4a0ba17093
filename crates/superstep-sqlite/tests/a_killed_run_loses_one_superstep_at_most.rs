//! A process that is killed in the middle of a run which stores meanwhile leaves everything but,
//! possibly, the last superstep it has finished. It could break if the run were let continue before
//! the checkpoint before the last is committed.
//!
//! The other process is this test binary again, told by a variable what to be.

mod world;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use superstep::prelude::*;
use superstep::{CompiledGraph, Durability};
use superstep_sqlite::SqliteSaver;
use world::Dir;

const FILE: &str = "SUPERSTEP_TEST_FILE";

#[derive(State, Clone, Debug, Default)]
struct Count {
    n: u64,
}

/// Counts until `last`, and says each number when the superstep that counts it begins.
async fn counting(file: &std::path::Path, last: u64) -> CompiledGraph<Count> {
    let checkpointer = SqliteSaver::open(file).await.expect("a file");
    StateGraph::new()
        .add_node("count", |count: Arc<Count>| {
            let mut out = std::io::stdout().lock();
            writeln!(out, "\ncounts {}", count.n + 1).expect("somebody who listens");
            out.flush().expect("somebody who listens");
            Count::update().n(count.n + 1)
        })
        .add_edge(START, "count")
        .add_conditional_edges(
            "count",
            ["count", END],
            move |count: &Count| {
                if count.n < last { "count" } else { END }
            },
        )
        .compile()
        .expect("a graph")
        .with_checkpointer(checkpointer)
}

/// Not a test by itself: what the other process does.
#[tokio::test]
async fn as_another_process() {
    let Ok(file) = std::env::var(FILE) else { return };
    let thread = counting(file.as_ref(), u64::MAX).await.thread("t");
    let run = thread.invoke(Count::update().n(0)).durability(Durability::Async);
    run.recursion_limit(u64::MAX / 4).await.expect("it is killed before it ends");
}

#[tokio::test]
async fn a_killed_run_loses_one_superstep_at_most() {
    for seen in [1, 2, 3, 10, 50, 200] {
        let dir = Dir::new();
        let mut child = Command::new(std::env::current_exe().expect("this binary"))
            .args(["--exact", "as_another_process", "--nocapture"])
            .env(FILE, dir.file())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut begun = output
            .lines()
            .filter_map(|line| line.ok()?.strip_prefix("counts ")?.parse::<u64>().ok());
        begun.by_ref().take_while(|n| *n < seen).for_each(drop);
        child.kill().expect("killed");
        child.wait().expect("an end");
        // What it has said since counts, too.
        let last = begun.last().unwrap_or(seen);
        let stored = {
            let thread = counting(&dir.file(), 0).await.thread("t");
            thread.get_state().await.expect("a look").state().n
        };
        // Superstep `last` has begun, `last - 1` has finished and may be lost, `last - 2` is stored.
        assert!(stored + 2 >= last, "{last} has begun, and {stored} is stored");
        assert!(stored <= last, "{last} was the last to begin, and {stored} is stored");
        let thread = counting(&dir.file(), last + 5).await.thread("t");
        let ended = thread.invoke(()).await.expect("it goes on").done().expect("an end");
        assert_eq!(ended.n, last + 5);
    }
}
