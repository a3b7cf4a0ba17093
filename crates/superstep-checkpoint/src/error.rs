use crate::{CheckpointId, TaskId};

/// What a saver, a store or the codec can say.
///
/// A variant exists where a caller would act differently on it; everything else a backend runs into is
/// [`Error::Backend`], with the cause as its source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another writer has moved the thread on since this one last looked. Nothing was stored.
    #[error(
        "thread `{thread}` was moved on by another writer (namespace `{ns}`): this one extends {expected:?}, the head is {found:?}"
    )]
    Conflict {
        /// The thread both wrote to.
        thread: String,
        /// The namespace inside the thread, empty for the outermost graph.
        ns: String,
        /// The head this writer knew.
        expected: Option<CheckpointId>,
        /// The head that is there.
        found: Option<CheckpointId>,
    },
    /// Another writer has filled a slot since this one last looked. Nothing was stored.
    #[error(
        "`{channel}` of task {task} at checkpoint {checkpoint} on thread `{thread}` (namespace `{ns}`) was written by another writer in the meantime"
    )]
    Overtaken {
        /// The thread both wrote to.
        thread: String,
        /// The namespace inside the thread.
        ns: String,
        /// The checkpoint beside which both wrote.
        checkpoint: CheckpointId,
        /// The task both wrote for.
        task: TaskId,
        /// The channel whose slot is not as it was expected.
        channel: String,
    },
    /// Writes were given for a checkpoint that is not stored.
    #[error("thread `{thread}` has no checkpoint {id} (namespace `{ns}`)")]
    Unknown {
        /// The thread that was addressed.
        thread: String,
        /// The namespace inside the thread.
        ns: String,
        /// The id that was not found.
        id: CheckpointId,
    },
    /// Stored bytes, or a value on its way to storage, cannot be understood.
    #[error("{0}")]
    Codec(String),
    /// What was asked makes no sense, whatever is stored; the text says why.
    #[error("{0}")]
    Invalid(String),
    /// The backend does not have this ability.
    #[error("this saver cannot {0}")]
    Unsupported(&'static str),
    /// The backend failed; the source says how.
    #[error("{message}")]
    Backend {
        /// What was being done.
        message: String,
        /// Why it failed.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// A failure of the backend itself while it did `message`.
    pub fn backend(
        message: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Backend { message: message.into(), source: source.into() }
    }

    /// Bytes or a value that cannot be understood, and why.
    pub fn codec(message: impl std::fmt::Display) -> Self {
        Self::Codec(message.to_string())
    }

    /// A request that makes no sense, and why.
    pub fn invalid(message: impl std::fmt::Display) -> Self {
        Self::Invalid(message.to_string())
    }
}
