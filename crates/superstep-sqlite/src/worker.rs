//! The threads that own the connections.

use std::any::Any;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use superstep_checkpoint::Error;
use tokio::sync::oneshot::error::RecvError;
use tokio::sync::{mpsc, oneshot};

use crate::error::During;
use crate::log::{Log, copy_on_request};
use crate::options::{SqliteOptions, Synchronous};
use crate::patience::Patience;
use crate::schema;
use crate::writer::{Survives, Writer, execute_cached};

/// Whether a database is made if it does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    OrMake,
    AsItIs,
}

/// Makes the tables of a database, or checks those that are there.
pub(crate) type SetUp = fn(&Connection, &str, &SqliteOptions) -> Result<(), Error>;

/// The channels to the threads; when they are dropped the threads finish their jobs and end.
pub(crate) struct Workers {
    name: String,
    patience: Patience,
    /// Whether the writing thread is awake.
    awake: Arc<AtomicBool>,
    fault: Fault,
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
        let (reading, others) = channel();
        let (log, requests) = Log::new();
        let awake = Arc::new(AtomicBool::new(false));
        let fault = Fault::default();
        let writer = {
            let (path, name, options) = (path.to_owned(), name.clone(), options.clone());
            let file = (options.synchronous == Synchronous::Full).then(|| path.clone());
            let fault = fault.clone();
            let written = Written { log: Some(log), file, awake: awake.clone(), fault };
            start("superstep-sqlite-writer", open.clone(), written, others, move || {
                let db = connect(&path, &name, &options, opening)?;
                set_up(&db, &name, &options)?;
                Log::watch(&db);
                Ok(db)
            })
        };
        let (ready, writer) = writer?;
        answered(ready, &name).await?;
        let beside = |thread, serve: Box<dyn FnOnce(&Connection) + Send>| {
            let (path, title, options) = (path.to_owned(), name.clone(), options.clone());
            let connect = move || connect(&path, &title, &options, opening);
            start_beside(thread, (open.clone(), reading.clone()), connect, serve)
        };
        let copies =
            beside("superstep-sqlite-copier", Box::new(move |db| copy_on_request(db, &requests)));
        answered(copies?, &name).await?;
        let (readers, jobs) = channel();
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..options.readers {
            let jobs = jobs.clone();
            let reads =
                beside("superstep-sqlite-reader", Box::new(move |db| serve_reads(db, &jobs)));
            answered(reads?, &name).await?;
        }
        let patience = Patience::new();
        Ok(Self { name, patience, awake, fault, closed, writer, readers: Some(readers) })
    }

    pub(crate) async fn in_memory(options: &SqliteOptions, set_up: SetUp) -> Result<Self, Error> {
        let name = ":memory:".to_owned();
        let options = options.clone();
        let (open, closed) = mpsc::channel(1);
        let (_, alone) = channel();
        let awake = Arc::new(AtomicBool::new(false));
        let fault = Fault::default();
        let nowhere = Written { log: None, file: None, awake: awake.clone(), fault: fault.clone() };
        let (ready, writer) = start("superstep-sqlite-memory", open, nowhere, alone, move || {
            let db = Connection::open_in_memory().during("opening a database in memory")?;
            schema::configure(&db, ":memory:", &options)?;
            set_up(&db, ":memory:", &options)?;
            Ok(db)
        })?;
        answered(ready, &name).await?;
        Ok(Self { name, patience: Patience::new(), awake, fault, closed, writer, readers: None })
    }

    /// Waits until all connections are closed.
    ///
    /// # Errors
    /// Committed data could not be synced to the disk, and the error was not reported yet.
    pub(crate) async fn close(self) -> Result<(), Error> {
        let Self { mut closed, writer, readers, fault, .. } = self;
        drop((writer, readers));
        closed.recv().await;
        fault.take().map_or(Ok(()), Err)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Runs `work` in a transaction that it may share with others. Its changes are on the disk when
    /// this returns `Ok`, and rolled back when it returns an error; for that, it may be run a
    /// second time. Statements that change the schema must run [`apart`](crate::writer::apart).
    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Error> + Send + 'static,
    {
        self.write_to_last(Survives::Machine, work).await
    }

    /// As [`write`](Self::write), with this durability.
    pub(crate) async fn write_to_last<T, F>(&self, lasting: Survives, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Error> + Send + 'static,
    {
        self.ask(&self.writer, Purpose::Change(lasting), work).await
    }

    /// Runs `work` in a read transaction.
    pub(crate) async fn read<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Error> + Send + 'static,
    {
        self.ask(self.readers.as_ref().unwrap_or(&self.writer), Purpose::Look, work).await
    }

    /// As [`read`](Self::read), for what does not take long. Waking a reading thread may take
    /// longer, and its cache is stale. So the writing thread does it if it is awake and idle.
    pub(crate) async fn look<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Error> + Send + 'static,
    {
        if self.awake.load(Ordering::Relaxed) && self.patience.is_unused() {
            return self.ask(&self.writer, Purpose::Look, work).await;
        }
        self.read(work).await
    }

    async fn ask<T, F>(
        &self,
        to: &Sender<Box<dyn Job>>,
        purpose: Purpose,
        work: F,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Error> + Send + 'static,
    {
        let (request, answer) = Request::new(purpose, work);
        let wait = self.patience.wait();
        // If the thread is gone the request is dropped, and its reply with it.
        drop(to.send(Box::new(request)));
        let done = async {
            let Done { result, took, .. } = wait.until(answer).await?;
            self.patience.note(took);
            Ok(result)
        };
        answered(done, &self.name).await
    }
}

async fn answered<T>(
    answer: impl Future<Output = Result<Result<T, Error>, RecvError>>,
    name: &str,
) -> Result<T, Error> {
    answer.await.unwrap_or_else(|gone| {
        Err(Error::backend(format!("the thread that works on `{name}` has ended"), gone))
    })
}

/// Tells when a thread has its connection.
type Ready = oneshot::Receiver<Result<(), Error>>;
type Started = (Ready, Sender<Box<dyn Job>>);

/// The state of the WAL, and its file if commits must be synced.
pub(crate) struct Written {
    pub(crate) log: Option<Log>,
    pub(crate) file: Option<PathBuf>,
    /// Whether the writing thread is awake.
    pub(crate) awake: Arc<AtomicBool>,
    pub(crate) fault: Fault,
}

/// A sync error that no caller was waiting for. The next write or close reports it.
#[derive(Clone, Default)]
pub(crate) struct Fault(Arc<Mutex<Option<Error>>>);

impl Fault {
    pub(crate) fn set(&self, error: Error) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    pub(crate) fn take(&self) -> Option<Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The path of the WAL: next to the real file, after links and relative paths are resolved.
fn log_of(db: &Connection, path: &Path) -> Result<PathBuf, Error> {
    let path = match db.path().filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => std::fs::canonicalize(path).map_err(|error| {
            Error::backend(format!("finding the place of `{}`", path.display()), error)
        })?,
    };
    let mut name = path.into_os_string();
    name.push("-wal");
    Ok(name.into())
}

/// Starts the thread that writes, on a connection it opens itself.
///
/// It closes its connection after the `others`: the last one to close tidies up, and of several that close at the same time each
/// takes another for the last.
fn start(
    thread: &str,
    held: mpsc::Sender<Infallible>,
    mut written: Written,
    others: Receiver<Infallible>,
    open: impl FnOnce() -> Result<Connection, Error> + Send + 'static,
) -> Result<Started, Error> {
    let (sender, jobs) = channel();
    let path = written.file.take();
    let open = move || {
        let db = open()?;
        let file = path.map(|path| log_of(&db, &path)).transpose()?;
        Ok((db, file))
    };
    let ready = start_beside(thread, held, open, move |(db, file)| {
        written.file.clone_from(file);
        Writer::new(db, written).serve(&jobs);
        let _ = others.recv();
    })?;
    Ok((ready, sender))
}

/// Starts a thread that does something on a connection it opens itself.
fn start_beside<C: 'static>(
    thread: &str,
    held: impl Send + 'static,
    open: impl FnOnce() -> Result<C, Error> + Send + 'static,
    serve: impl FnOnce(&C) + Send + 'static,
) -> Result<Ready, Error> {
    let (ready, done) = oneshot::channel();
    spawn(thread, held, move || match open() {
        Ok(db) => {
            drop(ready.send(Ok(())));
            serve(&db);
        }
        Err(error) => drop(ready.send(Err(error))),
    })?;
    Ok(done)
}

/// Starts a thread. What it is given to hold is dropped after its connection is closed.
fn spawn(
    name: &str,
    held: impl Send + 'static,
    work: impl FnOnce() + Send + 'static,
) -> Result<(), Error> {
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

/// What something is done for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A read transaction.
    Look,
    /// A write transaction with this durability.
    Change(Survives),
}

/// A job for a connection, with its reply channel.
pub(crate) trait Job: Send {
    fn purpose(&self) -> Purpose;
    /// Whether the caller is gone.
    fn is_abandoned(&self) -> bool;
    /// Runs the job from the start. Returns whether it succeeded.
    fn run(&mut self, db: &Connection) -> bool;
    /// Sends the result, unless its changes were lost.
    fn finish(self: Box<Self>, lost: Option<&Error>);
}

pub(crate) struct Request<T, F> {
    work: F,
    purpose: Purpose,
    result: Option<Result<T, Error>>,
    begun: Option<Instant>,
    reply: oneshot::Sender<Done<T, F>>,
}

/// The result of some work.
pub(crate) struct Done<T, F> {
    pub(crate) result: Result<T, Error>,
    /// The time from its start to its commit.
    took: Duration,
    /// The work is sent back, so that the caller frees it and not the shared thread.
    _work: F,
}

impl<T, F> Request<T, F> {
    pub(crate) fn new(purpose: Purpose, work: F) -> (Self, oneshot::Receiver<Done<T, F>>) {
        let (reply, answer) = oneshot::channel();
        (Self { work, purpose, result: None, begun: None, reply }, answer)
    }
}

impl<T, F> Job for Request<T, F>
where
    T: Send,
    F: Fn(&Connection) -> Result<T, Error> + Send,
{
    fn purpose(&self) -> Purpose {
        self.purpose
    }

    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn run(&mut self, db: &Connection) -> bool {
        self.begun.get_or_insert_with(Instant::now);
        // A panic fails only this job.
        let result = catch_unwind(AssertUnwindSafe(|| (self.work)(db)));
        let result = result.unwrap_or_else(|panic| Err(panicked(&*panic)));
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
        let took = self.begun.map(|begun| begun.elapsed()).unwrap_or_default();
        drop(self.reply.send(Done { result, took, _work: self.work }));
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    let text = text.unwrap_or_else(|| "a panic without a text".to_owned());
    Error::backend("work on the database panicked, which is a defect; nothing was changed", text)
}

/// The same error for another caller.
fn repeat(error: &Error) -> Error {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    let causes: Vec<String> = causes.map(ToString::to_string).collect();
    Error::backend(error.to_string(), causes.join(": "))
}

fn serve_reads(db: &Connection, jobs: &Mutex<Receiver<Box<dyn Job>>>) {
    loop {
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else { return };
        if !job.is_abandoned() {
            read(db, job);
        }
    }
}

/// Runs a job in a read transaction.
pub(crate) fn read(db: &Connection, mut job: Box<dyn Job>) {
    let begun = execute_cached(db, "BEGIN").during("reading from the database");
    if begun.is_ok() {
        job.run(db);
        drop(execute_cached(db, "ROLLBACK"));
    }
    job.finish(begun.err().as_ref());
}
