//! The tables of the store, step by step as LangGraph makes them.

use rusqlite::Connection;
use superstep_checkpoint::Error;

use crate::error::During;
use crate::options::SqliteOptions;
use crate::schema;

const ITEMS: [&str; 5] = [
    "CREATE TABLE IF NOT EXISTS store (
        prefix text NOT NULL,
        key text NOT NULL,
        value text NOT NULL,
        created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
        updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
        PRIMARY KEY (prefix, key)
    )",
    "CREATE INDEX IF NOT EXISTS store_prefix_idx ON store (prefix)",
    "ALTER TABLE store ADD COLUMN expires_at TIMESTAMP",
    "ALTER TABLE store ADD COLUMN ttl_minutes REAL",
    "CREATE INDEX IF NOT EXISTS idx_store_expires_at ON store (expires_at) WHERE expires_at IS NOT NULL",
];

const VECTORS: [&str; 1] = ["CREATE TABLE IF NOT EXISTS store_vectors (
        prefix text NOT NULL,
        key text NOT NULL,
        field_name text NOT NULL,
        embedding BLOB,
        created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
        updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
        PRIMARY KEY (prefix, key, field_name),
        FOREIGN KEY (prefix, key) REFERENCES store(prefix, key) ON DELETE CASCADE
    )"];

/// Makes a file ready that is opened for a store. Several processes may do this at once.
pub(crate) fn set_up(db: &Connection, name: &str, options: &SqliteOptions) -> Result<(), Error> {
    schema::in_transaction(db, name, options, items)
}

/// The tables of items, in a transaction that is open.
pub(super) fn items(db: &Connection, name: &str) -> Result<(), Error> {
    take_steps(db, name, "store_migrations", &ITEMS)
}

/// The table of vectors, in a transaction that is open.
pub(super) fn vectors(db: &Connection, name: &str) -> Result<(), Error> {
    take_steps(db, name, "vector_migrations", &VECTORS)
}

fn take_steps(db: &Connection, name: &str, table: &str, steps: &[&str]) -> Result<(), Error> {
    let what = || format!("setting up the store in `{name}`");
    let first = format!("CREATE TABLE IF NOT EXISTS {table} (v INTEGER PRIMARY KEY)");
    db.execute_batch(&first).during(what())?;
    let last = format!("SELECT coalesce(max(v), -1) FROM {table}");
    let taken: i64 = db.query_row(&last, [], |row| row.get(0)).during(what())?;
    let known = i64::try_from(steps.len()).map_err(Error::invalid)?.saturating_sub(1);
    if taken > known {
        return Err(Error::invalid(format_args!(
            "the store in `{name}` was set up by a newer version (`{table}` has step {taken}, and the last one known here \
             is {known}); update superstep"
        )));
    }
    for (number, step) in (0..).zip(steps).filter(|(number, _)| *number > taken) {
        db.execute_batch(step).during(what())?;
        let count = format!("INSERT INTO {table} (v) VALUES ({number})");
        db.execute_batch(&count).during(what())?;
    }
    Ok(())
}
