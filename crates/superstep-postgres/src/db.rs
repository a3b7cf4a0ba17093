//! Connections, and what is sent over them.
//!
//! No call leaves state in a session, so that a pooler may give each transaction another session:
//! statements are unnamed unless [`Options::prepared`] allows names, settings and locks end with
//! their transaction. A transaction is sent at once, from `BEGIN` to `COMMIT`, without waiting for
//! answers in between; so it takes one round trip, and a future that is dropped has either sent all
//! of it or nothing.

use std::fmt;
use std::future::{Future, poll_fn};
use std::time::Duration;

use deadpool_postgres::{
    ClientWrapper, Manager, ManagerConfig, Object, Pool, PoolError, QueueMode, RecyclingMethod,
    Runtime, Timeouts,
};
use futures_util::future::{join, join_all, try_join_all};
use superstep_checkpoint::{Error, StorageId};
use tokio::time::Instant;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, Row};

use crate::failure::Failure;
use crate::options::Options;
use crate::tls::Connector;

/// The first pause before a retry; each further one is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(10);
/// The longest such pause.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// A database and its connection pool.
#[derive(Clone)]
pub(crate) struct Db {
    pool: Pool,
    begin: String,
    timed: bool,
    prepared: bool,
    reconnect_max: Duration,
    connect_max: Duration,
    answer_max: Duration,
    config: Config,
    connector: Connector,
}

/// A statement with its parameters.
pub(crate) struct Statement<'a> {
    pub(crate) sql: &'a str,
    pub(crate) params: Vec<(&'a (dyn ToSql + Sync), Type)>,
}

impl<'a> Statement<'a> {
    pub(crate) fn new(sql: &'a str) -> Self {
        Self { sql, params: Vec::new() }
    }

    pub(crate) fn bind(mut self, value: &'a (dyn ToSql + Sync), kind: Type) -> Self {
        self.params.push((value, kind));
        self
    }

    pub(crate) fn text(self, value: &'a (dyn ToSql + Sync)) -> Self {
        self.bind(value, Type::TEXT)
    }

    pub(crate) fn texts(self, value: &'a (dyn ToSql + Sync)) -> Self {
        self.bind(value, Type::TEXT_ARRAY)
    }

    /// Executes it, prepared or unnamed.
    async fn run(
        &self,
        client: &ClientWrapper,
        named: Option<&tokio_postgres::Statement>,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        match named {
            None => client.query_typed(self.sql, &self.params).await,
            Some(named) => {
                let values: Vec<_> = self.params.iter().map(|(value, _)| *value).collect();
                client.query(named, &values).await
            }
        }
    }

    /// Its prepared statement on this connection, if prepared statements are allowed.
    async fn name(
        &self,
        client: &ClientWrapper,
        prepared: bool,
    ) -> Result<Option<tokio_postgres::Statement>, tokio_postgres::Error> {
        if !prepared {
            return Ok(None);
        }
        let kinds: Vec<_> = self.params.iter().map(|(_, kind)| kind.clone()).collect();
        client.prepare_typed_cached(self.sql, &kinds).await.map(Some)
    }
}

/// The attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// Nothing was sent before.
    First,
    /// A repetition: the first may have taken effect.
    Again,
}

impl Db {
    /// The id of the storage: equal settings, without the password, give equal ids.
    pub(crate) fn storage(&self) -> StorageId {
        StorageId::named(&format!("{:?}", self.config))
    }

    pub(crate) fn new(options: &Options) -> Result<Self, Error> {
        let (config, connector) = options.driver()?;
        let manager_config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(config.clone(), connector.clone(), manager_config);
        let pool = Pool::builder(manager)
            .max_size(options.pool_size)
            .create_timeout(Some(options.connect_max))
            // The connection that was used last has its plans and what they need at hand.
            .queue_mode(QueueMode::Lifo)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| Error::backend("no pool of connections can be made", error))?;
        let begin = options.statement_timeout.map_or_else(
            || "BEGIN".to_owned(),
            |timeout| {
                format!("BEGIN; SET LOCAL statement_timeout = {}", timeout.as_millis().max(1))
            },
        );
        Ok(Self {
            pool,
            timed: options.statement_timeout.is_some(),
            prepared: options.prepared,
            begin,
            reconnect_max: options.reconnect_max,
            connect_max: options.connect_max,
            answer_max: options.answer_max,
            config,
            connector,
        })
    }

    /// A connection outside the pool, for work that needs one to itself.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        self.connect_and_hear(drop).await
    }

    /// As [`connect`](Self::connect), with what the server says unasked.
    pub(crate) async fn connect_and_hear(
        &self,
        mut hear: impl FnMut(AsyncMessage) + Send + 'static,
    ) -> Result<Client, Failure> {
        let connected = self.config.connect(self.connector.clone());
        let (client, mut connection) = within(self.connect_max, connected).await?;
        tokio::spawn(async move {
            while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
                match message {
                    Ok(message) => hear(message),
                    Err(error) => {
                        tracing::debug!(%error, "a connection to PostgreSQL ended");
                        return;
                    }
                }
            }
        });
        Ok(client)
    }

    pub(crate) async fn client(&self) -> Result<Object, Failure> {
        let begun = std::time::Instant::now();
        match self.pool.get().await {
            Err(PoolError::Timeout(_)) if begun.elapsed() < self.connect_max => {
                Ok(self.pool.timeout_get(&Timeouts::new()).await?)
            }
            got => Ok(got?),
        }
    }

    /// Runs a query; if the connection is lost, retries it on another one.
    pub(crate) async fn read(&self, statement: Statement<'_>) -> Result<Vec<Row>, Failure> {
        let statement = &statement;
        self.insist(move |_| async move {
            let client = self.client().await?;
            let asked = within(self.answer_max, async {
                if !self.timed {
                    let named = statement.name(&client, self.prepared).await?;
                    return statement.run(&client, named.as_ref()).await;
                }
                let mut rows = self.pipeline(&client, &[statement]).await?;
                Ok(rows.pop().unwrap_or_default())
            });
            let rows = asked.await;
            give_back(client, &rows);
            rows
        })
        .await
    }

    /// Limits the time of an answer. A connection that exceeds it is discarded.
    pub(crate) async fn in_time<T, E>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Error>
    where
        E: Into<Failure>,
    {
        within(self.answer_max, work).await.map_err(Failure::unreached)
    }

    /// Runs statements as one transaction in one round trip. If one of them fails, none of them was run.
    pub(crate) async fn transact(
        &self,
        statements: &[&Statement<'_>],
    ) -> Result<Vec<Vec<Row>>, Failure> {
        let client = self.client().await?;
        let rows = within(self.answer_max, self.pipeline(&client, statements)).await;
        give_back(client, &rows);
        rows
    }

    /// As [`transact`](Self::transact), for statements one of which divides by zero if none of them is to be kept. Says whether
    /// they were.
    pub(crate) async fn transact_unless_divided_by_zero(
        &self,
        statements: &[&Statement<'_>],
    ) -> Result<bool, Failure> {
        let client = self.client().await?;
        match self.pipeline(&client, statements).await {
            Err(error) if error.code() == Some(&SqlState::DIVISION_BY_ZERO) => Ok(false),
            done => Ok(done.map(|_| true)?),
        }
    }

    async fn pipeline(
        &self,
        client: &ClientWrapper,
        statements: &[&Statement<'_>],
    ) -> Result<Vec<Vec<Row>>, tokio_postgres::Error> {
        let names = names(self.prepared, client, statements).await?;
        // Each future sends what it has when it is first polled, and they are polled in this order.
        let begin = client.batch_execute(&self.begin);
        let inner = run_all(client, statements, &names);
        let commit = client.batch_execute("COMMIT");
        let (begun, (rows, committed)) = join(begin, join(inner, commit)).await;
        begun?;
        // After a failure the server silently treats `COMMIT` as `ROLLBACK`.
        let rows = rows?;
        committed?;
        Ok(rows)
    }

    /// Opens a transaction that is committed later, when its first answers are known. It is rolled
    /// back if it is dropped before.
    pub(crate) async fn open(
        &self,
        statements: &[&Statement<'_>],
    ) -> Result<(Open, Vec<Vec<Row>>), Failure> {
        let held = Some(self.client().await?);
        let open = Open { held, prepared: self.prepared, answer_max: self.answer_max };
        let client = open.client()?;
        let begun = within(self.answer_max, async {
            let names = names(self.prepared, client, statements).await?;
            let begin = client.batch_execute(&self.begin);
            let (begun, rows) = join(begin, run_all(client, statements, &names)).await;
            begun?;
            rows
        });
        let rows = begun.await?;
        Ok((open, rows))
    }

    /// Retries an operation until it succeeds, fails permanently, or the server has been
    /// unreachable for too long.
    pub(crate) async fn insist<T, F>(
        &self,
        mut attempt: impl FnMut(Attempt) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let mut which = Attempt::First;
        let mut pause = PAUSE_FIRST;
        let mut deadline = None;
        loop {
            let failure = match attempt(which).await {
                Err(failure @ (Failure::Lost(_) | Failure::Undone(_))) => failure,
                done => return done,
            };
            // A time that is too far away to be told never comes.
            let now = Instant::now();
            let deadline = *deadline.get_or_insert_with(|| now.checked_add(self.reconnect_max));
            let next = now.checked_add(pause);
            if deadline.is_some_and(|deadline| next.is_none_or(|next| next > deadline)) {
                return Err(failure);
            }
            if matches!(failure, Failure::Lost(_)) {
                which = Attempt::Again;
            }
            tokio::time::sleep(pause).await;
            pause = pause.saturating_mul(2).min(PAUSE_MAX);
        }
    }
}

/// Runs an operation with a time limit. A server that exceeds it counts as unreachable.
async fn within<T, E: Into<Failure>>(
    limit: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, Failure> {
    let begun = std::time::Instant::now();
    let mut work = std::pin::pin!(work);
    match tokio::time::timeout(limit, work.as_mut()).await {
        Ok(done) => done.map_err(Into::into),
        // A paused test clock jumps while everything waits for the network.
        Err(_) if begun.elapsed() < limit => work.await.map_err(Into::into),
        Err(_) => Err(Failure::no_answer(limit)),
    }
}

/// Gives a connection back to the pool, unless its server has gone: what it answers later would be taken for the answer to
/// something else.
fn give_back<T>(client: Object, done: &Result<T, Failure>) {
    if matches!(done, Err(Failure::Lost(_))) {
        drop(Object::take(client));
    }
}

/// The names of statements, which have to be known before any of them is sent: to ask for one in between would be to wait.
async fn names(
    prepared: bool,
    client: &ClientWrapper,
    statements: &[&Statement<'_>],
) -> Result<Vec<Option<tokio_postgres::Statement>>, tokio_postgres::Error> {
    try_join_all(statements.iter().map(|statement| statement.name(client, prepared))).await
}

/// Sends statements one after the other, without waiting in between.
async fn run_all(
    client: &ClientWrapper,
    statements: &[&Statement<'_>],
    names: &[Option<tokio_postgres::Statement>],
) -> Result<Vec<Vec<Row>>, tokio_postgres::Error> {
    let each = statements.iter().zip(names);
    let each = each.map(|(statement, named)| statement.run(client, named.as_ref()));
    join_all(each).await.into_iter().collect()
}

/// A transaction that is neither committed nor undone yet.
pub(crate) struct Open {
    held: Option<Object>,
    prepared: bool,
    answer_max: Duration,
}

impl Open {
    fn client(&self) -> Result<&ClientWrapper, Failure> {
        let held = self.held.as_deref();
        held.ok_or_else(|| Error::invalid("a transaction was used after its end").into())
    }

    /// Runs the last statements and commits.
    pub(crate) async fn commit(mut self, statements: &[&Statement<'_>]) -> Result<(), Failure> {
        let client = self.client()?;
        let committed = within(self.answer_max, async {
            let names = names(self.prepared, client, statements).await?;
            let inner = run_all(client, statements, &names);
            let (rows, committed) = join(inner, client.batch_execute("COMMIT")).await;
            rows?;
            committed
        });
        committed.await?;
        drop(self.held.take());
        Ok(())
    }

    pub(crate) async fn end(mut self, with: &str) -> Result<(), Failure> {
        within(self.answer_max, self.client()?.batch_execute(with)).await?;
        // Only now may others have the connection.
        drop(self.held.take());
        Ok(())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // A connection in the middle of a transaction must not go back to the pool; closing it undoes the transaction.
        if let Some(object) = self.held.take() {
            drop(Object::take(object));
        }
    }
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the configuration: it has the password.
        f.debug_struct("Db").field("pool", &self.pool.status()).finish_non_exhaustive()
    }
}
