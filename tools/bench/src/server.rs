//! The databases of a run in a PostgreSQL server.

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls};

use crate::failure::Failure;

const SIDES: [&str; 2] = ["ours", "theirs"];

/// A server in which each side has a database of its own, gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Server(Option<Named>);

#[derive(Debug)]
struct Named {
    url: String,
    /// What it says about how it stores.
    conditions: String,
    runtime: Runtime,
}

impl Server {
    /// The server at this URL; none without one.
    pub(crate) fn of(url: Option<&str>) -> Result<Self, Failure> {
        let Some(url) = url else {
            return Ok(Self(None));
        };
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let conditions = runtime.block_on(async {
            let client = connect(url).await?;
            for side in SIDES {
                let name = database(side);
                client
                    .batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
                    .await?;
                client.batch_execute(&format!("CREATE DATABASE {name}")).await?;
            }
            settings(&client).await
        })?;
        Ok(Self(Some(Named { url: url.to_owned(), conditions, runtime })))
    }

    /// The database of a side.
    pub(crate) fn url(&self, side: &str) -> Option<String> {
        let Named { url, .. } = self.0.as_ref()?;
        let (server, _) = url.rsplit_once('/')?;
        Some(format!("{server}/{}", database(side)))
    }

    pub(crate) fn conditions(&self) -> Option<&str> {
        self.0.as_ref().map(|named| named.conditions.as_str())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some(named) = &self.0 else {
            return;
        };
        // What is left of a run is removed by the next one.
        let _: Result<(), Failure> = named.runtime.block_on(async {
            let client = connect(&named.url).await?;
            for side in SIDES {
                let name = database(side);
                client
                    .batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
                    .await?;
            }
            Ok(())
        });
    }
}

fn database(side: &str) -> String {
    format!("superstep_bench_{side}")
}

async fn connect(url: &str) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .map_err(|error| format!("cannot reach the PostgreSQL server: {error}"))?;
    // It ends with the client, which is where a failure shows.
    tokio::spawn(connection);
    Ok(client)
}

async fn settings(client: &Client) -> Result<String, Failure> {
    let mut said = Vec::new();
    for name in ["server_version", "fsync", "synchronous_commit"] {
        let row = client.query_one(&format!("SHOW {name}"), &[]).await?;
        said.push(format!("{name} = {}", row.try_get::<_, String>(0)?));
    }
    Ok(said.join(", "))
}
