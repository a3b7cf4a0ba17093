//! What the thread that writes does.

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

/// How many requests are committed together at most. Beyond that the first would wait for the last without gain.
const BATCH_MAX: usize = 512;
/// How long the thread looks out for the next request before it sleeps. A run has the next superstep some 100 microseconds
/// after it was woken up, and waking up a thread that sleeps takes half as long again.
const ALERT: Duration = Duration::from_micros(200);
/// How long nobody has anything to write before what is not on the disk is brought there.
const REST: Duration = Duration::from_millis(10);
/// How long a commit stays off the disk at most if there is always something to write.
const BEHIND_MAX: Duration = Duration::from_millis(100);

/// What has to be over before something that was committed may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Survives {
    /// This process, and a moment.
    Process,
    Machine,
}

/// Commits what it is given, and knows how much of that is on the disk.
pub(crate) struct Writer<'a> {
    db: &'a Connection,
    /// SQLite's log; `None` for a database in memory.
    log: Option<Log>,
    /// The file of the log; `None` if how far commits get is not ours to change.
    file: Option<PathBuf>,
    /// Tells others whether this thread is awake.
    awake: Arc<AtomicBool>,
    fault: Fault,
    /// How far commits get now.
    reach: Survives,
    /// Since when there is something that is committed and perhaps not on the disk.
    behind: Option<Instant>,
}

impl<'a> Writer<'a> {
    /// For a connection whose commits get to the disk if there is a `file`.
    pub(crate) fn new(db: &'a Connection, Written { log, file, awake, fault }: Written) -> Self {
        Self { db, log, file, awake, fault, reach: Survives::Machine, behind: None }
    }

    /// Does everything that comes, until nothing more can come.
    pub(crate) fn serve(mut self, jobs: &Receiver<Box<dyn Job>>) {
        while let Some(first) = self.next(jobs) {
            let more = std::iter::from_fn(|| jobs.try_recv().ok()).take(BATCH_MAX - 1);
            let batch = std::iter::once(first).chain(more).filter(|job| !job.is_abandoned());
            // Whoever looks must not see what others have not committed.
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

    /// The next request. A run that stores superstep after superstep has it sooner than a thread that sleeps wakes up.
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

    /// Brings to the disk what is committed and not there. If that fails, the next to write or to close is told, and the next
    /// commit has to get there.
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
            // Nobody else's work goes with it.
            [_] => finish(jobs, None),
            _ => {
                let mut waiting = jobs.into_iter();
                while waiting.len() > 0 {
                    commit_apart(db, &mut waiting);
                }
                // Some of it may not be, which costs no more than another look at the disk.
                self.note(false);
            }
        }
    }

    /// Sees that what these change gets as far as it has to.
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

    /// Takes note of a commit. One that gets to the disk takes along whatever is in the log before it.
    fn note(&mut self, committed: bool) {
        match self.reach {
            Survives::Machine if committed => self.behind = None,
            Survives::Process => drop(self.behind.get_or_insert_with(Instant::now)),
            Survives::Machine => {}
        }
    }
}

/// The next request, if it comes while it is worth staying awake for it.
fn look_out(jobs: &Receiver<Box<dyn Job>>) -> Result<Box<dyn Job>, TryRecvError> {
    let since = Instant::now();
    loop {
        match jobs.try_recv() {
            Err(TryRecvError::Empty) if since.elapsed() < ALERT => thread::yield_now(),
            next => return next,
        }
    }
}

/// Runs a job. Returns whether it did everything or nothing, and the transaction is there as it was.
fn ran_whole(db: &Connection, job: &mut dyn Job) -> bool {
    let before = db.total_changes();
    job.run(db) || db.total_changes() == before && !db.is_autocommit()
}

/// Runs jobs in one transaction, each so that it can be taken back without the others, until none is left or the transaction is
/// lost.
fn commit_apart(db: &Connection, waiting: &mut std::vec::IntoIter<Box<dyn Job>>) {
    if let Err(error) = begin(db) {
        return finish(waiting, Some(&error));
    }
    let mut done = Vec::with_capacity(waiting.len());
    for mut job in waiting.by_ref() {
        let ran = apart(db, || job.run(db), |succeeded| *succeeded);
        done.push(job);
        // A full disk, for one, takes the whole transaction back; those that come after get one of their own.
        if let Err(lost) = ran {
            undo(db);
            return finish(done, Some(&lost));
        }
    }
    let lost = commit(db);
    finish(done, lost.as_ref());
}

/// Does something so that it can be taken back without what came before it, and takes it back unless it is to be kept.
///
/// # Errors
/// The transaction is of no more use.
pub(crate) fn apart<T>(
    db: &Connection,
    work: impl FnOnce() -> T,
    keep: impl FnOnce(&T) -> bool,
) -> Result<T, Error> {
    let what = "writing to the database";
    say(db, "SAVEPOINT job").during(what)?;
    let done = work();
    if !keep(&done) {
        say(db, "ROLLBACK TO job").during(what)?;
    }
    say(db, "RELEASE job").during(what)?;
    Ok(done)
}

fn begin(db: &Connection) -> Result<(), Error> {
    say(db, "BEGIN IMMEDIATE").during("writing to the database")
}

/// Commits; what could not be committed is undone.
fn commit(db: &Connection) -> Option<Error> {
    let lost = say(db, "COMMIT").during("committing to the database").err();
    undo(db);
    lost
}

/// Ends a transaction that is still open.
fn undo(db: &Connection) {
    if !db.is_autocommit() {
        drop(say(db, "ROLLBACK"));
    }
}

fn finish(jobs: impl IntoIterator<Item = Box<dyn Job>>, lost: Option<&Error>) {
    for job in jobs {
        job.finish(lost);
    }
}

/// Runs a statement that is run time and again.
pub(crate) fn say(db: &Connection, sql: &str) -> rusqlite::Result<()> {
    db.prepare_cached(sql)?.execute(()).map(drop)
}

#[cfg(test)]
mod tests;
