//! A thread of messages that grows by one with each superstep is stored at the cost of the messages
//! and of a small skeleton for each checkpoint, and is read back in few pieces, by either engine.
//! LangGraph writes the whole list each time.

mod world;

use std::path::Path;

use rusqlite::Connection;
use superstep_checkpoint::AnyCheckpointer;
use superstep_contract::graphs::long;
use superstep_sqlite::{SqliteSaver, Synchronous};
use world::Dir;

async fn grown(dir: &Dir, supersteps: usize) -> AnyCheckpointer {
    let checkpointer = SqliteSaver::options().synchronous(Synchronous::Normal);
    let checkpointer = AnyCheckpointer::new(checkpointer.open(dir.file()).await.expect("a file"));
    long::grow(&checkpointer, supersteps).await;
    checkpointer
}

/// The bytes of each checkpoint with its metadata and the writes next to it, oldest first.
fn bytes(file: &Path) -> Vec<u64> {
    let db = Connection::open(file).expect("the file");
    let sql = "SELECT length(c.checkpoint) + length(c.metadata) + coalesce((SELECT sum(length(w.value)) \
               FROM writes w WHERE w.thread_id = c.thread_id AND w.checkpoint_ns = c.checkpoint_ns \
               AND w.checkpoint_id = c.checkpoint_id), 0) FROM checkpoints c ORDER BY checkpoint_id";
    let mut statement = db.prepare(sql).expect("a statement");
    let rows = statement.query_map([], |row| row.get(0)).expect("rows");
    rows.collect::<Result<_, _>>().expect("numbers")
}

#[tokio::test]
async fn a_thousand_messages_take_little_more_than_they_are() {
    let dir = Dir::new();
    let checkpointer = grown(&dir, 1000).await;
    let total: u64 = bytes(&dir.file()).iter().sum();
    println!("1,000 supersteps: {total} bytes");
    // A message names its class, as in LangGraph, which takes 68 of its 268 bytes.
    assert!(total <= 1_350_000, "{total} bytes for 268,000 bytes of messages");
    long::assert_loads_quickly(&checkpointer, 1000).await;
    let file = dir.file().display().to_string();
    long::assert_python_reads(["sqlite", &file], 1000);
}

#[tokio::test]
async fn ten_thousand_messages_take_ten_times_as_much() {
    let dir = Dir::new();
    let checkpointer = grown(&dir, 10_000).await;
    long::assert_linear(&bytes(&dir.file()));
    long::assert_loads_quickly(&checkpointer, 10_000).await;
}
