use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use superstep_checkpoint::{CheckpointId, Interrupt, TaskId};

use super::{Causes, Code, NodeError};

/// Why a run, or a read of a thread, failed.
///
/// `{error}` says what happened in one clause; `{error:#}` adds the causes, as [`source`](StdError::source) gives them. The
/// error of a failed node is in [`RunError::Node`], where [`NodeError::downcast_ref`] finds its type.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RunError {
    /// A node failed, and no retry or error handler recovered it.
    Node {
        /// The node.
        node: Arc<str>,
        /// The task that ran it.
        task: TaskId,
        /// The argument of the dispatch: at most 80 characters of its JSON. `None` for a node that
        /// was not dispatched.
        arg: Option<Arc<str>>,
        /// Why.
        error: NodeError,
    },
    /// Writes of a superstep could not be applied; the superstep can be run again.
    #[doc(alias = "InvalidUpdateError")]
    InvalidUpdate {
        /// The reason, with channel and nodes.
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
    /// The run reached the limit of supersteps before it was done.
    #[doc(alias = "GraphRecursionError")]
    RecursionLimit {
        /// The limit.
        limit: u64,
    },
    /// Nothing is left to run, but joins have some of the sources they need and can get no other in this run. What the run did
    /// is stored. A [`Join`](crate::Join) that a later run is to fill says so with
    /// [`across_runs`](crate::Join::across_runs).
    UnfilledJoin {
        /// The joins.
        joins: Vec<UnfilledJoin>,
    },
    /// There was nothing to run: a new thread needs input, and a command must not be empty.
    #[doc(alias = "EmptyInputError")]
    EmptyInput(String),
    /// The request is invalid, and nothing was changed.
    Invalid(String),
    /// Answers that do not fit the open questions; nothing was changed.
    Resume {
        /// Why the answers are refused.
        message: String,
        /// The questions that are open.
        pending: Vec<Interrupt>,
    },
    /// The addressed checkpoint does not exist.
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
        /// The mismatch.
        problems: Vec<String>,
    },
    /// Another run of the thread is active in this process. Nothing was read or changed: an answer
    /// passed to this run is not stored, and its question is still open.
    #[non_exhaustive]
    Busy {
        /// The thread.
        thread: Arc<str>,
        /// When the other run began.
        since: SystemTime,
    },
    /// The run was to continue the thread if a question was [due](Interrupt::due), and none is.
    /// Nothing was run or changed.
    #[non_exhaustive]
    NotDue {
        /// The thread.
        thread: Arc<str>,
        /// When a question is due, if one is.
        next: Option<SystemTime>,
    },
    /// Another process runs the thread or has stored a newer checkpoint. What this run did since
    /// its last checkpoint is not stored.
    Conflict {
        /// The thread.
        thread: Arc<str>,
        /// The error of the storage.
        source: Arc<superstep_checkpoint::Error>,
    },
    /// The cache failed, and a policy says that it must not ([`CachePolicy::strict`](crate::CachePolicy::strict)).
    Cache(Arc<superstep_checkpoint::Error>),
    /// Storage failed.
    Checkpoint(Arc<superstep_checkpoint::Error>),
}

/// A join that has some of the sources it needs, and can get no other.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnfilledJoin {
    /// The node that the join leads to.
    pub node: Arc<str>,
    /// How many sources the join needs.
    pub needed: usize,
    /// The sources that have run since the join last fired.
    pub arrived: Vec<Arc<str>>,
    /// The sources that have not.
    pub missing: Vec<Arc<str>>,
}

impl fmt::Display for UnfilledJoin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |names: &[Arc<str>]| {
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            names.join(", ")
        };
        let Self { node, needed, arrived, missing } = self;
        write!(f, "node `{node}` still waits: its join needs ")?;
        if *needed == arrived.len() + missing.len() {
            write!(f, "{} and {}", names(arrived), names(missing))?;
        } else {
            write!(f, "{needed} of {}, {}", names(arrived), names(missing))?;
        }
        write!(f, ", and only {} ran", names(arrived))
    }
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
            Self::UnfilledJoin { joins } => {
                let joins: Vec<_> = joins.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "nothing is left to run, but {}; let every way lead to the missing nodes, need \
                     fewer of them with `Join::any` or `Join::at_least`, or let a later run bring \
                     them with `Join::across_runs`",
                    joins.join("; ")
                )
            }
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
                "thread `{thread}` was stored by another version of the graph: {}; continue with \
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
            Self::NotDue { thread, .. } => write!(f, "nothing on thread `{thread}` is due"),
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

    /// LangGraph's name for this error; for a failed node, the name of its error.
    pub fn kind(&self) -> Cow<'_, str> {
        match self {
            Self::Node { error, .. } => error.kind().into(),
            Self::InvalidUpdate { .. } => "InvalidUpdateError".into(),
            Self::Reducer { .. } => "TypeError".into(),
            Self::RecursionLimit { .. } => "GraphRecursionError".into(),
            Self::UnfilledJoin { .. } => "UnfilledJoinError".into(),
            Self::EmptyInput(_) => "EmptyInputError".into(),
            Self::Invalid(_) | Self::UnknownCheckpoint { .. } | Self::Stale { .. } => {
                "ValueError".into()
            }
            Self::Resume { .. } | Self::NotDue { .. } => "RuntimeError".into(),
            Self::StepTimeout { .. } => "TimeoutError".into(),
            Self::NoParent { .. } => "ParentCommand".into(),
            Self::Cache(_) => "CacheError".into(),
            Self::Busy { .. } | Self::Conflict { .. } | Self::Checkpoint(_) => {
                "CheckpointError".into()
            }
        }
    }

    /// The stored text of the error, in LangGraph's form.
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
