use std::fmt;

use superstep::NodeError;

/// Why a tool failed: any error, and who is told.
///
/// Like [`NodeError`], it is not `std::error::Error`, so that `?` converts everything into it.
#[derive(Clone, Debug)]
pub struct ToolError {
    pub(crate) failure: Failure,
}

/// Who is told of the failure of a tool.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The arguments are not what the tool takes: the model is told.
    Arguments(String),
    /// The model is told, whatever the agent does with errors.
    Told(String),
    /// The run fails, or the model is told: as the agent was [declared](crate::Agent::on_tool_error).
    Failed(NodeError),
}

impl ToolError {
    /// An error that the model is told, so that it can do something else.
    pub fn tell(text: impl Into<String>) -> Self {
        Self { failure: Failure::Told(text.into()) }
    }

    /// The arguments are not what the tool takes.
    pub fn arguments(why: impl Into<String>) -> Self {
        Self { failure: Failure::Arguments(why.into()) }
    }

    /// What kind of failure it is.
    pub fn failure(&self) -> &Failure {
        &self.failure
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.failure {
            Failure::Arguments(text) | Failure::Told(text) => f.write_str(text),
            Failure::Failed(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl<E: Into<NodeError>> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self { failure: Failure::Failed(error.into()) }
    }
}
