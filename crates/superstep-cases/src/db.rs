//! Where the saver of a case keeps its threads.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use superstep::checkpoint::{
    AnyCheckpointer, CheckpointId, Checkpointer, DeltaHistory, Error, MemorySaver, Put, Query,
    Stored, TaskWrites,
};
use superstep_sqlite::{SqliteSaver, Synchronous};
use tokio::runtime::Runtime;

/// What `--db` says.
#[derive(Clone, Debug)]
pub(crate) enum Db {
    Memory,
    /// A file for each case, gone when the case is over.
    Sqlite,
    /// A file for each case, named after this one and the case, which stays.
    SqliteFiles(PathBuf),
}

impl Db {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "memory" => Ok(Self::Memory),
            None if text == "sqlite" => Ok(Self::Sqlite),
            Some(("sqlite", file)) => Ok(Self::SqliteFiles(file.into())),
            _ => Err(format!("`{text}` is no database: memory, sqlite or sqlite:FILE")),
        }
    }

    /// Storage that is empty, for one case.
    pub(crate) fn fresh(&self, case: &str) -> Result<(AnyCheckpointer, Option<Scratch>), String> {
        match self {
            Self::Memory => Ok((AnyCheckpointer::new(MemorySaver::new()), None)),
            Self::Sqlite => {
                let scratch = Scratch::new()?;
                Ok((open(&scratch.url())?, Some(scratch)))
            }
            Self::SqliteFiles(file) => {
                let extension = file.extension().unwrap_or_default().to_string_lossy().into_owned();
                let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let file = file.with_file_name(format!("{stem}-{case}.{extension}"));
                for left in ["", "-wal", "-shm"] {
                    drop(std::fs::remove_file(format!("{}{left}", file.display())));
                }
                Ok((open(&format!("sqlite:{}", file.display()))?, None))
            }
        }
    }
}

/// The saver behind `sqlite:FILE` or `postgres://…`.
pub(crate) fn open(url: &str) -> Result<AnyCheckpointer, String> {
    let opened = match url.split_once(':') {
        Some(("sqlite", file)) => {
            let file = file.to_owned();
            wait(async move {
                // Nothing here is to outlive the machine.
                let options = SqliteSaver::options().synchronous(Synchronous::Normal);
                options.open(file).await.map(AnyCheckpointer::new)
            })
        }
        Some(("postgres" | "postgresql", _)) => Err(Error::Unsupported("open PostgreSQL yet")),
        _ => Err(Error::invalid(format_args!("`{url}` is no database"))),
    };
    let saver = opened.map_err(|error| format!("cannot open `{url}`: {error}"))?;
    Ok(AnyCheckpointer::new(Still(saver)))
}

/// A directory for one file, gone with this value.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Result<Self, String> {
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let nth = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("superstep-cases-{}-{nth}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path)
            .map_err(|error| format!("cannot make `{}`: {error}", path.display()))?;
        Ok(Self(path))
    }

    pub(crate) fn url(&self) -> String {
        format!("sqlite:{}", self.file().display())
    }

    fn file(&self) -> PathBuf {
        Path::new(&self.0).join("case.db")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// A saver during whose work time stands still.
///
/// Cases run on virtual time, which jumps to the next timer whenever nothing is left to do. Waiting for a database would
/// look like that, and every time limit would strike. So the database is waited for without giving way.
struct Still(AnyCheckpointer);

fn wait<T: Send + 'static>(
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build().map_err(|error| error.to_string())
    });
    let runtime = runtime.as_ref().map_err(Error::invalid)?;
    let (sender, receiver) = std::sync::mpsc::channel();
    runtime.spawn(async move { sender.send(work.await) });
    receiver.recv().map_err(|gone| Error::backend("the database gave no answer", gone))?
}

impl Checkpointer for Still {
    async fn put(&self, put: Put) -> Result<(), Error> {
        let saver = self.0.clone();
        wait(async move { saver.put(put).await })
    }

    async fn put_writes(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        writes: Vec<TaskWrites>,
    ) -> Result<(), Error> {
        let (saver, thread, ns) = (self.0.clone(), thread.to_owned(), ns.to_owned());
        wait(async move { saver.put_writes(&thread, &ns, checkpoint, writes).await })
    }

    async fn get(
        &self,
        thread: &str,
        ns: &str,
        id: Option<CheckpointId>,
    ) -> Result<Option<Stored>, Error> {
        let (saver, thread, ns) = (self.0.clone(), thread.to_owned(), ns.to_owned());
        wait(async move { saver.get(&thread, &ns, id).await })
    }

    async fn list(&self, query: Query) -> Result<Vec<Stored>, Error> {
        let saver = self.0.clone();
        wait(async move { saver.list(query).await })
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), Error> {
        let (saver, thread) = (self.0.clone(), thread.to_owned());
        wait(async move { saver.delete_thread(&thread).await })
    }

    async fn delta_history(
        &self,
        thread: &str,
        ns: &str,
        id: CheckpointId,
        channels: &[Arc<str>],
    ) -> Result<BTreeMap<Arc<str>, DeltaHistory>, Error> {
        let (saver, thread, ns) = (self.0.clone(), thread.to_owned(), ns.to_owned());
        let channels = channels.to_vec();
        wait(async move { saver.delta_history(&thread, &ns, id, &channels).await })
    }
}
