//! Where the checkpointer of a case keeps its threads.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use superstep::checkpoint::{AnyCheckpointer, CheckpointerLayer, Error, MemorySaver, Operation};
use superstep_postgres::PostgresSaver;
use superstep_sqlite::{SqliteSaver, Synchronous};
use tokio::runtime::Runtime;

/// Where `--db postgres` is.
const SERVER: &str = "SUPERSTEP_TEST_POSTGRES";

/// What `--db` says.
#[derive(Clone, Debug)]
pub(crate) enum Db {
    Memory,
    /// A file for each case, gone when the case is over.
    Sqlite,
    /// A file for each case, named after this one and the case, which stays.
    SqliteFiles(PathBuf),
    /// One database on a server, emptied for each case.
    Postgres(Arc<Server>),
}

impl Db {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "memory" => Ok(Self::Memory),
            None if text == "sqlite" => Ok(Self::Sqlite),
            Some(("sqlite", file)) => Ok(Self::SqliteFiles(file.into())),
            None if text == "postgres" => match std::env::var(SERVER) {
                Ok(server) => Ok(Self::Postgres(Arc::new(Server::new(server)))),
                Err(_) => Err(format!(
                    "there is no PostgreSQL server; set {SERVER} to the URL of one, or use `cargo xtask`"
                )),
            },
            Some(("postgres" | "postgresql", _)) => {
                Ok(Self::Postgres(Arc::new(Server::new(text.to_owned()))))
            }
            _ => Err(format!(
                "`{text}` is no database: memory, sqlite, sqlite:FILE, postgres or postgres://SERVER"
            )),
        }
    }

    /// Storage that is empty, for one case.
    pub(crate) fn fresh(&self, case: &str) -> Result<(AnyCheckpointer, Option<Scratch>), String> {
        match self {
            Self::Memory => Ok((AnyCheckpointer::new(MemorySaver::new()), None)),
            Self::Sqlite | Self::Postgres(_) => {
                let scratch = self.scratch()?;
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

impl Db {
    /// A place for one case, which is gone with the value that stands for it.
    pub(crate) fn scratch(&self) -> Result<Scratch, String> {
        match self {
            Self::Postgres(server) => server.empty().map(Scratch::Database),
            Self::Memory | Self::Sqlite | Self::SqliteFiles(_) => Scratch::directory(),
        }
    }
}

/// The checkpointer behind `sqlite:FILE` or `postgres://…`.
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
        Some(("postgres" | "postgresql", _)) => postgres(url),
        _ => Err(Error::invalid(format_args!("`{url}` is no database"))),
    };
    let checkpointer = opened.map_err(|error| format!("cannot open `{url}`: {error}"))?;
    Ok(AnyCheckpointer::new(Still(checkpointer)))
}

/// The checkpointer of a database. All cases use one, so it is kept: a case may leave graphs behind that know each other, and
/// with them the connections of their checkpointer.
fn postgres(url: &str) -> Result<AnyCheckpointer, Error> {
    static OPEN: Mutex<BTreeMap<String, AnyCheckpointer>> = Mutex::new(BTreeMap::new());
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(checkpointer) = open.get(url) {
        return Ok(checkpointer.clone());
    }
    let place = url.to_owned();
    let checkpointer =
        wait(async move { PostgresSaver::connect(&place).await.map(AnyCheckpointer::new) })?;
    open.insert(url.to_owned(), checkpointer.clone());
    Ok(checkpointer)
}

/// A place for one case.
#[derive(Debug)]
pub(crate) enum Scratch {
    /// For one file; gone with this value.
    Directory(PathBuf),
    /// A database, by its URL.
    Database(String),
}

fn new_name() -> String {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let nth = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("conformance_runner_{}_{nth}", std::process::id())
}

impl Scratch {
    fn directory() -> Result<Self, String> {
        let path = std::env::temp_dir().join(new_name());
        std::fs::create_dir_all(&path)
            .map_err(|error| format!("cannot make `{}`: {error}", path.display()))?;
        Ok(Self::Directory(path))
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Directory(path) => format!("sqlite:{}", path.join("case.db").display()),
            Self::Database(url) => url.clone(),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Self::Directory(path) = self {
            drop(std::fs::remove_dir_all(path));
        }
    }
}

/// A server with a database for the cases, which is made when the first one needs it and gone with this value.
#[derive(Debug)]
pub(crate) struct Server {
    url: String,
    database: OnceLock<String>,
}

impl Server {
    fn new(url: String) -> Self {
        Self { url, database: OnceLock::new() }
    }

    /// The URL of the database, in which there is nothing now. To make its tables takes longer than to run a case, so they
    /// stay.
    fn empty(&self) -> Result<String, String> {
        let (server, options) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let (server, _) = server.rsplit_once('/').unwrap_or((server, ""));
        let mark = if options.is_empty() { "" } else { "?" };
        let url = |name: &str| format!("{server}/{name}{mark}{options}");
        if let Some(name) = self.database.get() {
            let url = url(name);
            let tables = "checkpoints, checkpoint_blobs, checkpoint_writes";
            on_server(&url, format!("TRUNCATE {tables}"))
                .map_err(|error| format!("cannot empty `{url}`: {error}"))?;
            return Ok(url);
        }
        let name = new_name();
        on_server(&self.url, format!("CREATE DATABASE {name}"))
            .map_err(|error| format!("cannot make a database on `{}`: {error}", self.url))?;
        let url = url(self.database.get_or_init(|| name));
        open(&url).map(|_| url)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(name) = self.database.get() {
            drop(on_server(&self.url, format!("DROP DATABASE {name} WITH (FORCE)")));
        }
    }
}

fn on_server(server: &str, statement: String) -> Result<(), Error> {
    let server = server.to_owned();
    wait(async move {
        let said = |error| Error::backend("the server refused", error);
        let (client, connection) =
            tokio_postgres::connect(&server, tokio_postgres::NoTls).await.map_err(said)?;
        let connection = tokio::spawn(connection);
        let done = client.batch_execute(&statement).await.map_err(said);
        connection.abort();
        done
    })
}

/// A checkpointer during whose work time stands still.
///
/// Cases run on virtual time, which jumps to the next timer whenever nothing is left to do. Waiting for a database would
/// look like that, and every time limit would strike. So the database is waited for without giving way.
struct Still(AnyCheckpointer);

/// Waits for work on a runtime where time is real, on a thread that belongs to no other runtime.
fn wait<T: Send>(work: impl Future<Output = Result<T, Error>> + Send) -> Result<T, Error> {
    static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build().map_err(|error| error.to_string())
    });
    let runtime = runtime.as_ref().map_err(Error::invalid)?;
    std::thread::scope(|scope| scope.spawn(|| runtime.block_on(work)).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl CheckpointerLayer for Still {
    fn inner(&self) -> &AnyCheckpointer {
        &self.0
    }

    async fn around<T: Send>(
        &self,
        _: Operation,
        work: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        wait(work)
    }

    /// Nothing is asked for while something is waited for.
    fn in_order(&self) -> bool {
        false
    }
}
