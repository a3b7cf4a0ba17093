//! The builder of agents, and the nodes and routes of their graph.

mod answer;
mod graph;
mod model_node;
mod repair;
mod route;
mod tools_node;

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use superstep::checkpoint::{Map, Value};
use superstep::state::{Kind, Message, State};
use superstep::{CompileError, CompiledGraph};

pub(crate) use answer::AnswerRule;
pub use answer::AnswerStrategy;
pub(crate) use tools_node::ToolNode;

use crate::approval::{Approval, ApprovalFormat};
use crate::middleware::{AnyMiddleware, Middleware};
use crate::model::ChatModel;
use crate::state::AgentState;
use crate::tool::AnyTool;

/// Builds an agent: a model that is asked again and again, and tools that run when it asks for them.
///
/// The graph is that of LangChain's `create_agent`, with its nodes and channels, so that either engine continues the other's
/// threads.
///
/// ```
/// use superstep::prelude::*;
/// use superstep::state::ToolCall;
/// use superstep_agent::testing::ScriptedModel;
/// use superstep_agent::{Agent, say, tool, tools};
///
/// /// The weather in a city.
/// #[tool]
/// async fn weather(city: String) -> String {
///     format!("It is sunny in {city}.")
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let model = ScriptedModel::new([
///     Message::ai("").with_tool_calls([ToolCall::new("1", "weather", [("city", "Lisbon")])]),
///     Message::ai("Take a hat."),
/// ]);
/// let agent = Agent::new(model).prompt("You know the weather.").tools(tools![weather]).build()?;
/// let state = agent.invoke(say("What to wear in Lisbon?")).await?.done().expect("nothing is asked");
/// assert_eq!(state.messages[2].text(), "It is sunny in Lisbon.");
/// assert_eq!(state.reply(), "Take a hat.");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[doc(alias = "create_agent")]
#[doc(alias = "create_react_agent")]
#[must_use = "an agent is made by `build`"]
pub struct Agent<X: State = ()> {
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) prompt: Option<Prompt<X>>,
    pub(crate) tools: Vec<AnyTool>,
    pub(crate) approvals: Vec<(String, Approval)>,
    pub(crate) approval_format: ApprovalFormat,
    pub(crate) tool_errors: ToolErrors,
    pub(crate) middleware: Vec<Arc<dyn AnyMiddleware<X>>>,
    pub(crate) answer: Option<AnswerRule>,
    pub(crate) settings: Map,
    pub(crate) messages: Kind,
}

/// The instructions to the model, from the state.
pub(crate) type Prompt<X> = Arc<dyn Fn(&AgentState<X>) -> Option<Message> + Send + Sync>;

/// What becomes of an error of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolErrors {
    /// The run fails, as LangChain's does. The other calls of the turn keep their results; the next run tries the failed
    /// call again.
    #[default]
    Raise,
    /// The model is told, and decides what to do. A panic counts as an error.
    Tell,
}

impl Agent {
    /// An agent with this model, and without a state of its own.
    pub fn new(model: impl ChatModel) -> Self {
        Self::with_state(model)
    }
}

impl<X: State> Agent<X> {
    /// An agent with this model whose state is extended by your struct: `Agent::<Desk>::with_state(model)`.
    pub fn with_state(model: impl ChatModel) -> Self {
        Self {
            model: Arc::new(model),
            name: None,
            prompt: None,
            tools: Vec::new(),
            approvals: Vec::new(),
            approval_format: ApprovalFormat::default(),
            tool_errors: ToolErrors::default(),
            middleware: Vec::new(),
            answer: None,
            settings: Map::new(),
            messages: Kind::Reduce,
        }
    }

    /// Names the agent: its graph, and the messages of its model.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The instructions to the model. They are not part of the conversation.
    pub fn prompt(self, prompt: impl Into<Value>) -> Self {
        let prompt = prompt.into();
        self.prompt_with(move |_| Some(Message::system(prompt.clone())))
    }

    /// Instructions that depend on the state.
    pub fn prompt_with(
        mut self,
        prompt: impl Fn(&AgentState<X>) -> Option<Message> + Send + Sync + 'static,
    ) -> Self {
        self.prompt = Some(Arc::new(prompt));
        self
    }

    /// Adds tools: `tools![search, delete_file]`, or a list that is known only at run time.
    pub fn tools(mut self, tools: impl IntoIterator<Item = AnyTool>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Asks a person before tools run whose name matches; `*` stands for anything. Of several patterns that match, the one added last
    /// counts, and all before what the tool itself says.
    pub fn approve(self, pattern: impl Into<String>) -> Self {
        self.approve_with(pattern, Approval::default())
    }

    /// As [`approve`](Self::approve), with what may be decided, or about which calls.
    pub fn approve_with(mut self, pattern: impl Into<String>, approval: Approval) -> Self {
        self.approvals.push((pattern.into(), approval));
        self
    }

    /// The form of questions about tool calls.
    pub fn approval_format(mut self, format: ApprovalFormat) -> Self {
        self.approval_format = format;
        self
    }

    /// What becomes of errors of tools. Whatever this says, the model is told of invalid arguments, of unknown tools and of
    /// [`ToolError::tell`](crate::ToolError::tell).
    pub fn on_tool_error(mut self, errors: ToolErrors) -> Self {
        self.tool_errors = errors;
        self
    }

    /// Adds a middleware. The order matters: see [`middleware`](crate::middleware).
    pub fn with(mut self, middleware: impl Middleware<X>) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Ends with an answer of this type, which is in [`AgentState::structured_response`].
    ///
    /// The answer is always checked. One that does not fit is sent back to the model with the reason, twice at most.
    #[doc(alias = "response_format")]
    pub fn answer_as<T: JsonSchema + DeserializeOwned>(mut self) -> Self {
        self.answer = Some(AnswerRule::of::<T>());
        self
    }

    /// How the model is made to give the answer.
    pub fn answer_by(mut self, strategy: AnswerStrategy) -> Self {
        if let Some(answer) = &mut self.answer {
            answer.strategy = strategy;
        }
        self
    }

    /// A setting that is sent with each request, such as `temperature`.
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.settings.insert(name.into(), value.into());
        self
    }

    /// Stores messages as they are added, instead of the whole conversation in each superstep. Long conversations cost less,
    /// and Python's `create_agent` cannot continue the thread.
    pub fn store_deltas(mut self, every: u64) -> Self {
        self.messages = Kind::Delta(superstep::state::Deltas::Growing(every));
        self
    }

    /// The agent, as a graph.
    ///
    /// # Errors
    /// Two tools or two middlewares of one name, a pattern of approvals that no tool has, or a name that a graph cannot have. All
    /// problems at once.
    pub fn build(self) -> Result<CompiledGraph<AgentState<X>>, CompileError> {
        graph::build(self)
    }
}

impl<X: State> fmt::Debug for Agent<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let middleware: Vec<_> = self.middleware.iter().map(|layer| layer.name()).collect();
        f.debug_struct("Agent")
            .field("name", &self.name)
            .field("tools", &self.tools)
            .field("middleware", &middleware)
            .finish_non_exhaustive()
    }
}
