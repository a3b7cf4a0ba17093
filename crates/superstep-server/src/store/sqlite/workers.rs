use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, params};
use uuid::Uuid;

use super::{Result, SqliteStore, runs};
use crate::store::Answer;
use crate::store::workers::WorkerTable;
use crate::time::Micros;

pub(super) const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS server_workers (
    worker_id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL
) WITHOUT ROWID;
";

/// How often processes on a file look for runs of those that died. Looking reads nothing but memory if nothing has changed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// This process, among those that use the file.
///
/// It holds a lock on a file of its own, which the system releases when it dies in whatever way. So processes on one machine
/// know at once that it is dead, without waiting for the end of its lease.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) name: String,
    database: Option<PathBuf>,
    /// Nothing if the file system has no locks; then the lease decides alone.
    _lock: Option<File>,
}

impl Process {
    pub(super) fn new(database: Option<&Path>) -> Self {
        let name = Uuid::now_v7().to_string();
        // Others may know the file by another path.
        let database = database.map(|file| file.canonicalize().unwrap_or_else(|_| file.to_owned()));
        let lock = database.as_deref().and_then(|database| {
            let file = File::create(lock_file(database, &name)).ok()?;
            file.try_lock().ok()?;
            Some(file)
        });
        Self { name, database, _lock: lock }
    }

    /// Whether a process that once held its lock does not any more.
    pub(super) fn has_left(&self, name: &str) -> bool {
        let Some(database) = self.database.as_deref().filter(|_| name != self.name) else {
            return false;
        };
        match File::open(lock_file(database, name)) {
            Ok(file) => file.try_lock().is_ok(),
            Err(error) => error.kind() == ErrorKind::NotFound,
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(database) = &self.database {
            // If it stays, whoever comes next removes it.
            let _ = std::fs::remove_file(lock_file(database, &self.name));
        }
    }
}

fn lock_file(database: &Path, name: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push("-worker-");
    path.push(name);
    path.into()
}

fn beat(connection: &Connection, name: &str, lease: Duration) -> Result<()> {
    let sql = "INSERT INTO server_workers (worker_id, expires_at) VALUES (?1, ?2)
        ON CONFLICT (worker_id) DO UPDATE SET expires_at = ?2";
    let until = Micros::now().plus_seconds(lease.as_secs_f64());
    connection.prepare_cached(sql)?.execute(params![name, until.0])?;
    Ok(())
}

fn is_alive(connection: &Connection, name: &str) -> Result<bool> {
    let sql = "SELECT 1 FROM server_workers WHERE worker_id = ? AND expires_at > ?";
    let values = params![name, Micros::now().0];
    let found = connection.prepare_cached(sql)?.query_row(values, |_| Ok(())).optional()?;
    Ok(found.is_some())
}

fn take_back(connection: &Connection, process: &Process, attempts_max: u32) -> Result<usize> {
    // A process that left takes its row with it if it can.
    let mut statement = connection.prepare_cached("SELECT worker_id FROM server_workers")?;
    let known = statement.query_map([], |row| row.get::<_, String>(0))?;
    for name in known.collect::<std::result::Result<Vec<_>, _>>()? {
        if process.has_left(&name) {
            forget(connection, &name)?;
            if let Some(database) = &process.database {
                let _ = std::fs::remove_file(lock_file(database, &name));
            }
        }
    }
    // What cannot be read is not taken.
    let is_dead = |name: &str| is_alive(connection, name).is_ok_and(|alive| !alive);
    runs::recover(connection, is_dead, attempts_max)
}

fn forget(connection: &Connection, name: &str) -> Result<()> {
    let sql = "DELETE FROM server_workers WHERE worker_id = ?";
    connection.prepare_cached(sql)?.execute([name])?;
    Ok(())
}

impl WorkerTable for SqliteStore {
    fn worker(&self) -> &str {
        &self.process.name
    }

    #[expect(clippy::arithmetic_side_effects, reason = "it is not divided by zero")]
    fn look_every(&self, lease: Duration) -> Duration {
        LOOK_EVERY.min(lease / 3)
    }

    fn beat(&self, lease: Duration) -> Answer<'_, ()> {
        let process = self.process.clone();
        self.call(move |connection| beat(connection, &process.name, lease))
    }

    fn take_back(&self, attempts_max: u32) -> Answer<'_, usize> {
        let process = self.process.clone();
        self.call(move |connection| take_back(connection, &process, attempts_max))
    }

    fn leave(&self) -> Answer<'_, ()> {
        let process = self.process.clone();
        self.call(move |connection| forget(connection, &process.name))
    }
}
