//! Items may have a time to live. Instead of waiting, the test moves the time at which they end.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

mod common;

use std::time::Duration;

use common::Database;
use superstep_checkpoint::{Expiry, PutItem, Search, Store, StoreOp, Value};
use superstep_postgres::PostgresStore;

async fn pass(database: &Database, minutes: i32) {
    let sql = format!("UPDATE store SET expires_at = expires_at - interval '{minutes} minutes'");
    database.client().await.batch_execute(&sql).await.unwrap();
}

#[tokio::test]
async fn stored_items_expire_by_the_clock_of_the_server() {
    let database = Database::new().await;
    let expiry = Expiry { default_ttl: Some(Duration::from_secs(3600)), refresh_on_read: false };
    let store = PostgresStore::connect(database.url()).await.unwrap().with_expiry(expiry);
    let at = vec!["n".to_owned()];
    store.put(&at, "default", 1.into()).await.unwrap();
    store.put_item(PutItem::new(&at, "short", 1).ttl(Duration::from_millis(20_500))).await.unwrap();
    store.put_item(PutItem::new(&at, "long", 1).ttl(Duration::from_secs(86_400))).await.unwrap();

    // Less than a minute is not no time at all, and restarts as a whole one.
    let get = StoreOp::Get { namespace: at.clone(), key: "short".into(), refresh: Some(true) };
    store.batch(vec![get]).await.unwrap();
    let client = database.client().await;
    let left = "SELECT extract(epoch FROM expires_at - now())::float8, ttl_minutes FROM store WHERE key = 'short'";
    let row = client.query_one(left, &[]).await.unwrap();
    assert!(row.get::<_, f64>(0) > 30.0 && row.get::<_, i32>(1) == 1, "{row:?}");

    pass(&database, 61).await;
    assert_eq!(store.get(&at, "default").await.unwrap(), None);
    assert_eq!(store.get(&at, "short").await.unwrap(), None);
    let found = store.search(Search::below(["n"]).refresh(true)).await.unwrap();
    assert_eq!(found.len(), 1);
    pass(&database, 1439).await;
    assert!(
        store.get(&at, "long").await.unwrap().is_some(),
        "finding it did not start its time anew"
    );
    assert_eq!(store.sweep().await.unwrap(), 2);
    pass(&database, 10).await;
    assert_eq!(store.sweep().await.unwrap(), 1);
    assert_eq!(store.sweep().await.unwrap(), 0);
    assert!(store.list_namespaces(&[], None).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_cannot_be_stored_is_refused_by_name() {
    let database = Database::new().await;
    let store = PostgresStore::connect(database.url()).await.unwrap();
    let at = vec!["n".to_owned()];
    for value in [Value::Bytes(vec![1]), Value::Float(f64::NAN)] {
        let error = store.put(&at, "k", value).await.unwrap_err().to_string();
        assert!(error.contains("item `k` is not JSON"), "{error}");
    }
    let error = store.put(&at, "k", "a\0b".into()).await.unwrap_err().to_string();
    assert!(error.contains("item `k`") && error.contains("NUL"), "{error}");
    let error = store.put(&at, "k\0", 1.into()).await.unwrap_err().to_string();
    assert!(error.contains("NUL"), "{error}");
    assert!(store.search(Search::below(["n"])).await.unwrap().is_empty());
}
