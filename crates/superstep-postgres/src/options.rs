use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use superstep_checkpoint::Error;
use tokio_postgres::Config;

use crate::tls;

/// Where a database is and how to use it.
///
/// ```no_run
/// # async fn example() -> Result<(), superstep_checkpoint::Error> {
/// use std::time::Duration;
/// use superstep_postgres::{Options, PostgresSaver};
///
/// let url = "postgres://app:secret@db.example.org/agents?sslmode=require";
/// let options = Options::new(url).pool_size(16).statement_timeout(Duration::from_secs(5));
/// let saver = PostgresSaver::connect(options).await?;
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

    /// At most this many connections at a time; ten unless said otherwise.
    ///
    /// Calls that find all of them in use wait for one.
    #[must_use]
    pub fn pool_size(mut self, connections: usize) -> Self {
        self.pool_size = connections.max(1);
        self
    }

    /// How encrypted connections are made: which authorities are trusted, and the certificate this side shows.
    #[must_use]
    pub fn tls(mut self, config: impl Into<Arc<ClientConfig>>) -> Self {
        self.tls = Some(config.into());
        self
    }

    /// The server gives up a statement that takes longer than this, and the call fails. No limit unless said otherwise.
    ///
    /// It is set for each transaction, so it also holds behind a pooler that shares sessions.
    #[must_use]
    pub fn statement_timeout(mut self, timeout: Duration) -> Self {
        self.statement_timeout = Some(timeout);
        self
    }

    /// How long it may take to make a connection, until the server is ready for the first statement; 15 seconds unless said
    /// otherwise. Then the server counts as gone.
    #[must_use]
    pub fn connect_max(mut self, time: Duration) -> Self {
        self.connect_max = time;
        self
    }

    /// How long the server may take to answer a statement or a transaction; two minutes unless said otherwise.
    ///
    /// A server that takes longer counts as gone, and so does one that never answers, which the network may not tell: the
    /// connection is given up, and the call goes on with another one as [`reconnect_max`](Self::reconnect_max) has it. For what
    /// was being stored, it finds out whether it was. Steps that make tables and build indexes may take as long as they do.
    ///
    /// [`statement_timeout`](Self::statement_timeout) is for a server that is slow and should be: it ends the statement there.
    #[must_use]
    pub fn answer_max(mut self, time: Duration) -> Self {
        self.answer_max = time;
        self
    }

    /// How long a call tries to go on when the server goes away under it; ten seconds unless said otherwise.
    ///
    /// After that it fails. What it was to store may then be stored or not; asking for it again is safe.
    #[must_use]
    pub fn reconnect_max(mut self, time: Duration) -> Self {
        self.reconnect_max = time;
        self
    }

    /// Lets the server plan each statement once for each connection instead of each time, which it spends most of the time
    /// of a small checkpoint on.
    ///
    /// For connections straight to the server. A pooler that gives each transaction another session must keep track of
    /// named statements itself, as PgBouncer does from 1.21 on with `max_prepared_statements`; behind one that does not,
    /// a statement may be another one than was meant.
    #[must_use]
    pub fn prepared(mut self) -> Self {
        self.prepared = true;
        self
    }

    /// What the driver needs to connect.
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
