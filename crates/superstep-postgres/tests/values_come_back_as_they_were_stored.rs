//! Values stand in the checkpoint or in rows, depending on what they are, and must come back with the same bytes from
//! either. JSON as PostgreSQL keeps it changes some numbers, and cannot hold NUL.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

mod common;

use common::{Database, Line, blob};
use superstep_checkpoint::{Blob, Checkpointer, Tag};

fn values() -> Vec<(&'static str, Blob)> {
    vec![
        ("null", Blob::null()),
        ("true", blob(true)),
        ("small", blob(-5)),
        ("great", blob(u64::MAX)),
        ("least", blob(i64::MIN)),
        ("tenth", blob(0.1)),
        ("whole float", blob(3.0)),
        ("minus zero", blob(-0.0)),
        ("nan", blob(f64::NAN)),
        ("infinity", blob(f64::INFINITY)),
        ("1e22", blob(1e22)),
        ("5e-324", blob(5e-324)),
        ("text", blob("Grüße \u{1F600} \\u0000")),
        ("nul", blob("a\0b")),
        ("long", blob("x".repeat(100_000))),
        ("list", blob(["a", "b"])),
        ("bytes", Blob::new(Tag::Bytes, [0, 255])),
        ("bytearray", Blob::new(Tag::ByteArray, [1])),
        ("json", Blob::new(Tag::Json, *b"[1]")),
        ("unknown", Blob::new(Tag::from("msgpack+aes"), [1, 2, 3])),
        ("snapshot", Blob::new(Tag::Msgpack, [0xc7, 3, 7, 0x92, 1, 2])),
        ("foreign", Blob::new(Tag::Msgpack, [0xc7, 3, 5, 0x92, 1, 2])),
        ("", blob("a channel without a name")),
    ]
}

#[tokio::test]
async fn values_come_back_as_they_were_stored() {
    let database = Database::new().await;
    let checkpointer = database.checkpointer().await;
    let mut line = Line::new("t");
    let first = line.then(&values());
    checkpointer.put(first.clone()).await.unwrap();
    let stored = checkpointer.get("t", "", None).await.unwrap().unwrap();
    assert_eq!(stored.checkpoint, first.checkpoint);
    assert_eq!(stored.metadata, first.metadata);

    // The second checkpoint changes one channel and shares the others with the first.
    let second = line.then(&[("small", blob(6))]);
    checkpointer.put(second.clone()).await.unwrap();
    let stored = checkpointer.get("t", "", None).await.unwrap().unwrap();
    assert_eq!(stored.checkpoint, second.checkpoint);
    assert_eq!(stored.parent, Some(first.checkpoint.id));
    let rows = "SELECT count(*) FROM checkpoint_blobs WHERE channel = 'long'";
    let row = database.client().await.query_one(rows, &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 1, "long text was stored again although it had not changed");
}

/// A checkpoint LangGraph wrote has long text in itself and no row for it. The next one, in which
/// it has not changed, needs the row.
#[tokio::test]
async fn text_the_other_engine_kept_in_the_checkpoint_is_not_lost() {
    let database = Database::new().await;
    let checkpointer = database.checkpointer().await;
    let mut line = Line::new("t");
    let first = line.then(&[("long", blob("x".repeat(5000))), ("n", blob(1))]);
    checkpointer.put(first).await.unwrap();
    let as_the_other = "WITH gone AS (DELETE FROM checkpoint_blobs)
        UPDATE checkpoints SET checkpoint = jsonb_set(checkpoint, '{channel_values,long}', to_jsonb(repeat('x', 5000)))";
    database.client().await.batch_execute(as_the_other).await.unwrap();
    for n in 2..4 {
        let next = line.then(&[("n", blob(n))]);
        checkpointer.put(next.clone()).await.unwrap();
        let stored = checkpointer.get("t", "", None).await.unwrap().unwrap();
        assert_eq!(stored.checkpoint, next.checkpoint);
    }
}

#[tokio::test]
async fn a_checkpoint_that_is_put_again_is_replaced_with_all_its_values() {
    let database = Database::new().await;
    let checkpointer = database.checkpointer().await;
    let mut line = Line::new("t");
    let first = line.then(&[("a", blob([1])), ("b", blob(1)), ("c", blob([1]))]);
    checkpointer.put(first.clone()).await.unwrap();
    let mut again = first.clone();
    let values = [("a", blob([2])), ("b", blob([2])), ("c", blob(2))];
    for (channel, value) in values {
        again.checkpoint.channel_values.insert_mut(channel.into(), value);
    }
    checkpointer.put(again.clone()).await.unwrap();
    let stored = checkpointer.get("t", "", None).await.unwrap().unwrap();
    assert_eq!(stored.checkpoint, again.checkpoint);
}

#[tokio::test]
async fn what_postgresql_cannot_store_is_refused_by_name() {
    let database = Database::new().await;
    let checkpointer = database.checkpointer().await;
    let put = Line::new("a\0b").next(&[("n", blob(1))]);
    let error = checkpointer.put(put).await.unwrap_err().to_string();
    assert!(error.contains("thread \"a\\0b\" contains NUL"), "{error}");
    assert!(checkpointer.get("a\0b", "", None).await.unwrap().is_none());
    checkpointer.delete_thread("a\0b").await.unwrap();

    let error =
        checkpointer.put(Line::new("t").next(&[("c\0", blob(1))])).await.unwrap_err().to_string();
    assert!(error.contains("channel \"c\\0\" contains NUL"), "{error}");

    let mut put = Line::new("t").next(&[]);
    put.metadata.extra.insert("note".to_owned(), vec!["a\0b"].into());
    let error = checkpointer.put(put).await.unwrap_err().to_string();
    assert!(error.contains("metadata for thread `t`") && error.contains("NUL"), "{error}");
}
