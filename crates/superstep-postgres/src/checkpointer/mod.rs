//! Checkpoints.

mod alarms;
mod history;
mod inline;
mod maintain;
mod plain;
pub(crate) mod read;
mod rows;
mod schema;
mod store;
mod threads;
mod verdicts;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value as Json;
use superstep_checkpoint::{
    AlarmPage, CheckpointId, Checkpointer, DeltaHistory, Error, Inventory, Prune, Put, Query,
    StorageId, Stored, TaskWrites, ThreadPage, ThreadQuery,
};
use tokio_postgres::types::Type;

use crate::db::{Db, Statement};
use crate::options::Options;
use crate::store::PostgresStore;
use crate::text::json_has_nul;
use read::whole_checkpoints;
use threads::Listing;

/// Stores checkpoints in PostgreSQL, in the tables of LangGraph's `PostgresSaver`.
///
/// Clones share their connections. The [crate documentation](crate) describes its behaviour.
#[derive(Clone, Debug)]
#[doc(alias = "AsyncPostgresSaver")]
pub struct PostgresSaver {
    db: Db,
    listing: Listing,
}

impl PostgresSaver {
    /// Connects to a database, and creates or migrates the tables if necessary.
    ///
    /// Any number of processes may do so at once.
    ///
    /// # Errors
    /// The server cannot be reached or refuses the connection, or the tables are newer than this
    /// program or of another kind.
    pub async fn connect(options: impl Into<Options>) -> Result<Self, Error> {
        let db = Db::new(&options.into())?;
        let listing = schema::prepare(&db).await?;
        Ok(Self { db, listing })
    }

    /// Connects to a database without changing its tables.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), or the tables are missing or older than this program.
    pub async fn connect_existing(options: impl Into<Options>) -> Result<Self, Error> {
        let db = Db::new(&options.into())?;
        let listing = schema::verify(&db).await?;
        Ok(Self { db, listing })
    }

    /// The long-term memory in the same database, over the same connections.
    ///
    /// # Errors
    /// As [`PostgresStore::connect`].
    pub async fn store(&self) -> Result<PostgresStore, Error> {
        PostgresStore::beside(self.db.clone()).await
    }

    pub(crate) fn db(&self) -> &Db {
        &self.db
    }
}

/// The checkpoint with a certain id.
macro_rules! addressed {
    () => {
        "WITH c AS (
            SELECT 1::int8 AS nth, * FROM checkpoints
            WHERE thread_id = $1 AND checkpoint_ns = $2 AND checkpoint_id = $3
        ) "
    };
}

const GET: &str = concat!(addressed!(), whole_checkpoints!());

const GET_OF_ANY_FORMAT: &str = concat!(addressed!(), whole_checkpoints!(of any format));

const GET_HEAD: &str = concat!(
    "WITH c AS (
        SELECT 1::int8 AS nth, * FROM checkpoints WHERE thread_id = $1 AND checkpoint_ns = $2
        ORDER BY checkpoint_id DESC LIMIT 1
    ) ",
    whole_checkpoints!()
);

const LIST: &str = concat!(
    "WITH found AS (
        SELECT * FROM checkpoints
        WHERE ($1::text IS NULL OR thread_id = $1) AND ($2::text IS NULL OR checkpoint_ns = $2)
            AND ($3::text IS NULL OR checkpoint_id = $3) AND ($4::text IS NULL OR checkpoint_id < $4)
            AND NOT EXISTS (
                SELECT FROM jsonb_each($5::text::jsonb) AS f(key, value)
                WHERE coalesce(metadata -> f.key, 'null') <> f.value
            )
        ORDER BY checkpoint_id DESC, thread_id COLLATE \"C\", checkpoint_ns COLLATE \"C\" LIMIT $6
    ), c AS (
        SELECT row_number() OVER (
            ORDER BY checkpoint_id DESC, thread_id COLLATE \"C\", checkpoint_ns COLLATE \"C\"
        ) AS nth, * FROM found
    ) ",
    whole_checkpoints!(of any format)
);

impl Checkpointer for PostgresSaver {
    fn storage(&self) -> Option<StorageId> {
        Some(self.db.storage())
    }

    async fn put(&self, put: Put) -> Result<(), Error> {
        store::put(&self.db, &put).await
    }

    async fn put_all(&self, puts: Vec<Put>) -> Result<(), Error> {
        store::put_all(&self.db, &puts).await
    }

    async fn put_writes(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        writes: Vec<TaskWrites>,
    ) -> Result<(), Error> {
        store::put_writes(&self.db, thread, ns, checkpoint, &writes).await
    }

    async fn get(
        &self,
        thread: &str,
        ns: &str,
        id: Option<CheckpointId>,
    ) -> Result<Option<Stored>, Error> {
        if has_nul(&[thread, ns]) {
            return Ok(None);
        }
        let read = async |statement| {
            let rows = self.db.read(statement).await;
            let rows =
                rows.map_err(|failure| failure.told(|| format!("read thread `{thread}`")))?;
            Ok::<_, Error>(read::stored(&rows)?.pop())
        };
        let id = id.map(|id| id.to_string());
        let found = match &id {
            Some(id) => read(Statement::new(GET).text(&thread).text(&ns).text(id)).await?,
            None => read(Statement::new(GET_HEAD).text(&thread).text(&ns)).await?,
        };
        match found {
            Some(old) if old.checkpoint.v < read::WITH_SENDS => {
                let id = old.checkpoint.id.to_string();
                read(Statement::new(GET_OF_ANY_FORMAT).text(&thread).text(&ns).text(&id)).await
            }
            found => Ok(found),
        }
    }

    async fn list(&self, query: Query) -> Result<Vec<Stored>, Error> {
        let (thread, ns) = (query.thread.as_deref(), query.ns.as_deref());
        if has_nul(&[thread.unwrap_or_default(), ns.unwrap_or_default()]) {
            return Ok(Vec::new());
        }
        let id = query.id.map(|id| id.to_string());
        let before = query.before.map(|id| id.to_string());
        #[expect(clippy::disallowed_methods, reason = "no table has more rows")]
        let limit = query.limit.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX));
        let filter: Json =
            query.filter.into_iter().map(|(key, value)| (key, Json::from(value))).collect();
        let filter = filter.to_string();
        if json_has_nul(&filter) {
            return Ok(Vec::new());
        }
        let statement = Statement::new(LIST)
            .text(&thread)
            .text(&ns)
            .text(&id)
            .text(&before)
            .text(&filter)
            .bind(&limit, Type::INT8);
        let rows = self.db.read(statement).await;
        let rows = rows.map_err(|failure| failure.told(|| "list checkpoints".to_owned()))?;
        read::stored(&rows)
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), Error> {
        maintain::delete_thread(&self.db, thread).await
    }

    async fn delta_history(
        &self,
        thread: &str,
        ns: &str,
        id: CheckpointId,
        channels: &[Arc<str>],
    ) -> Result<BTreeMap<Arc<str>, DeltaHistory>, Error> {
        history::delta_history(&self.db, thread, ns, id, channels).await
    }

    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), Error> {
        maintain::copy_thread(&self.db, from, to).await
    }

    async fn delete_for_runs(&self, runs: &[String]) -> Result<(), Error> {
        maintain::delete_for_runs(&self.db, runs).await
    }

    async fn prune(&self, prune: Prune) -> Result<usize, Error> {
        maintain::prune(&self.db, prune).await
    }

    async fn threads(&self, query: ThreadQuery) -> Result<ThreadPage, Error> {
        threads::threads(&self.db, self.listing, query).await
    }

    async fn alarms(&self, until: SystemTime, limit: usize) -> Result<AlarmPage, Error> {
        alarms::page(&self.db, until, limit).await
    }

    async fn inventory(&self) -> Result<Inventory, Error> {
        maintain::inventory(&self.db).await
    }
}

/// Whether the name contains NUL, which is never stored.
fn has_nul(texts: &[&str]) -> bool {
    texts.iter().any(|text| text.contains('\0'))
}
