//! The tables, and how a connection is set up.

use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};
use superstep_checkpoint::Error;

use crate::alarms;
use crate::error::During;
use crate::options::{SqliteOptions, Synchronous};

/// LangGraph's tables, verbatim, for a file that has none.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS checkpoints (
    thread_id TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL DEFAULT '',
    checkpoint_id TEXT NOT NULL,
    parent_checkpoint_id TEXT,
    type TEXT,
    checkpoint BLOB,
    metadata BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
);
CREATE TABLE IF NOT EXISTS writes (
    thread_id TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL DEFAULT '',
    checkpoint_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    task_path TEXT NOT NULL DEFAULT '',
    idx INTEGER NOT NULL,
    channel TEXT NOT NULL,
    type TEXT,
    value BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
);
";

const CHECKPOINTS: [&str; 7] = [
    "thread_id",
    "checkpoint_ns",
    "checkpoint_id",
    "parent_checkpoint_id",
    "type",
    "checkpoint",
    "metadata",
];

/// Without `task_path`, which files of older versions do not have.
const WRITES: [&str; 8] =
    ["thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "type", "value"];

/// The version of what we add.
const OURS: i64 = 3;

/// The list of threads: when the head of each was stored, and what was found there.
///
/// - `moment`: the first ten characters of the id of the head, which stand for one and a half seconds. So few of many
///   supersteps have anything to do here.
/// - `verdict`: what [`ThreadInfo::verdict`](superstep_checkpoint::ThreadInfo::verdict) said of the
///   head, or nothing if it has changed since. Then listing threads reads the head and caches the
///   verdict. Further supersteps find it empty and change nothing.
/// - `superstep_tags`: what was attached to the head, to find threads by. As old as the verdict.
///
/// Triggers keep it up to date, so that it is correct whichever program writes.
///
/// No statement of a trigger can meet a conflict: the policy of the statement that fired it would
/// apply, and LangGraph inserts with `OR REPLACE`.
const LIST: &str = "
CREATE TABLE superstep_schema (v INTEGER PRIMARY KEY);
CREATE TABLE superstep_threads (
    thread_id TEXT PRIMARY KEY, moment TEXT NOT NULL, verdict TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE INDEX superstep_threads_by_verdict ON superstep_threads (verdict, moment DESC);
CREATE TABLE superstep_tags (
    thread_id TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, moment TEXT NOT NULL, PRIMARY KEY (thread_id, name)
) WITHOUT ROWID;
CREATE INDEX superstep_tags_by_value ON superstep_tags (name, value, moment DESC);
INSERT INTO superstep_threads (thread_id, moment)
    SELECT thread_id, substr(max(checkpoint_id), 1, 10) FROM checkpoints
    WHERE checkpoint_ns = '' GROUP BY thread_id;
CREATE TRIGGER superstep_head_added AFTER INSERT ON checkpoints
WHEN NEW.checkpoint_ns = '' AND NOT EXISTS (
    SELECT 1 FROM superstep_threads
    WHERE thread_id = NEW.thread_id AND moment >= substr(NEW.checkpoint_id, 1, 10) AND verdict = ''
) BEGIN
    UPDATE superstep_threads SET verdict = '', moment = max(moment, substr(NEW.checkpoint_id, 1, 10))
        WHERE thread_id = NEW.thread_id;
    UPDATE superstep_tags SET moment = substr(NEW.checkpoint_id, 1, 10)
        WHERE thread_id = NEW.thread_id AND moment < substr(NEW.checkpoint_id, 1, 10);
    INSERT INTO superstep_threads (thread_id, moment) SELECT NEW.thread_id, substr(NEW.checkpoint_id, 1, 10)
        WHERE NOT EXISTS (SELECT 1 FROM superstep_threads WHERE thread_id = NEW.thread_id);
END;
CREATE TRIGGER superstep_head_changed AFTER UPDATE ON checkpoints
WHEN NEW.checkpoint_ns = '' BEGIN
    UPDATE superstep_threads SET verdict = '' WHERE thread_id = NEW.thread_id AND verdict <> '';
END;
CREATE TRIGGER superstep_head_removed AFTER DELETE ON checkpoints
WHEN OLD.checkpoint_ns = '' AND NOT EXISTS (
    SELECT 1 FROM checkpoints WHERE thread_id = OLD.thread_id AND checkpoint_ns = '' AND checkpoint_id > OLD.checkpoint_id
) BEGIN
    DELETE FROM superstep_threads WHERE thread_id = OLD.thread_id;
    DELETE FROM superstep_tags WHERE thread_id = OLD.thread_id;
    INSERT INTO superstep_threads (thread_id, moment)
        SELECT thread_id, substr(checkpoint_id, 1, 10) FROM checkpoints
        WHERE thread_id = OLD.thread_id AND checkpoint_ns = ''
        ORDER BY checkpoint_id DESC LIMIT 1;
END;
CREATE TRIGGER superstep_write_added AFTER INSERT ON writes WHEN NEW.checkpoint_ns = '' BEGIN
    UPDATE superstep_threads SET verdict = '' WHERE thread_id = NEW.thread_id AND verdict <> '';
END;
CREATE TRIGGER superstep_write_changed AFTER UPDATE ON writes WHEN NEW.checkpoint_ns = '' BEGIN
    UPDATE superstep_threads SET verdict = '' WHERE thread_id = NEW.thread_id AND verdict <> '';
END;
CREATE TRIGGER superstep_write_removed AFTER DELETE ON writes WHEN OLD.checkpoint_ns = '' BEGIN
    UPDATE superstep_threads SET verdict = '' WHERE thread_id = OLD.thread_id AND verdict <> '';
END;
INSERT INTO superstep_schema VALUES (3);
";

/// Removes what earlier versions added.
const WITHOUT_LIST: &str = "
DROP TRIGGER superstep_head_added;
DROP TRIGGER superstep_head_removed;
DROP TABLE superstep_threads;
DROP TABLE superstep_schema;
";

/// Configures a connection; `name` is the database, for messages.
pub(crate) fn configure(db: &Connection, name: &str, options: &SqliteOptions) -> Result<(), Error> {
    let what = || format!("opening `{name}`");
    db.busy_timeout(options.busy_timeout).during(what())?;
    let synchronous = match options.synchronous {
        Synchronous::Full => "FULL",
        Synchronous::Normal => "NORMAL",
    };
    db.pragma_update(None, "synchronous", synchronous).during(what())?;
    // Where pages go that a savepoint may have to bring back; by default, a file.
    db.pragma_update(None, "temp_store", "memory").during(what())?;
    // In kibibytes. By default pages of one large commit are written to the log and read from it again before it ends.
    db.pragma_update(None, "cache_size", -32_768).during(what())?;
    db.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// Creates the tables, or checks existing ones. Several processes may do this at once.
pub(crate) fn set_up(db: &Connection, name: &str, options: &SqliteOptions) -> Result<(), Error> {
    in_transaction(db, name, options, make)
}

/// Turns on WAL, and runs `make` alone.
pub(crate) fn in_transaction(
    db: &Connection,
    name: &str,
    options: &SqliteOptions,
    make: fn(&Connection, &str) -> Result<(), Error>,
) -> Result<(), Error> {
    let what = || format!("setting up `{name}`");
    wal(db, options.busy_timeout).during(what())?;
    db.execute_batch("BEGIN IMMEDIATE").during(what())?;
    let done = make(db, name);
    let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = db.execute_batch(end).during(what());
    done.and(ended)
}

/// Checks the existing tables and creates none.
pub(crate) fn verify(db: &Connection, name: &str, _: &SqliteOptions) -> Result<(), Error> {
    let what = || format!("opening `{name}`");
    let sql = "SELECT count(*) FROM sqlite_schema WHERE name IN ('checkpoints', 'writes')";
    let tables: i64 = db.query_row(sql, [], |row| row.get(0)).during(what())?;
    let outdated = |why: &str| {
        Error::invalid(format_args!(
            "`{name}` {why}; let `SqliteSaver::open` or `superstep migrate` see to that"
        ))
    };
    if tables < 2 {
        return Err(outdated("has no tables for threads"));
    }
    check(db, name, "checkpoints", &CHECKPOINTS, &[])?;
    let writes = check(db, name, "writes", &WRITES, &["task_path"])?;
    if !writes.iter().any(|column| column == "task_path") {
        return Err(outdated(
            "was made by an older version, without places for the paths of tasks",
        ));
    }
    if has(db, "superstep_schema").during(what())? {
        check_version(db, name)?;
    }
    Ok(())
}

/// Whether the list of threads is there as this version keeps it. A file that was opened as it is may have none.
pub(crate) fn lists_threads(db: &Connection) -> rusqlite::Result<bool> {
    has(db, "superstep_threads_by_verdict")
}

/// Whether there is a table or an index of this name.
pub(crate) fn has(db: &Connection, name: &str) -> rusqlite::Result<bool> {
    db.prepare_cached("SELECT 1 FROM sqlite_schema WHERE name = ?1")?.exists([name])
}

/// Turning on WAL needs the file for itself for a moment, and SQLite does not wait for that on its own.
fn wal(db: &Connection, patience: Duration) -> rusqlite::Result<()> {
    let start = Instant::now();
    loop {
        let mode =
            db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match mode {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && start.elapsed() < patience =>
            {
                thread::sleep(Duration::from_millis(5));
            }
            // A database in memory answers `memory`, which is as good.
            other => return other.map(drop),
        }
    }
}

fn make(db: &Connection, name: &str) -> Result<(), Error> {
    let what = || format!("setting up `{name}`");
    db.execute_batch(TABLES).during(what())?;
    check(db, name, "checkpoints", &CHECKPOINTS, &[])?;
    let writes = check(db, name, "writes", &WRITES, &["task_path"])?;
    if !writes.iter().any(|column| column == "task_path") {
        let add = "ALTER TABLE writes ADD COLUMN task_path TEXT NOT NULL DEFAULT ''";
        db.execute_batch(add).during(what())?;
    }
    db.execute_batch(alarms::INDEX).during(what())?;
    if has(db, "superstep_schema").during(what())? {
        if check_version(db, name)? == OURS {
            return Ok(());
        }
        db.execute_batch(WITHOUT_LIST).during(what())?;
    }
    db.execute_batch(LIST).during(what())
}

fn check_version(db: &Connection, name: &str) -> Result<i64, Error> {
    let what = || format!("setting up `{name}`");
    let newest = "SELECT coalesce(max(v), 0) FROM superstep_schema";
    let v: i64 = db.query_row(newest, [], |row| row.get(0)).during(what())?;
    if v > OURS {
        return Err(Error::invalid(format_args!(
            "`{name}` was set up by a newer version (schema {v}, this one knows {OURS}); update superstep"
        )));
    }
    Ok(v)
}

/// The columns of a table, if it is the table we know.
fn check(
    db: &Connection,
    name: &str,
    table: &str,
    needed: &[&str],
    optional: &[&str],
) -> Result<Vec<String>, Error> {
    let what = || format!("setting up `{name}`");
    let mut columns = Vec::new();
    let mut unknown = None;
    let sql = "SELECT name, \"notnull\" AND dflt_value IS NULL FROM pragma_table_info(?1)";
    let mut statement = db.prepare(sql).during(what())?;
    let mut rows = statement.query([table]).during(what())?;
    while let Some(row) = rows.next().during(what())? {
        let column: String = row.get(0).during(what())?;
        let must_be_given: bool = row.get(1).during(what())?;
        let known = needed.contains(&column.as_str()) || optional.contains(&column.as_str());
        if must_be_given && !known {
            unknown = Some(column.clone());
        }
        columns.push(column);
    }
    let missing = needed.iter().find(|column| !columns.iter().any(|known| known == *column));
    let problem = match (missing, unknown) {
        (Some(column), _) => format!("has no column `{column}`, so it is of another kind"),
        (None, Some(column)) => format!("needs a value for column `{column}`, so it is newer"),
        (None, None) => return Ok(columns),
    };
    Err(Error::invalid(format_args!(
        "table `{table}` of `{name}` {problem} than this version knows; use another file, or update superstep"
    )))
}
