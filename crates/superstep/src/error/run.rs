use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use superstep_checkpoint::{CheckpointId, Interrupt, TaskId};

use super::{Causes, Code, NodeError};

/// What a run, or a look at a thread, can end with besides its result.
///
/// `{error}` says what happened in one clause; `{error:#}` adds the causes, as [`source`](StdError::source) gives them. The
/// error of a failed node is in [`RunError::Node`], where [`NodeError::downcast_ref`] finds its type.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RunError {
    /// A node failed, and neither a retry nor an error handler mended it.
    Node {
        /// The node.
        node: Arc<str>,
        /// The task that ran it.
        task: TaskId,
        /// What the task was dispatched with: the beginning of it as JSON, at most 80 characters. `None` for a node that was
        /// not dispatched.
        arg: Option<Arc<str>>,
        /// Why.
        error: NodeError,
    },
    /// Writes of a superstep could not be applied; the superstep can be run again.
    InvalidUpdate {
        /// What was wrong, naming channel and nodes.
        message: String,
        /// The code, if the error has one.
        code: Option<Code>,
    },
    /// A write the channel's reducer does not take; the superstep can be run again.
    Reducer {
        /// The channel.
        channel: Arc<str>,
        /// The nodes that wrote to it.
        nodes: String,
        /// What the reducer said.
        message: String,
    },
    /// The run took as many supersteps as it was allowed and had not come to its end by then.
    #[doc(alias = "GraphRecursionError")]
    RecursionLimit {
        /// The limit.
        limit: u64,
    },
    /// There was nothing to run: no input on a thread that has not begun, or an empty command.
    EmptyInput(String),
    /// What was asked cannot be done, and nothing was changed.
    Invalid(String),
    /// Answers that do not fit the open questions; nothing was changed.
    Resume {
        /// What is wrong with the answers.
        message: String,
        /// The questions that are open.
        pending: Vec<Interrupt>,
    },
    /// The addressed checkpoint is not there.
    UnknownCheckpoint {
        /// The thread.
        thread: Arc<str>,
        /// The id that was asked for.
        id: CheckpointId,
    },
    /// A superstep took longer than the graph's `step_timeout`.
    StepTimeout {
        /// The superstep.
        step: i64,
        /// The limit.
        limit: Duration,
    },
    /// A command for the parent graph was returned in a graph that has none.
    NoParent {
        /// The node.
        node: Arc<str>,
    },
    /// The thread was stored by another version of the graph, and some of its open work does not fit this one. Nothing was
    /// changed.
    Stale {
        /// The thread.
        thread: Arc<str>,
        /// What does not fit.
        problems: Vec<String>,
    },
    /// Another run on the thread is alive in this process. Nothing was read or changed: an answer that came with the run is
    /// not stored, and its question is still open.
    #[non_exhaustive]
    Busy {
        /// The thread.
        thread: Arc<str>,
        /// When the other run began.
        since: SystemTime,
    },
    /// Another writer was first: it runs the thread, or has moved it on. What this run did since its last checkpoint is
    /// not stored.
    Conflict {
        /// The thread.
        thread: Arc<str>,
        /// What storage said.
        source: Arc<superstep_checkpoint::Error>,
    },
    /// The cache failed, and a policy says that it must not ([`CachePolicy::strict`](crate::CachePolicy::strict)).
    Cache(Arc<superstep_checkpoint::Error>),
    /// Storage failed.
    Checkpoint(Arc<superstep_checkpoint::Error>),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node { node, arg: None, error, .. } => {
                write!(f, "node `{node}` failed: {}: {error}", error.kind())
            }
            Self::Node { node, task, arg: Some(arg), error } => {
                write!(
                    f,
                    "node `{node}` failed on `{arg}` (task {task}): {}: {error}",
                    error.kind()
                )
            }
            Self::InvalidUpdate { message, .. } | Self::Resume { message, .. } => {
                f.write_str(message)
            }
            Self::Reducer { channel, nodes, message } => {
                write!(f, "channel `{channel}` did not take a write of {nodes}: {message}")
            }
            Self::RecursionLimit { limit } => write!(
                f,
                "the run took {limit} supersteps, which is its recursion limit, without coming to \
                 its end; raise the limit with `recursion_limit`, or continue the thread with no \
                 input"
            ),
            Self::EmptyInput(message) | Self::Invalid(message) => f.write_str(message),
            Self::UnknownCheckpoint { thread, id } => {
                write!(f, "thread `{thread}` has no checkpoint {id}")
            }
            Self::StepTimeout { step, limit } => {
                write!(f, "superstep {step} took longer than {limit:?}")
            }
            Self::NoParent { node } => write!(
                f,
                "node `{node}` returned a command for the parent graph, but this graph has no \
                 parent"
            ),
            Self::Stale { thread, problems } => write!(
                f,
                "thread `{thread}` was stored by another version of the graph: {}; go on with \
                 that version, or give the thread new input, which drops its open work",
                problems.join("; ")
            ),
            Self::Busy { thread, since } => {
                let elapsed = since.elapsed().unwrap_or_default().as_millis();
                let elapsed = Duration::from_millis(elapsed.try_into().unwrap_or(u64::MAX));
                write!(
                    f,
                    "thread `{thread}` is busy: a run of this process has worked on it for \
                     {elapsed:?}; try again when that run has ended"
                )
            }
            Self::Conflict { thread, .. } => write!(
                f,
                "another writer was first on thread `{thread}`; look at where the thread is \
                 before trying again"
            ),
            Self::Cache(_) => f.write_str("the cache failed"),
            Self::Checkpoint(_) => f.write_str("the checkpointer failed"),
        }?;
        if f.alternate() { Causes::of(self).fmt(f) } else { Ok(()) }
    }
}

impl StdError for RunError {
    /// The text of a failed node is part of ours, so what follows it is what caused the failure.
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Node { error, .. } => error.source(),
            Self::Conflict { source, .. } | Self::Cache(source) | Self::Checkpoint(source) => {
                Some(&**source)
            }
            _ => None,
        }
    }
}

impl RunError {
    /// The code, for errors that have one.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Node { error, .. } => error.code(),
            Self::InvalidUpdate { code, .. } => *code,
            Self::RecursionLimit { .. } => Some(Code::GraphRecursionLimit),
            _ => None,
        }
    }

    /// The name under which the reference knows this error; for a failed node, the name of its error.
    pub fn kind(&self) -> Cow<'_, str> {
        match self {
            Self::Node { error, .. } => error.kind().into(),
            Self::InvalidUpdate { .. } => "InvalidUpdateError".into(),
            Self::Reducer { .. } => "TypeError".into(),
            Self::RecursionLimit { .. } => "GraphRecursionError".into(),
            Self::EmptyInput(_) => "EmptyInputError".into(),
            Self::Invalid(_) | Self::UnknownCheckpoint { .. } | Self::Stale { .. } => {
                "ValueError".into()
            }
            Self::Resume { .. } => "RuntimeError".into(),
            Self::StepTimeout { .. } => "TimeoutError".into(),
            Self::NoParent { .. } => "ParentCommand".into(),
            Self::Cache(_) => "CacheError".into(),
            Self::Busy { .. } | Self::Conflict { .. } | Self::Checkpoint(_) => {
                "CheckpointError".into()
            }
        }
    }

    /// The text under which the error is stored, in the form another engine reads.
    pub(crate) fn stored(&self) -> String {
        super::node::stored(&self.kind(), &self.to_string(), Causes::of(self))
    }

    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Node { error, .. } => error.is_transient(),
            Self::Cache(_) | Self::Checkpoint(_) | Self::Busy { .. } => true,
            _ => false,
        }
    }
}

impl From<superstep_checkpoint::Error> for RunError {
    fn from(error: superstep_checkpoint::Error) -> Self {
        use superstep_checkpoint::Error;
        match &error {
            Error::Conflict { thread, .. } | Error::Overtaken { thread, .. } => {
                Self::Conflict { thread: thread.as_str().into(), source: Arc::new(error) }
            }
            _ => Self::Checkpoint(Arc::new(error)),
        }
    }
}
