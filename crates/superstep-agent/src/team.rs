//! Several agents: as tools of another one, and handing over to each other.
//!
//! An agent that is a [tool](AgentTool) works on a task of its own, with a conversation of its own, and its last message is the result. What it asks a
//! person surfaces at the outermost graph; the answer goes to the very call that asked.
//!
//! A [hand-off](hand_off) leaves the agent for another node of the graph around it.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use superstep::state::{Message, State};
use superstep::{Command, CompiledGraph};

use crate::state::{AgentState, say};
use crate::tool::{self, AnyTool, Invocation, ToolError, ToolOutput};

/// An agent as a tool of another one.
pub trait AgentTool {
    /// The agent as a tool of this name. The description tells the model what to ask it for.
    ///
    /// Each call begins a conversation of its own, with one message: what the model asks. A question of the inner agent is a question of
    /// the outer thread, and when it is answered the inner agent goes on where it was.
    fn as_tool(&self, name: &str, description: &str) -> AnyTool;
}

#[derive(Deserialize, JsonSchema)]
struct Ask {
    /// What it is to do, with everything it needs to know.
    request: String,
}

impl<X: State> AgentTool for CompiledGraph<AgentState<X>> {
    fn as_tool(&self, name: &str, description: &str) -> AnyTool {
        let agent = self.clone();
        tool::function::<Ask>(name, description).run(move |Ask { request }, run: Invocation| {
            let agent = agent.clone();
            async move {
                let state = run.task().invoke(&agent, say::<X>(request)).await?;
                let answer = match state.structured_response.is_null() {
                    true => state.reply().into_owned(),
                    false => state.structured_response.to_string(),
                };
                Ok::<_, ToolError>(ToolOutput::new(answer))
            }
        })
    }
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// A tool that hands over to another node of the graph around the agent, whose state is `P`.
///
/// `update` makes what is written there of the whole conversation, which ends with a result for each call of the turn. Of several hand-offs in one
/// turn the first counts. Results of other tools of the turn are dropped, and the conversation says so.
///
/// `X` extends the state of the agent that hands over.
pub fn hand_off<X: State, P: State>(
    to: &str,
    update: impl Fn(Vec<Message>) -> P::Update + Send + Sync + 'static,
) -> AnyTool {
    let (to, name): (Arc<str>, _) = (to.into(), format!("transfer_to_{to}"));
    let (update, description) = (Arc::new(update), format!("Hands over to {to}."));
    tool::function::<Nothing>(name, description).run(move |Nothing {}, run: Invocation| {
        let (to, update) = (to.clone(), update.clone());
        async move {
            let state = run.state::<X>()?;
            let mut messages = state.messages.clone();
            for call in state.last_ai().map_or(&[][..], |message| &message.tool_calls) {
                let text = match call.id == run.call().id {
                    true => format!("Successfully transferred to {to}"),
                    false => format!("Dropped: the conversation was transferred to {to}."),
                };
                let id = call.id.clone().unwrap_or_default();
                messages.push(Message::tool(id, text).with_name(&*call.name));
            }
            let command = Command::<P>::update(update(messages)).goto(&*to).to_parent();
            Ok::<_, ToolError>(ToolOutput::to_parent(command))
        }
    })
}
