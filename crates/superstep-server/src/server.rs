use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use serde_json::{Map, Value as Json, json};
use superstep::checkpoint::{AnyCheckpointer, AnyStore, MemorySaver, MemoryStore};
use superstep::{AnyGraph, RunError};
use superstep_postgres::PostgresSaver;
use superstep_sqlite::SqliteSaver;
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore, watch};

use crate::access::Caller;
use crate::app::App;
use crate::auth::{Auth, Gatekeeper, SharedAuth};
use crate::events::Hub;
use crate::metrics::Metrics;
use crate::queue::{self, Workers};
use crate::settings::Settings;
use crate::store::{ListQuery, PostgresStore, SqliteStore, Store, StoreError, with_causes};
use crate::tenant::{self, TenantItems};
use crate::time::Micros;
use crate::webhooks;

/// How long events of a run are kept after its end.
const EVENTS_KEPT: Duration = Duration::from_secs(3_600);

/// How long webhooks that were given up are kept.
const WEBHOOKS_KEPT: Duration = Duration::from_secs(30 * 86_400);

/// Where the server keeps everything.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Database {
    /// In memory: gone when the process ends.
    Memory,
    /// In an SQLite file, which is made if it is not there.
    Sqlite(PathBuf),
    /// In PostgreSQL, at this URL. Any number of servers may use it.
    Postgres(String),
}

/// Leaves out the URL of a server, which may have a password in it.
impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("Memory"),
            Self::Sqlite(file) => f.debug_tuple("Sqlite").field(file).finish(),
            Self::Postgres(_) => f.debug_tuple("Postgres").finish_non_exhaustive(),
        }
    }
}

impl std::str::FromStr for Database {
    type Err = ServerError;

    /// `memory`, `sqlite:FILE` or `postgres://USER:PASSWORD@HOST/NAME`.
    fn from_str(text: &str) -> Result<Self, ServerError> {
        match text.split_once(':') {
            None if text == "memory" => Ok(Self::Memory),
            Some(("sqlite", file)) if !file.is_empty() => {
                Ok(Self::Sqlite(file.strip_prefix("//").unwrap_or(file).into()))
            }
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres(text.to_owned())),
            // What was given is not repeated: there may be a password in it.
            _ => Err(ServerError::Setup(
                "the database is `memory`, `sqlite:FILE` or `postgres://USER@HOST/NAME`".to_owned(),
            )),
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

#[cfg(feature = "jwt")]
impl From<crate::auth::BadTokenKey> for ServerError {
    fn from(error: crate::auth::BadTokenKey) -> Self {
        Self::Setup(error.to_string())
    }
}

impl From<StoreError> for ServerError {
    fn from(error: StoreError) -> Self {
        Self::Database(error.to_string())
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
    lease: Duration,
    pending_max: usize,
    body_max: usize,
    streams_max: usize,
    api_keys: Vec<String>,
    auth: Option<SharedAuth>,
    webhooks: webhooks::Policy,
    first_run: Option<(String, Json)>,
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
            lease: Duration::from_secs(15),
            pending_max: 10_000,
            body_max: 16 << 20,
            streams_max: 20_000,
            api_keys: Vec::new(),
            auth: None,
            webhooks: webhooks::Policy::default(),
            first_run: None,
        }
    }

    /// Serves a graph under this name. Its checkpointer and its long-term memory are replaced by those of the server.
    pub fn graph(mut self, name: impl Into<String>, graph: impl Into<AnyGraph>) -> Self {
        self.graphs.push((name.into(), graph.into()));
        self
    }

    /// Runs this graph once with this input if the database has no thread yet, so that there is something to look at.
    pub fn first_run(mut self, graph: impl Into<String>, input: Json) -> Self {
        self.first_run = Some((graph.into(), input));
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

    /// For how long this process is taken for alive after it was last heard of; 15 seconds if nothing is said. It says so three
    /// times in that time. When it has died, another one goes on with its runs after this time.
    pub fn lease(mut self, time: Duration) -> Self {
        self.lease = time.max(Duration::from_millis(100));
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

    /// Lets only those in who have this key, or another one that was given. They are admins of the default tenant.
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.api_keys.push(key.into());
        self
    }

    /// Lets those in whom this knows. Keys of [`Server::api_key`] and of the [`KeyRing`](crate::KeyRing) are looked at first, and what
    /// they may do is decided here, too.
    pub fn auth(mut self, auth: impl Auth) -> Self {
        self.auth = Some(Arc::new(auth));
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
            lease,
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
        let running = self.database(database).workers(workers).lease(lease).start().await?;
        let open = running.app.gatekeeper.is_open();
        let greeting = crate::settings::greeting(address, &graphs, open);
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
        let Opened { checkpointer, items: all_items, store } =
            open(&self.database, self.workers).await?;
        let items = AnyStore::new(TenantItems::new(all_items.clone(), tenant::DEFAULT));
        let mut graphs = BTreeMap::new();
        for (name, graph) in self.graphs {
            graph.check().map_err(|source| ServerError::Graph { name: name.clone(), source })?;
            let graph = graph.with_checkpointer(checkpointer.clone()).with_store(items.clone());
            if graphs.insert(name.clone(), graph).is_some() {
                return Err(ServerError::Setup(format!("two graphs have the name `{name}`")));
            }
        }
        let has_keys = !store.keys().await?.is_empty();
        // It has to be known as alive before it takes a run.
        store.beat(self.lease).await?;
        let kept = i64::try_from(EVENTS_KEPT.as_micros()).unwrap_or(i64::MAX);
        let before = Micros(Micros::now().0.saturating_sub(kept));
        store.forget_events(before).await?;
        store.forget_sessions(before).await?;
        let kept = i64::try_from(WEBHOOKS_KEPT.as_micros()).unwrap_or(i64::MAX);
        store.forget_webhooks(Micros(Micros::now().0.saturating_sub(kept))).await?;
        let app = Arc::new(App {
            graphs,
            checkpointer,
            all_items,
            store,
            hub: Hub::default(),
            wake: Arc::new(Notify::new()),
            free: AtomicUsize::new(0),
            cron_wake: Arc::new(Notify::new()),
            timer_wake: Arc::new(Notify::new()),
            webhook_wake: Arc::new(Notify::new()),
            expiry_wake: Arc::new(Notify::new()),
            webhooks,
            lease: self.lease,
            pending_max: self.pending_max,
            body_max: self.body_max,
            streams: Arc::new(Semaphore::new(self.streams_max)),
            streams_max: self.streams_max,
            metrics: Metrics::default(),
            gatekeeper: Gatekeeper::new(&self.api_keys, has_keys, self.auth),
            prepared: Mutex::default(),
            stopping: watch::Sender::new(false),
        });
        app.prepare(tenant::DEFAULT).await?;
        app.take_back().await?;
        if let Some((graph, input)) = self.first_run {
            begin(&app, &graph, input).await?;
        }
        let workers = Workers::start(&app, self.workers);
        Ok(Running { app, workers })
    }
}

/// The store of the server in a database.
pub(crate) async fn open_store(database: &Database) -> Result<Arc<dyn Store>, ServerError> {
    // One connection is enough for whoever does not serve.
    Ok(match database {
        Database::Memory => Arc::new(SqliteStore::open(None).await?),
        Database::Sqlite(file) => Arc::new(SqliteStore::open(Some(file)).await?),
        Database::Postgres(_) => open(database, 1).await?.store,
    })
}

/// Stores the first run of a database without threads.
async fn begin(app: &Arc<App>, graph: &str, input: Json) -> Result<(), ServerError> {
    if app.store.count_threads(ListQuery::default()).await? > 0 {
        return Ok(());
    }
    let failed = |error: String| {
        ServerError::Setup(format!("the first run, of `{graph}`, cannot be started: {error}"))
    };
    let request = json!({
        "assistant_id": graph, "input": input, "if_not_exists": "create", "stream_resumable": true,
        "stream_mode": ["tasks", "updates", "custom"],
    });
    let request = serde_json::from_value(request).map_err(|error| failed(error.to_string()))?;
    let thread = uuid::Uuid::now_v7().to_string();
    let caller = Caller::owner(tenant::DEFAULT, None, Map::new());
    let run = queue::submit(app, &caller, Some(&thread), request, None).await;
    run.map(drop).map_err(|error| failed(error.detail))
}

/// What is kept in one database.
struct Opened {
    checkpointer: AnyCheckpointer,
    items: AnyStore,
    store: Arc<dyn Store>,
}

async fn open(database: &Database, workers: usize) -> Result<Opened, ServerError> {
    let failed = |error: superstep::checkpoint::Error| ServerError::Database(with_causes(&error));
    Ok(match database {
        Database::Memory => Opened {
            checkpointer: AnyCheckpointer::new(MemorySaver::new()),
            items: AnyStore::new(MemoryStore::new()),
            store: Arc::new(SqliteStore::open(None).await?),
        },
        Database::Sqlite(file) => {
            let checkpointer = SqliteSaver::open(file).await.map_err(failed)?;
            let items = checkpointer.store().await.map_err(failed)?;
            let store = Arc::new(SqliteStore::open(Some(file)).await?);
            let checkpointer = AnyCheckpointer::new(checkpointer);
            Opened { checkpointer, items: AnyStore::new(items), store }
        }
        Database::Postgres(url) => {
            // A connection for each run in progress, and as many for requests.
            let options =
                superstep_postgres::Options::new(url).pool_size(workers.saturating_mul(2));
            let checkpointer = PostgresSaver::connect(options).await.map_err(failed)?;
            let items = checkpointer.store().await.map_err(failed)?;
            let store = Arc::new(PostgresStore::beside(&checkpointer).await.map_err(failed)?);
            let checkpointer = AnyCheckpointer::new(checkpointer);
            Opened { checkpointer, items: AnyStore::new(items), store }
        }
    })
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
        if let Err(error) = self.app.store.leave().await {
            tracing::warn!(%error, "it could not be said that this process ends");
        }
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
        if self.app.gatekeeper.is_open() && !address.ip().is_loopback() {
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
