//! A thread of messages that grows by one with each superstep is stored at the cost of the messages and of a small
//! skeleton for each checkpoint, and is read back in few pieces. The other engine writes the whole list each time.

mod common;

use common::Database;
use superstep::prelude::*;
use superstep_postgres::PostgresSaver;

#[derive(State, Clone, Default)]
struct Chat {
    #[channel(reduce = Append)]
    messages: Vec<String>,
}

fn message(nth: usize) -> String {
    format!("{nth:0>200}")
}

async fn grown(saver: &PostgresSaver, supersteps: usize) -> Vec<String> {
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

/// The bytes of each checkpoint with its metadata, the values it has stored and the writes beside it, oldest first.
async fn bytes(database: &Database) -> Vec<u64> {
    let sql = "SELECT (octet_length(c.checkpoint::text) + octet_length(c.metadata::text)
        + coalesce((SELECT sum(octet_length(w.blob)) FROM checkpoint_writes w WHERE w.checkpoint_id = c.checkpoint_id), 0)
        + coalesce((SELECT sum(octet_length(b.blob)) FROM checkpoint_blobs b
            WHERE b.version = c.checkpoint -> 'channel_versions' ->> b.channel
            AND c.checkpoint -> 'updated_channels' ? b.channel), 0))::bigint
        FROM checkpoints c ORDER BY checkpoint_id";
    let rows = database.client().await.query(sql, &[]).await.expect("rows");
    rows.iter().map(|row| row.get::<_, i64>(0).unsigned_abs()).collect()
}

/// The bytes that were sent: the server shows JSON with spaces that nobody stored.
async fn all_bytes(database: &Database) -> u64 {
    let sql = "SELECT ((SELECT sum(octet_length(replace(replace((checkpoint || metadata)::text, ': ', ':'), ', ', ','))) FROM checkpoints)
        + (SELECT sum(octet_length(blob)) FROM checkpoint_writes)
        + (SELECT coalesce(sum(octet_length(blob)), 0) FROM checkpoint_blobs))::bigint";
    let row = database.client().await.query_one(sql, &[]).await.expect("a row");
    row.get::<_, i64>(0).unsigned_abs()
}

#[tokio::test]
async fn a_thousand_messages_take_little_more_than_they_are() {
    let database = Database::new().await;
    let saver = database.saver().await;
    assert_eq!(grown(&saver, 1000).await.len(), 1000);
    let (total, each) = (all_bytes(&database).await, bytes(&database).await);
    println!("1,000 supersteps: {total} bytes");
    assert!(total <= 1_200_000, "{total} bytes for 200,000 bytes of messages");
    let plain = |part: &[u64]| {
        let mut part = part.to_vec();
        part.sort_unstable();
        part[part.len() / 2]
    };
    let (early, late) = (plain(&each[1..101]), plain(&each[900..1000]));
    println!("a superstep: {early} bytes at first, {late} at the end");
    assert!(late * 100 <= early * 115, "{early} bytes for a superstep at first, {late} at the end");
}
