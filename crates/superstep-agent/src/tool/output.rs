use std::fmt;

use serde::Serialize;
use superstep::checkpoint::{Value, to_value};
use superstep::node::{IntoOutput, ParentCommand};
use superstep::state::{Message, State, ToolCall, ToolStatus};
use superstep::{Command, Output};

use super::ToolError;
use crate::state::AgentState;

/// What a tool returns: what the model is told, and what else happens.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ToolOutput {
    /// What the model is told: text, or a list of content blocks.
    pub content: Value,
    /// Output that is kept with the message and not sent to the model.
    pub artifact: Value,
    /// Whether it went well.
    pub status: ToolStatus,
    /// Writes and targets beside the message.
    pub(crate) command: Option<Output>,
    /// Whether the command has the message that answers the call.
    pub(crate) answered: bool,
}

impl ToolOutput {
    /// Tells the model this.
    pub fn new(content: impl Into<Value>) -> Self {
        Self { content: content.into(), ..Self::default() }
    }

    /// Tells the model that it went wrong.
    pub fn error(content: impl Into<Value>) -> Self {
        Self { status: ToolStatus::Error, ..Self::new(content) }
    }

    /// Keeps this with the message; the model does not see it.
    #[must_use]
    pub fn with_artifact(self, artifact: impl Into<Value>) -> Self {
        Self { artifact: artifact.into(), ..self }
    }

    /// Changes the state of the agent, or goes elsewhere in it, as well.
    #[must_use]
    pub fn with_command<X: State>(self, command: Command<AgentState<X>>) -> Self {
        Self { command: command.into_output().ok(), ..self }
    }

    /// Leaves the agent with a command for the graph around it, which must have the message that answers the call.
    pub fn to_parent(command: ParentCommand) -> Self {
        let command = IntoOutput::<()>::into_output(command).ok();
        Self { command, answered: true, ..Self::default() }
    }

    /// The message that answers this call.
    pub(crate) fn message(&self, call: &ToolCall) -> Message {
        let answer = Message::tool(call.id.clone().unwrap_or_default(), self.content.clone());
        let answer = answer.with_name(&*call.name).with_status(self.status);
        answer.with_artifact(self.artifact.clone())
    }
}

/// A return type of tools.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    note = "a tool returns text, a `Value`, `Json(...)` of what can be serialized, a `ToolOutput`, `()`, or a `Result` of these"
)]
pub trait IntoToolOutput {
    /// The output.
    ///
    /// # Errors
    /// The tool's own error, or the output cannot be serialized.
    fn into_tool_output(self) -> Result<ToolOutput, ToolError>;
}

impl IntoToolOutput for ToolOutput {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

impl IntoToolOutput for () {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::new("done"))
    }
}

impl IntoToolOutput for serde_json::Value {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Json(self).into_tool_output()
    }
}

macro_rules! content {
    ($($text:ty),*) => {
        $(impl IntoToolOutput for $text {
            fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
                Ok(ToolOutput::new(self))
            }
        })*
    };
}

content!(String, &str, Value);

/// A value that the model is told as JSON.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoToolOutput for Json<T> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        let value = to_value(&self.0)?;
        Ok(ToolOutput::new(value.to_string()))
    }
}

impl<T: IntoToolOutput, E: Into<ToolError>> IntoToolOutput for Result<T, E> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        self.map_err(Into::into)?.into_tool_output()
    }
}

impl fmt::Display for ToolOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Value::Str(text) => f.write_str(text),
            other => fmt::Display::fmt(other, f),
        }
    }
}
