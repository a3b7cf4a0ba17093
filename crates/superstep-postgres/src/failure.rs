//! Classifies failures of the driver for the caller.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use deadpool_postgres::PoolError;
use superstep_checkpoint::Error;
use tokio_postgres::error::SqlState;

/// Why an operation failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The connection is gone, or the server is going away or not yet up. What was sent may have been done or not.
    Lost(Box<dyn std::error::Error + Send + Sync>),
    /// The server rolled the transaction back because of another one; a retry may succeed.
    Undone(tokio_postgres::Error),
    /// The server refused. A retry would not help.
    Refused(tokio_postgres::Error),
    /// Trying again would not help.
    Final(Error),
}

/// The server has not answered in time. It is unknown whether it received the request.
#[derive(Debug)]
pub(crate) struct NoAnswer(pub(crate) Duration);

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server did not answer within {:?}", self.0)
    }
}

impl std::error::Error for NoAnswer {}

impl Failure {
    pub(crate) fn no_answer(within: Duration) -> Self {
        Self::Lost(NoAnswer(within).into())
    }

    /// As [`told`](Self::told), to a caller who stored or removed something.
    pub(crate) fn told_of_change(self, what: impl FnOnce() -> String) -> Error {
        match self {
            Self::Lost(source) => {
                let message = format!(
                    "the connection to PostgreSQL was lost while it was to {}; whether that was done is not known, and it is \
                     safe to try it again",
                    what()
                );
                Error::backend(message, source)
            }
            other => other.told(what),
        }
    }

    /// The error for a caller that did `what`.
    pub(crate) fn told(self, what: impl FnOnce() -> String) -> Error {
        match self {
            Self::Lost(source) => Error::backend(
                format!("the connection to PostgreSQL was lost while it was to {}", what()),
                source,
            ),
            Self::Undone(source) | Self::Refused(source) => {
                Error::backend(format!("PostgreSQL cannot {}", what()), source)
            }
            Self::Final(Error::Backend { message, source }) => {
                Error::backend(format!("PostgreSQL cannot {}: {message}", what()), source)
            }
            Self::Final(error) => error,
        }
    }
}

impl Failure {
    /// The error for a caller that wanted to connect.
    pub(crate) fn unreached(self) -> Error {
        match self {
            Self::Lost(source) => Error::backend("PostgreSQL cannot be reached", source),
            other => other.told(|| "be connected to".to_owned()),
        }
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        if let Some(message) = distrust(&error) {
            return Self::Final(Error::backend(message, error));
        }
        if is_loss(&error) {
            return Self::Lost(error.into());
        }
        match error.code() {
            Some(&SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED) => {
                Self::Undone(error)
            }
            // What is in an index must fit into a third of a page.
            Some(&SqlState::PROGRAM_LIMIT_EXCEEDED) => Self::Final(Error::invalid(format_args!(
                "a thread, namespace, channel or key is too long for PostgreSQL, which takes about 2,700 bytes together: \
                 {error}"
            ))),
            _ => Self::Refused(error),
        }
    }
}

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => error.into(),
            // Only making a connection has a limit.
            PoolError::Timeout(_) => Self::Lost(error.into()),
            other => Self::Final(Error::backend("no connection is available", other)),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

/// The error for a failed TLS negotiation. A retry would not help, although the connection was
/// lost.
fn distrust(error: &tokio_postgres::Error) -> Option<String> {
    let io = error.source()?.downcast_ref::<std::io::Error>()?;
    let refusal = io.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(match refusal {
        rustls::Error::InvalidCertificate(why) => format!(
            "the certificate of the server is not trusted ({why:?}); name the file with the certificate of its authority as \
             `sslrootcert` in the URL, or give the authorities to `Options::tls`"
        ),
        other => format!("no encrypted connection can be made ({other})"),
    })
}

fn is_loss(error: &tokio_postgres::Error) -> bool {
    if let Some(code) = error.code() {
        // Class 08 is about connections.
        return code.code().starts_with("08")
            || [
                &SqlState::ADMIN_SHUTDOWN,
                &SqlState::CRASH_SHUTDOWN,
                &SqlState::CANNOT_CONNECT_NOW,
            ]
            .contains(&code);
    }
    let cause = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    error.is_closed() || cause.is_some()
}
