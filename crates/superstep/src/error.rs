//! Errors, one type for each boundary.
//!
//! | Boundary | Type |
//! | --- | --- |
//! | `compile()` | [`CompileError`]: all problems at once |
//! | a node's own code | [`NodeError`]: takes any error through `?` |
//! | a run, or a read of a thread | [`RunError`] |
//! | storage | [`checkpoint::Error`](crate::checkpoint::Error) |

mod node;
mod run;

use std::error::Error as StdError;
use std::fmt;

pub use node::NodeError;
pub(crate) use node::TimeLimit;
pub use run::{RunError, UnfilledJoin};

/// An error code for documentation and dashboards, the same as in LangGraph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Code {
    /// The recursion limit was reached.
    GraphRecursionLimit,
    /// Two writes in one superstep where one is allowed.
    InvalidConcurrentGraphUpdate,
    /// A node returned something that is not an update, or the input is not one.
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

/// Everything that is wrong with a declared graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    problems: Vec<String>,
}

impl CompileError {
    /// These problems. For what builds graphs and has checks of its own.
    pub fn new(problems: Vec<String>) -> Self {
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

/// The texts of the causes of an error, outermost first. `Display` appends them to the text of the
/// error.
pub(crate) struct Causes(Vec<String>);

impl Causes {
    pub(crate) fn of(error: &dyn StdError) -> Self {
        Self::new(error.to_string(), error.source())
    }

    /// The causes of an error whose text is `said`. Skips a cause whose text is already the end of
    /// the text before it: many errors print their source themselves.
    fn new(mut said: String, mut source: Option<&dyn StdError>) -> Self {
        let mut texts = Vec::new();
        while let Some(cause) = source {
            let text = cause.to_string();
            if !said.ends_with(&text) {
                texts.push(text.clone());
                said = text;
            }
            source = cause.source();
        }
        Self(texts)
    }
}

impl fmt::Display for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|cause| write!(f, ": {cause}"))
    }
}

/// The message of a panic, if it has one.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".to_owned())
}

/// Returns `; did you mean ...?` with the known name nearest to `name`, or an empty text if none is
/// near.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match superstep_names::nearest(name, known) {
        Some(other) => format!("; did you mean `{other}`?"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
