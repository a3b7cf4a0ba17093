use std::error::Error as StdError;
use std::time::Duration;

use superstep::NodeError;

/// Why a model did not answer.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    trouble: Trouble,
    message: String,
    retry_after: Option<Duration>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// What kind of trouble a model is in: what decides whether to try again, elsewhere, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Trouble {
    /// Too many requests; another try may wait for [`ModelError::retry_after`].
    RateLimited,
    /// The provider is overloaded or out of order.
    Unavailable,
    /// The connection broke, or the answer ended before its end.
    Broken,
    /// No answer in time.
    TimedOut,
    /// The key is missing, wrong, or may not do this.
    Unauthorized,
    /// The conversation does not fit the model.
    TooLong,
    /// The provider does not understand the request.
    BadRequest,
    /// The provider refuses to answer this.
    Refused,
    /// Something else.
    Other,
}

impl Trouble {
    /// Whether the same request may succeed later.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::RateLimited | Self::Unavailable | Self::Broken | Self::TimedOut)
    }
}

impl ModelError {
    /// An error of this kind with this text.
    pub fn new(trouble: Trouble, message: impl Into<String>) -> Self {
        Self { trouble, message: message.into(), retry_after: None, source: None }
    }

    /// The same error with its cause.
    #[must_use]
    pub fn with_source(self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..self }
    }

    /// The same error with the time after which to try again.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    /// The kind of trouble.
    pub fn trouble(&self) -> Trouble {
        self.trouble
    }

    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        self.trouble.is_transient()
    }

    /// When the provider wants to be asked again.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    pub(crate) fn into_node_error(self) -> NodeError {
        match self.is_transient() {
            true => NodeError::transient(self),
            false => NodeError::permanent(self),
        }
        .named("ModelError")
    }
}
