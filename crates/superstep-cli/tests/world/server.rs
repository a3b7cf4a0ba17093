//! Databases on the server of the tests.

use tokio_postgres::{Client, NoTls};

/// A database of its own on the server of the tests.
pub(crate) struct Database {
    name: String,
    pub(crate) url: String,
}

pub(crate) async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a server");
    tokio::spawn(connection);
    client
}

impl Database {
    pub(crate) async fn new(what: &str) -> Self {
        let server = superstep_testdb::server_url();
        let name = format!("superstep_cli_{what}_{}", std::process::id());
        let (place, options) = server.split_once('?').unwrap_or((&server, ""));
        let (host, _) = place.rsplit_once('/').expect("a URL with a database");
        let url = format!("{host}/{name}?{options}");
        let make = format!("CREATE DATABASE {name}");
        client(&server).await.batch_execute(&make).await.expect("a database");
        Self { name, url }
    }

    pub(crate) async fn delete(self) {
        let server = superstep_testdb::server_url();
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        client(&server).await.batch_execute(&drop).await.expect("deleted");
    }

    pub(crate) async fn tables(&self) -> i64 {
        let sql = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
        client(&self.url).await.query_one(sql, &[]).await.expect("a count").get(0)
    }
}
