//! The threads that own the connections.

use std::convert::Infallible;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use superstep_checkpoint::Error;
use tokio::sync::{mpsc, oneshot};

use crate::error::During;
use crate::options::SqliteOptions;
use crate::schema;

/// How many requests are committed together at most. Beyond that the first would wait for the last without gain.
const BATCH_MAX: usize = 512;
/// How long the thread that writes looks out for the next request before it sleeps. A run has the next superstep some 100
/// microseconds after it was woken up, and waking up a thread that sleeps takes half as long again.
const ALERT: Duration = Duration::from_micros(200);

/// Whether a database is made if it is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    OrMake,
    AsItIs,
}

/// Makes the tables of a database, or checks those that are there.
pub(crate) type SetUp = fn(&Connection, &str, &SqliteOptions) -> Result<(), Error>;

/// The way to the threads; when it is dropped they finish what they were given and end.
pub(crate) struct Workers {
    name: String,
    /// Ends when all threads have closed their connections.
    closed: mpsc::Receiver<Infallible>,
    writer: Sender<Box<dyn Job>>,
    /// `None` for a database in memory, which has one connection.
    readers: Option<Sender<Box<dyn Job>>>,
}

impl Workers {
    pub(crate) async fn open(
        path: &Path,
        options: &SqliteOptions,
        opening: Opening,
        set_up: SetUp,
    ) -> Result<Self, Error> {
        let name = path.display().to_string();
        let (open, closed) = mpsc::channel(1);
        let writer = {
            let (path, name, options) = (path.to_owned(), name.clone(), options.clone());
            start("superstep-sqlite-writer", open.clone(), move || {
                let db = connect(&path, &name, &options, opening)?;
                set_up(&db, &name, &options)?;
                Ok(db)
            })
        };
        let (ready, writer) = writer?;
        answered(ready, &name).await?;
        let (readers, jobs) = channel();
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..options.readers {
            let (ready, done) = oneshot::channel();
            let (path, title, options) = (path.to_owned(), name.clone(), options.clone());
            let jobs = jobs.clone();
            let open = open.clone();
            spawn("superstep-sqlite-reader", open, move || {
                match connect(&path, &title, &options, opening) {
                    Ok(db) => {
                        drop(ready.send(Ok(())));
                        serve_reads(&db, &jobs);
                    }
                    Err(error) => drop(ready.send(Err(error))),
                }
            })?;
            answered(done, &name).await?;
        }
        Ok(Self { name, closed, writer, readers: Some(readers) })
    }

    pub(crate) async fn in_memory(options: &SqliteOptions, set_up: SetUp) -> Result<Self, Error> {
        let name = ":memory:".to_owned();
        let options = options.clone();
        let (open, closed) = mpsc::channel(1);
        let (ready, writer) = start("superstep-sqlite-memory", open, move || {
            let db = Connection::open_in_memory().during("opening a database in memory")?;
            schema::configure(&db, ":memory:", &options)?;
            set_up(&db, ":memory:", &options)?;
            Ok(db)
        })?;
        answered(ready, &name).await?;
        Ok(Self { name, closed, writer, readers: None })
    }

    /// Completes when all connections are closed.
    pub(crate) async fn close(self) {
        let Self { mut closed, writer, readers, .. } = self;
        drop((writer, readers));
        closed.recv().await;
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Runs `work` in a transaction it may share with others. What it changed is on the disk when this returns `Ok`, and
    /// taken back when it returns an error; for that, it may be run a second time. What makes or changes tables has to run
    /// [`apart`].
    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Error> + Send + 'static,
    {
        self.ask(&self.writer, work).await
    }

    /// Runs `work` on one state of the database.
    pub(crate) async fn read<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Error> + Send + 'static,
    {
        self.ask(self.readers.as_ref().unwrap_or(&self.writer), work).await
    }

    async fn ask<T, F>(&self, to: &Sender<Box<dyn Job>>, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Error> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let request = Request { work, result: None, reply };
        // If the thread is gone the request is dropped, and its reply with it.
        drop(to.send(Box::new(request)));
        answered(answer, &self.name).await
    }
}

async fn answered<T>(answer: oneshot::Receiver<Result<T, Error>>, name: &str) -> Result<T, Error> {
    answer.await.unwrap_or_else(|gone| {
        Err(Error::backend(format!("the thread that works on `{name}` has ended"), gone))
    })
}

type Started = (oneshot::Receiver<Result<(), Error>>, Sender<Box<dyn Job>>);

/// Starts the thread that writes, on a connection it opens itself.
fn start(
    thread: &str,
    held: Held,
    open: impl FnOnce() -> Result<Connection, Error> + Send + 'static,
) -> Result<Started, Error> {
    let (ready, done) = oneshot::channel();
    let (sender, jobs) = channel();
    spawn(thread, held, move || match open() {
        Ok(db) => {
            drop(ready.send(Ok(())));
            serve_writes(&db, &jobs);
        }
        Err(error) => drop(ready.send(Err(error))),
    })?;
    Ok((done, sender))
}

/// Held by a thread for as long as it has a connection.
type Held = mpsc::Sender<Infallible>;

fn spawn(name: &str, held: Held, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let started = thread::Builder::new().name(name.to_owned()).spawn(move || {
        work();
        drop(held);
    });
    started.map(drop).map_err(|error| Error::backend("starting a thread for the database", error))
}

fn connect(
    path: &Path,
    name: &str,
    options: &SqliteOptions,
    opening: Opening,
) -> Result<Connection, Error> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, opening == Opening::OrMake);
    let db = Connection::open_with_flags(path, flags).during(format_args!("opening `{name}`"))?;
    schema::configure(&db, name, options)?;
    Ok(db)
}

/// Something to be done on a connection, and someone who waits for it.
trait Job: Send {
    /// Whether nobody waits any more.
    fn is_abandoned(&self) -> bool;
    /// Does it, from the start; says whether it succeeded.
    fn run(&mut self, db: &Connection) -> bool;
    /// Tells the result, unless what it did was lost.
    fn finish(self: Box<Self>, lost: Option<&Error>);
}

struct Request<T, F> {
    work: F,
    result: Option<Result<T, Error>>,
    reply: oneshot::Sender<Result<T, Error>>,
}

impl<T, F> Job for Request<T, F>
where
    T: Send,
    F: Fn(&Connection) -> Result<T, Error> + Send,
{
    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn run(&mut self, db: &Connection) -> bool {
        let result = (self.work)(db);
        let succeeded = result.is_ok();
        self.result = Some(result);
        succeeded
    }

    fn finish(self: Box<Self>, lost: Option<&Error>) {
        let result = match (self.result, lost) {
            (Some(Err(error)), _) => Err(error),
            (Some(Ok(value)), None) => Ok(value),
            (_, Some(lost)) => Err(repeat(lost)),
            (None, None) => return,
        };
        drop(self.reply.send(result));
    }
}

/// The same failure, for the next of those it concerns.
fn repeat(error: &Error) -> Error {
    let source = std::error::Error::source(error).map_or_else(String::new, ToString::to_string);
    Error::backend(error.to_string(), source)
}

fn serve_reads(db: &Connection, jobs: &Mutex<Receiver<Box<dyn Job>>>) {
    loop {
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(mut job) = next else { return };
        if job.is_abandoned() {
            continue;
        }
        // One state of the database for all statements of the request.
        let begun = say(db, "BEGIN").during("reading from the database");
        if begun.is_ok() {
            job.run(db);
            drop(say(db, "ROLLBACK"));
        }
        job.finish(begun.err().as_ref());
    }
}

fn serve_writes(db: &Connection, jobs: &Receiver<Box<dyn Job>>) {
    while let Some(first) = next(jobs) {
        let more = std::iter::from_fn(|| jobs.try_recv().ok()).take(BATCH_MAX - 1);
        let batch: Vec<_> =
            std::iter::once(first).chain(more).filter(|job| !job.is_abandoned()).collect();
        if !batch.is_empty() {
            commit_together(db, batch);
        }
    }
}

/// The next request. A run that stores superstep after superstep has it sooner than a thread that sleeps wakes up.
fn next(jobs: &Receiver<Box<dyn Job>>) -> Option<Box<dyn Job>> {
    let since = Instant::now();
    loop {
        match jobs.try_recv() {
            Ok(job) => return Some(job),
            Err(TryRecvError::Empty) if since.elapsed() < ALERT => thread::yield_now(),
            Err(TryRecvError::Empty) => return jobs.recv().ok(),
            Err(TryRecvError::Disconnected) => return None,
        }
    }
}

/// Runs jobs in one transaction.
///
/// Savepoints would cost as much as the jobs, and a job that fails has mostly changed nothing before. If one has, all of them run
/// again, each apart.
fn commit_together(db: &Connection, mut jobs: Vec<Box<dyn Job>>) {
    if let Err(error) = begin(db) {
        return finish(jobs, Some(&error));
    }
    if jobs.iter_mut().all(|job| ran_whole(db, job.as_mut())) {
        let lost = commit(db);
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
fn say(db: &Connection, sql: &str) -> rusqlite::Result<()> {
    db.prepare_cached(sql)?.execute(()).map(drop)
}

#[cfg(test)]
mod tests;
