//! What the tests of this crate share: a database for each, and small checkpoints.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test uses a part of this, and ends at the first surprise"
)]

use std::sync::Arc;

use superstep_checkpoint::{
    Blob, Checkpoint, CheckpointId, IdClock, Metadata, Put, SharedMap, Source, Version,
};
use superstep_postgres::PostgresSaver;
use tokio_postgres::NoTls;

/// A database of one's own, on the server of the tests or another one; gone when this is dropped.
pub(crate) struct Database {
    server: String,
    name: String,
}

impl Database {
    pub(crate) async fn new() -> Self {
        Self::at(&superstep_testdb::server_url()).await
    }

    pub(crate) async fn at(server: &str) -> Self {
        let name = format!("superstep_{}", uuid::Uuid::new_v4().simple());
        client(server).await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        Self { server: server.to_owned(), name }
    }

    pub(crate) fn url(&self) -> String {
        let (place, options) = match self.server.split_once('?') {
            Some((place, options)) => (place, format!("?{options}")),
            None => (&*self.server, String::new()),
        };
        let (host, _) = place.rsplit_once('/').unwrap();
        format!("{host}/{}{options}", self.name)
    }

    /// A place of one's own inside the database, much quicker to make than another one; its URL.
    pub(crate) async fn schema(&self) -> String {
        let name = format!("schema_{}", uuid::Uuid::new_v4().simple());
        self.client().await.batch_execute(&format!("CREATE SCHEMA {name}")).await.unwrap();
        let url = self.url();
        let mark = if url.contains('?') { '&' } else { '?' };
        // Extensions are in the place everybody sees.
        format!("{url}{mark}options=-csearch_path%3D{name}%2Cpublic")
    }

    /// Whether items can be found by meaning here: the extension `vector` is in the database now. If not, says so.
    pub(crate) async fn has_vectors(&self) -> bool {
        let client = self.client().await;
        let sql = "SELECT FROM pg_available_extensions WHERE name = 'vector'";
        if client.query(sql, &[]).await.unwrap().is_empty() {
            println!("NOT RUN: nothing was searched by meaning, since the server has no pgvector");
            return false;
        }
        client.batch_execute("CREATE EXTENSION IF NOT EXISTS vector").await.unwrap();
        true
    }

    pub(crate) async fn checkpointer(&self) -> PostgresSaver {
        PostgresSaver::connect(self.url()).await.unwrap()
    }

    /// A checkpointer that is told that something is stored before it has reached the disk, for tests in which no machine crashes.
    pub(crate) async fn unsynced_checkpointer(&self) -> PostgresSaver {
        let url = self.url();
        let mark = if url.contains('?') { '&' } else { '?' };
        PostgresSaver::connect(format!("{url}{mark}options=-csynchronous_commit%3Doff"))
            .await
            .unwrap()
    }

    pub(crate) async fn client(&self) -> tokio_postgres::Client {
        client(&self.url()).await
    }
}

pub(crate) async fn client(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

impl Drop for Database {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        // The runtime of the test may be gone or about to go, so this has its own.
        let dropped = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let Ok((client, connection)) = tokio_postgres::connect(&server, NoTls).await else {
                    return;
                };
                let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
                tokio::spawn(connection);
                let _ = client.batch_execute(&drop).await;
            });
        });
        let _ = dropped.join();
    }
}

/// Makes the checkpoints of a line, one after the other.
pub(crate) struct Line {
    pub(crate) thread: Arc<str>,
    pub(crate) ns: Arc<str>,
    pub(crate) head: Option<CheckpointId>,
    clock: IdClock,
    step: i64,
    versions: SharedMap<Version>,
    values: SharedMap<Blob>,
}

impl Line {
    pub(crate) fn new(thread: &str) -> Self {
        Self {
            thread: thread.into(),
            ns: "".into(),
            head: None,
            clock: IdClock::new(),
            step: -1,
            versions: SharedMap::new_sync(),
            values: SharedMap::new_sync(),
        }
    }

    /// The next checkpoint, in which these channels have new values. The line continues from it
    /// once `head` says so.
    pub(crate) fn next(&mut self, values: &[(&str, Blob)]) -> Put {
        let version = Version::after(self.step.unsigned_abs(), rand());
        for (channel, value) in values {
            self.versions.insert_mut((*channel).into(), version.clone());
            self.values.insert_mut((*channel).into(), value.clone());
        }
        let id = self.clock.next(self.step, self.head);
        let put = Put {
            thread: self.thread.clone(),
            ns: self.ns.clone(),
            parent: self.head,
            head: self.head,
            writes: Vec::new(),
            checkpoint: Checkpoint {
                v: Checkpoint::FORMAT,
                id,
                ts: "2026-11-15T20:36:27.023418+00:00".to_owned(),
                channel_values: self.values.clone(),
                channel_versions: self.versions.clone(),
                versions_seen: SharedMap::new_sync(),
                updated_channels: None,
            },
            metadata: Metadata::new(
                if self.step < 0 { Source::Input } else { Source::Loop },
                self.step,
            ),
            changed: values.iter().map(|(channel, _)| (*channel).into()).collect(),
        };
        self.step += 1;
        put
    }

    /// The next checkpoint, taken as stored.
    pub(crate) fn then(&mut self, values: &[(&str, Blob)]) -> Put {
        let put = self.next(values);
        self.head = Some(put.checkpoint.id);
        put
    }
}

pub(crate) fn rand() -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().0
}

pub(crate) fn blob<T: serde::Serialize>(value: T) -> Blob {
    Blob::encode(&value).unwrap()
}
