//! Tables of a program, in the database of its checkpoints and through the same connections.
//!
//! It is for the server of superstep, which keeps its runs here. It makes no promise of stability.

use std::fmt;
use std::future::Future;

use superstep_checkpoint::Error;
use tokio::sync::mpsc;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Row};

use crate::checkpointer::PostgresSaver;
use crate::db::{Attempt, Db, Open, Statement};
use crate::failure;
use crate::migrate::{self, Plan};

/// Why a transaction failed, and whether trying it again may help.
#[derive(Debug)]
pub struct Failure(failure::Failure);

impl Failure {
    /// The error for a caller that wanted to do `what`.
    pub fn told(self, what: &str) -> Error {
        self.0.told_of_change(|| what.to_owned())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error.into())
    }
}

impl From<failure::Failure> for Failure {
    fn from(failure: failure::Failure) -> Self {
        Self(failure)
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self(error.into())
    }
}

/// A statement that owns its parameters.
pub struct Sql {
    text: String,
    params: Vec<(Box<dyn ToSql + Sync + Send>, Type)>,
}

impl fmt::Debug for Sql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the parameters: they are the users' data.
        f.debug_struct("Sql").field("text", &self.text).finish_non_exhaustive()
    }
}

impl Sql {
    /// A statement with the parameters `$1`, `$2` and so on, which are then given in this order.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), params: Vec::new() }
    }

    /// More of the text.
    #[must_use]
    pub fn and(mut self, text: &str) -> Self {
        self.text.push_str(text);
        self
    }

    fn bind(mut self, value: impl ToSql + Sync + Send + 'static, kind: Type) -> Self {
        self.params.push((Box::new(value), kind));
        self
    }

    /// A text.
    #[must_use]
    pub fn text(self, value: impl Into<String>) -> Self {
        self.bind(value.into(), Type::TEXT)
    }

    /// A text, or nothing.
    #[must_use]
    pub fn maybe_text(self, value: Option<String>) -> Self {
        self.bind(value, Type::TEXT)
    }

    /// A number.
    #[must_use]
    pub fn int(self, value: i64) -> Self {
        self.bind(value, Type::INT8)
    }

    /// A number, or nothing.
    #[must_use]
    pub fn maybe_int(self, value: Option<i64>) -> Self {
        self.bind(value, Type::INT8)
    }

    /// A list of texts.
    #[must_use]
    pub fn texts(self, values: Vec<String>) -> Self {
        self.bind(values, Type::TEXT_ARRAY)
    }

    /// A list of numbers.
    #[must_use]
    pub fn ints(self, values: Vec<i64>) -> Self {
        self.bind(values, Type::INT8_ARRAY)
    }

    fn statement(&self) -> Statement<'_> {
        let mut statement = Statement::new(&self.text);
        for (value, kind) in &self.params {
            let value: &(dyn ToSql + Sync) = &**value;
            statement = statement.bind(value, kind.clone());
        }
        statement
    }
}

/// The tables of a program.
#[derive(Clone, Debug)]
pub struct Tables {
    db: Db,
}

#[doc(hidden)]
impl PostgresSaver {
    /// Tables that these steps make. Each step is taken once; `table` counts them.
    ///
    /// # Errors
    /// The server cannot be reached or refuses, or more steps have been taken than there are.
    pub async fn tables(&self, table: &str, steps: &[&str]) -> Result<Tables, Error> {
        let first = format!("CREATE TABLE IF NOT EXISTS {table} (v INTEGER PRIMARY KEY)");
        let db = self.db();
        migrate::migrate(db, Plan { table, first: &first, steps }).await?;
        Ok(Tables { db: db.clone() })
    }
}

impl Tables {
    /// Reads rows.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    pub async fn read(&self, sql: &Sql) -> Result<Vec<Row>, Failure> {
        Ok(self.db.read(sql.statement()).await?)
    }

    /// Runs statements as one transaction. They are sent again if the connection is lost, so doing them twice must be as
    /// good as doing them once.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    pub async fn run(&self, sql: &[Sql]) -> Result<Vec<Vec<Row>>, Failure> {
        let statements: Vec<_> = sql.iter().map(Sql::statement).collect();
        let statements: &Vec<_> = &statements.iter().collect();
        Ok(self.db.insist(move |_| async move { self.db.transact(statements).await }).await?)
    }

    /// Tries until it succeeds, fails for good, or the server could not be reached for too long. An attempt is told whether an
    /// earlier one may have been committed.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    pub async fn insist<T, F>(&self, mut attempt: impl FnMut(bool) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let done = self.db.insist(move |which| {
            let tried = attempt(which == Attempt::Again);
            async move { tried.await.map_err(|failure| failure.0) }
        });
        Ok(done.await?)
    }

    /// Begins a transaction with these statements.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    pub async fn begin(&self, sql: &[Sql]) -> Result<(Transaction, Vec<Vec<Row>>), Failure> {
        let statements: Vec<_> = sql.iter().map(Sql::statement).collect();
        let statements: Vec<_> = statements.iter().collect();
        let (open, rows) = self.db.open(&statements).await?;
        Ok((Transaction { open }, rows))
    }

    /// What is sent to a channel from now on. A pooler that gives each transaction another session delivers nothing.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    pub async fn listen(&self, channel: &str) -> Result<Listener, Error> {
        let (told, received) = mpsc::unbounded_channel();
        let hear = move |message| {
            if let AsyncMessage::Notification(sent) = message {
                // An error means that nobody listens any more.
                let _ = told.send(sent.payload().to_owned());
            }
        };
        let unheard = |failure: failure::Failure| failure.told(|| format!("listen to `{channel}`"));
        let client = self.db.connect_and_hear(hear).await.map_err(unheard)?;
        let listen = format!("LISTEN {channel}");
        self.db.in_time(client.batch_execute(&listen)).await?;
        Ok(Listener { _client: client, received })
    }
}

/// Hears what is sent to a channel, on a connection of its own.
#[derive(Debug)]
pub struct Listener {
    /// The connection lives as long as this.
    _client: Client,
    received: mpsc::UnboundedReceiver<String>,
}

impl Listener {
    /// The next message; nothing once the connection is lost.
    pub async fn next(&mut self) -> Option<String> {
        self.received.recv().await
    }
}

/// A transaction that is not committed yet. It is rolled back if it is dropped.
pub struct Transaction {
    open: Open,
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").finish_non_exhaustive()
    }
}

impl Transaction {
    /// Runs the last statements and commits.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    pub async fn commit(self, sql: &[Sql]) -> Result<(), Failure> {
        let statements: Vec<_> = sql.iter().map(Sql::statement).collect();
        let statements: Vec<_> = statements.iter().collect();
        Ok(self.open.commit(&statements).await?)
    }
}
