//! The tables of checkpoints, step by step as the other engine makes them.

use superstep_checkpoint::Error;

use crate::db::Db;
use crate::failure::Failure;
use crate::migrate::{self, Plan};

/// Also the step with number 0.
const MIGRATIONS: &str = "CREATE TABLE IF NOT EXISTS checkpoint_migrations (v INTEGER PRIMARY KEY)";

const PLAN: Plan<'_> = Plan {
    table: "checkpoint_migrations",
    first: MIGRATIONS,
    steps: &[
        MIGRATIONS,
        "CREATE TABLE IF NOT EXISTS checkpoints (
            thread_id TEXT NOT NULL,
            checkpoint_ns TEXT NOT NULL DEFAULT '',
            checkpoint_id TEXT NOT NULL,
            parent_checkpoint_id TEXT,
            type TEXT,
            checkpoint JSONB NOT NULL,
            metadata JSONB NOT NULL DEFAULT '{}',
            PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
        )",
        "CREATE TABLE IF NOT EXISTS checkpoint_blobs (
            thread_id TEXT NOT NULL,
            checkpoint_ns TEXT NOT NULL DEFAULT '',
            channel TEXT NOT NULL,
            version TEXT NOT NULL,
            type TEXT NOT NULL,
            blob BYTEA,
            PRIMARY KEY (thread_id, checkpoint_ns, channel, version)
        )",
        "CREATE TABLE IF NOT EXISTS checkpoint_writes (
            thread_id TEXT NOT NULL,
            checkpoint_ns TEXT NOT NULL DEFAULT '',
            checkpoint_id TEXT NOT NULL,
            task_id TEXT NOT NULL,
            idx INTEGER NOT NULL,
            channel TEXT NOT NULL,
            type TEXT,
            blob BYTEA NOT NULL,
            PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
        )",
        "ALTER TABLE checkpoint_blobs ALTER COLUMN blob DROP NOT NULL",
        // A step the other engine once had and emptied; its number stays.
        "SELECT 1",
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS checkpoints_thread_id_idx ON checkpoints(thread_id)",
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS checkpoint_blobs_thread_id_idx ON checkpoint_blobs(thread_id)",
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS checkpoint_writes_thread_id_idx ON checkpoint_writes(thread_id)",
        "ALTER TABLE checkpoint_writes ADD COLUMN IF NOT EXISTS task_path TEXT NOT NULL DEFAULT ''",
    ],
};

/// Makes the tables, or brings them up to date.
pub(super) async fn prepare(db: &Db) -> Result<(), Error> {
    refuse_shallow(db).await?;
    migrate::migrate(db, PLAN).await
}

/// Checks the tables that are there, and makes none.
pub(super) async fn verify(db: &Db) -> Result<(), Error> {
    refuse_shallow(db).await?;
    migrate::verify(db, PLAN).await
}

/// Refuses tables of the same names that keep only the newest checkpoint of a thread: the steps would run on them, and
/// nothing would work afterwards.
async fn refuse_shallow(db: &Db) -> Result<(), Error> {
    let sql = "SELECT to_regclass('checkpoints') IS NOT NULL AND NOT EXISTS (
        SELECT FROM pg_attribute WHERE attrelid = to_regclass('checkpoints') AND attname = 'checkpoint_id'
    )";
    let is_shallow = async { db.connect().await?.query_typed_one(sql, &[]).await?.try_get(0) };
    let is_shallow: Result<bool, tokio_postgres::Error> = is_shallow.await;
    if is_shallow.map_err(|error| Failure::from(error).unreached())? {
        return Err(Error::invalid(
            "the table `checkpoints` is one of LangGraph's `ShallowPostgresSaver`, which keeps no history; use another \
             database or schema",
        ));
    }
    Ok(())
}
