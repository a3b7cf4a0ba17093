//! Long-term memory.

mod rows;
mod schema;
mod time;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rusqlite::Connection;
use serde_json::Value as Json;
use superstep_checkpoint::{
    Distance, Error, Expiry, Item, PutItem, Store, StoreAnswer, StoreOp, Value, VectorIndex,
    Vectors,
};

use crate::options::SqliteOptions;
use crate::worker::{Opening, Workers};
use crate::writer::apart;
use rows::{Found, Near};

/// Stores items in an SQLite file, in the tables of LangGraph's `SqliteStore`. Clones share their
/// connections.
///
/// - Values are stored as JSON, so values that JSON cannot represent (bytes, sets, NaN) are
///   refused.
/// - With an [index](Self::with_index), a search for a query compares the query with every vector
///   of the items that match otherwise. Vectors are deleted and replaced with their item, unlike in
///   LangGraph.
/// - An item keeps its creation time when it is put again, unlike in LangGraph.
#[derive(Clone)]
#[doc(alias = "AsyncSqliteStore")]
pub struct SqliteStore {
    workers: Arc<Workers>,
    expiry: Expiry,
    index: Option<VectorIndex>,
    /// The time of the last put.
    last: Arc<Mutex<SystemTime>>,
}

impl SqliteStore {
    /// Opens a file. Creates the file and its tables if they do not exist. It may be the file of a
    /// checkpointer.
    ///
    /// # Errors
    /// The file cannot be opened, is not a database, or its tables are newer than this program.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, SqliteOptions::default()).await
    }

    /// Opens a file with options; see [`open`](Self::open).
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn open_with(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, Error> {
        Ok(Self::new(Arc::new(
            Workers::open(path.as_ref(), &options, Opening::OrMake, schema::set_up).await?,
        )))
    }

    /// Opens an in-memory database that lives as long as this store and its clones.
    ///
    /// # Errors
    /// SQLite cannot create it.
    pub async fn in_memory() -> Result<Self, Error> {
        let options = SqliteOptions::default();
        Ok(Self::new(Arc::new(Workers::in_memory(&options, schema::set_up).await?)))
    }

    /// The store in the database of a checkpointer, on its connections.
    pub(crate) async fn beside(workers: Arc<Workers>) -> Result<Self, Error> {
        let name = workers.name().to_owned();
        let make = move |db: &Connection| apart(db, || schema::items(db, &name), Result::is_ok)?;
        workers.write(make).await?;
        Ok(Self::new(workers))
    }

    fn new(workers: Arc<Workers>) -> Self {
        let last = Arc::new(Mutex::new(SystemTime::UNIX_EPOCH));
        Self { workers, expiry: Expiry::default(), index: None, last }
    }

    /// Sets the time to live of items.
    #[must_use]
    pub fn with_expiry(mut self, expiry: Expiry) -> Self {
        self.expiry = expiry;
        self
    }

    /// Indexes items that are put from now on for semantic search.
    ///
    /// # Errors
    /// The table of vectors cannot be made, or is newer than this program.
    pub async fn with_index(mut self, index: VectorIndex) -> Result<Self, Error> {
        let name = self.workers.name().to_owned();
        let make = move |db: &Connection| apart(db, || schema::vectors(db, &name), Result::is_ok)?;
        self.workers.write(make).await?;
        self.index = Some(index);
        Ok(self)
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("database", &self.workers.name())
            .finish_non_exhaustive()
    }
}

impl Store for SqliteStore {
    async fn batch(&self, ops: Vec<StoreOp>) -> Result<Vec<StoreAnswer>, Error> {
        ops.iter().try_for_each(StoreOp::check)?;
        let values = ops.iter().map(to_json).collect::<Result<Vec<_>, _>>()?;
        let vectors = VectorIndex::prepare(self.index.as_ref(), &ops).await?;
        let distance = self.index.as_ref().map(VectorIndex::measure).unwrap_or_default();
        let batch = Batch { ops, values, vectors, distance, expiry: self.expiry };
        if batch.changes() {
            let last = self.last.clone();
            return self.workers.write(move |db| batch.run(db, &last)).await;
        }
        // A read does not wait for writers.
        let (answers, read) =
            self.workers.read(move |db| batch.read(db, SystemTime::now())).await?;
        if !read.is_empty() {
            let refresh = move |db: &Connection| refresh(db, &read, SystemTime::now());
            self.workers.write(refresh).await?;
        }
        Ok(answers)
    }

    async fn sweep(&self) -> Result<usize, Error> {
        self.workers.write(|db| rows::sweep(db, SystemTime::now())).await
    }
}

/// A query, with everything that can be prepared outside a transaction.
struct Batch {
    ops: Vec<StoreOp>,
    /// The value of each item to be put.
    values: Vec<Option<String>>,
    vectors: Vec<Vectors>,
    distance: Distance,
    expiry: Expiry,
}

impl Batch {
    fn changes(&self) -> bool {
        self.ops.iter().any(|op| matches!(op, StoreOp::Put(_) | StoreOp::Delete { .. }))
    }

    fn run(&self, db: &Connection, last: &Mutex<SystemTime>) -> Result<Vec<StoreAnswer>, Error> {
        let now = SystemTime::now();
        let (answers, read) = self.read(db, now)?;
        refresh(db, &read, now)?;
        for ((op, json), vectors) in self.ops.iter().zip(&self.values).zip(&self.vectors) {
            match op {
                StoreOp::Put(put) => {
                    let ttl = put.ttl.or(self.expiry.default_ttl);
                    let json = json.as_deref().unwrap_or("null");
                    rows::put(db, put, json, ttl, (now, later(last, now)))?;
                    rows::put_vectors(db, &put.namespace, &put.key, vectors)?;
                }
                StoreOp::Delete { namespace, key } => {
                    rows::delete(db, namespace, key)?;
                    rows::put_vectors(db, namespace, key, &Vectors::default())?;
                }
                StoreOp::Get { .. } | StoreOp::Search(_) | StoreOp::Namespaces(_) => {}
            }
        }
        Ok(answers)
    }

    /// The answers, and the items whose time restarts because they were read.
    fn read(
        &self,
        db: &Connection,
        now: SystemTime,
    ) -> Result<(Vec<StoreAnswer>, Vec<Item>), Error> {
        let mut read = Vec::new();
        let mut note = |found: &Found, asked: Option<bool>| {
            if found.expires && asked.unwrap_or(self.expiry.refresh_on_read) {
                read.push(found.item.clone());
            }
        };
        let mut answers = Vec::with_capacity(self.ops.len());
        for (op, vectors) in self.ops.iter().zip(&self.vectors) {
            answers.push(match op {
                StoreOp::Get { namespace, key, refresh } => {
                    let found = rows::get(db, namespace, key, now)?;
                    found.iter().for_each(|found| note(found, *refresh));
                    StoreAnswer::Item(found.map(|found| found.item))
                }
                StoreOp::Search(search) => {
                    let distance = self.distance;
                    let near = vectors.query().map(|query| Near { query, distance });
                    let found = rows::search(db, search, near.as_ref(), now)?;
                    found.iter().for_each(|found| note(found, search.refresh));
                    StoreAnswer::Items(found.into_iter().map(|found| found.item).collect())
                }
                StoreOp::Namespaces(query) => {
                    StoreAnswer::Namespaces(rows::namespaces(db, query, now)?)
                }
                StoreOp::Put(_) | StoreOp::Delete { .. } => StoreAnswer::Done,
            });
        }
        Ok((answers, read))
    }
}

fn refresh(db: &Connection, read: &[Item], now: SystemTime) -> Result<(), Error> {
    read.iter().try_for_each(|item| rows::refresh(db, item, now))
}

/// The time, a little later than any given out before: it is what items are ordered by, and a clock may stand still or go
/// back.
fn later(last: &Mutex<SystemTime>, now: SystemTime) -> SystemTime {
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    *last = last.checked_add(Duration::from_micros(1)).map_or(now, |next| now.max(next));
    *last
}

/// The value of an item to be put as JSON, if it is the same when it comes back.
fn to_json(op: &StoreOp) -> Result<Option<String>, Error> {
    let StoreOp::Put(PutItem { key, value, .. }) = op else { return Ok(None) };
    let json = Json::from(value.clone());
    if Value::from(json.clone()) != *value {
        return Err(Error::invalid(format_args!(
            "the value of item `{key}` is not JSON; bytes, sets and NaN cannot be stored here"
        )));
    }
    Ok(Some(json.to_string()))
}
