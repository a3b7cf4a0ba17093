//! Middleware: what happens around the model and the tools of an agent.
//!
//! A [`Middleware`] has two kinds of methods, named and ordered as LangChain's. *Hooks* are nodes of the graph, named
//! `Name.before_model`: they see the state, write to it, may ask, and may send the agent elsewhere. *Layers* wrap the call of the model,
//! or of a tool, inside its node: they change the request or the answer, try again, or do without.
//!
//! ```text
//! before_agent → ( before_model → layers of the model → after_model → layers of each tool )* → after_agent
//! ```
//!
//! `before_*` run in the order in which middleware was added, `after_*` in reverse, and the first layer is the outermost.

mod backoff;
mod bounds;
mod budget;
mod context;
mod fallback;
mod human;
mod limits;
mod pii;
mod retry;
mod select;
mod summary;
mod todo;
mod tokens;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use superstep::state::{Message, State};
use superstep::{NodeError, Task};

pub use backoff::Backoff;
pub use bounds::ToolBounds;
pub use budget::Budget;
pub use context::ClearToolUses;
pub use fallback::ModelFallback;
pub use human::HumanInTheLoop;
pub use limits::{AtLimit, ModelCallLimit, ToolCallLimit};
pub use pii::{Pii, PiiStrategy};
pub use retry::{ModelRetry, ToolRetry};
pub use select::ToolSelection;
pub use summary::Summarization;
pub use todo::{Todo, TodoList, TodoStatus};

use crate::model::{ChatModel, ModelError, ModelRequest};
use crate::state::{AgentState, AgentUpdate, LayerChannel};
use crate::tool::{AnyTool, BoxFuture, Invocation, ToolError, ToolOutput, ToolSpec};

/// A place in the graph of an agent where a middleware has a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Once, before everything else.
    BeforeAgent,
    /// Before each call of the model.
    BeforeModel,
    /// After each call of the model, before the tools it asks for.
    AfterModel,
    /// Once, after everything else.
    AfterAgent,
}

impl Hook {
    /// The name, as in the names of nodes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BeforeAgent => "before_agent",
            Self::BeforeModel => "before_model",
            Self::AfterModel => "after_model",
            Self::AfterAgent => "after_agent",
        }
    }
}

/// What happens around the model and the tools of an agent whose state is extended by `X`.
///
/// A middleware that only retries, say, has one method:
///
/// ```
/// use superstep::state::State;
/// use superstep_agent::ModelError;
/// use superstep_agent::middleware::{Middleware, ModelCall, ModelReply, NextModel};
///
/// struct Twice;
///
/// impl<X: State> Middleware<X> for Twice {
///     fn name(&self) -> &str {
///         "Twice"
///     }
///
///     async fn wrap_model(&self, call: ModelCall<X>, next: NextModel<X>) -> Result<ModelReply<X>, ModelError> {
///         match next.run(call.clone()).await {
///             Err(error) if error.is_transient() => next.run(call).await,
///             ended => ended,
///         }
///     }
/// }
/// ```
pub trait Middleware<X: State = ()>: Send + Sync + 'static {
    /// The hooks that this middleware has; each is a node of the graph.
    const HOOKS: &'static [Hook] = &[];

    /// The name, which is part of the names of its nodes.
    fn name(&self) -> &str;

    /// Channels that it adds to the state.
    fn channels(&self) -> Vec<LayerChannel> {
        Vec::new()
    }

    /// Tools that it adds.
    fn tools(&self) -> Vec<AnyTool> {
        Vec::new()
    }

    /// Runs once, before everything else.
    ///
    /// # Errors
    /// The node fails with them. The same holds for the other hooks.
    fn before_agent(
        &self,
        _state: Arc<AgentState<X>>,
        _task: Task,
    ) -> impl Future<Output = Result<AgentUpdate<X>, NodeError>> + Send {
        nothing()
    }

    /// Runs before each call of the model.
    fn before_model(
        &self,
        _state: Arc<AgentState<X>>,
        _task: Task,
    ) -> impl Future<Output = Result<AgentUpdate<X>, NodeError>> + Send {
        nothing()
    }

    /// Runs after each call of the model.
    fn after_model(
        &self,
        _state: Arc<AgentState<X>>,
        _task: Task,
    ) -> impl Future<Output = Result<AgentUpdate<X>, NodeError>> + Send {
        nothing()
    }

    /// Runs once, after everything else.
    fn after_agent(
        &self,
        _state: Arc<AgentState<X>>,
        _task: Task,
    ) -> impl Future<Output = Result<AgentUpdate<X>, NodeError>> + Send {
        nothing()
    }

    /// Wraps the call of the model.
    ///
    /// # Errors
    /// The model has not answered.
    fn wrap_model(
        &self,
        call: ModelCall<X>,
        next: NextModel<X>,
    ) -> impl Future<Output = Result<ModelReply<X>, ModelError>> + Send {
        async move { next.run(call).await }
    }

    /// Wraps a call of a tool. It begins after a person has approved the call.
    ///
    /// # Errors
    /// The tool failed.
    fn wrap_tool(
        &self,
        call: ToolRun,
        next: NextTool,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send {
        async move { next.run(call).await }
    }
}

fn nothing<X: State>() -> std::future::Ready<Result<AgentUpdate<X>, NodeError>> {
    std::future::ready(Ok(AgentUpdate::default()))
}

/// A call of the model, as layers see it.
pub struct ModelCall<X: State = ()> {
    /// The model.
    pub model: Arc<dyn ChatModel>,
    /// What it is asked.
    pub request: ModelRequest,
    /// The state of the agent.
    pub state: Arc<AgentState<X>>,
    /// The task the call runs in.
    pub task: Task,
    /// How often the model was asked in this task.
    pub(crate) tries: Arc<AtomicU32>,
}

impl<X: State> Clone for ModelCall<X> {
    fn clone(&self) -> Self {
        Self {
            model: self.model.clone(),
            request: self.request.clone(),
            state: self.state.clone(),
            task: self.task.clone(),
            tries: self.tries.clone(),
        }
    }
}

impl<X: State> fmt::Debug for ModelCall<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelCall").field("request", &self.request).finish_non_exhaustive()
    }
}

/// The answer of a model, as layers see it.
pub struct ModelReply<X = ()> {
    /// The message.
    pub message: Message,
    /// What else is written to the state.
    pub update: AgentUpdate<X>,
}

impl<X: State> ModelReply<X> {
    /// An answer that writes nothing else.
    pub fn new(message: Message) -> Self {
        Self { message, update: AgentUpdate::default() }
    }
}

impl<X> fmt::Debug for ModelReply<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelReply").field("message", &self.message).finish_non_exhaustive()
    }
}

/// A call of a tool, as layers see it.
#[derive(Clone, Debug)]
pub struct ToolRun {
    /// The tool.
    pub tool: Arc<ToolSpec>,
    /// The call.
    pub invocation: Invocation,
}

type Call<I, O, E> = Arc<dyn Fn(I) -> BoxFuture<Result<O, E>> + Send + Sync>;

/// The layers inside this one, and the model at the end.
pub struct NextModel<X: State = ()>(pub(crate) Call<ModelCall<X>, ModelReply<X>, ModelError>);

impl<X: State> NextModel<X> {
    /// Calls the model. A layer may do so any number of times.
    ///
    /// # Errors
    /// The model has not answered.
    pub async fn run(&self, call: ModelCall<X>) -> Result<ModelReply<X>, ModelError> {
        (self.0)(call).await
    }
}

impl<X: State> Clone for NextModel<X> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<X: State> fmt::Debug for NextModel<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NextModel")
    }
}

/// The layers inside this one, and the tool at the end.
#[derive(Clone)]
pub struct NextTool(pub(crate) Call<ToolRun, ToolOutput, ToolError>);

impl NextTool {
    /// Runs the tool. A layer may do so any number of times.
    ///
    /// # Errors
    /// The tool failed.
    pub async fn run(&self, call: ToolRun) -> Result<ToolOutput, ToolError> {
        (self.0)(call).await
    }
}

impl fmt::Debug for NextTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NextTool")
    }
}

/// The private twin of [`Middleware`] that fits into a list.
pub(crate) trait AnyMiddleware<X: State>: Send + Sync {
    fn name(&self) -> &str;
    fn hooks(&self) -> &'static [Hook];
    fn channels(&self) -> Vec<LayerChannel>;
    fn tools(&self) -> Vec<AnyTool>;
    fn hook(
        self: Arc<Self>,
        hook: Hook,
        state: Arc<AgentState<X>>,
        task: Task,
    ) -> BoxFuture<Result<AgentUpdate<X>, NodeError>>;
    fn wrap_model(
        self: Arc<Self>,
        call: ModelCall<X>,
        next: NextModel<X>,
    ) -> BoxFuture<Result<ModelReply<X>, ModelError>>;
    fn wrap_tool(
        self: Arc<Self>,
        call: ToolRun,
        next: NextTool,
    ) -> BoxFuture<Result<ToolOutput, ToolError>>;
}

impl<X: State, M: Middleware<X>> AnyMiddleware<X> for M {
    fn name(&self) -> &str {
        Middleware::name(self)
    }

    fn hooks(&self) -> &'static [Hook] {
        M::HOOKS
    }

    fn channels(&self) -> Vec<LayerChannel> {
        Middleware::channels(self)
    }

    fn tools(&self) -> Vec<AnyTool> {
        Middleware::tools(self)
    }

    fn hook(
        self: Arc<Self>,
        hook: Hook,
        state: Arc<AgentState<X>>,
        task: Task,
    ) -> BoxFuture<Result<AgentUpdate<X>, NodeError>> {
        Box::pin(async move {
            match hook {
                Hook::BeforeAgent => self.before_agent(state, task).await,
                Hook::BeforeModel => self.before_model(state, task).await,
                Hook::AfterModel => self.after_model(state, task).await,
                Hook::AfterAgent => self.after_agent(state, task).await,
            }
        })
    }

    fn wrap_model(
        self: Arc<Self>,
        call: ModelCall<X>,
        next: NextModel<X>,
    ) -> BoxFuture<Result<ModelReply<X>, ModelError>> {
        Box::pin(async move { Middleware::wrap_model(&*self, call, next).await })
    }

    fn wrap_tool(
        self: Arc<Self>,
        call: ToolRun,
        next: NextTool,
    ) -> BoxFuture<Result<ToolOutput, ToolError>> {
        Box::pin(async move { Middleware::wrap_tool(&*self, call, next).await })
    }
}
