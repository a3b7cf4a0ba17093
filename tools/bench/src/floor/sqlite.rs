//! The same rows in a file, with plain SQL.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::Mark;
use crate::failure::Failure;
use crate::protocol::Durability;
use crate::setting::{nanos, remove_database};

const CHECKPOINTS: &str =
    "thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata";
const WRITES: &str =
    "thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value";

/// What one superstep stores: the writes of its tasks, and the checkpoint that comes out.
#[derive(Debug, Default)]
pub(crate) struct Commit {
    checkpoints: Vec<Vec<Value>>,
    writes: Vec<Vec<Value>>,
}

impl Commit {
    fn rows(&self) -> impl Iterator<Item = &Vec<Value>> {
        self.checkpoints.iter().chain(&self.writes)
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for value in self.rows().flatten() {
            match value {
                Value::Null => {}
                Value::Integer(number) => bytes.extend(number.to_le_bytes()),
                Value::Real(number) => bytes.extend(number.to_le_bytes()),
                Value::Text(text) => bytes.extend(text.as_bytes()),
                Value::Blob(blob) => bytes.extend(blob),
            }
        }
        bytes
    }
}

pub(super) fn counts(commits: &[Commit]) -> (usize, usize, usize) {
    let rows = commits.iter().map(|commit| commit.rows().count()).sum();
    (commits.len(), rows, commits.iter().map(|commit| commit.bytes().len()).sum())
}

/// Where the tables end now.
pub(crate) fn mark(file: &Path) -> Result<Mark, Failure> {
    let db = Connection::open(file)?;
    let end = |table: &str| {
        let sql = format!("SELECT coalesce(max(rowid), 0) FROM {table}");
        db.query_row(&sql, [], |row| row.get(0))
    };
    Ok(Mark { checkpoints: end("checkpoints")?, writes: end("writes")? })
}

/// What was added since, in order. Writes come before the checkpoint that follows the one they belong to; those of the
/// last checkpoint are a superstep that has not ended.
pub(crate) fn read(file: &Path, mark: Mark) -> Result<Vec<Commit>, Failure> {
    let db = Connection::open(file)?;
    let mut writes: HashMap<_, Vec<_>> = HashMap::new();
    for row in rows(&db, WRITES, "writes", mark.writes)? {
        writes.entry(key(&row, 2)).or_default().push(row);
    }
    let mut commits = Vec::new();
    for row in rows(&db, CHECKPOINTS, "checkpoints", mark.checkpoints)? {
        let before = writes.remove(&key(&row, 3)).unwrap_or_default();
        commits.push(Commit { checkpoints: vec![row], writes: before });
    }
    let open = writes.into_values().map(|writes| Commit { checkpoints: Vec::new(), writes });
    commits.extend(open);
    Ok(commits)
}

/// The thread, the namespace and the checkpoint in a column.
fn key(row: &[Value], checkpoint: usize) -> String {
    format!("{:?} {:?} {:?}", row[0], row[1], row[checkpoint])
}

fn rows(
    db: &Connection,
    columns: &str,
    table: &str,
    after: i64,
) -> rusqlite::Result<Vec<Vec<Value>>> {
    let sql = format!("SELECT {columns} FROM {table} WHERE rowid > ?1 ORDER BY rowid");
    let mut statement = db.prepare(&sql)?;
    let width = statement.column_count();
    let rows = statement.query_map([after], |row| (0..width).map(|at| row.get(at)).collect())?;
    rows.collect()
}

/// Writes them to a new file, one transaction each, and says how long that took.
///
/// Commits of a run that stores meanwhile do not wait for the disk, so these do not either.
pub(super) fn write(
    file: &Path,
    durability: Durability,
    commits: &[Commit],
) -> Result<u64, Failure> {
    remove_database(file)?;
    let db = Connection::open(file)?;
    db.pragma_update(None, "journal_mode", "wal")?;
    let synchronous = if durability == Durability::Async { "normal" } else { "full" };
    db.pragma_update(None, "synchronous", synchronous)?;
    db.execute_batch(&format!(
        "CREATE TABLE checkpoints ({CHECKPOINTS}, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
         CREATE TABLE writes ({WRITES}, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));"
    ))?;
    let checkpoint =
        format!("INSERT INTO checkpoints ({CHECKPOINTS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
    let write =
        format!("INSERT INTO writes ({WRITES}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");
    let mut checkpoint = db.prepare(&checkpoint)?;
    let mut write = db.prepare(&write)?;
    let mut begin = db.prepare("BEGIN IMMEDIATE")?;
    let mut commit = db.prepare("COMMIT")?;
    let began = Instant::now();
    for rows in commits {
        begin.execute([])?;
        for row in &rows.writes {
            write.execute(params_from_iter(row))?;
        }
        for row in &rows.checkpoints {
            checkpoint.execute(params_from_iter(row))?;
        }
        commit.execute([])?;
    }
    Ok(nanos(began.elapsed()))
}
