//! The writing thread.

use std::fs::OpenOptions;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use superstep_checkpoint::Error;

use crate::error::During;
use crate::log::Log;
use crate::worker::{Fault, Job, Purpose, Written, read};

/// The maximum number of requests in one commit. Beyond that the first would wait for the last
/// without gain.
const BATCH_MAX: usize = 512;
/// How long the thread polls for the next request before it sleeps. A run submits the next
/// superstep some 100 microseconds after it was woken up, and waking a sleeping thread takes half
/// as long again.
const ALERT: Duration = Duration::from_micros(200);
/// How long the writer is idle before unsynced commits are synced.
const REST: Duration = Duration::from_millis(10);
/// The maximum time before a commit is synced under constant load.
const BEHIND_MAX: Duration = Duration::from_millis(100);

/// The durability that a job needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Survives {
    /// This process, and a moment.
    Process,
    Machine,
}

/// Commits jobs, and tracks how much is synced to the disk.
pub(crate) struct Writer<'a> {
    db: &'a Connection,
    /// SQLite's log; `None` for a database in memory.
    log: Option<Log>,
    /// The file of the log; `None` if how far commits get is not ours to change.
    file: Option<PathBuf>,
    /// Whether this thread is awake.
    awake: Arc<AtomicBool>,
    fault: Fault,
    /// The current durability of commits.
    reach: Survives,
    /// The time of the first unsynced commit.
    behind: Option<Instant>,
}

impl<'a> Writer<'a> {
    /// For a connection whose commits are synced if there is a `file`.
    pub(crate) fn new(db: &'a Connection, Written { log, file, awake, fault }: Written) -> Self {
        Self { db, log, file, awake, fault, reach: Survives::Machine, behind: None }
    }

    /// Runs jobs until the channel is closed.
    pub(crate) fn serve(mut self, jobs: &Receiver<Box<dyn Job>>) {
        while let Some(first) = self.next(jobs) {
            let more = std::iter::from_fn(|| jobs.try_recv().ok()).take(BATCH_MAX - 1);
            let batch = std::iter::once(first).chain(more).filter(|job| !job.is_abandoned());
            // A read must not see uncommitted changes.
            let (looks, changes): (Vec<_>, Vec<_>) =
                batch.partition(|job| job.purpose() == Purpose::Look);
            looks.into_iter().for_each(|look| read(self.db, look));
            if !changes.is_empty() {
                self.commit_together(changes);
                if let Some(log) = &mut self.log {
                    log.committed(self.db);
                }
            }
        }
        self.catch_up();
    }

    /// The next request. Polls first: a run submits its next superstep sooner than a sleeping
    /// thread wakes up.
    fn next(&mut self, jobs: &Receiver<Box<dyn Job>>) -> Option<Box<dyn Job>> {
        match look_out(jobs) {
            Ok(job) => return Some(job),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return None,
        }
        self.awake.store(false, Ordering::Relaxed);
        let next = self.sleep(jobs);
        self.awake.store(true, Ordering::Relaxed);
        next
    }

    /// Waits for the next request, however long that takes.
    fn sleep(&mut self, jobs: &Receiver<Box<dyn Job>>) -> Option<Box<dyn Job>> {
        if self.behind.is_some() {
            match jobs.recv_timeout(REST) {
                Ok(job) => return Some(job),
                Err(RecvTimeoutError::Timeout) => self.catch_up(),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        jobs.recv().ok()
    }

    /// Syncs committed data to the disk. If that fails, the next write or close reports it, and the
    /// next commit must sync.
    fn catch_up(&mut self) {
        let (Some(_), Some(file)) = (self.behind, &self.file) else { return };
        // No lock of SQLite's is on its log, so nothing is lost when this is closed.
        let opened = OpenOptions::new().write(true).open(file);
        match opened.and_then(|file| file.sync_data()) {
            Ok(()) => self.behind = None,
            Err(error) => {
                let what = format!(
                    "what was committed before cannot be brought to the disk through `{}`, and may be lost if the machine stops",
                    file.display()
                );
                self.fault.set(Error::backend(what, error));
            }
        }
    }

    /// Runs jobs in one transaction.
    ///
    /// Savepoints would cost as much as the jobs, and a job that fails has mostly changed nothing before. If one has, all of
    /// them run again, each apart.
    fn commit_together(&mut self, mut jobs: Vec<Box<dyn Job>>) {
        let db = self.db;
        if let Some(fault) = self.fault.take() {
            return finish(jobs, Some(&fault));
        }
        if let Err(error) = self.reach(&jobs).and_then(|()| begin(db)) {
            return finish(jobs, Some(&error));
        }
        if jobs.iter_mut().all(|job| ran_whole(db, job.as_mut())) {
            let lost = commit(db);
            self.note(lost.is_none());
            return finish(jobs, lost.as_ref());
        }
        undo(db);
        match &jobs[..] {
            // Only this job is rolled back.
            [_] => finish(jobs, None),
            _ => {
                let mut waiting = jobs.into_iter();
                while waiting.len() > 0 {
                    commit_apart(db, &mut waiting);
                }
                // Some of it may be synced already, which costs only another sync.
                self.note(false);
            }
        }
    }

    /// Sets the durability that these jobs need.
    fn reach(&mut self, jobs: &[Box<dyn Job>]) -> Result<(), Error> {
        let overdue = self.behind.is_some_and(|since| since.elapsed() >= BEHIND_MAX);
        let lasting = Purpose::Change(Survives::Machine);
        let lasting = jobs.iter().any(|job| job.purpose() == lasting);
        let (reach, synchronous) = match overdue || lasting {
            true => (Survives::Machine, "FULL"),
            false => (Survives::Process, "NORMAL"),
        };
        if self.file.is_some() && self.reach != reach {
            let set = self.db.pragma_update(None, "synchronous", synchronous);
            set.during("writing to the database")?;
            self.reach = reach;
        }
        Ok(())
    }

    /// Records a commit. A synced commit syncs everything before it in the WAL.
    fn note(&mut self, committed: bool) {
        match self.reach {
            Survives::Machine if committed => self.behind = None,
            Survives::Process => drop(self.behind.get_or_insert_with(Instant::now)),
            Survives::Machine => {}
        }
    }
}

/// The next request, if it comes within the polling time.
fn look_out(jobs: &Receiver<Box<dyn Job>>) -> Result<Box<dyn Job>, TryRecvError> {
    let since = Instant::now();
    loop {
        match jobs.try_recv() {
            Err(TryRecvError::Empty) if since.elapsed() < ALERT => thread::yield_now(),
            next => return next,
        }
    }
}

/// Runs a job. Returns whether it had all its effects or none, with the transaction intact.
fn ran_whole(db: &Connection, job: &mut dyn Job) -> bool {
    let before = db.total_changes();
    job.run(db) || db.total_changes() == before && !db.is_autocommit()
}

/// Runs jobs in one transaction, each in a savepoint, until none is left or the transaction is
/// lost.
fn commit_apart(db: &Connection, waiting: &mut std::vec::IntoIter<Box<dyn Job>>) {
    if let Err(error) = begin(db) {
        return finish(waiting, Some(&error));
    }
    let mut done = Vec::with_capacity(waiting.len());
    for mut job in waiting.by_ref() {
        let ran = apart(db, || job.run(db), |succeeded| *succeeded);
        done.push(job);
        // A full disk, for example, rolls the whole transaction back; later jobs get a new one.
        if let Err(lost) = ran {
            undo(db);
            return finish(done, Some(&lost));
        }
    }
    let lost = commit(db);
    finish(done, lost.as_ref());
}

/// Runs a closure in a savepoint, and rolls it back unless the result is to be kept.
///
/// # Errors
/// The transaction is unusable.
pub(crate) fn apart<T>(
    db: &Connection,
    work: impl FnOnce() -> T,
    keep: impl FnOnce(&T) -> bool,
) -> Result<T, Error> {
    let what = "writing to the database";
    execute_cached(db, "SAVEPOINT job").during(what)?;
    let done = work();
    if !keep(&done) {
        execute_cached(db, "ROLLBACK TO job").during(what)?;
    }
    execute_cached(db, "RELEASE job").during(what)?;
    Ok(done)
}

fn begin(db: &Connection) -> Result<(), Error> {
    execute_cached(db, "BEGIN IMMEDIATE").during("writing to the database")
}

/// Commits, or rolls back if the commit fails.
fn commit(db: &Connection) -> Option<Error> {
    let lost = execute_cached(db, "COMMIT").during("committing to the database").err();
    undo(db);
    lost
}

/// Rolls back an open transaction.
fn undo(db: &Connection) {
    if !db.is_autocommit() {
        drop(execute_cached(db, "ROLLBACK"));
    }
}

fn finish(jobs: impl IntoIterator<Item = Box<dyn Job>>, lost: Option<&Error>) {
    for job in jobs {
        job.finish(lost);
    }
}

/// Runs a cached statement.
pub(crate) fn execute_cached(db: &Connection, sql: &str) -> rusqlite::Result<()> {
    db.prepare_cached(sql)?.execute(()).map(drop)
}

#[cfg(test)]
mod tests;
