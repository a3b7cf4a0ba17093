use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{Causes, Code, RunError};

/// Why a node failed: any error, and whether a retry may help.
///
/// Like `anyhow::Error` it does not implement `std::error::Error`, so that `?` converts everything
/// into it: errors, texts, boxed errors.
///
/// The causes of the error are kept. `{error}` is its own text, `{error:#}` adds those of its causes, and `{error:?}` its
/// [kind](Self::kind) as well. A stored error has the same texts when it is read back, but not the types.
#[derive(Clone)]
pub struct NodeError {
    inner: Arc<ErrorParts>,
}

struct ErrorParts {
    cause: Cause,
    kind: Cow<'static, str>,
    transient: bool,
    code: Option<Code>,
}

enum Cause {
    Any(Box<dyn StdError + Send + Sync>),
    Run(RunError),
    Text(String),
    /// A shared error under another name.
    Shared(NodeError),
}

impl NodeError {
    /// A permanent failure with this text: a retry does not help.
    pub fn permanent(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::build(Cause::Any(cause.into()), "Error", false)
    }

    /// A transient failure: a retry may help.
    pub fn transient(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::build(Cause::Any(cause.into()), "Error", true)
    }

    /// Gives the error a name that retry policies and error handlers can match.
    #[must_use]
    pub fn named(self, kind: impl Into<Cow<'static, str>>) -> Self {
        match Arc::try_unwrap(self.inner) {
            Ok(inner) => Self { inner: Arc::new(ErrorParts { kind: kind.into(), ..inner }) },
            Err(shared) => {
                let (transient, code) = (shared.transient, shared.code);
                let cause = Cause::Shared(Self { inner: shared });
                Self { inner: Arc::new(ErrorParts { cause, kind: kind.into(), transient, code }) }
            }
        }
    }

    /// The name of the error: that of its type, or the one it was given.
    pub fn kind(&self) -> &str {
        &self.inner.kind
    }

    /// Whether a retry may help.
    pub fn is_transient(&self) -> bool {
        self.inner.transient
    }

    /// The code, for errors that have one.
    pub fn code(&self) -> Option<Code> {
        self.inner.code
    }

    /// The inner error, or the first of its causes, that is an `E`.
    ///
    /// Errors of subgraphs are searched too, down to the error of the node that failed. An
    /// `anyhow::Error` hides the type of its inner error unless it has a context.
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        match &self.inner.cause {
            Cause::Any(error) => find(&**error),
            Cause::Run(error) => find(error),
            Cause::Text(_) => None,
            Cause::Shared(error) => error.downcast_ref(),
        }
    }

    /// The source of the inner error.
    pub fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.inner.cause {
            Cause::Any(error) => error.source(),
            Cause::Run(error) => error.source(),
            Cause::Text(_) => None,
            Cause::Shared(error) => error.source(),
        }
    }

    fn causes(&self) -> Causes {
        Causes::new(self.to_string(), self.source())
    }

    fn build(cause: Cause, kind: impl Into<Cow<'static, str>>, transient: bool) -> Self {
        Self { inner: Arc::new(ErrorParts { cause, kind: kind.into(), transient, code: None }) }
    }

    fn text(kind: &'static str, text: String, transient: bool) -> Self {
        Self::build(Cause::Text(text), kind, transient)
    }

    pub(crate) fn panicked(node: &str, text: &str) -> Self {
        Self::text("Panic", format!("node `{node}` panicked: {text}"), false)
    }

    pub(crate) fn lost_events(node: &str, max: usize) -> Self {
        Self::permanent(format!(
            "node `{node}` emitted more than {max} events without giving the reader a chance to take them; await something between them, `tokio::task::yield_now` if nothing else"
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

    pub(crate) fn is_cancelled(&self) -> bool {
        self.kind() == "CancelledError"
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
        Self {
            inner: Arc::new(ErrorParts { cause: Cause::Text(text), kind, transient: false, code }),
        }
    }

    pub(crate) fn bad_route(kind: &'static str, text: String) -> Self {
        Self::text(kind, text, false)
    }

    /// Parses a stored error, written by superstep or LangGraph.
    pub(crate) fn from_stored(stored: String) -> Self {
        let kind = stored.split(|c: char| !c.is_alphanumeric() && c != '_').next();
        let kind = kind.unwrap_or_default().to_owned();
        let inside = stored.strip_prefix(&*kind).and_then(|rest| {
            let quoted = rest.strip_prefix('(')?.strip_suffix(')')?;
            let plain = || quoted.strip_prefix('\'')?.strip_suffix('\'').map(str::to_owned);
            serde_json::from_str::<String>(quoted).ok().or_else(plain)
        });
        Self::permanent(StoredError::parse(&inside.unwrap_or(stored))).named(kind)
    }

    /// The stored text of the error, in LangGraph's form.
    pub(crate) fn stored(&self) -> String {
        stored(self.kind(), &self.to_string(), self.causes())
    }
}

/// The text under which an error and its causes are stored: as Python would print an exception, with each cause on a line
/// of its own.
pub(super) fn stored(kind: &str, text: &str, causes: Causes) -> String {
    let lines = std::iter::once(text.to_owned()).chain(causes.0);
    let text = lines.collect::<Vec<_>>().join(CAUSED_BY);
    format!("{kind}({})", serde_json::Value::from(text))
}

const CAUSED_BY: &str = "\ncaused by: ";

/// An error that was read back, with its causes.
#[derive(Debug)]
struct StoredError {
    text: String,
    source: Option<Box<Self>>,
}

impl StoredError {
    fn parse(stored: &str) -> Self {
        match stored.split_once(CAUSED_BY) {
            Some((text, cause)) => {
                Self { text: text.to_owned(), source: Some(Box::new(Self::parse(cause))) }
            }
            None => Self { text: stored.to_owned(), source: None },
        }
    }
}

impl fmt::Display for StoredError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl StdError for StoredError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// The first error of a chain that is an `E`.
fn find<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // The sources of these two begin after an error that is part of them.
        if let Some(RunError::Node { error, .. }) = error.downcast_ref() {
            return error.downcast_ref();
        }
        let inside = error.downcast_ref().and_then(std::io::Error::get_ref);
        next = match inside {
            Some(inside) => Some(inside),
            None => error.source(),
        };
    }
    None
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
                let inner =
                    ErrorParts { cause: Cause::Run(*run), kind: kind.into(), transient, code };
                return Self { inner: Arc::new(inner) };
            }
            Err(error) => error,
        };
        let transient = may_pass(&*error);
        Self::build(Cause::Any(error), kind, transient)
    }
}

/// The default retry rule: every error, except those that will be the same each time.
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
            Self::Any(error) => write!(f, "{error}"),
            Self::Run(error) => write!(f, "{error}"),
            Self::Text(text) => f.write_str(text),
            Self::Shared(error) => write!(f, "{error}"),
        }
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.cause.fmt(f)?;
        if f.alternate() { self.causes().fmt(f) } else { Ok(()) }
    }
}

impl fmt::Debug for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self:#}", self.inner.kind)
    }
}
