//! Opens the database that the user named.

use superstep_checkpoint::{AnyCheckpointer, Stored};
use superstep_postgres::PostgresSaver;
use superstep_sqlite::SqliteSaver;

use crate::out::Fail;

/// A database, opened as it is.
pub(crate) struct Db {
    pub(crate) checkpointer: AnyCheckpointer,
    sqlite: Option<SqliteSaver>,
}

enum Place<'a> {
    Sqlite(&'a str),
    Postgres(&'a str),
}

impl Db {
    /// Opens an existing database. Creates nothing.
    pub(crate) async fn open(url: Option<&str>) -> Result<Self, Fail> {
        match place(url)? {
            Place::Sqlite(file) => Ok(Self::sqlite(SqliteSaver::open_existing(file).await?)),
            Place::Postgres(url) => Ok(Self::postgres(PostgresSaver::connect_existing(url).await?)),
        }
    }

    /// Opens a database; creates or migrates it if necessary.
    pub(crate) async fn make(url: Option<&str>) -> Result<Self, Fail> {
        match place(url)? {
            Place::Sqlite(file) => Ok(Self::sqlite(SqliteSaver::open(file).await?)),
            Place::Postgres(url) => Ok(Self::postgres(PostgresSaver::connect(url).await?)),
        }
    }

    fn sqlite(checkpointer: SqliteSaver) -> Self {
        Self {
            checkpointer: AnyCheckpointer::new(checkpointer.clone()),
            sqlite: Some(checkpointer),
        }
    }

    fn postgres(checkpointer: PostgresSaver) -> Self {
        Self { checkpointer: AnyCheckpointer::new(checkpointer), sqlite: None }
    }

    /// Closes the database, so that no extra file is left next to it.
    pub(crate) async fn close(self) -> Result<(), Fail> {
        drop(self.checkpointer);
        if let Some(sqlite) = self.sqlite {
            sqlite.close().await?;
        }
        Ok(())
    }

    /// The head of an existing thread.
    pub(crate) async fn head(&self, thread: &str) -> Result<Stored, Fail> {
        let head = self.checkpointer.get(thread, "", None).await?;
        head.ok_or_else(|| unknown_thread(thread))
    }
}

pub(crate) fn unknown_thread(thread: &str) -> Fail {
    Fail::new(format_args!(
        "there is no thread `{thread}`; `superstep threads` lists those there are"
    ))
}

fn place(url: Option<&str>) -> Result<Place<'_>, Fail> {
    let Some(url) = url.filter(|url| !url.is_empty()) else {
        return Err(Fail::usage(
            "no database was named; give --db sqlite:FILE or --db postgres://..., or set SUPERSTEP_DB",
        ));
    };
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return Ok(Place::Postgres(url));
    }
    match url.strip_prefix("sqlite:") {
        Some(file) if !file.is_empty() => {
            Ok(Place::Sqlite(file.strip_prefix("//").unwrap_or(file)))
        }
        // The argument is not repeated, because it may contain a password.
        _ => Err(Fail::usage("the database is named by sqlite:FILE or postgres://USER@HOST/NAME")),
    }
}
