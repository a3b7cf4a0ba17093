//! Programs start together after a deploy, and each of them makes the tables if they are not there.
//! Nobody may fail, and nobody may take the tables of another writer for its own.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

mod common;

use common::{Database, Line, blob};
use futures_util::future::join_all;
use superstep_checkpoint::Checkpointer;
use superstep_postgres::PostgresSaver;

async fn steps(database: &Database) -> Vec<i32> {
    let sql = "SELECT v FROM checkpoint_migrations ORDER BY v";
    let rows = database.client().await.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn many_may_make_the_tables_at_once() {
    let database = Database::new().await;
    let url = database.url();
    let checkpointers =
        join_all((0..8).map(|_| tokio::spawn(PostgresSaver::connect(url.clone())))).await;
    for checkpointer in checkpointers {
        checkpointer.unwrap().unwrap();
    }
    assert_eq!(steps(&database).await, (0..10).collect::<Vec<_>>());
    let invalid = "SELECT count(*) FROM pg_index WHERE NOT indisvalid";
    let row = database.client().await.query_one(invalid, &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 0);
}

/// The program that made the tables may have been stopped after any step, also in the middle of building an index.
#[tokio::test]
async fn tables_that_were_half_made_are_finished() {
    let database = Database::new().await;
    let checkpointer = database.checkpointer().await;
    checkpointer.put(Line::new("t").then(&[("n", blob([1]))])).await.unwrap();
    let client = database.client().await;
    for reached in 0..9 {
        client
            .batch_execute(&format!("DELETE FROM checkpoint_migrations WHERE v > {reached}"))
            .await
            .unwrap();
        if reached == 5 {
            let unusable = "UPDATE pg_index SET indisvalid = false
                WHERE indexrelid = 'checkpoints_thread_id_idx'::regclass";
            client.batch_execute(unusable).await.unwrap();
        }
        let checkpointer = database.checkpointer().await;
        assert_eq!(steps(&database).await.len(), 10, "after step {reached}");
        assert!(checkpointer.get("t", "", None).await.unwrap().is_some());
    }
    let usable =
        "SELECT indisvalid FROM pg_index WHERE indexrelid = 'checkpoints_thread_id_idx'::regclass";
    assert!(client.query_one(usable, &[]).await.unwrap().get::<_, bool>(0));
}

#[tokio::test]
async fn a_newer_database_is_refused() {
    let database = Database::new().await;
    database.checkpointer().await;
    let newer = "INSERT INTO checkpoint_migrations (v) VALUES (12)";
    database.client().await.batch_execute(newer).await.unwrap();
    let error = PostgresSaver::connect(database.url()).await.unwrap_err().to_string();
    assert!(error.contains("step 12") && error.contains("newer version of superstep"), "{error}");
}

#[tokio::test]
async fn tables_that_keep_no_history_are_refused() {
    let database = Database::new().await;
    let shallow = "CREATE TABLE checkpoints (thread_id TEXT, checkpoint_ns TEXT, checkpoint JSONB, metadata JSONB)";
    database.client().await.batch_execute(shallow).await.unwrap();
    let error = PostgresSaver::connect(database.url()).await.unwrap_err().to_string();
    assert!(error.contains("ShallowPostgresSaver"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_at_once() {
    let url = "postgres://nobody@127.0.0.1:1/none";
    let error = PostgresSaver::connect(url).await.unwrap_err();
    let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    assert!(error.to_string().contains("PostgreSQL"), "{error}");
    assert!(cause.contains("connect"), "{cause}");
}
