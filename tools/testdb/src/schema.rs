use tokio_postgres::NoTls;

use crate::server_url;

/// A place of one's own in the database of the tests, much quicker to make than another database. Dropping it removes it.
#[derive(Debug)]
pub struct Schema {
    server: String,
    name: String,
}

impl Schema {
    /// Makes one on the server of [`server_url`].
    ///
    /// # Panics
    /// There is no server, or its user may not make schemas.
    pub fn new() -> Self {
        let name = format!("superstep_{}", uuid::Uuid::new_v4().simple());
        let schema = Self { server: server_url(), name };
        schema.run(&format!("CREATE SCHEMA {}", schema.name)).expect("a schema");
        schema
    }

    /// A URL that leads there.
    pub fn url(&self) -> String {
        let mark = if self.server.contains('?') { '&' } else { '?' };
        format!("{}{mark}options=-csearch_path%3D{}", self.server, self.name)
    }

    /// Whoever asks may have a runtime, which must not be blocked, or none, so this has its own.
    fn run(&self, sql: &str) -> Result<(), tokio_postgres::Error> {
        let (server, sql) = (self.server.clone(), sql.to_owned());
        let ran = std::thread::spawn(move || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let runtime = builder.enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let (client, connection) = tokio_postgres::connect(&server, NoTls).await?;
                tokio::spawn(connection);
                client.batch_execute(&sql).await
            })
        });
        ran.join().expect("no panic")
    }
}

impl Default for Schema {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        // There is nobody to tell, and the worst is a schema left on a server of the tests.
        drop(self.run(&format!("DROP SCHEMA IF EXISTS {} CASCADE", self.name)));
    }
}
