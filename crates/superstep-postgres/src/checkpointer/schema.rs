//! The tables of checkpoints, step by step as LangGraph makes them, and the list of threads beside
//! them.

use superstep_checkpoint::Error;
use tokio_postgres::Row;

use crate::db::Db;
use crate::failure::Failure;
use crate::migrate::{self, Plan};

use super::threads::{Listing, head_of, names_of_threads};
use super::verdicts::lock_of;

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
        // A step LangGraph once had and emptied; its number stays.
        "SELECT 1",
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS checkpoints_thread_id_idx ON checkpoints(thread_id)",
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS checkpoint_blobs_thread_id_idx ON checkpoint_blobs(thread_id)",
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS checkpoint_writes_thread_id_idx ON checkpoint_writes(thread_id)",
        "ALTER TABLE checkpoint_writes ADD COLUMN IF NOT EXISTS task_path TEXT NOT NULL DEFAULT ''",
    ],
};

/// Also the first step of ours.
const OURS: &str = "CREATE TABLE IF NOT EXISTS superstep_schema (v INTEGER PRIMARY KEY)";

/// The list of threads: when each was last changed, and the verdict about its head.
///
/// - `moment`: the first ten characters of the id of the head, which stand for a second and a half. So few of many supersteps
///   have anything to do here.
/// - `verdict`: what was found at the head, or nothing if it has changed since; see [`verdicts`](super::verdicts). Supersteps
///   that follow each other find nothing, and change nothing.
/// - `superstep_tags`: what was attached to the head, to find threads by. As old as the verdict.
///
/// Triggers keep it up to date, so that it is correct whichever program writes.
///
/// The step counts itself, so that it is taken as a whole. The one before it made a list without verdicts.
///
/// The triggers run with the rights of their owner and a fixed search path, so that a role that may
/// write checkpoints needs no rights on the list. Temporary tables come last in the path, so that
/// no role can substitute its own table.
const LIST: Plan<'_> = Plan {
    table: "superstep_schema",
    first: OURS,
    steps: &[
        OURS,
        "SELECT 1",
        concat!(
            "DROP TABLE IF EXISTS superstep_threads;
            DROP FUNCTION IF EXISTS superstep_head_added CASCADE;
            DROP FUNCTION IF EXISTS superstep_heads_removed CASCADE;
            CREATE TABLE superstep_threads (
                thread_id TEXT PRIMARY KEY, moment TEXT COLLATE \"C\" NOT NULL, verdict TEXT COLLATE \"C\" NOT NULL DEFAULT ''
            );
            CREATE INDEX superstep_threads_by_verdict ON superstep_threads (verdict, moment DESC);
            CREATE TABLE superstep_tags (
                thread_id TEXT, name TEXT, value TEXT COLLATE \"C\" NOT NULL, moment TEXT COLLATE \"C\" NOT NULL,
                PRIMARY KEY (thread_id, name)
            );
            CREATE INDEX superstep_tags_by_value ON superstep_tags (name, value, moment DESC);
            CREATE FUNCTION superstep_head_added() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                PERFORM ", lock_of!("shared", "NEW.thread_id"), ";
                IF NOT EXISTS (
                    SELECT FROM superstep_threads
                    WHERE thread_id = NEW.thread_id AND moment >= left(NEW.checkpoint_id, 10) AND verdict = ''
                ) THEN
                    INSERT INTO superstep_threads AS t (thread_id, moment) VALUES (NEW.thread_id, left(NEW.checkpoint_id, 10))
                    ON CONFLICT (thread_id) DO UPDATE SET moment = greatest(t.moment, excluded.moment), verdict = '';
                    UPDATE superstep_tags SET moment = left(NEW.checkpoint_id, 10)
                    WHERE thread_id = NEW.thread_id AND moment < left(NEW.checkpoint_id, 10);
                END IF;
                RETURN NULL;
            END $$;
            CREATE FUNCTION superstep_head_changed() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                PERFORM ", lock_of!("shared", "NEW.thread_id"), ";
                UPDATE superstep_threads SET verdict = '' WHERE thread_id = NEW.thread_id AND verdict <> '';
                RETURN NULL;
            END $$;
            CREATE FUNCTION superstep_heads_removed() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                PERFORM ", lock_of!("shared", "g.thread_id"), "
                FROM (SELECT DISTINCT thread_id FROM changed WHERE checkpoint_ns = '') g;
                DELETE FROM superstep_tags t USING changed g WHERE t.thread_id = g.thread_id AND g.checkpoint_ns = '';
                DELETE FROM superstep_threads t USING changed g WHERE t.thread_id = g.thread_id AND g.checkpoint_ns = '';
                INSERT INTO superstep_threads AS t (thread_id, moment) SELECT g.thread_id, left(h.head, 10)
                FROM (SELECT DISTINCT thread_id FROM changed WHERE checkpoint_ns = '') g CROSS JOIN LATERAL ",
            head_of!("g.thread_id"),
            " h ON CONFLICT (thread_id) DO UPDATE SET moment = greatest(t.moment, excluded.moment), verdict = '';
                RETURN NULL;
            END $$;
            CREATE FUNCTION superstep_writes_changed() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                PERFORM ", lock_of!("shared", "g.thread_id"), "
                FROM (SELECT DISTINCT thread_id FROM changed WHERE checkpoint_ns = '') g;
                UPDATE superstep_threads SET verdict = '' WHERE verdict <> ''
                    AND thread_id = ANY(ARRAY(SELECT thread_id FROM changed WHERE checkpoint_ns = ''));
                RETURN NULL;
            END $$;
            DO $$
            DECLARE
                path text := (
                    SELECT string_agg(DISTINCT quote_ident(n.nspname), ', ') || ', pg_temp' FROM pg_class c
                    JOIN pg_namespace n ON n.oid = c.relnamespace
                    WHERE c.oid IN ('checkpoints'::regclass, 'superstep_threads'::regclass)
                );
                name text;
            BEGIN
                FOREACH name IN ARRAY ARRAY['head_added', 'head_changed', 'heads_removed', 'writes_changed'] LOOP
                    EXECUTE 'ALTER FUNCTION superstep_' || name || '() SECURITY DEFINER SET search_path = ' || path;
                END LOOP;
            END $$;
            CREATE TRIGGER superstep_head_added AFTER INSERT ON checkpoints FOR EACH ROW
                WHEN (NEW.checkpoint_ns = '') EXECUTE FUNCTION superstep_head_added();
            CREATE TRIGGER superstep_head_changed AFTER UPDATE ON checkpoints FOR EACH ROW
                WHEN (NEW.checkpoint_ns = '') EXECUTE FUNCTION superstep_head_changed();
            CREATE TRIGGER superstep_heads_removed AFTER DELETE ON checkpoints REFERENCING OLD TABLE AS changed
                FOR EACH STATEMENT EXECUTE FUNCTION superstep_heads_removed();
            CREATE TRIGGER superstep_writes_added AFTER INSERT ON checkpoint_writes REFERENCING NEW TABLE AS changed
                FOR EACH STATEMENT EXECUTE FUNCTION superstep_writes_changed();
            CREATE TRIGGER superstep_writes_changed AFTER UPDATE ON checkpoint_writes REFERENCING NEW TABLE AS changed
                FOR EACH STATEMENT EXECUTE FUNCTION superstep_writes_changed();
            CREATE TRIGGER superstep_writes_removed AFTER DELETE ON checkpoint_writes REFERENCING OLD TABLE AS changed
                FOR EACH STATEMENT EXECUTE FUNCTION superstep_writes_changed();",
            names_of_threads!(),
            "INSERT INTO superstep_threads (thread_id, moment)
            SELECT n.thread_id, left(h.head, 10) FROM names n CROSS JOIN LATERAL ",
            head_of!("n.thread_id"),
            " h;
            INSERT INTO superstep_schema VALUES (2)"
        ),
    ],
};

/// Creates or migrates the tables.
pub(super) async fn prepare(db: &Db) -> Result<Listing, Error> {
    refuse_shallow(db).await?;
    migrate::migrate(db, PLAN).await?;
    if let Err(error) = compress_quickly(db).await {
        tracing::debug!(%error, "values are compressed as before");
    }
    super::alarms::make_index(db).await?;
    if !migrate::is_done(db, LIST).await? {
        if !may_add(db).await? {
            return Ok(Listing::Walked);
        }
        migrate::migrate(db, LIST).await?;
    }
    Ok(Listing::Kept)
}

/// Checks the existing tables and creates none.
pub(super) async fn verify(db: &Db) -> Result<Listing, Error> {
    refuse_shallow(db).await?;
    migrate::verify(db, PLAN).await?;
    Ok(if migrate::is_done(db, LIST).await? { Listing::Read } else { Listing::Walked })
}

/// The columns of long values without a chosen compression, if we own them and the server supports
/// LZ4. Servers before 14 know no other way than their own, and have no column that says which.
const SLOWLY_COMPRESSED: &str = "SELECT c.oid::regclass::text, quote_ident(a.attname)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE (c.oid, a.attname) IN (
            (to_regclass('checkpoints'), 'checkpoint'), (to_regclass('checkpoint_blobs'), 'blob'),
            (to_regclass('checkpoint_writes'), 'blob')
        )
        AND to_jsonb(a) ->> 'attcompression' = '' AND pg_has_role(c.relowner, 'USAGE') AND NOT pg_is_in_recovery()
        AND EXISTS (
            SELECT FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY(enumvals)
        )";

/// Lets the server compress long values with LZ4 instead of its own way, which takes most of the
/// time of storing a checkpoint of a few hundred channels. Stored values stay as they are, and
/// readers and writers are not affected.
///
/// If a table is locked for longer than a moment, this is left for the next time.
async fn compress_quickly(db: &Db) -> Result<(), Error> {
    let client = db.connect().await.map_err(Failure::unreached)?;
    for row in db.in_time(client.query_typed(SLOWLY_COMPRESSED, &[])).await? {
        let (table, column): (&str, &str) = (named(&row, 0)?, named(&row, 1)?);
        // Statements that are sent together are one transaction.
        let change = format!(
            "SET LOCAL lock_timeout = '1s'; ALTER TABLE {table} ALTER COLUMN {column} SET COMPRESSION lz4"
        );
        db.in_time(client.batch_execute(&change)).await?;
    }
    Ok(())
}

fn named(row: &Row, at: usize) -> Result<&str, Error> {
    row.try_get(at).map_err(|error| Failure::from(error).unreached())
}

/// The answer to a question that has yes and no for answers.
async fn ask(db: &Db, sql: &str) -> Result<bool, Error> {
    let client = db.connect().await.map_err(Failure::unreached)?;
    let row = db.in_time(client.query_typed_one(sql, &[])).await?;
    row.try_get(0).map_err(|error| Failure::from(error).unreached())
}

/// Whether this role may add a table and triggers.
async fn may_add(db: &Db) -> Result<bool, Error> {
    let sql = "SELECT NOT pg_is_in_recovery() AND has_table_privilege('checkpoints', 'TRIGGER')
        AND has_table_privilege('checkpoint_writes', 'TRIGGER')
        AND coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)
        AND EXISTS (SELECT FROM pg_language WHERE lanname = 'plpgsql')";
    ask(db, sql).await
}

/// Refuses tables of the same names that keep only the newest checkpoint of a thread: the steps would run on them, and
/// nothing would work afterwards.
async fn refuse_shallow(db: &Db) -> Result<(), Error> {
    let sql = "SELECT to_regclass('checkpoints') IS NOT NULL AND NOT EXISTS (
        SELECT FROM pg_attribute WHERE attrelid = to_regclass('checkpoints') AND attname = 'checkpoint_id'
    )";
    if ask(db, sql).await? {
        return Err(Error::invalid(
            "the table `checkpoints` is one of LangGraph's `ShallowPostgresSaver`, which keeps no history; use another \
             database or schema",
        ));
    }
    Ok(())
}
