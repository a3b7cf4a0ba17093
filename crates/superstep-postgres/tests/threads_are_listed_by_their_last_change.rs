//! The list of threads is ordered by their heads, whichever program stored or deleted them. It is
//! kept by triggers that do not look at every checkpoint; here it is compared with the checkpoints
//! themselves. A database that is not ours to change has the same list, only slower.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

mod common;

use common::Database;
use superstep_checkpoint::{Checkpointer, ThreadQuery, ThreadStatus};
use superstep_contract::listing::{self, Outside, id, listed};
use superstep_postgres::PostgresSaver;
use tokio_postgres::Client;

/// As LangGraph stores and deletes.
struct Other(Client);

impl Other {
    async fn execute(&self, sql: &str) {
        self.0.batch_execute(sql).await.unwrap();
    }
}

impl Outside for Other {
    async fn store(&self, thread: &str, ns: &str, id: &str) {
        let sql = "INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, checkpoint, metadata)
            VALUES ($1, $2, $3, '{\"v\": 4}', '{\"source\": \"loop\", \"step\": 1}')
            ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id) DO UPDATE SET metadata = EXCLUDED.metadata";
        self.0.execute(sql, &[&thread, &ns, &id]).await.unwrap();
    }

    async fn delete_newest(&self, thread: &str) {
        let sql = "DELETE FROM checkpoints WHERE thread_id = $1 AND checkpoint_id = (
            SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = $1)";
        self.0.execute(sql, &[&thread]).await.unwrap();
    }

    async fn heads(&self) -> Vec<(String, String)> {
        let sql = "SELECT thread_id, max(checkpoint_id) AS head FROM checkpoints
            WHERE checkpoint_ns = '' GROUP BY thread_id ORDER BY head DESC, thread_id COLLATE \"C\"";
        let rows = self.0.query(sql, &[]).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }
}

#[tokio::test]
async fn whatever_was_stored_and_deleted() {
    for seed in 0..3 {
        let database = Database::new().await;
        let other = Other(database.client().await);
        listing::compare(&database.checkpointer().await, &other, seed).await;
    }
}

/// The list is not touched by supersteps that follow each other closely, which is what makes them cheap.
#[tokio::test]
async fn at_little_cost_for_most_supersteps() {
    let database = Database::new().await;
    let (_checkpointer, other) = (database.checkpointer().await, Other(database.client().await));
    let version = async || -> String {
        let sql = "SELECT xmin::text FROM superstep_threads WHERE thread_id = 'thread'";
        other.0.query_one(sql, &[]).await.unwrap().get(0)
    };
    other.store("thread", "", &id(0, 1)).await;
    let before = version().await;
    for nth in 2..42 {
        other.store("thread", "", &id(nth * 100_000, nth)).await;
    }
    assert_eq!(version().await, before, "nothing was written");
    other.store("thread", "", &id(1 << 24, 102)).await;
    assert_ne!(version().await, before);
}

/// Listing threads caches what was found at their heads. A writer that has not committed yet is invisible, and has to be
/// waited for: otherwise the cache would describe an outdated head.
#[tokio::test]
async fn what_is_kept_of_a_thread_is_not_older_than_its_head() {
    let database = Database::new().await;
    let (checkpointer, other) = (database.checkpointer().await, Other(database.client().await));
    let with = async |status| {
        let page = checkpointer.threads(ThreadQuery::new(5).status(status)).await.unwrap();
        page.threads.len()
    };
    other.store("thread", "", &id(0, 1)).await;
    other.execute("BEGIN").await;
    let due = "INSERT INTO checkpoints (thread_id, checkpoint_id, checkpoint, metadata) VALUES ('thread', $1,
        '{\"v\": 4, \"channel_values\": {\"branch:to:a\": null}, \"channel_versions\": {\"branch:to:a\": \"1\"}}',
        '{\"source\": \"loop\", \"step\": 2}')";
    other.0.execute(due, &[&id(1, 2)]).await.unwrap();
    assert_eq!(with(ThreadStatus::Done).await, 1, "nothing is committed");
    other.execute("COMMIT").await;
    assert_eq!(with(ThreadStatus::Done).await, 0);
    assert_eq!(with(ThreadStatus::Ready).await, 1);
    // The same for a write with the head.
    other.execute("BEGIN").await;
    let failed = "INSERT INTO checkpoint_writes (thread_id, checkpoint_id, task_id, idx, channel, type, blob)
        VALUES ('thread', $1, '11111111-1111-1111-1111-111111111111', -1, '__error__', 'null', '')";
    other.0.execute(failed, &[&id(1, 2)]).await.unwrap();
    assert_eq!(with(ThreadStatus::Ready).await, 1, "nothing is committed");
    other.execute("COMMIT").await;
    assert_eq!(with(ThreadStatus::Failed).await, 1);
    let kept = "SELECT verdict FROM superstep_threads";
    assert_eq!(other.0.query_one(kept, &[]).await.unwrap().get::<_, String>(0), "failed");
}

/// Threads that were there before the list, writers with another search path, and readers without permission to write.
#[tokio::test]
async fn in_a_database_of_somebody_else() {
    let database = Database::new().await;
    drop(database.checkpointer().await);
    let other = Other(database.client().await);
    let as_it_was = "DROP TABLE superstep_threads, superstep_tags, superstep_schema;
        DROP FUNCTION superstep_head_added, superstep_head_changed, superstep_heads_removed, superstep_writes_changed CASCADE";
    other.execute(as_it_was).await;
    for nth in 1..6 {
        other.store(&format!("thread {}", nth % 3), "", &id(nth * 30_000_000, nth)).await;
    }
    let walked = PostgresSaver::connect_existing(database.url()).await.unwrap();
    assert_eq!(listed(&walked).await, other.heads().await);

    let guest = format!("guest_{}", uuid::Uuid::new_v4().simple());
    let invite = format!(
        "CREATE ROLE {guest} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC;
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {guest}"
    );
    other.execute(&invite).await;
    let url = format!("{}?options=-c%20role%3D{guest}", database.url());
    let as_guest = PostgresSaver::connect(url).await.unwrap();
    assert_eq!(listed(&as_guest).await, other.heads().await);
    let there = "SELECT to_regclass('superstep_threads') IS NOT NULL";
    assert!(!other.0.query_one(there, &[]).await.unwrap().get::<_, bool>(0));

    let kept = database.checkpointer().await;
    assert_eq!(listed(&kept).await, other.heads().await);
    // A table of that name that only the guest sees is not the list.
    other.execute(&format!("SET ROLE {guest}")).await;
    other.execute("CREATE TEMP TABLE superstep_threads (thread_id text, moment text)").await;
    other.store("thread 6", "", &id(800_000_000, 8)).await;
    other.store("thread 6", "", &id(850_000_000, 8)).await;
    other.delete_newest("thread 6").await;
    other.execute("RESET ROLE; DROP TABLE pg_temp.superstep_threads").await;
    assert_eq!(listed(&kept).await, other.heads().await);
    assert_eq!(other.heads().await[0].0, "thread 6");
    drop(as_guest);
    other.execute(&format!("DROP OWNED BY {guest}; DROP ROLE {guest}")).await;

    // So is the list for writers that name the tables in full.
    other.execute("CREATE SCHEMA elsewhere; SET search_path TO elsewhere").await;
    let sql = "INSERT INTO public.checkpoints (thread_id, checkpoint_id, checkpoint, metadata)
        VALUES ('thread 7', $1, '{\"v\": 4}', '{\"source\": \"loop\", \"step\": 1}')";
    other.0.execute(sql, &[&id(900_000_000, 9)]).await.unwrap();
    other.execute("RESET search_path").await;
    assert_eq!(listed(&kept).await, other.heads().await);
    assert_eq!(other.heads().await[0].0, "thread 7");
}
