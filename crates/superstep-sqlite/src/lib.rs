//! Keeps threads in an SQLite file, in the tables LangGraph uses.
//!
//! A file written by LangGraph's `SqliteSaver` opens as it is, and LangGraph opens ours. Both may have it open at the same
//! time, on the same machine.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! use superstep_sqlite::SqliteSaver;
//!
//! let saver = SqliteSaver::in_memory().await?;
//! # let _ = saver;
//! # Ok::<(), superstep_checkpoint::Error>(())
//! # }).unwrap();
//! ```
//!
//! [`SqliteStore`] keeps items across threads, in the tables of LangGraph's `SqliteStore`; in a file of its own, or in that of a
//! saver ([`SqliteSaver::store`]).
//!
//! # How it works
//!
//! One thread owns the connection that writes. It takes everything that was asked of it since the last time and commits it
//! in one transaction, so that runs of many threads share the cost of reaching the disk; what fails is taken back alone.
//! Other threads with connections of their own read, and one copies SQLite's log into the file. The file is in WAL mode, so
//! reading never waits for writing.
//!
//! # What is promised
//!
//! Everything [`Checkpointer`] promises, also between processes. When a call returns, what it stored is on the disk; with
//! [`Synchronous::Normal`] it is with the operating system, and may be lost if the machine (not just the process) stops. So it
//! is for runs that store meanwhile ([`Checkpointer::relaxed`]), but what they store is on the disk a tenth of a second later,
//! or as soon as anybody stores something that has to be there.
//!
//! A byte array comes back as bytes, and a value that was JSON as MessagePack: the tables keep all values of a checkpoint in
//! one piece of MessagePack, which has no form for them.
//!
//! # What is added to the tables
//!
//! A small table of our own, kept up to date by triggers whoever writes, says about when each thread was changed last, so
//! that a page of [`threads`](Checkpointer::threads) costs a page. LangGraph does not notice it.

mod error;
mod log;
mod maintain;
mod options;
mod patience;
mod read;
mod schema;
mod store;
mod threads;
mod worker;
mod write;
mod writer;

pub use options::{SqliteOptions, Synchronous};
pub use store::SqliteStore;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use superstep_checkpoint::{
    CheckpointId, Checkpointer, DeltaHistory, Error, Inventory, Prune, Put, Query, StorageId,
    Stored, TaskWrites, ThreadPage, ThreadQuery,
};

use worker::{Opening, Workers};
use writer::Survives;

/// Keeps checkpoints in an SQLite file. Clones share their connections.
///
/// See the [crate] for how it works.
#[derive(Clone)]
pub struct SqliteSaver {
    workers: Arc<Workers>,
    /// How long the steps of runs have to last.
    lasting: Survives,
    storage: StorageId,
    /// Whether looking at threads may change the list of them.
    keeps_verdicts: bool,
}

/// How many verdicts are kept in one transaction, while others wait to write.
const SETTLED_AT_ONCE: usize = 100;

impl SqliteSaver {
    fn new(workers: Workers) -> Self {
        let workers = Arc::new(workers);
        let storage = StorageId::shared(&workers);
        Self { workers, lasting: Survives::Machine, storage, keeps_verdicts: true }
    }

    /// A saver on an open file. The same file opened a second time is the same storage.
    fn on_file(workers: Workers, path: &Path) -> Self {
        let mut saver = Self::new(workers);
        if let Ok(path) = path.canonicalize() {
            saver.storage = StorageId::named(&path);
        }
        saver
    }

    /// Opens a file, making it and its tables if they are not there.
    ///
    /// # Errors
    /// The file cannot be opened, is no database, or has tables of these names that are of another kind or newer.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::options().open(path).await
    }

    /// Opens a file as it is: neither the file nor a table is made, and nothing is brought up to date.
    ///
    /// What LangGraph wrote and we never opened has no list of heads; then a page of
    /// [`threads`](Checkpointer::threads) costs a look at every checkpoint.
    ///
    /// # Errors
    /// There is no such file, it is no database, or its tables are missing or of another kind or version.
    pub async fn open_existing(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::options().open_existing(path).await
    }

    /// Closes the file, and completes when that is done. Clones keep it open; then this does nothing.
    ///
    /// A process that just ends leaves SQLite's files beside the database, which the next one to open it tidies up.
    ///
    /// # Errors
    /// Something that a run under `Async` had committed could not be brought to the disk. The file is closed all the same.
    pub async fn close(self) -> Result<(), Error> {
        match Arc::into_inner(self.workers) {
            Some(workers) => workers.close().await,
            None => Ok(()),
        }
    }

    /// A database that lives as long as this saver and its clones.
    ///
    /// # Errors
    /// SQLite cannot make one.
    pub async fn in_memory() -> Result<Self, Error> {
        Ok(Self::new(Workers::in_memory(&SqliteOptions::default(), schema::set_up).await?))
    }

    /// Long-term memory in the same database, on the same connections.
    ///
    /// # Errors
    /// The tables of the store cannot be made, or are newer than this program.
    pub async fn store(&self) -> Result<SqliteStore, Error> {
        SqliteStore::beside(self.workers.clone()).await
    }

    /// How to open a file, to be changed.
    pub fn options() -> SqliteOptions {
        SqliteOptions::default()
    }
}

impl SqliteOptions {
    /// Opens a file with these options; see [`SqliteSaver::open`].
    ///
    /// # Errors
    /// As [`SqliteSaver::open`].
    pub async fn open(self, path: impl AsRef<Path>) -> Result<SqliteSaver, Error> {
        let workers = Workers::open(path.as_ref(), &self, Opening::OrMake, schema::set_up);
        Ok(SqliteSaver::on_file(workers.await?, path.as_ref()))
    }

    /// Opens a file as it is with these options; see [`SqliteSaver::open_existing`].
    ///
    /// # Errors
    /// As [`SqliteSaver::open_existing`].
    pub async fn open_existing(self, path: impl AsRef<Path>) -> Result<SqliteSaver, Error> {
        let path = path.as_ref();
        if !path.exists() {
            return Err(Error::invalid(format_args!("there is no file `{}`", path.display())));
        }
        let workers = Workers::open(path, &self, Opening::AsItIs, schema::verify);
        let saver = SqliteSaver::on_file(workers.await?, path);
        Ok(SqliteSaver { keeps_verdicts: false, ..saver })
    }
}

impl fmt::Debug for SqliteSaver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteSaver")
            .field("database", &self.workers.name())
            .finish_non_exhaustive()
    }
}

impl Checkpointer for SqliteSaver {
    async fn put(&self, put: Put) -> Result<(), Error> {
        // Encoded here, so that the thread all writers share only stores.
        let row = write::Row::new(put)?;
        self.workers.write_to_last(self.lasting, move |db| row.store(db)).await
    }

    async fn put_all(&self, puts: Vec<Put>) -> Result<(), Error> {
        let rows: Vec<_> = puts.into_iter().map(write::Row::new).collect::<Result<_, _>>()?;
        let store = move |db: &Connection| rows.iter().try_for_each(|row| row.store(db));
        self.workers.write_to_last(self.lasting, store).await
    }

    fn relaxed(&self) -> Option<Self> {
        let relaxed = || Self { lasting: Survives::Process, ..self.clone() };
        (self.lasting == Survives::Machine).then(relaxed)
    }

    fn storage(&self) -> Option<StorageId> {
        Some(self.storage)
    }

    /// There is one thread that writes.
    fn in_order(&self) -> bool {
        true
    }

    async fn put_writes(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        writes: Vec<TaskWrites>,
    ) -> Result<(), Error> {
        let (thread, ns) = (thread.to_owned(), ns.to_owned());
        let store = move |db: &Connection| write::put_writes(db, &thread, &ns, checkpoint, &writes);
        self.workers.write_to_last(self.lasting, store).await
    }

    async fn get(
        &self,
        thread: &str,
        ns: &str,
        id: Option<CheckpointId>,
    ) -> Result<Option<Stored>, Error> {
        let (thread, ns) = (thread.to_owned(), ns.to_owned());
        self.workers.look(move |db| read::get(db, &thread, &ns, id)).await
    }

    async fn list(&self, query: Query) -> Result<Vec<Stored>, Error> {
        self.workers.read(move |db| read::list(db, &query)).await
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), Error> {
        let thread = thread.to_owned();
        self.workers.write(move |db| maintain::delete_thread(db, &thread)).await
    }

    async fn delta_history(
        &self,
        thread: &str,
        ns: &str,
        id: CheckpointId,
        channels: &[Arc<str>],
    ) -> Result<BTreeMap<Arc<str>, DeltaHistory>, Error> {
        let (thread, ns, channels) = (thread.to_owned(), ns.to_owned(), channels.to_vec());
        self.workers.read(move |db| read::delta_history(db, &thread, &ns, id, &channels)).await
    }

    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), Error> {
        let (from, to) = (from.to_owned(), to.to_owned());
        self.workers.write(move |db| maintain::copy_thread(db, &from, &to)).await
    }

    async fn delete_for_runs(&self, runs: &[String]) -> Result<(), Error> {
        if runs.is_empty() {
            return Ok(());
        }
        // The whole file is searched while others write; only what was found is looked at again by the writer.
        let wanted = runs.to_vec();
        let threads = self.workers.read(move |db| maintain::threads_of_runs(db, &wanted)).await?;
        let runs = runs.to_vec();
        self.workers.write(move |db| maintain::delete_for_runs(db, &threads, &runs)).await
    }

    async fn prune(&self, prune: Prune) -> Result<usize, Error> {
        let threads = match prune.threads {
            Some(threads) => threads,
            None => self.workers.read(maintain::all_threads).await?,
        };
        let keep = prune.keep;
        let mut gone = 0;
        for thread in threads {
            gone += self.workers.write(move |db| maintain::prune(db, &thread, keep)).await?;
        }
        Ok(gone)
    }

    async fn threads(&self, query: ThreadQuery) -> Result<ThreadPage, Error> {
        let listed = self.workers.read(move |db| threads::list(db, &query)).await?;
        if self.keeps_verdicts {
            for some in listed.unsettled.chunks(SETTLED_AT_ONCE) {
                let some = some.to_vec();
                let settle = move |db: &Connection| threads::settle(db, &some);
                self.workers.write_to_last(Survives::Process, settle).await?;
            }
        }
        Ok(listed.page)
    }

    async fn inventory(&self) -> Result<Inventory, Error> {
        self.workers.read(maintain::inventory).await
    }
}
