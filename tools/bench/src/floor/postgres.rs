//! The same rows in a server, with plain SQL.

use std::collections::HashMap;
use std::time::Instant;

use futures_util::future::try_join_all;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Row, Statement};

use super::Mark;
use crate::failure::Failure;
use crate::setting::nanos;

/// A table of the checkpointers, and what its columns hold.
struct Table {
    name: &'static str,
    columns: &'static [(&'static str, Kind)],
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Json,
    Number,
    Bytes,
}

const CHECKPOINTS: Table = Table {
    name: "checkpoints",
    columns: &[
        ("thread_id", Kind::Text),
        ("checkpoint_ns", Kind::Text),
        ("checkpoint_id", Kind::Text),
        ("parent_checkpoint_id", Kind::Text),
        ("type", Kind::Text),
        ("checkpoint", Kind::Json),
        ("metadata", Kind::Json),
    ],
};

const BLOBS: Table = Table {
    name: "checkpoint_blobs",
    columns: &[
        ("thread_id", Kind::Text),
        ("checkpoint_ns", Kind::Text),
        ("channel", Kind::Text),
        ("version", Kind::Text),
        ("type", Kind::Text),
        ("blob", Kind::Bytes),
    ],
};

const WRITES: Table = Table {
    name: "checkpoint_writes",
    columns: &[
        ("thread_id", Kind::Text),
        ("checkpoint_ns", Kind::Text),
        ("checkpoint_id", Kind::Text),
        ("task_id", Kind::Text),
        ("task_path", Kind::Text),
        ("idx", Kind::Number),
        ("channel", Kind::Text),
        ("type", Kind::Text),
        ("blob", Kind::Bytes),
    ],
};

/// The tables in the order in which a commit writes them.
const TABLES: [Table; 3] = [WRITES, BLOBS, CHECKPOINTS];

impl Table {
    /// All rows that came later than the mark, with the transaction that wrote each.
    fn select(&self) -> String {
        let columns: Vec<String> =
            self.columns.iter().map(|(name, kind)| kind.read(name)).collect();
        let (columns, name) = (columns.join(", "), self.name);
        format!(
            "SELECT xmin::text::bigint, {columns} FROM {name} WHERE xmin::text::bigint > $1 ORDER BY 1"
        )
    }

    /// Takes one array for each column.
    fn insert(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        let given = self.columns.iter().enumerate().map(|(at, (_, kind))| kind.array(at + 1));
        let taken = self.columns.iter().map(|(name, kind)| kind.write(name));
        format!(
            "INSERT INTO {} ({names}) SELECT {} FROM unnest({}) AS given ({names})",
            self.name,
            taken.collect::<Vec<_>>().join(", "),
            given.collect::<Vec<_>>().join(", "),
            names = names.join(", "),
        )
    }
}

impl Kind {
    fn read(self, column: &str) -> String {
        match self {
            Self::Json => format!("{column}::text"),
            Self::Text | Self::Number | Self::Bytes => column.to_owned(),
        }
    }

    fn write(self, column: &str) -> String {
        match self {
            Self::Json => format!("{column}::jsonb"),
            Self::Text | Self::Number | Self::Bytes => column.to_owned(),
        }
    }

    fn array(self, at: usize) -> String {
        let kind = match self {
            Self::Text | Self::Json => "text",
            Self::Number => "int4",
            Self::Bytes => "bytea",
        };
        format!("${at}::{kind}[]")
    }

    fn empty(self) -> Column {
        match self {
            Self::Text | Self::Json => Column::Texts(Vec::new()),
            Self::Number => Column::Numbers(Vec::new()),
            Self::Bytes => Column::Bytes(Vec::new()),
        }
    }
}

/// A column of some rows, as it is sent.
#[derive(Debug)]
enum Column {
    Texts(Vec<Option<String>>),
    Numbers(Vec<i32>),
    Bytes(Vec<Option<Vec<u8>>>),
}

impl Column {
    fn push(&mut self, row: &Row, at: usize) -> Result<(), tokio_postgres::Error> {
        match self {
            Self::Texts(texts) => texts.push(row.try_get(at)?),
            Self::Numbers(numbers) => numbers.push(row.try_get(at)?),
            Self::Bytes(bytes) => bytes.push(row.try_get(at)?),
        }
        Ok(())
    }

    fn as_sql(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Texts(texts) => texts,
            Self::Numbers(numbers) => numbers,
            Self::Bytes(bytes) => bytes,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Texts(texts) => texts.len(),
            Self::Numbers(numbers) => numbers.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Texts(texts) => texts.iter().flatten().map(String::len).sum(),
            Self::Numbers(numbers) => 4 * numbers.len(),
            Self::Bytes(bytes) => bytes.iter().flatten().map(Vec::len).sum(),
        }
    }
}

/// What one superstep stores: the writes of its tasks, the values that changed, and the checkpoint that comes out.
#[derive(Debug)]
pub(crate) struct Commit {
    /// Of each table, in the order of [`TABLES`].
    rows: [Vec<Column>; 3],
}

impl Commit {
    fn new() -> Self {
        let empty = |table: Table| table.columns.iter().map(|(_, kind)| kind.empty()).collect();
        Self { rows: TABLES.map(empty) }
    }

    fn push(&mut self, table: usize, row: &Row) -> Result<(), tokio_postgres::Error> {
        let mut columns = self.rows[table].iter_mut().enumerate();
        columns.try_for_each(|(at, column)| column.push(row, at + 1))
    }
}

pub(super) fn counts(commits: &[Commit]) -> (usize, usize, usize) {
    let tables = || commits.iter().flat_map(|commit| &commit.rows);
    let rows = tables().filter_map(|columns| columns.first()).map(Column::len).sum();
    (commits.len(), rows, tables().flatten().map(Column::bytes).sum())
}

async fn connect(url: &str) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    // It ends with the client, which is where a failure shows.
    tokio::spawn(connection);
    Ok(client)
}

/// Removes all threads.
pub(crate) async fn empty(url: &str) -> Result<(), Failure> {
    let names = TABLES.map(|table| table.name).join(", ");
    let all = format!("TRUNCATE {names}, superstep_threads");
    Ok(connect(url).await?.batch_execute(&all).await?)
}

/// The transaction that is running now.
pub(crate) async fn mark(url: &str) -> Result<Mark, Failure> {
    let row = connect(url).await?.query_one("SELECT txid_current() % 4294967296", &[]).await?;
    Ok(Mark { checkpoints: row.try_get(0)?, writes: 0 })
}

/// What was added since, in order. Writes come before the checkpoint that follows the one they belong to, values with the
/// checkpoint that was stored with them or next.
pub(crate) async fn read(url: &str, mark: Mark) -> Result<Vec<Commit>, Failure> {
    let client = connect(url).await?;
    let mut rows = Vec::new();
    for table in &TABLES {
        rows.push(client.query(&table.select(), &[&mark.checkpoints]).await?);
    }
    let [writes, blobs, checkpoints] = <[Vec<Row>; 3]>::try_from(rows).expect("three tables");
    let mut commits = Vec::new();
    let mut after = HashMap::new();
    for (at, row) in checkpoints.iter().enumerate() {
        let mut commit = Commit::new();
        commit.push(2, row)?;
        commits.push(commit);
        after.insert(key(row, 4)?, at);
    }
    for row in &writes {
        let at = match after.get(&key(row, 3)?) {
            Some(at) => *at,
            None => {
                commits.push(Commit::new());
                after.insert(key(row, 3)?, commits.len() - 1);
                commits.len() - 1
            }
        };
        commits[at].push(0, row)?;
    }
    for row in &blobs {
        let xid: i64 = row.try_get(0)?;
        let stored = checkpoints.iter().position(|checkpoint| checkpoint.get::<_, i64>(0) >= xid);
        let at = stored.ok_or("a value was stored without a checkpoint")?;
        commits[at].push(1, row)?;
    }
    Ok(commits)
}

/// The thread, the namespace and the checkpoint in a column.
fn key(row: &Row, checkpoint: usize) -> Result<[Option<String>; 3], tokio_postgres::Error> {
    Ok([row.try_get(1)?, row.try_get(2)?, row.try_get(checkpoint)?])
}

/// Writes them to empty tables, one transaction and one round trip each, and says how long that took.
///
/// The tables have the reference's indexes and nothing of ours. The connection is warm, as that of a checkpointer is: it has planned
/// and run each statement before.
pub(super) async fn write(url: &str, commits: &[Commit]) -> Result<u64, Failure> {
    empty(url).await?;
    let client = connect(url).await?;
    client.batch_execute("SET session_replication_role = replica").await?;
    let mut inserts = Vec::new();
    for table in &TABLES {
        inserts.push(client.prepare(&table.insert()).await?);
    }
    let begin = client.prepare("BEGIN").await?;
    let (end, undo) = (client.prepare("COMMIT").await?, client.prepare("ROLLBACK").await?);
    for commit in commits.iter().cycle().take(commits.len().max(WARM_UP)) {
        send(&client, &begin, &inserts, commit, &undo).await?;
    }
    let began = Instant::now();
    for commit in commits {
        send(&client, &begin, &inserts, commit, &end).await?;
    }
    Ok(nanos(began.elapsed()))
}

/// After so many executions a server plans a statement no more.
const WARM_UP: usize = 10;

/// Sends a transaction, all of it before the first answer.
async fn send(
    client: &Client,
    begin: &Statement,
    inserts: &[Statement],
    commit: &Commit,
    end: &Statement,
) -> Result<(), Failure> {
    let mut sent: Vec<(&Statement, Vec<&(dyn ToSql + Sync)>)> = vec![(begin, Vec::new())];
    let filled = inserts.iter().zip(&commit.rows).filter(|(_, columns)| columns[0].len() > 0);
    sent.extend(
        filled.map(|(insert, columns)| {
            (insert, columns.iter().map(Column::as_sql).collect::<Vec<_>>())
        }),
    );
    sent.push((end, Vec::new()));
    try_join_all(sent.iter().map(|(statement, values)| client.execute(*statement, values))).await?;
    Ok(())
}
