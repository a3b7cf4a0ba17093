//! The cases every store is held to. Instead of waiting, the times at which items end are moved.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::Database;
use superstep_checkpoint::AnyStore;
use superstep_contract::stores::{self, Subject};
use superstep_postgres::PostgresStore;

#[tokio::test(flavor = "multi_thread")]
async fn the_postgres_store_keeps_every_promise() {
    let database = Arc::new(Database::new().await);
    let has_vectors = database.has_vectors().await;
    let report = stores::run(|| async {
        let url = database.schema().await;
        let store = PostgresStore::connect(&url).await.unwrap();
        let other = PostgresStore::connect(&url).await.unwrap();
        let plain = store.clone();
        let pass = move |time: Duration| {
            let url = url.clone();
            async move {
                let client = common::client(&url).await;
                let seconds = time.as_secs();
                let sql = format!(
                    "UPDATE store SET expires_at = expires_at - interval '{seconds} seconds'"
                );
                client.batch_execute(&sql).await.unwrap();
            }
        };
        let subject = Subject::new(AnyStore::new(store), AnyStore::new(other)).passing(pass);
        if !has_vectors {
            return subject;
        }
        subject.indexed(move |index| {
            let store = plain.clone();
            async move { AnyStore::new(store.with_index(index).await.unwrap()) }
        })
    })
    .await;
    report.assert_passed();
}
