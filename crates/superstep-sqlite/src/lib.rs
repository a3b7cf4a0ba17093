//! Threads in an SQLite file, in LangGraph's tables.
//!
//! superstep opens files of LangGraph's `SqliteSaver`, and LangGraph opens ours. Both may have a
//! file open at the same time, on the same machine.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! use superstep_sqlite::SqliteSaver;
//!
//! let checkpointer = SqliteSaver::in_memory().await?;
//! # let _ = checkpointer;
//! # Ok::<(), superstep_checkpoint::Error>(())
//! # }).unwrap();
//! ```
//!
//! [`SqliteStore`] stores items across threads, in the tables of LangGraph's `SqliteStore`; in a
//! file of its own, or in that of a checkpointer ([`SqliteSaver::store`]).
//!
//! # How it works
//!
//! One OS thread owns the writing connection. It commits all waiting requests in one transaction,
//! so that concurrent runs share the cost of a disk sync; a request that fails is rolled back
//! alone. Other OS threads have reading connections, and one checkpoints the WAL. In WAL mode,
//! reads never wait for writes.
//!
//! # What is promised
//!
//! Everything [`Checkpointer`] promises, also between processes. When a call returns, its data is
//! on the disk; with [`Synchronous::Normal`] it has reached the operating system, and may be lost
//! in a power failure. Runs under `Durability::Async` ([`Checkpointer::relaxed`]) work like that,
//! but their data is on the disk a tenth of a second later, or at the next synchronous commit.
//!
//! A byte array is returned as bytes, and a JSON value as MessagePack: the tables store all values
//! of a checkpoint as one MessagePack document, which cannot distinguish them.
//!
//! # What is added to the tables
//!
//! A small table, kept up to date by triggers, records when each thread was last changed, so that
//! the cost of [`threads`](Checkpointer::threads) depends on the size of the page. LangGraph is not
//! affected.

// Stored data is untrusted.
#![cfg_attr(
    not(test),
    warn(clippy::arithmetic_side_effects, clippy::disallowed_methods, clippy::indexing_slicing)
)]

mod alarms;
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
use std::time::SystemTime;

use rusqlite::Connection;
use superstep_checkpoint::{
    AlarmPage, CheckpointId, Checkpointer, DeltaHistory, Error, Inventory, Prune, Put, Query,
    StorageId, Stored, TaskWrites, ThreadPage, ThreadQuery,
};

use worker::{Opening, Workers};
use writer::Survives;

/// Stores checkpoints in an SQLite file. Clones share their connections.
///
/// The [crate documentation](crate) describes its behaviour.
#[derive(Clone)]
#[doc(alias = "AsyncSqliteSaver")]
pub struct SqliteSaver {
    workers: Arc<Workers>,
    /// The durability of commits.
    lasting: Survives,
    storage: StorageId,
    /// Whether listing threads may cache verdicts.
    keeps_verdicts: bool,
}

/// The number of verdicts cached in one transaction, while others wait to write.
const SETTLED_AT_ONCE: usize = 100;

impl SqliteSaver {
    fn new(workers: Workers) -> Self {
        let workers = Arc::new(workers);
        let storage = StorageId::shared(&workers);
        Self { workers, lasting: Survives::Machine, storage, keeps_verdicts: true }
    }

    /// A checkpointer on an open file. The same file opened a second time is the same storage.
    fn on_file(workers: Workers, path: &Path) -> Self {
        let mut checkpointer = Self::new(workers);
        if let Ok(path) = path.canonicalize() {
            checkpointer.storage = StorageId::named(&path);
        }
        checkpointer
    }

    /// Opens a file. Creates the file and its tables if they do not exist.
    ///
    /// # Errors
    /// The file cannot be opened, is not a database, or has tables with these names that are newer
    /// or of another kind.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::options().open(path).await
    }

    /// Opens an existing file without changing it: no table is created or migrated.
    ///
    /// A file that only LangGraph has written has no list of threads; then a page of
    /// [`threads`](Checkpointer::threads) reads every checkpoint.
    ///
    /// # Errors
    /// The file does not exist or is not a database, or its tables are missing or of another kind
    /// or version.
    pub async fn open_existing(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::options().open_existing(path).await
    }

    /// Closes the file. If a clone is alive, the file stays open and this does nothing.
    ///
    /// Without it, SQLite's extra files stay next to the database until it is opened again.
    ///
    /// # Errors
    /// Data committed by a run under `Async` could not be synced to the disk. The file is closed
    /// anyway.
    pub async fn close(self) -> Result<(), Error> {
        match Arc::into_inner(self.workers) {
            Some(workers) => workers.close().await,
            None => Ok(()),
        }
    }

    /// Opens an in-memory database that lives as long as this checkpointer and its clones.
    ///
    /// # Errors
    /// SQLite cannot create it.
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

    /// The options for opening a file.
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

    /// Opens an existing file with these options; see [`SqliteSaver::open_existing`].
    ///
    /// # Errors
    /// As [`SqliteSaver::open_existing`].
    pub async fn open_existing(self, path: impl AsRef<Path>) -> Result<SqliteSaver, Error> {
        let path = path.as_ref();
        if !path.exists() {
            return Err(Error::invalid(format_args!("there is no file `{}`", path.display())));
        }
        let workers = Workers::open(path, &self, Opening::AsItIs, schema::verify);
        let checkpointer = SqliteSaver::on_file(workers.await?, path);
        Ok(SqliteSaver { keeps_verdicts: false, ..checkpointer })
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

    /// One OS thread writes, so calls take effect in order.
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
            let more = self.workers.write(move |db| maintain::prune(db, &thread, keep)).await?;
            gone = usize::saturating_add(gone, more);
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

    async fn alarms(&self, until: SystemTime, limit: usize) -> Result<AlarmPage, Error> {
        self.workers.look(move |db| alarms::page(db, until, limit)).await
    }

    async fn inventory(&self) -> Result<Inventory, Error> {
        self.workers.read(maintain::inventory).await
    }
}
