//! Whatever stands in a row, reading or replacing it is at most an error of that call. The threads
//! that own the connections continue, for the same item too once it is replaced.

mod world;

use rusqlite::Connection;
use superstep_checkpoint::{PutItem, Search, Store, StoreOp, Value};
use superstep_sqlite::{SqliteSaver, SqliteStore};
use world::{Dir, Line};

fn put(key: &str) -> Vec<StoreOp> {
    vec![StoreOp::Put(PutItem::new(&["users".to_owned()], key, Value::from(1)))]
}

#[tokio::test]
async fn absurd_times_in_the_store() {
    let dir = Dir::new();
    let checkpointer = SqliteSaver::open(dir.file()).await.expect("a file");
    let store: SqliteStore = checkpointer.store().await.expect("a store");
    let raw = Connection::open(dir.file()).expect("a file");
    store.batch(put("good")).await.expect("stored");
    for column in ["created_at", "updated_at", "expires_at"] {
        for time in [
            "2026-01-01 18446744073709551615:00:00",
            "9999-12-31 99999999999999999:99:99",
            "2026-01-01T00:18446744073709551615:00Z",
            "9999-12-31 23:59:60.999999",
            "9999-12-31 23:59:59.999999",
            "no time",
        ] {
            store.batch(put("bad")).await.expect("stored");
            let sql = format!("UPDATE store SET {column} = ?1 WHERE key = 'bad'");
            raw.execute(&sql, [time]).expect("damaged");
            // More than there are threads that read.
            for _ in 0..4 {
                if let Err(error) = store.get(&["users".to_owned()], "bad").await {
                    let text = error.to_string();
                    assert!(text.contains("`bad`") && text.contains("time"), "{text}");
                }
                drop(store.search(Search::below(["users"])).await);
            }
            let good = store.get(&["users".to_owned()], "good").await.expect("read");
            assert_eq!(good.expect("an item").value, Value::from(1), "{column} {time}");
            store.batch(put("bad")).await.expect("what cannot be read can be replaced");
            let bad = store.get(&["users".to_owned()], "bad").await.expect("read");
            assert_eq!(bad.expect("an item").value, Value::from(1), "{column} {time}");
            store.sweep().await.expect("swept");
            Line::new(&format!("{column} {time}")).put(&checkpointer).await;
        }
    }
}
