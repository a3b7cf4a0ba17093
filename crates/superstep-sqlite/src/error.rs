use std::fmt::Display;

use rusqlite::ErrorCode;
use superstep_checkpoint::Error;

/// Says what was being done when SQLite failed.
pub(crate) trait During<T> {
    fn during(self, what: impl Display) -> Result<T, Error>;
}

impl<T> During<T> for rusqlite::Result<T> {
    fn during(self, what: impl Display) -> Result<T, Error> {
        self.map_err(|error| {
            let message = match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => format!(
                    "{what}: another process has been writing to the database for longer than the busy timeout"
                ),
                Some(ErrorCode::DiskFull) => format!("{what}: the disk is full"),
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                    format!("{what}: the file is damaged or no SQLite database")
                }
                Some(ErrorCode::ReadOnly) => format!("{what}: the database is read-only"),
                _ => what.to_string(),
            };
            Error::backend(message, error)
        })
    }
}
