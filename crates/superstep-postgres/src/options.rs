use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use superstep_checkpoint::Error;
use tokio_postgres::Config;

use crate::tls;

/// The options of a connection.
///
/// ```no_run
/// # async fn example() -> Result<(), superstep_checkpoint::Error> {
/// use std::time::Duration;
/// use superstep_postgres::{Options, PostgresSaver};
///
/// let url = "postgres://app:secret@db.example.org/agents?sslmode=require";
/// let options = Options::new(url).pool_size(16).statement_timeout(Duration::from_secs(5));
/// let checkpointer = PostgresSaver::connect(options).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Options {
    url: String,
    tls: Option<Arc<ClientConfig>>,
    pub(crate) pool_size: usize,
    pub(crate) statement_timeout: Option<Duration>,
    pub(crate) reconnect_max: Duration,
    pub(crate) connect_max: Duration,
    pub(crate) answer_max: Duration,
    pub(crate) prepared: bool,
}

impl Options {
    /// The database at this URL, or with this list of `key=value` pairs, as `psql` takes them.
    ///
    /// `sslmode` is `disable`, `prefer` (the default: encrypted if the server can), `require` or `verify-full`. An encrypted
    /// connection is always to a server whose certificate was checked, so the last two are the same. It is checked against
    /// the authorities in the PEM file that `sslrootcert` names, those of [`tls`](Self::tls), or those this machine trusts.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            tls: None,
            pool_size: 10,
            statement_timeout: None,
            reconnect_max: Duration::from_secs(10),
            connect_max: Duration::from_secs(15),
            answer_max: Duration::from_secs(120),
            prepared: false,
        }
    }

    /// The maximum number of connections. The default is ten.
    ///
    /// Calls wait while all of them are in use.
    #[must_use]
    pub fn pool_size(mut self, connections: usize) -> Self {
        self.pool_size = connections.max(1);
        self
    }

    /// The TLS configuration: trusted authorities and the client certificate.
    #[must_use]
    pub fn tls(mut self, config: impl Into<Arc<ClientConfig>>) -> Self {
        self.tls = Some(config.into());
        self
    }

    /// Sets the server's limit on the time of a statement; the call then fails. There is no limit
    /// by default.
    ///
    /// It is set for each transaction, so it also holds behind a pooler that shares sessions.
    #[must_use]
    pub fn statement_timeout(mut self, timeout: Duration) -> Self {
        self.statement_timeout = Some(timeout);
        self
    }

    /// The time limit for making a connection, until the server is ready for the first statement.
    /// The default is 15 seconds. Then the server counts as unreachable.
    #[must_use]
    pub fn connect_max(mut self, time: Duration) -> Self {
        self.connect_max = time;
        self
    }

    /// The time limit for the answer to a statement or a transaction. The default is two minutes.
    ///
    /// A server that takes longer counts as unreachable: the connection is closed, and the call
    /// retries on another one as [`reconnect_max`](Self::reconnect_max) has it. For writes, it
    /// finds out whether they were stored. Migrations have no limit.
    ///
    /// [`statement_timeout`](Self::statement_timeout) ends slow statements on the server instead.
    #[must_use]
    pub fn answer_max(mut self, time: Duration) -> Self {
        self.answer_max = time;
        self
    }

    /// How long a call retries when the server is unreachable. The default is ten seconds.
    ///
    /// Then it fails. Its writes may be stored or not; repeating the call is safe.
    #[must_use]
    pub fn reconnect_max(mut self, time: Duration) -> Self {
        self.reconnect_max = time;
        self
    }

    /// Uses prepared statements: the server plans each statement once per connection, which is most
    /// of the cost of a small checkpoint.
    ///
    /// Only for direct connections to the server, or for a pooler that tracks prepared statements,
    /// as PgBouncer does from 1.21 on with `max_prepared_statements`. Behind another pooler, a name
    /// may refer to a wrong statement.
    #[must_use]
    pub fn prepared(mut self) -> Self {
        self.prepared = true;
        self
    }

    /// The configuration of the driver.
    pub(crate) fn driver(&self) -> Result<(Config, tls::Connector), Error> {
        let (url, roots) = tls::take_roots(&self.url)?;
        let config: Config = url
            .parse()
            // The URL itself stays out of the message, since there is a password in it.
            .map_err(|error| Error::backend("the URL of the database cannot be understood", error))?;
        let connector = tls::connector(&config, self.tls.as_ref(), roots.as_deref())?;
        Ok((config, connector))
    }
}

impl From<&str> for Options {
    fn from(url: &str) -> Self {
        Self::new(url)
    }
}

impl From<String> for Options {
    fn from(url: String) -> Self {
        Self::new(url)
    }
}

impl From<&String> for Options {
    fn from(url: &String) -> Self {
        Self::new(url)
    }
}

/// Leaves out the URL, which has a password in it.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("pool_size", &self.pool_size)
            .field("statement_timeout", &self.statement_timeout)
            .field("reconnect_max", &self.reconnect_max)
            .field("connect_max", &self.connect_max)
            .field("answer_max", &self.answer_max)
            .field("prepared", &self.prepared)
            .finish_non_exhaustive()
    }
}
