//! Tools: functions that a model may ask for.
//!
//! Write one with [`#[tool]`](macro@crate::tool), or implement [`Tool`] for what is known only at run time, such as the tools of a server.

mod argument;
mod error;
mod function;
mod output;
mod pattern;

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;

use superstep::checkpoint::{Map, Value};
use superstep::state::{State, ToolCall};
use superstep::{NodeError, Task};

pub use argument::FromInvocation;
pub use error::{Failure, ToolError};
pub(crate) use function::specify;
pub use function::{Builder, function};
pub use output::{IntoToolOutput, Json, ToolOutput};
pub(crate) use pattern::matches;

use crate::approval::Approval;
use crate::state::AgentState;

/// A future that a trait object returns.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + 'static>>;

/// What a model is told of a tool, and how the agent treats it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ToolSpec {
    /// The name by which models ask for it.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON schema of its arguments, which are an object.
    pub schema: serde_json::Value,
    /// Whether the agent ends with its result, without asking the model again.
    pub return_direct: bool,
    /// Whether a person is asked before it runs.
    pub approval: Option<Approval>,
}

impl ToolSpec {
    /// A tool with this name, description and schema of its arguments.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        schema: serde_json::Value,
    ) -> Self {
        let (name, description) = (name.into(), description.into());
        Self { name, description, schema, return_direct: false, approval: None }
    }
}

/// A tool that an agent can run.
///
/// Each call is a task of its own: it runs beside the others, its result is kept if one of them fails or asks, and what it asks
/// survives a restart.
pub trait Tool: Send + Sync + 'static {
    /// What a model is told of it.
    fn spec(&self) -> &Arc<ToolSpec>;

    /// Runs it.
    ///
    /// It runs again from the beginning if its task does: after a question, a crash, or a retry. [`Call::idempotency_key`] is then
    /// the same.
    fn call(&self, invocation: Invocation) -> BoxFuture<Result<ToolOutput, ToolError>>;
}

/// A tool of any kind.
pub type AnyTool = Arc<dyn Tool>;

impl fmt::Debug for dyn Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tool").field(&self.spec().name).finish()
    }
}

/// One call of a tool, with what the tool may ask for.
#[derive(Clone)]
pub struct Invocation {
    call: Call,
    task: Task,
    state: Arc<dyn Any + Send + Sync>,
}

impl Invocation {
    pub(crate) fn new<X: State>(call: ToolCall, task: Task, state: Arc<AgentState<X>>) -> Self {
        let call = Call { key: task.idempotency_key(), call };
        Self { call, task, state }
    }

    /// The call, as the model made it or a person has changed it.
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// The arguments.
    pub fn args(&self) -> Value {
        self.call.args.clone().into()
    }

    /// The same call with other arguments.
    #[must_use]
    pub fn with_args(mut self, args: Map) -> Self {
        self.call.call.args = args;
        self
    }

    /// The task the call runs in.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The state of the agent as it was when the model asked.
    ///
    /// # Errors
    /// The agent's state is extended by another type than `X`.
    pub fn state<X: State>(&self) -> Result<Arc<AgentState<X>>, NodeError> {
        self.state.clone().downcast().map_err(|_| {
            let (tool, name) = (&self.call.name, std::any::type_name::<X>());
            NodeError::permanent(format!(
                "tool `{tool}` is for agents whose state is extended by `{name}`, which this agent's is not"
            ))
        })
    }
}

impl fmt::Debug for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invocation").field("call", &self.call).finish_non_exhaustive()
    }
}

/// A call of a tool, as a tool sees it.
#[derive(Clone, Debug)]
pub struct Call {
    call: ToolCall,
    key: String,
}

impl Call {
    /// A key for services that do a thing once for each key: the same whenever this call runs, different for every other call.
    pub fn idempotency_key(&self) -> &str {
        &self.key
    }
}

impl Deref for Call {
    type Target = ToolCall;

    fn deref(&self) -> &ToolCall {
        &self.call
    }
}

/// A tool, or something that makes one: a function written with `#[tool]`.
///
/// `M` distinguishes the kinds and is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    note = "a tool is a function with `#[tool]`, or implements `Tool`"
)]
pub trait IntoTool<M> {
    /// The tool.
    fn into_tool(self) -> AnyTool;
}

/// Marks functions that make tools.
#[derive(Debug)]
pub struct Made;

impl IntoTool<()> for AnyTool {
    fn into_tool(self) -> AnyTool {
        self
    }
}

impl<F: FnOnce() -> AnyTool> IntoTool<Made> for F {
    fn into_tool(self) -> AnyTool {
        self()
    }
}

/// A list of tools of different types: `tools![search, delete_file, another_agent]`.
#[macro_export]
macro_rules! tools {
    ($($tool:expr),* $(,)?) => {
        ::std::vec![$($crate::tool::IntoTool::into_tool($tool)),*]
    };
}
