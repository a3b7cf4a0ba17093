use crate::{CheckpointId, TaskId};

/// An error of a checkpointer, a store or the codec.
///
/// A variant exists where a caller would act differently; every other failure of a backend is
/// [`Error::Backend`], with its cause as the source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another writer has stored a newer head. Nothing was stored.
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
    /// Another writer has filled the slot. Nothing was stored.
    #[error(
        "`{channel}` of task {task} at checkpoint {checkpoint} on thread `{thread}` (namespace `{ns}`) was written by another writer in the meantime"
    )]
    Overtaken {
        /// The thread both wrote to.
        thread: String,
        /// The namespace inside the thread.
        ns: String,
        /// The checkpoint of the writes.
        checkpoint: CheckpointId,
        /// The task both wrote for.
        task: TaskId,
        /// The channel whose slot differs from the expectation.
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
    /// Stored bytes cannot be decoded, or a value cannot be encoded.
    #[error("{0}")]
    Codec(String),
    /// The request is invalid, whatever is stored; the text says why.
    #[error("{0}")]
    Invalid(String),
    /// The backend does not support the operation.
    #[error("this checkpointer cannot {0}")]
    Unsupported(&'static str),
    /// The backend failed.
    #[error("{message}")]
    Backend {
        /// The failed operation.
        message: String,
        /// Why it failed.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// A failure of the backend while it did `message`.
    pub fn backend(
        message: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Backend { message: message.into(), source: source.into() }
    }

    /// Bytes that cannot be decoded or a value that cannot be encoded, and why.
    pub fn codec(message: impl std::fmt::Display) -> Self {
        Self::Codec(message.to_string())
    }

    /// An invalid request, and why.
    pub fn invalid(message: impl std::fmt::Display) -> Self {
        Self::Invalid(message.to_string())
    }
}
