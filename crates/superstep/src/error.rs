//! What can go wrong, one type for each boundary.
//!
//! | Boundary | Type |
//! | --- | --- |
//! | a declared graph is checked | [`CompileError`]: all problems at once |
//! | a node's own code | [`NodeError`]: takes any error through `?` |
//! | a run, or a look at a thread | [`RunError`] |
//! | storage | [`checkpoint::Error`](crate::checkpoint::Error) |

mod node;
mod run;

use std::error::Error as StdError;
use std::fmt;

pub use node::NodeError;
pub(crate) use node::TimeLimit;
pub use run::RunError;

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

/// The texts of the causes of an error, outermost first. Displayed, they continue the text of the error.
pub(crate) struct Causes(Vec<String>);

impl Causes {
    pub(crate) fn of(error: &dyn StdError) -> Self {
        Self::new(error.to_string(), error.source())
    }

    /// The causes of an error whose text is `said`. A cause whose text ends the text before it is left out: many errors
    /// show their source themselves.
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
