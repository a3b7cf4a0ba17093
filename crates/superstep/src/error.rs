//! What can go wrong, one type for each boundary.
//!
//! | Boundary | Type |
//! | --- | --- |
//! | a declared graph is checked | [`CompileError`]: all problems at once |
//! | a node's own code | [`NodeError`]: takes any error through `?` |
//! | a run, or a look at a thread | [`RunError`] |
//! | storage | [`checkpoint::Error`](crate::checkpoint::Error) |

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use superstep_checkpoint::{CheckpointId, Interrupt, TaskId};

/// A code by which documentation and dashboards know an error, the same in both engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Code {
    /// The recursion limit was reached.
    GraphRecursionLimit,
    /// Two writes in one superstep where one is allowed.
    InvalidConcurrentGraphUpdate,
    /// A node returned, or an input is, something that is no update.
    InvalidGraphNodeReturnValue,
}

impl Code {
    /// The code as text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GraphRecursionLimit => "GRAPH_RECURSION_LIMIT",
            Self::InvalidConcurrentGraphUpdate => "INVALID_CONCURRENT_GRAPH_UPDATE",
            Self::InvalidGraphNodeReturnValue => "INVALID_GRAPH_NODE_RETURN_VALUE",
        }
    }
}

/// Why a node failed: any error, and whether trying again may help.
///
/// Like `anyhow::Error` it is not itself a `std::error::Error`, which is what lets `?` take everything: errors, texts,
/// boxed errors.
#[derive(Clone)]
pub struct NodeError {
    inner: Arc<Inner>,
}

struct Inner {
    cause: Cause,
    kind: Cow<'static, str>,
    transient: bool,
    code: Option<Code>,
}

enum Cause {
    Any(Box<dyn StdError + Send + Sync>),
    Run(RunError),
    Text(String),
}

impl NodeError {
    /// A failure with this text that trying again will not mend.
    pub fn permanent(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::build(Cause::Any(cause.into()), "Error", false)
    }

    /// A failure that may be gone when the node is tried again.
    pub fn transient(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::build(Cause::Any(cause.into()), "Error", true)
    }

    /// The same error under a name of its own, by which retry policies and error handlers can know it.
    #[must_use]
    pub fn named(self, kind: impl Into<Cow<'static, str>>) -> Self {
        match Arc::try_unwrap(self.inner) {
            Ok(inner) => Self { inner: Arc::new(Inner { kind: kind.into(), ..inner }) },
            Err(shared) => {
                let cause = Cause::Text(shared.cause.to_string());
                let (transient, code) = (shared.transient, shared.code);
                Self { inner: Arc::new(Inner { cause, kind: kind.into(), transient, code }) }
            }
        }
    }

    /// The name of the error: that of its type, or the one it was given.
    pub fn kind(&self) -> &str {
        &self.inner.kind
    }

    /// Whether trying again may help.
    pub fn is_transient(&self) -> bool {
        self.inner.transient
    }

    /// The code, for errors that have one.
    pub fn code(&self) -> Option<Code> {
        self.inner.code
    }

    /// The error inside, if it is an `E`.
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        match &self.inner.cause {
            Cause::Any(error) => error.downcast_ref(),
            Cause::Run(error) => (error as &(dyn StdError + 'static)).downcast_ref(),
            Cause::Text(_) => None,
        }
    }

    fn build(cause: Cause, kind: impl Into<Cow<'static, str>>, transient: bool) -> Self {
        Self { inner: Arc::new(Inner { cause, kind: kind.into(), transient, code: None }) }
    }

    fn text(kind: &'static str, text: String, transient: bool) -> Self {
        Self::build(Cause::Text(text), kind, transient)
    }

    pub(crate) fn panicked(node: &str, text: &str) -> Self {
        Self::text("Panic", format!("node `{node}` panicked: {text}"), false)
    }

    pub(crate) fn lost_events(node: &str, max: usize) -> Self {
        Self::permanent(format!(
            "node `{node}` emitted more than {max} events without giving anybody a chance to take them; await something between them, `tokio::task::yield_now` if nothing else"
        ))
        .named("StreamError")
    }

    pub(crate) fn cancelled(node: &str) -> Self {
        Self::text(
            "CancelledError",
            format!("node `{node}` was cancelled because another task failed"),
            false,
        )
    }

    pub(crate) fn timed_out(node: &str, limit: TimeLimit, after: Duration) -> Self {
        let text = match limit {
            TimeLimit::Run => format!("node `{node}` ran longer than its time limit of {after:?}"),
            TimeLimit::Idle => format!("node `{node}` made no progress for {after:?}"),
        };
        Self::text("NodeTimeoutError", text, true)
    }

    pub(crate) fn invalid_update(text: String, code: Option<Code>) -> Self {
        let kind = "InvalidUpdateError".into();
        Self { inner: Arc::new(Inner { cause: Cause::Text(text), kind, transient: false, code }) }
    }

    pub(crate) fn bad_route(kind: &'static str, text: String) -> Self {
        Self::text(kind, text, false)
    }

    /// The error that was stored as this text, by us or by another engine.
    pub(crate) fn from_stored(stored: String) -> Self {
        let kind = stored.split(|c: char| !c.is_alphanumeric() && c != '_').next();
        let kind = kind.unwrap_or_default().to_owned();
        let inside = stored.strip_prefix(&*kind).and_then(|rest| {
            let quoted = rest.strip_prefix('(')?.strip_suffix(')')?;
            let plain = || quoted.strip_prefix('\'')?.strip_suffix('\'').map(str::to_owned);
            serde_json::from_str::<String>(quoted).ok().or_else(plain)
        });
        Self::permanent(inside.unwrap_or(stored)).named(kind)
    }

    /// The text under which the error is stored, in the form another engine reads.
    pub(crate) fn stored(&self) -> String {
        format!("{}({:?})", self.kind(), self.to_string())
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum TimeLimit {
    Run,
    Idle,
}

impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for NodeError {
    fn from(error: E) -> Self {
        let kind = short_type_name::<E>();
        let error = error.into();
        let error = match error.downcast::<RunError>() {
            Ok(run) => {
                let kind = run.kind().into_owned();
                let code = run.code();
                let transient = run.is_transient();
                let inner = Inner { cause: Cause::Run(*run), kind: kind.into(), transient, code };
                return Self { inner: Arc::new(inner) };
            }
            Err(error) => error,
        };
        let transient = may_pass(&*error);
        Self::build(Cause::Any(error), kind, transient)
    }
}

/// The default rule of what is worth another attempt: everything, except errors that say the same thing each time.
fn may_pass(error: &(dyn StdError + Send + Sync + 'static)) -> bool {
    use std::io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted,
        NotConnected, TimedOut, UnexpectedEof, WouldBlock,
    };
    if let Some(io) = error.downcast_ref::<std::io::Error>() {
        return matches!(
            io.kind(),
            BrokenPipe
                | ConnectionAborted
                | ConnectionRefused
                | ConnectionReset
                | Interrupted
                | NotConnected
                | TimedOut
                | UnexpectedEof
                | WouldBlock
        );
    }
    let says_the_same_again = error.is::<std::num::ParseIntError>()
        || error.is::<std::num::ParseFloatError>()
        || error.is::<std::num::TryFromIntError>()
        || error.is::<std::str::Utf8Error>()
        || error.is::<std::string::FromUtf8Error>()
        || error.is::<std::fmt::Error>()
        || error.is::<serde_json::Error>();
    !says_the_same_again
}

fn short_type_name<T>() -> Cow<'static, str> {
    let full = std::any::type_name::<T>();
    if full.contains('<') || full.starts_with('&') || full == "alloc::string::String" {
        return "Error".into();
    }
    full.rsplit("::").next().unwrap_or(full).into()
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any(error) => error.fmt(f),
            Self::Run(error) => error.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.cause.fmt(f)
    }
}

impl fmt::Debug for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.inner.kind, self.inner.cause)
    }
}

/// What a run, or a look at a thread, can end with besides its result.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A node failed, and neither a retry nor an error handler mended it.
    #[error("node `{node}` failed: {error:?}")]
    Node {
        /// The node.
        node: Arc<str>,
        /// The task that ran it.
        task: TaskId,
        /// Why.
        error: NodeError,
    },
    /// Writes of a superstep could not be applied; the superstep can be run again.
    #[error("{message}")]
    InvalidUpdate {
        /// What was wrong, naming channel and nodes.
        message: String,
        /// The code, if the error has one.
        code: Option<Code>,
    },
    /// A write the channel's reducer does not take; the superstep can be run again.
    #[error("channel `{channel}` did not take a write of {nodes}: {message}")]
    Reducer {
        /// The channel.
        channel: Arc<str>,
        /// The nodes that wrote to it.
        nodes: String,
        /// What the reducer said.
        message: String,
    },
    /// The run took as many supersteps as it was allowed and had not come to its end by then.
    #[error(
        "the run took {limit} supersteps, which is its recursion limit, without coming to its end; raise the limit with `recursion_limit`, or continue the thread with no input"
    )]
    RecursionLimit {
        /// The limit.
        limit: u64,
    },
    /// There was nothing to run: no input on a thread that has not begun, or an empty command.
    #[error("{0}")]
    EmptyInput(String),
    /// What was asked cannot be done, and nothing was changed.
    #[error("{0}")]
    Invalid(String),
    /// Answers that do not fit the open questions; nothing was changed.
    #[error("{message}")]
    Resume {
        /// What is wrong with the answers.
        message: String,
        /// The questions that are open.
        pending: Vec<Interrupt>,
    },
    /// The addressed checkpoint is not there.
    #[error("thread `{thread}` has no checkpoint {id}")]
    UnknownCheckpoint {
        /// The thread.
        thread: Arc<str>,
        /// The id that was asked for.
        id: CheckpointId,
    },
    /// A superstep took longer than the graph's `step_timeout`.
    #[error("superstep {step} took longer than {limit:?}")]
    StepTimeout {
        /// The superstep.
        step: i64,
        /// The limit.
        limit: Duration,
    },
    /// A command for the parent graph was returned in a graph that has none.
    #[error("node `{node}` returned a command for the parent graph, but this graph has no parent")]
    NoParent {
        /// The node.
        node: Arc<str>,
    },
    /// The thread was stored by another version of the graph, and some of its open work does not fit this one. Nothing was
    /// changed.
    #[error(
        "thread `{thread}` was stored by another version of the graph: {}; go on with that version, or give the thread new input, which drops its open work",
        problems.join("; ")
    )]
    Stale {
        /// The thread.
        thread: Arc<str>,
        /// What does not fit.
        problems: Vec<String>,
    },
    /// Another writer was first: it runs the thread, or has moved it on. What this run did since its last checkpoint is
    /// not stored.
    #[error(
        "another writer was first on thread `{thread}`; look at where the thread is before trying again"
    )]
    Conflict {
        /// The thread.
        thread: Arc<str>,
        /// What storage said.
        #[source]
        source: Arc<superstep_checkpoint::Error>,
    },
    /// Storage failed.
    #[error("the checkpointer failed")]
    Checkpoint(#[source] Arc<superstep_checkpoint::Error>),
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
            Self::Conflict { .. } | Self::Checkpoint(_) => "CheckpointError".into(),
        }
    }

    fn is_transient(&self) -> bool {
        match self {
            Self::Node { error, .. } => error.is_transient(),
            Self::Checkpoint(_) => true,
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

/// Everything that is wrong with a declared graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    problems: Vec<String>,
}

impl CompileError {
    pub(crate) fn new(problems: Vec<String>) -> Self {
        Self { problems }
    }

    /// The problems, each naming the thing it is about.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the graph cannot be compiled: ")?;
        f.write_str(&self.problems.join("; "))
    }
}

impl StdError for CompileError {}

/// The text of a panic, as far as it has one.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".to_owned())
}

/// `; did you mean ...?` with the known name nearest to `name`, or nothing if none is near.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let ranked = known.into_iter().map(|other| (distance(name, other), other));
    match ranked.min_by_key(|(distance, _)| *distance) {
        Some((distance, other)) if distance <= name.chars().count().max(3) / 2 => {
            format!("; did you mean `{other}`?")
        }
        _ => String::new(),
    }
}

/// How many letters have to be changed, added or removed to get from one name to the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in to.iter().enumerate() {
            let change = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_offered_only_if_it_is_near() {
        assert_eq!(nearest("reviw", ["write", "review"]), "; did you mean `review`?");
        assert_eq!(nearest("xyzzy", ["write", "review"]), "");
    }

    #[test]
    fn errors_say_whether_trying_again_may_help() {
        let parse = NodeError::from("x".parse::<i32>().expect_err("no number"));
        assert!(!parse.is_transient());
        assert_eq!(parse.kind(), "ParseIntError");
        let reset = NodeError::from(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        assert!(reset.is_transient());
        assert!(
            !NodeError::from(std::io::Error::from(std::io::ErrorKind::NotFound)).is_transient()
        );
        assert!(NodeError::from("the model is busy").is_transient());
        assert!(!NodeError::permanent("no such user").is_transient());
    }
}
