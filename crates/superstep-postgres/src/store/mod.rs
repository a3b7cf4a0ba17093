//! Long-term memory.

mod filter;
mod vectors;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::Value as Json;
use superstep_checkpoint::{
    Error, Expiry, Item, Namespace, NamespaceQuery, PutItem, Search, Store, StoreAnswer, StoreOp,
    Value, VectorIndex, Vectors,
};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::checkpointer::read::{column, nth};
use crate::db::{Db, Statement};
use crate::failure::Failure;
use crate::migrate::{self, Plan};
use crate::options::Options;
use crate::text::{check_text, json_has_nul};
use vectors::Indexed;

const PLAN: Plan<'_> = Plan {
    table: "store_migrations",
    first: "CREATE TABLE IF NOT EXISTS store_migrations (v INTEGER PRIMARY KEY)",
    steps: &[
        "CREATE TABLE IF NOT EXISTS store (
            prefix text NOT NULL,
            key text NOT NULL,
            value jsonb NOT NULL,
            created_at TIMESTAMP WITH TIME ZONE DEFAULT CURRENT_TIMESTAMP,
            updated_at TIMESTAMP WITH TIME ZONE DEFAULT CURRENT_TIMESTAMP,
            PRIMARY KEY (prefix, key)
        )",
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS store_prefix_idx ON store USING btree (prefix text_pattern_ops)",
        "ALTER TABLE store ADD COLUMN IF NOT EXISTS expires_at TIMESTAMP WITH TIME ZONE,
            ADD COLUMN IF NOT EXISTS ttl_minutes INT",
        "CREATE INDEX IF NOT EXISTS idx_store_expires_at ON store (expires_at) WHERE expires_at IS NOT NULL",
    ],
};

/// Stores items in PostgreSQL, in the tables of LangGraph's `PostgresStore`. Clones share their
/// connections.
///
/// - Values are stored as JSON, so values that JSON cannot represent (bytes, sets, NaN) are
///   refused.
/// - Expiry uses the server's clock. The table stores the time to live in minutes, rounded up, so
///   an item whose time restarts may live up to a minute longer.
/// - Numbers are compared as numbers; LangGraph compares their digits.
/// - With an [index](Self::with_index), a search for a query compares the query with every vector
///   of the items that match otherwise, in the server. Vectors are deleted and replaced with their
///   item, unlike in LangGraph.
#[derive(Clone, Debug)]
#[doc(alias = "AsyncPostgresStore")]
pub struct PostgresStore {
    db: Db,
    expiry: Expiry,
    indexed: Option<Arc<Indexed>>,
    /// Whether items may have vectors.
    has_vectors: bool,
}

impl PostgresStore {
    /// Connects to a database, and creates or migrates the tables if necessary.
    ///
    /// Any number of processes may do so at once.
    ///
    /// # Errors
    /// The server cannot be reached or refuses, or the tables are newer than this program.
    pub async fn connect(options: impl Into<Options>) -> Result<Self, Error> {
        let db = Db::new(&options.into())?;
        migrate::migrate(&db, PLAN).await?;
        let has_vectors = vectors::are_there(&db).await?;
        Ok(Self { db, expiry: Expiry::default(), indexed: None, has_vectors })
    }

    /// Sets the time to live of items.
    #[must_use]
    pub fn with_expiry(mut self, expiry: Expiry) -> Self {
        self.expiry = expiry;
        self
    }

    /// Indexes items that are put from now on for semantic search.
    ///
    /// The vectors are kept by the extension [pgvector](https://github.com/pgvector/pgvector), in
    /// the table of LangGraph's `PostgresStore`, which is made if it does not exist. Stores without
    /// an index that were connected before leave the vectors of what they put as they are.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the server does not have the extension, or if the table is there and has vectors of another length.
    pub async fn with_index(mut self, index: VectorIndex) -> Result<Self, Error> {
        self.indexed = Some(Arc::new(Indexed::prepare(&self.db, index).await?));
        self.has_vectors = true;
        Ok(self)
    }
}

const LIVES: &str = "(s.expires_at IS NULL OR s.expires_at > now())";

/// Items in a form that a value of any type comes through: times as microseconds since 1970.
const ITEM: &str = "s.prefix, s.key, s.value::text AS value,
    (extract(epoch FROM s.created_at) * 1000000)::bigint AS created,
    (extract(epoch FROM s.updated_at) * 1000000)::bigint AS updated";

/// Restarts the time to live of found items. The statement returns the items as they were before,
/// which differ only in that.
const REFRESHED: &str = "refreshed AS (
        UPDATE store s SET expires_at = now() + make_interval(mins => s.ttl_minutes)
        FROM found WHERE $1 AND s.prefix = found.prefix AND s.key = found.key AND s.ttl_minutes IS NOT NULL
    )";

/// Clocks stand still and go back; items are ordered by the time they were last put, so that of two puts the later one has
/// to have the later time.
const PUT: &str = "INSERT INTO store AS s (prefix, key, value, created_at, updated_at, expires_at, ttl_minutes)
    SELECT p.prefix, p.key, p.value::jsonb, t.now, t.now,
        now() + make_interval(secs => p.seconds), ceil(p.seconds / 60)::int
    FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[]) WITH ORDINALITY AS p(prefix, key, value, seconds, nth)
    CROSS JOIN LATERAL (SELECT clock_timestamp() + make_interval(secs => p.nth * 0.000001) AS now) t
    ON CONFLICT (prefix, key) DO UPDATE SET value = EXCLUDED.value,
        created_at = CASE WHEN s.expires_at <= now() THEN EXCLUDED.created_at ELSE s.created_at END,
        updated_at = greatest(EXCLUDED.updated_at, s.updated_at + interval '1 microsecond'),
        expires_at = EXCLUDED.expires_at, ttl_minutes = EXCLUDED.ttl_minutes";

const DELETE: &str = "DELETE FROM store s USING unnest($1::text[], $2::text[]) AS p(prefix, key)
    WHERE s.prefix = p.prefix AND s.key = p.key";

impl Store for PostgresStore {
    async fn batch(&self, ops: Vec<StoreOp>) -> Result<Vec<StoreAnswer>, Error> {
        ops.iter().try_for_each(StoreOp::check)?;
        let index = self.indexed.as_ref().map(|indexed| &indexed.index);
        let vectors = VectorIndex::prepare(index, &ops).await?;
        let reads = ops.iter().zip(&vectors).map(|(op, vectors)| self.read(op, vectors));
        let reads = reads.collect::<Result<Vec<_>, _>>()?;
        let changes = Changes::new(&ops, &vectors, self.expiry)?;
        let (reads, changes) = (&reads, &changes);
        let answered = self.db.insist(move |_| async move {
            let mut statements: Vec<Statement<'_>> =
                reads.iter().flatten().map(Question::statement).collect();
            statements.extend(changes.statements());
            if self.has_vectors {
                statements.extend(changes.vectors.statements(self.indexed.as_deref()));
            }
            let statements: Vec<&Statement<'_>> = statements.iter().collect();
            // Storing the same once more changes nothing but times, so it can be sent again.
            self.db.transact(&statements).await
        });
        let rows = answered.await.map_err(|failure: Failure| {
            failure.told_of_change(|| "read or change items of the store".to_owned())
        })?;
        let mut rows = rows.iter();
        ops.iter()
            .zip(reads)
            .map(|(op, read)| match read {
                None => Ok(StoreAnswer::Done),
                Some(_) => answer(op, rows.next().map(Vec::as_slice).unwrap_or_default()),
            })
            .collect()
    }

    async fn sweep(&self) -> Result<usize, Error> {
        let sql = "WITH gone AS (DELETE FROM store WHERE expires_at <= now() RETURNING 1) SELECT count(*) FROM gone";
        let swept = self.db.insist(move |_| async move {
            let rows = self.db.transact(&[&Statement::new(sql)]).await?;
            match rows.first().and_then(|rows| rows.first()) {
                Some(row) => Ok(nth::<i64>(row, 0)?),
                None => Ok(0),
            }
        });
        let count = swept
            .await
            .map_err(|failure| failure.told_of_change(|| "sweep the store".to_owned()))?;
        usize::try_from(count).map_err(Error::codec)
    }
}

impl PostgresStore {
    /// The query of an operation; `None` for one that only writes.
    fn read(&self, op: &StoreOp, vectors: &Vectors) -> Result<Option<Question>, Error> {
        let refresh = |asked: Option<bool>| asked.unwrap_or(self.expiry.refresh_on_read);
        Ok(match op {
            StoreOp::Get { namespace, key, refresh: asked } => {
                check_text("key", key)?;
                let mut question = Question::items(refresh(*asked));
                let (prefix, key) =
                    (question.text(namespace.join(".")), question.text(key.clone()));
                question.find(&format!("s.prefix = {prefix} AND s.key = {key}"));
                Some(question)
            }
            StoreOp::Search(search) => {
                let mut question = Question::items(refresh(search.refresh));
                if let (Some(indexed), Some(query)) = (&self.indexed, vectors.query()) {
                    let query = question.text(vectors::to_text(query));
                    question.nearness = Some(indexed.nearness(&query));
                }
                question.search(search)?;
                Some(question)
            }
            StoreOp::Namespaces(_) => Some(Question {
                sql: format!("SELECT DISTINCT s.prefix FROM store s WHERE {LIVES}"),
                ..Question::items(false)
            }),
            StoreOp::Put(_) | StoreOp::Delete { .. } => None,
        })
    }
}

/// A statement that is put together from known parts, with everything a caller gave as a parameter.
#[derive(Debug)]
struct Question {
    sql: String,
    refresh: Option<bool>,
    texts: Vec<String>,
    /// The similarity of `v.embedding` and the query.
    nearness: Option<String>,
}

impl Question {
    fn items(refresh: bool) -> Self {
        Self { sql: String::new(), refresh: Some(refresh), texts: Vec::new(), nearness: None }
    }

    /// Adds a parameter, and gives its name.
    fn text(&mut self, text: String) -> String {
        self.texts.push(text);
        format!("${}::text", self.texts.len().saturating_add(1))
    }

    fn search(&mut self, search: &Search) -> Result<(), Error> {
        let mut wanted = "true".to_owned();
        if !search.prefix.is_empty() {
            let prefix = search.prefix.join(".");
            // The index of prefixes serves patterns; what stands for itself in one is escaped.
            let escaped = prefix.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
            let (prefix, below) = (self.text(prefix), self.text(format!("{escaped}.%")));
            wanted += &format!(" AND (s.prefix = {prefix} OR s.prefix LIKE {below})");
        }
        for (key, value) in &search.filter {
            wanted += &format!(" AND {}", filter::equal(self, key, value)?);
        }
        for condition in &search.conditions {
            wanted += &format!(" AND {}", filter::holds(self, condition)?);
        }
        #[expect(clippy::disallowed_methods, reason = "no table has more rows")]
        let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        // By labels, as everywhere: a dot would stand between letters, but no label has one.
        self.find(&format!(
            "{wanted} ORDER BY n.score DESC, s.updated_at, string_to_array(s.prefix, '.') COLLATE \"C\", \
             s.key COLLATE \"C\" LIMIT {} OFFSET {}",
            number(search.limit),
            number(search.offset)
        ));
        Ok(())
    }

    /// An item is as near as the nearest of its vectors, and is not found if it has none.
    fn find(&mut self, wanted: &str) {
        let score = self.nearness.as_ref().map_or_else(
            || "CROSS JOIN (SELECT NULL::float8 AS score) n".to_owned(),
            |nearness| {
                format!(
                    "JOIN LATERAL (SELECT max({nearness}) AS score FROM store_vectors v
                        WHERE v.prefix = s.prefix AND v.key = s.key) n ON n.score IS NOT NULL"
                )
            },
        );
        self.sql = format!(
            "WITH found AS MATERIALIZED (SELECT {ITEM}, n.score FROM store s {score} WHERE {LIVES} AND {wanted}), {REFRESHED}
            SELECT * FROM found"
        );
    }

    fn statement(&self) -> Statement<'_> {
        let mut statement = Statement::new(&self.sql);
        // The listing of namespaces has no parameters at all.
        if let (Some(refresh), true) = (&self.refresh, self.sql.contains("$1")) {
            statement = statement.bind(refresh, Type::BOOL);
        }
        self.texts.iter().fold(statement, |statement, text| statement.text(text))
    }
}

/// The puts and deletes of a batch, one list per column.
#[derive(Debug, Default)]
struct Changes {
    put: (Vec<String>, Vec<String>, Vec<String>, Vec<Option<f64>>),
    deleted: (Vec<String>, Vec<String>),
    vectors: vectors::Rows,
}

impl Changes {
    fn new(ops: &[StoreOp], vectors: &[Vectors], expiry: Expiry) -> Result<Self, Error> {
        // The last of several operations on an item counts, and puts are in the order in which they were asked.
        let mut last: BTreeMap<(&Namespace, &str), usize> = BTreeMap::new();
        for (nth, op) in ops.iter().enumerate() {
            match op {
                StoreOp::Put(PutItem { namespace, key, .. })
                | StoreOp::Delete { namespace, key } => {
                    check_text("key", key)?;
                    last.insert((namespace, key), nth);
                }
                StoreOp::Get { .. } | StoreOp::Search(_) | StoreOp::Namespaces(_) => {}
            }
        }
        let mut order: Vec<usize> = last.into_values().collect();
        order.sort_unstable();
        let mut changes = Self::default();
        for nth in order {
            let Some(op) = ops.get(nth) else { continue };
            match op {
                StoreOp::Put(put) => {
                    changes.put.0.push(put.namespace.join("."));
                    changes.put.1.push(put.key.clone());
                    changes.put.2.push(to_json(put)?);
                    let ttl = put.ttl.or(expiry.default_ttl);
                    changes.put.3.push(ttl.map(|ttl| ttl.as_secs_f64()));
                    changes.vectors.push(put, vectors.get(nth).ok_or_else(missing_vectors)?);
                }
                StoreOp::Delete { namespace, key } => {
                    changes.deleted.0.push(namespace.join("."));
                    changes.deleted.1.push(key.clone());
                }
                StoreOp::Get { .. } | StoreOp::Search(_) | StoreOp::Namespaces(_) => {}
            }
        }
        Ok(changes)
    }

    fn statements(&self) -> impl Iterator<Item = Statement<'_>> {
        let (prefixes, keys, values, seconds) = &self.put;
        let put = (!keys.is_empty()).then(|| {
            Statement::new(PUT)
                .texts(prefixes)
                .texts(keys)
                .texts(values)
                .bind(seconds, Type::FLOAT8_ARRAY)
        });
        let (prefixes, keys) = &self.deleted;
        let deleted =
            (!keys.is_empty()).then(|| Statement::new(DELETE).texts(prefixes).texts(keys));
        put.into_iter().chain(deleted)
    }
}

/// The value as JSON, if it is the same when it comes back.
fn to_json(put: &PutItem) -> Result<String, Error> {
    let json = Json::from(put.value.clone());
    if Value::from(json.clone()) != put.value {
        return Err(Error::invalid(format_args!(
            "the value of item `{}` is not JSON; bytes, sets and NaN cannot be stored here",
            put.key
        )));
    }
    let text = json.to_string();
    if json_has_nul(&text) {
        return Err(Error::invalid(format_args!(
            "the value of item `{}` has text with NUL in it, which PostgreSQL cannot store; leave it out",
            put.key
        )));
    }
    Ok(text)
}

fn answer(op: &StoreOp, rows: &[Row]) -> Result<StoreAnswer, Error> {
    Ok(match op {
        StoreOp::Get { .. } => StoreAnswer::Item(rows.first().map(item).transpose()?),
        StoreOp::Search(_) => StoreAnswer::Items(rows.iter().map(item).collect::<Result<_, _>>()?),
        StoreOp::Namespaces(query) => StoreAnswer::Namespaces(namespaces(query, rows)?),
        StoreOp::Put(_) | StoreOp::Delete { .. } => StoreAnswer::Done,
    })
}

fn namespaces(query: &NamespaceQuery, rows: &[Row]) -> Result<Vec<Namespace>, Error> {
    let all = rows.iter().map(|row| Ok(labels(column(row, "prefix")?)));
    let all = all.collect::<Result<Vec<_>, Error>>()?.into_iter();
    Ok(query.select(all.filter(|namespace| query.matches(namespace))))
}

fn missing_vectors() -> Error {
    Error::invalid("an item came without the list of its vectors")
}

fn labels(prefix: &str) -> Namespace {
    prefix.split('.').map(str::to_owned).collect()
}

fn item(row: &Row) -> Result<Item, Error> {
    let (prefix, key): (&str, &str) = (column(row, "prefix")?, column(row, "key")?);
    let unread = |error: &dyn std::fmt::Display| {
        Error::codec(format_args!("item `{key}` of `{prefix}` cannot be read: {error}"))
    };
    let value: Json =
        serde_json::from_str(column(row, "value")?).map_err(|error| unread(&error))?;
    let time = |name| {
        let micros: Option<i64> = column(row, name)?;
        time(micros).ok_or_else(|| unread(&"its time is none that is understood"))
    };
    Ok(Item {
        namespace: labels(prefix),
        key: key.to_owned(),
        value: Value::from(value),
        created_at: time("created")?,
        updated_at: time("updated")?,
        score: column(row, "score")?,
    })
}

/// Rows of the other engine may have no time.
fn time(micros: Option<i64>) -> Option<SystemTime> {
    let micros = micros.unwrap_or_default();
    let distance = Duration::from_micros(micros.unsigned_abs());
    if micros < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(distance)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(distance)
    }
}
