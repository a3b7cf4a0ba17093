use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use superstep::checkpoint::{AnyCheckpointer, AnyStore, MemorySaver, MemoryStore};
use superstep::{AnyGraph, RunError};
use superstep_sqlite::SqliteSaver;
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore, watch};

use crate::app::{App, default_assistant};
use crate::events::Hub;
use crate::metrics::Metrics;
use crate::queue::Workers;
use crate::settings::Settings;
use crate::store::{Assistant, SqliteStore, Store, StoreError};
use crate::time::Micros;
use crate::webhooks;

/// How often a run is begun before it is given up.
const ATTEMPTS_MAX: u32 = 3;
/// How long events of a run are kept after its end.
const EVENTS_KEPT: Duration = Duration::from_secs(3_600);

/// How long webhooks that were given up are kept.
const WEBHOOKS_KEPT: Duration = Duration::from_secs(30 * 86_400);

/// Where the server keeps everything.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Database {
    /// In memory: gone when the process ends.
    Memory,
    /// In an SQLite file, which is made if it is not there.
    Sqlite(PathBuf),
}

impl std::str::FromStr for Database {
    type Err = ServerError;

    /// `memory` or `sqlite:FILE`.
    fn from_str(text: &str) -> Result<Self, ServerError> {
        match text.split_once(':') {
            None if text == "memory" => Ok(Self::Memory),
            Some(("sqlite", file)) if !file.is_empty() => {
                Ok(Self::Sqlite(file.strip_prefix("//").unwrap_or(file).into()))
            }
            Some(("postgres" | "postgresql", _)) => Err(ServerError::Setup(
                "the server does not keep its threads in PostgreSQL yet; use sqlite:FILE"
                    .to_owned(),
            )),
            // What was given is not repeated: there may be a password in it.
            _ => Err(ServerError::Setup("the database is `memory` or `sqlite:FILE`".to_owned())),
        }
    }
}

/// Why a server did not start, or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// What it was told to do cannot be done.
    #[error("{0}")]
    Setup(String),
    /// A graph cannot be served.
    #[error("graph `{name}` cannot be served")]
    Graph {
        /// The name it was registered under.
        name: String,
        /// Why.
        source: RunError,
    },
    /// The database could not be opened.
    #[error("the database could not be opened: {0}")]
    Database(String),
    /// The address could not be listened on, or a connection could not be accepted.
    #[error("the server cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
}

impl From<StoreError> for ServerError {
    fn from(error: StoreError) -> Self {
        Self::Database(error.0)
    }
}

/// A server of graphs. Register graphs, then [`start`](Self::start) it.
///
/// ```
/// # use superstep::prelude::*;
/// # #[derive(State, Clone, Default)]
/// # struct Counter { #[channel(reduce = Sum)] count: i64 }
/// # async fn add() -> CounterUpdate { Counter::update().count(1) }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let graph = StateGraph::<Counter>::new().add_node("add", add).add_edge(START, "add").compile()?;
/// let server = superstep_server::Server::new().graph("counter", graph).start().await?;
/// let router: axum::Router = server.router();
/// # let _ = router;
/// server.shutdown(std::time::Duration::from_secs(1)).await;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[must_use = "a server does nothing until it is started"]
pub struct Server {
    graphs: Vec<(String, AnyGraph)>,
    database: Database,
    workers: usize,
    pending_max: usize,
    body_max: usize,
    streams_max: usize,
    api_keys: Vec<String>,
    webhooks: webhooks::Policy,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let graphs: Vec<_> = self.graphs.iter().map(|(name, _)| name).collect();
        f.debug_struct("Server").field("graphs", &graphs).finish_non_exhaustive()
    }
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

impl Server {
    /// A server without graphs, which keeps everything in memory.
    pub fn new() -> Self {
        Self {
            graphs: Vec::new(),
            database: Database::Memory,
            workers: 10,
            pending_max: 10_000,
            body_max: 16 << 20,
            streams_max: 20_000,
            api_keys: Vec::new(),
            webhooks: webhooks::Policy::default(),
        }
    }

    /// Serves a graph under this name. Its checkpointer and its long-term memory are replaced by those of the server.
    pub fn graph(mut self, name: impl Into<String>, graph: impl Into<AnyGraph>) -> Self {
        self.graphs.push((name.into(), graph.into()));
        self
    }

    /// Keeps everything in this database.
    pub fn database(mut self, database: Database) -> Self {
        self.database = database;
        self
    }

    /// How many runs are driven at the same time; 10 if nothing is said.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// How many runs may wait before further ones are refused with 429; 10,000 if nothing is said.
    pub fn pending_max(mut self, runs: usize) -> Self {
        self.pending_max = runs;
        self
    }

    /// The largest body of a request, in bytes; 16 MiB if nothing is said.
    pub fn body_max(mut self, bytes: usize) -> Self {
        self.body_max = bytes;
        self
    }

    /// How many answers may wait for runs at the same time before further ones are refused with 429; 20,000 if nothing is said.
    pub fn streams_max(mut self, streams: usize) -> Self {
        self.streams_max = streams.min(Semaphore::MAX_PERMITS);
        self
    }

    /// Lets only those in who have this key, or another one that was given.
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.api_keys.push(key.into());
        self
    }

    /// Signs webhooks with this secret. The header `superstep-signature` is `t=<unix seconds>,v1=<hex>`, where the second part
    /// is the HMAC-SHA256 of `<unix seconds>.<body>`.
    pub fn webhook_secret(mut self, secret: impl Into<String>) -> Self {
        self.webhooks.secret = Some(secret.into());
        self
    }

    /// Whether webhooks may go to this machine and to private networks. Allow it only if all clients are trusted.
    pub fn private_webhooks(mut self, allowed: bool) -> Self {
        self.webhooks.allow_private = allowed;
        self
    }

    /// Runs as a program of its own, as arguments and environment say ([`Settings`]), until it is told to end.
    ///
    /// # Errors
    /// The arguments make no sense, a graph cannot be served, or the database or the address cannot be used.
    pub async fn run(self) -> Result<(), ServerError> {
        self.run_with(Settings::from_process()?).await
    }

    /// Runs as a program of its own until it is told to end.
    ///
    /// # Errors
    /// A graph cannot be served, or the database or the address cannot be used.
    pub async fn run_with(mut self, settings: Settings) -> Result<(), ServerError> {
        let Settings {
            database,
            listen,
            api_keys,
            workers,
            webhook_secret,
            private_webhooks,
            grace,
        } = settings;
        self.webhooks.secret = webhook_secret.or(self.webhooks.secret);
        self.webhooks.allow_private |= private_webhooks;
        self.api_keys.extend(api_keys);
        let graphs: Vec<_> = self.graphs.iter().map(|(name, _)| name.clone()).collect();
        let listener = TcpListener::bind(listen)
            .await
            .map_err(|source| ServerError::Listen { address: listen, source })?;
        let address = listener.local_addr().unwrap_or(listen);
        let running = self.database(database).workers(workers).start().await?;
        let greeting = crate::settings::greeting(address, &graphs);
        // The server runs even if its output is closed.
        drop(writeln!(std::io::stdout(), "{greeting}"));
        running.serve(listener, crate::settings::told_to_end(), grace).await
    }

    /// Opens the database and starts the workers. They continue the runs that another process left.
    ///
    /// # Errors
    /// A graph cannot be served, or the database could not be opened.
    pub async fn start(self) -> Result<Running, ServerError> {
        if self.api_keys.iter().any(String::is_empty) {
            return Err(ServerError::Setup("an API key cannot be empty".to_owned()));
        }
        let webhooks = webhooks::Client::new(self.webhooks)
            .map_err(|error| ServerError::Setup(format!("TLS cannot be set up: {error}")))?;
        let (checkpointer, items, file) = open(&self.database).await?;
        let mut graphs = BTreeMap::new();
        for (name, graph) in self.graphs {
            graph.check().map_err(|source| ServerError::Graph { name: name.clone(), source })?;
            let graph = graph.with_checkpointer(checkpointer.clone()).with_store(items.clone());
            if graphs.insert(name.clone(), graph).is_some() {
                return Err(ServerError::Setup(format!("two graphs have the name `{name}`")));
            }
        }
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(file).await?);
        for name in graphs.keys() {
            // It may be there from an earlier start, and may have been changed since.
            drop(store.create_assistant(default_for(name)).await?);
        }
        let left = store.recover(ATTEMPTS_MAX).await?;
        if left > 0 {
            tracing::info!(runs = left, "continuing runs that another process left");
        }
        let kept = i64::try_from(EVENTS_KEPT.as_micros()).unwrap_or(i64::MAX);
        let before = Micros(Micros::now().0.saturating_sub(kept));
        store.forget_events(before).await?;
        store.forget_sessions(before).await?;
        let kept = i64::try_from(WEBHOOKS_KEPT.as_micros()).unwrap_or(i64::MAX);
        store.forget_webhooks(Micros(Micros::now().0.saturating_sub(kept))).await?;
        let app = Arc::new(App {
            graphs,
            checkpointer,
            items,
            store,
            hub: Hub::default(),
            wake: Arc::new(Notify::new()),
            cron_wake: Arc::new(Notify::new()),
            timer_wake: Arc::new(Notify::new()),
            webhook_wake: Arc::new(Notify::new()),
            webhooks,
            pending_max: self.pending_max,
            body_max: self.body_max,
            streams: Arc::new(Semaphore::new(self.streams_max)),
            streams_max: self.streams_max,
            metrics: Metrics::default(),
            api_keys: self.api_keys,
            stopping: watch::Sender::new(false),
        });
        let workers = Workers::start(&app, self.workers);
        Ok(Running { app, workers })
    }
}

async fn open(
    database: &Database,
) -> Result<(AnyCheckpointer, AnyStore, Option<&Path>), ServerError> {
    let failed = |error: superstep::checkpoint::Error| ServerError::Database(error.to_string());
    match database {
        Database::Memory => {
            let checkpointer = AnyCheckpointer::new(MemorySaver::new());
            Ok((checkpointer, AnyStore::new(MemoryStore::new()), None))
        }
        Database::Sqlite(file) => {
            let checkpointer = SqliteSaver::open(file).await.map_err(failed)?;
            let items = checkpointer.store().await.map_err(failed)?;
            Ok((AnyCheckpointer::new(checkpointer), AnyStore::new(items), Some(file)))
        }
    }
}

fn default_for(graph: &str) -> Assistant {
    let now = Micros::now();
    let empty = || serde_json::Value::Object(serde_json::Map::new());
    Assistant {
        assistant_id: default_assistant(graph),
        graph_id: graph.to_owned(),
        name: graph.to_owned(),
        description: None,
        config: empty(),
        context: empty(),
        metadata: [("created_by".to_owned(), "system".into())].into_iter().collect(),
        version: 1,
        created_at: now,
        updated_at: now,
    }
}

/// A server that is running. Dropping it stops its workers where they are; what they have stored stays.
pub struct Running {
    app: Arc<App>,
    workers: Workers,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

impl Running {
    /// The endpoints, for an application of one's own. They work while this is not dropped.
    pub fn router(&self) -> Router {
        crate::routes::router(self.app.clone())
    }

    #[cfg(test)]
    pub(crate) fn app(&self) -> &App {
        &self.app
    }

    #[cfg(test)]
    pub(crate) fn app_handle(&self) -> Arc<App> {
        self.app.clone()
    }

    /// Stops: no run is taken any more, and running supersteps finish within the grace time. Runs that are not over by then
    /// continue at the next start.
    pub async fn shutdown(mut self, grace: Duration) {
        self.app.stop();
        drop(tokio::time::timeout(grace, self.workers.ended()).await);
    }

    /// Serves connections until `stop` completes, and shuts down. What is still open after the grace time is dropped.
    ///
    /// # Errors
    /// The address is not a loopback address and there is no API key, or connections cannot be accepted.
    pub async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
        grace: Duration,
    ) -> Result<(), ServerError> {
        let any = SocketAddr::from(([0, 0, 0, 0], 0));
        let address =
            listener.local_addr().map_err(|source| ServerError::Listen { address: any, source })?;
        if self.app.api_keys.is_empty() && !address.ip().is_loopback() {
            return Err(ServerError::Setup(format!(
                "no API key is set, so the server does not listen on {address}; give it an API key, or a loopback address"
            )));
        }
        let app = self.app.clone();
        let stopped = async move {
            stop.await;
            app.stop();
        };
        let mut stopping = self.app.stopping.subscribe();
        let late = async move {
            // The sender lives as long as the server does.
            drop(stopping.wait_for(|stopping| *stopping).await);
            tokio::time::sleep(grace).await;
        };
        let served = axum::serve(listener, self.router()).with_graceful_shutdown(stopped);
        let ended = tokio::select! {
            ended = served => ended,
            () = late => Ok(()),
        };
        self.shutdown(grace).await;
        ended.map_err(|source| ServerError::Listen { address, source })
    }
}
