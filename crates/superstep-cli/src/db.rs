//! Opening the database that the user named.

use superstep_checkpoint::{AnyCheckpointer, Stored};
use superstep_postgres::PostgresSaver;
use superstep_sqlite::SqliteSaver;

use crate::out::Fail;

/// A database, opened as it is.
pub(crate) struct Db {
    pub(crate) saver: AnyCheckpointer,
    sqlite: Option<SqliteSaver>,
}

enum Place<'a> {
    Sqlite(&'a str),
    Postgres(&'a str),
}

impl Db {
    /// Opens what is there. Nothing is made.
    pub(crate) async fn open(url: Option<&str>) -> Result<Self, Fail> {
        match place(url)? {
            Place::Sqlite(file) => Ok(Self::sqlite(SqliteSaver::open_existing(file).await?)),
            Place::Postgres(url) => Ok(Self::postgres(PostgresSaver::connect_existing(url).await?)),
        }
    }

    /// Makes the database or its tables if they are not there, and brings them up to date.
    pub(crate) async fn make(url: Option<&str>) -> Result<Self, Fail> {
        match place(url)? {
            Place::Sqlite(file) => Ok(Self::sqlite(SqliteSaver::open(file).await?)),
            Place::Postgres(url) => Ok(Self::postgres(PostgresSaver::connect(url).await?)),
        }
    }

    fn sqlite(saver: SqliteSaver) -> Self {
        Self { saver: AnyCheckpointer::new(saver.clone()), sqlite: Some(saver) }
    }

    fn postgres(saver: PostgresSaver) -> Self {
        Self { saver: AnyCheckpointer::new(saver), sqlite: None }
    }

    /// Leaves nothing beside the database that was not there before.
    pub(crate) async fn close(self) -> Result<(), Fail> {
        drop(self.saver);
        if let Some(sqlite) = self.sqlite {
            sqlite.close().await?;
        }
        Ok(())
    }

    /// The head of a thread that has to be there.
    pub(crate) async fn head(&self, thread: &str) -> Result<Stored, Fail> {
        let head = self.saver.get(thread, "", None).await?;
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
        // What was given is not repeated: there may be a password in it.
        _ => Err(Fail::usage("the database is named by sqlite:FILE or postgres://USER@HOST/NAME")),
    }
}
