//! A thread of messages that grows by one with each superstep is stored at the cost of the messages and of a small
//! skeleton for each checkpoint, and is read back in few pieces. The other engine writes the whole list each time.

mod world;

use std::path::Path;

use rusqlite::Connection;
use superstep::checkpoint::{AnyCheckpointer, Checkpointer};
use superstep::prelude::*;
use superstep_sqlite::{SqliteSaver, Synchronous};
use world::Dir;

#[derive(State, Clone, Default)]
struct Chat {
    #[channel(reduce = Append)]
    messages: Vec<String>,
}

fn message(nth: usize) -> String {
    format!("{nth:0>200}")
}

async fn grown(saver: &SqliteSaver, supersteps: usize) -> Vec<String> {
    let graph = StateGraph::<Chat>::new()
        .add_node("say", |chat: Arc<Chat>| Chat::update().messages([message(chat.messages.len())]))
        .add_edge(START, "say")
        .add_conditional_edges("say", ["say", END], move |chat: &Chat| {
            if chat.messages.len() < supersteps { "say" } else { END }
        });
    let graph = graph.compile().expect("a graph").with_checkpointer(saver.clone());
    let run = graph.thread("t").invoke(Chat::update()).recursion_limit(supersteps as u64 + 5);
    let done = run.durability(superstep::Durability::Sync).await.expect("a run").done();
    done.expect("nothing stops the run").messages.clone()
}

/// The bytes of each checkpoint with its metadata and the writes beside it, oldest first.
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
    let saver = SqliteSaver::options().synchronous(Synchronous::Normal);
    let saver = saver.open(dir.file()).await.expect("a file");
    assert_eq!(grown(&saver, 1000).await.len(), 1000);
    let total: u64 = bytes(&dir.file()).iter().sum();
    println!("1,000 supersteps: {total} bytes");
    assert!(total <= 1_200_000, "{total} bytes for 200,000 bytes of messages");
}

#[tokio::test]
async fn ten_thousand_messages_take_ten_times_as_much() {
    let dir = Dir::new();
    let saver = SqliteSaver::options().synchronous(Synchronous::Normal);
    let saver = saver.open(dir.file()).await.expect("a file");
    let messages = grown(&saver, 10_000).await;
    let each = bytes(&dir.file());
    let thousands: Vec<u64> = each[1..].chunks(1000).map(|part| part.iter().sum()).collect();
    println!("10,000 supersteps, by thousands: {thousands:?}");
    let (first, last, total) = (thousands[0], thousands[9], each.iter().sum::<u64>());
    assert!(last * 100 <= first * 115, "{first} bytes for the first thousand, {last} for the last");
    // A thousand in which a whole value falls is larger than one without; all together they grow with what was added.
    assert!(total * 100 <= first * 10 * 115, "{total} bytes, and {first} for the first thousand");
    // Whole values come seldom and are large. Without them, a superstep costs the same wherever it is.
    let plain = |part: &[u64]| {
        let mut part = part.to_vec();
        part.sort_unstable();
        part[part.len() / 2]
    };
    let (early, late) = (plain(&each[1..1001]), plain(&each[9000..10_000]));
    assert!(late * 100 <= early * 115, "{early} bytes for a superstep at first, {late} at the end");
    println!("a superstep: {early} bytes at first, {late} at the end; the first thousand {first}");

    let head = saver.get("t", "", None).await.expect("read").expect("a head");
    let channel: Arc<str> = "messages".into();
    let id = head.checkpoint.id;
    let saver = AnyCheckpointer::new(saver);
    let history =
        saver.delta_history("t", "", id, std::slice::from_ref(&channel)).await.expect("a history");
    let read = &history[&channel];
    println!("read back: {} writes and a whole value: {}", read.writes.len(), read.seed.is_some());
    // At most half of the messages is read one by one, and never more than there are supersteps without a whole value.
    assert!(read.writes.len() <= 5000, "{}", read.writes.len());
    assert_eq!(messages, (0..10_000).map(message).collect::<Vec<_>>());
}
