//! Long values are compressed with LZ4, in tables of ours and in those of LangGraph. What somebody
//! has said about them is left as it is, and nobody who is busy with a table is waited for.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

mod common;

use common::{Database, Line, blob};
use superstep_checkpoint::Checkpointer;
use superstep_postgres::PostgresSaver;
use tokio_postgres::Client;

/// How each of the columns is compressed: `l` for LZ4, `p` for the server's own way, and nothing if nobody has said.
async fn columns(client: &Client) -> Vec<String> {
    let sql = "SELECT a.attrelid::regclass || '.' || a.attname || ' ' || a.attcompression::text FROM pg_attribute a
        WHERE (a.attrelid, a.attname) IN (('checkpoints'::regclass, 'checkpoint'),
            ('checkpoint_blobs'::regclass, 'blob'), ('checkpoint_writes'::regclass, 'blob'))
        ORDER BY 1";
    client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

/// Whether the server can do it. If not, says so.
async fn knows_lz4(client: &Client) -> bool {
    let sql = "SELECT FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY(enumvals)";
    let knows = !client.query(sql, &[]).await.unwrap().is_empty();
    if !knows {
        println!("NOT RUN: the server does not know LZ4");
    }
    knows
}

const ALL: [&str; 3] =
    ["checkpoint_blobs.blob l", "checkpoint_writes.blob l", "checkpoints.checkpoint l"];

#[tokio::test]
async fn in_new_tables() {
    let database = Database::new().await;
    let client = database.client().await;
    if !knows_lz4(&client).await {
        return;
    }
    let checkpointer = database.checkpointer().await;
    assert_eq!(columns(&client).await, ALL);
    let long = vec!["to be or not to be"; 1000];
    checkpointer.put(Line::new("t").then(&[("said", blob(&long))])).await.unwrap();
    let sql = "SELECT pg_column_compression(blob) FROM checkpoint_blobs";
    assert_eq!(client.query_one(sql, &[]).await.unwrap().get::<_, String>(0), "lz4");
    let stored = checkpointer.get("t", "", None).await.unwrap().unwrap();
    assert_eq!(stored.checkpoint.value("said"), Some(&blob(&long)));
}

/// What is there stays as it is, and is read as before.
#[tokio::test]
async fn in_tables_that_were_there() {
    let database = Database::new().await;
    let client = database.client().await;
    if !knows_lz4(&client).await {
        return;
    }
    let checkpointer = database.checkpointer().await;
    let set = |kind: &str| {
        format!(
            "ALTER TABLE checkpoints ALTER COLUMN checkpoint SET COMPRESSION {kind};
            ALTER TABLE checkpoint_blobs ALTER COLUMN blob SET COMPRESSION {kind}"
        )
    };
    client.batch_execute(&set("pglz")).await.unwrap();
    let long = vec!["to be or not to be"; 1000];
    checkpointer.put(Line::new("t").then(&[("said", blob(&long))])).await.unwrap();
    database.checkpointer().await;
    let said = ["checkpoint_blobs.blob p", "checkpoint_writes.blob l", "checkpoints.checkpoint p"];
    assert_eq!(columns(&client).await, said, "what somebody has said is left as it is");

    client.batch_execute(&set("default")).await.unwrap();
    PostgresSaver::connect_existing(database.url()).await.unwrap();
    assert_ne!(columns(&client).await, ALL, "opening as it is changes nothing");
    let checkpointer = database.checkpointer().await;
    assert_eq!(columns(&client).await, ALL);
    let stored = checkpointer.get("t", "", None).await.unwrap().unwrap();
    assert_eq!(stored.checkpoint.value("said"), Some(&blob(&long)));
}

#[tokio::test]
async fn unless_somebody_is_busy_with_them() {
    let database = Database::new().await;
    let (client, busy) = (database.client().await, database.client().await);
    if !knows_lz4(&client).await {
        return;
    }
    drop(database.checkpointer().await);
    let undo = "ALTER TABLE checkpoint_writes ALTER COLUMN blob SET COMPRESSION default";
    client.batch_execute(undo).await.unwrap();
    busy.batch_execute("BEGIN; LOCK TABLE checkpoint_writes IN ROW EXCLUSIVE MODE").await.unwrap();
    let checkpointer = database.checkpointer().await;
    assert_ne!(columns(&client).await, ALL);
    assert!(checkpointer.get("t", "", None).await.unwrap().is_none(), "it works all the same");
    busy.batch_execute("ROLLBACK").await.unwrap();
    drop(database.checkpointer().await);
    assert_eq!(columns(&client).await, ALL, "the next one has done it");
}
