//! A thread of messages that grows by one with each superstep is stored at the cost of the messages
//! and of a small skeleton for each checkpoint, and is read back in few pieces, by either engine.
//! LangGraph writes the whole list each time.

mod common;

use common::Database;
use superstep_checkpoint::AnyCheckpointer;
use superstep_contract::graphs::long;

async fn grown(database: &Database, supersteps: usize) -> AnyCheckpointer {
    let checkpointer = AnyCheckpointer::new(database.unsynced_checkpointer().await);
    long::grow(&checkpointer, supersteps).await;
    checkpointer
}

/// The bytes of each checkpoint with its metadata, as the text the server gives, the values it has
/// stored and the writes next to it, oldest first.
async fn bytes(database: &Database) -> Vec<u64> {
    let sql = "SELECT (octet_length(c.checkpoint::text) + octet_length(c.metadata::text)
        + coalesce((SELECT sum(octet_length(w.blob)) FROM checkpoint_writes w WHERE w.thread_id = c.thread_id
            AND w.checkpoint_ns = c.checkpoint_ns AND w.checkpoint_id = c.checkpoint_id), 0)
        + coalesce((SELECT sum(octet_length(b.blob)) FROM checkpoint_blobs b WHERE b.thread_id = c.thread_id
            AND b.checkpoint_ns = c.checkpoint_ns AND b.version = c.checkpoint -> 'channel_versions' ->> b.channel
            AND c.checkpoint -> 'updated_channels' ? b.channel), 0))::bigint
        FROM checkpoints c ORDER BY checkpoint_id";
    let rows = database.client().await.query(sql, &[]).await.expect("rows");
    rows.iter().map(|row| row.get::<_, i64>(0).unsigned_abs()).collect()
}

/// What the server adds to the text of JSON when it keeps it: where each part begins, and gaps between them.
async fn overhead(database: &Database) -> i64 {
    let sql = "SELECT sum(pg_column_size(checkpoint) + pg_column_size(metadata)
        - octet_length(checkpoint::text) - octet_length(metadata::text))::bigint FROM checkpoints";
    database.client().await.query_one(sql, &[]).await.expect("a row").get(0)
}

#[tokio::test]
async fn a_thousand_messages_take_little_more_than_they_are() {
    let database = Database::new().await;
    let checkpointer = grown(&database, 1000).await;
    let total: u64 = bytes(&database).await.iter().sum();
    println!("1,000 supersteps: {total} bytes, and {} of JSONB", overhead(&database).await);
    println!("{:?}", long::loading(&checkpointer, 1000).await);
    long::assert_python_reads(["postgres", &database.url()], 1000);
    // A message names its class, as in LangGraph, which takes 68 of its 268 bytes.
    assert!(total <= 1_350_000, "{total} bytes for 268,000 bytes of messages");
}

#[tokio::test]
async fn ten_thousand_messages_take_ten_times_as_much() {
    let database = Database::new().await;
    let checkpointer = grown(&database, 10_000).await;
    long::assert_linear(&bytes(&database).await);
    long::assert_loads_quickly(&checkpointer, 10_000).await;
}
