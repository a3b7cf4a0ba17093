//! Finding items by meaning: vectors, kept by the extension pgvector in the table of LangGraph.

use superstep_checkpoint::{Distance, Error, PutItem, VectorIndex, Vectors};

use crate::checkpointer::read::nth;
use crate::db::{Db, Statement};
use crate::failure::Failure;
use crate::migrate::{self, Plan};

const MIGRATIONS: &str = "CREATE TABLE IF NOT EXISTS vector_migrations (v INTEGER PRIMARY KEY)";

/// The index of the extension takes vectors of at most so many numbers.
const INDEXED_DIMS_MAX: usize = 2000;

/// An index, and what has to be known of the table of its vectors.
#[derive(Debug)]
pub(super) struct Indexed {
    pub(super) index: VectorIndex,
    /// The type of a vector, such as `vector(3)`.
    kind: String,
    insert: String,
}

impl Indexed {
    /// Makes the table, or looks at the one that is there.
    pub(super) async fn prepare(db: &Db, index: VectorIndex) -> Result<Self, Error> {
        require_extension(db).await?;
        let dims = index.dims();
        let table = format!(
            "CREATE TABLE IF NOT EXISTS store_vectors (
                prefix text NOT NULL,
                key text NOT NULL,
                field_name text NOT NULL,
                embedding vector({dims}),
                created_at TIMESTAMP WITH TIME ZONE DEFAULT CURRENT_TIMESTAMP,
                updated_at TIMESTAMP WITH TIME ZONE DEFAULT CURRENT_TIMESTAMP,
                PRIMARY KEY (prefix, key, field_name),
                FOREIGN KEY (prefix, key) REFERENCES store(prefix, key) ON DELETE CASCADE
            )"
        );
        let operators = match index.measure() {
            Distance::Cosine => "vector_cosine_ops",
            Distance::L2 => "vector_l2_ops",
            Distance::InnerProduct => "vector_ip_ops",
        };
        let ann = if dims <= INDEXED_DIMS_MAX {
            format!(
                "CREATE INDEX CONCURRENTLY IF NOT EXISTS store_vectors_embedding_idx ON store_vectors
                    USING hnsw (embedding {operators})"
            )
        } else {
            "SELECT 1".to_owned()
        };
        let steps = ["CREATE EXTENSION IF NOT EXISTS vector", &table, &ann];
        let plan = Plan { table: "vector_migrations", first: MIGRATIONS, steps: &steps };
        migrate::migrate(db, plan).await?;
        let kind = kind_of_vectors(db).await?;
        if !kind.ends_with(&format!("({dims})")) {
            return Err(Error::invalid(format_args!(
                "the table `store_vectors` keeps vectors as `{kind}`, and the index has vectors of {dims} numbers; use \
                 an index of that length, or another database or schema"
            )));
        }
        let insert = format!(
            "INSERT INTO store_vectors (prefix, key, field_name, embedding)
            SELECT p.prefix, p.key, p.field, p.embedding::{kind}
            FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS p(prefix, key, field, embedding)
            ON CONFLICT DO NOTHING"
        );
        Ok(Self { index, kind, insert })
    }

    /// How near `v.embedding` is to a vector given as text, the nearer the greater, as every store counts it.
    pub(super) fn nearness(&self, query: &str) -> String {
        let pair = |operator: &str| format!("(v.embedding {operator} {query}::{})", self.kind);
        match self.index.measure() {
            // The direction of a vector without length is not a number to the extension, and as
            // good as any other here.
            Distance::Cosine => format!("coalesce(nullif(1 - {}, 'NaN'), 0)", pair("<=>")),
            Distance::L2 => format!("-{}", pair("<->")),
            // The extension gives the product below zero, so that less is nearer.
            Distance::InnerProduct => format!("-{}", pair("<#>")),
        }
    }
}

/// Whether there is a table of vectors.
pub(super) async fn are_there(db: &Db) -> Result<bool, Error> {
    let sql = "SELECT to_regclass('store_vectors') IS NOT NULL";
    let rows = db.read(Statement::new(sql)).await.map_err(told)?;
    Ok(rows.first().map(|row| nth(row, 0)).transpose()? == Some(true))
}

fn told(failure: Failure) -> Error {
    failure.told(|| "look for the vectors of the store".to_owned())
}

async fn require_extension(db: &Db) -> Result<(), Error> {
    let sql = "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'vector')
            OR EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector'),
        current_setting('server_version_num')::int / 10000";
    let rows = db.read(Statement::new(sql)).await.map_err(told)?;
    let Some(row) = rows.first() else { return Ok(()) };
    match (nth(row, 0)?, nth::<i32>(row, 1)?) {
        (true, _) => Ok(()),
        (false, version) => Err(Error::invalid(format_args!(
            "finding items by meaning needs the extension `vector` (pgvector), which this PostgreSQL server does not have; \
             install it there, on Debian and Ubuntu with the package `postgresql-{version}-pgvector`"
        ))),
    }
}

/// The type of the column, which another program may have made.
async fn kind_of_vectors(db: &Db) -> Result<String, Error> {
    let sql = "SELECT format_type(atttypid, atttypmod) FROM pg_attribute
        WHERE attrelid = to_regclass('store_vectors') AND attname = 'embedding'";
    let rows = db.read(Statement::new(sql)).await.map_err(told)?;
    let row = rows.first().ok_or_else(|| {
        Error::invalid("the table `store_vectors` has no column `embedding`; it is of another kind")
    })?;
    nth(row, 0)
}

/// A vector as the extension reads it.
pub(super) fn to_text(vector: &[f32]) -> String {
    let numbers: Vec<String> = vector.iter().map(ToString::to_string).collect();
    format!("[{}]", numbers.join(","))
}

/// The vectors of the items of a batch, a list for each column.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// The items that are put, with vectors or without.
    items: (Vec<String>, Vec<String>),
    vectors: (Vec<String>, Vec<String>, Vec<String>, Vec<String>),
}

const CLEAR: &str =
    "DELETE FROM store_vectors v USING unnest($1::text[], $2::text[]) AS p(prefix, key)
    WHERE v.prefix = p.prefix AND v.key = p.key";

impl Rows {
    pub(super) fn push(&mut self, put: &PutItem, vectors: &Vectors) {
        let prefix = put.namespace.join(".");
        for (field, vector) in &vectors.0 {
            self.vectors.0.push(prefix.clone());
            self.vectors.1.push(put.key.clone());
            self.vectors.2.push(field.clone());
            self.vectors.3.push(to_text(vector));
        }
        self.items.0.push(prefix);
        self.items.1.push(put.key.clone());
    }

    /// The statements that replace the vectors of items.
    pub(super) fn statements<'a>(
        &'a self,
        indexed: Option<&'a Indexed>,
    ) -> impl Iterator<Item = Statement<'a>> {
        let (prefixes, keys) = &self.items;
        let cleared = (!keys.is_empty()).then(|| Statement::new(CLEAR).texts(prefixes).texts(keys));
        let (prefixes, keys, fields, vectors) = &self.vectors;
        let inserted = indexed.filter(|_| !keys.is_empty()).map(|indexed| {
            let statement = Statement::new(&indexed.insert).texts(prefixes).texts(keys);
            statement.texts(fields).texts(vectors)
        });
        cleared.into_iter().chain(inserted)
    }
}
