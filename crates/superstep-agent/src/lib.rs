//! Agents: a model that is asked again and again, and tools that run when it asks for them.
//!
//! An agent is a graph of [`superstep`], the one that LangChain's `create_agent` builds: it survives a crash and a restart, asks people and waits
//! for their answers, streams, and continues threads that Python began.
//!
//! ```
//! use superstep::prelude::*;
//! use superstep::state::ToolCall;
//! use superstep_agent::testing::ScriptedModel;
//! use superstep_agent::{Agent, Call, Decision, ToolError, say, tool, tools};
//!
//! /// Deletes a file for good.
//! #[tool(approve)]
//! async fn delete_file(path: String, call: Call) -> Result<String, ToolError> {
//!     println!("deleting {path}, once for {}", call.idempotency_key());
//!     Ok(format!("{path} is gone"))
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! // A client of a provider takes the place of the script.
//! let model = ScriptedModel::new([
//!     Message::ai("").with_tool_calls([ToolCall::new("1", "delete_file", [("path", "old.txt")])]),
//!     Message::ai("Done."),
//! ]);
//! let agent = Agent::new(model)
//!     .prompt("You tidy up.")
//!     .tools(tools![delete_file])
//!     .build()?
//!     .with_checkpointer(MemorySaver::new());
//!
//! let thread = agent.thread("1");
//! let asked = thread.invoke(say("Tidy up.")).await?.interrupted().expect("a question");
//! assert_eq!(asked[0].value.get("action_requests").and_then(|it| it.as_list()).map(<[_]>::len), Some(1));
//! let state = thread.resume(Decision::Approve).await?.done().expect("an end");
//! assert_eq!(state.reply(), "Done.");
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! # Where to look
//!
//! | | |
//! | --- | --- |
//! | [`Agent`] | the builder: model, prompt, tools, approvals, middleware, the type of the answer |
//! | [`AgentState`], [`say`] | its state, and its input |
//! | [`ChatModel`] | what a client of a provider implements |
//! | [`tool`](mod@tool) | tools: functions with [`#[tool]`](macro@tool), or anything that implements [`Tool`] |
//! | [`approval`] | asking a person before a tool runs |
//! | [`middleware`] | what happens around the model and the tools: retries, limits, summaries |
//! | [`team`] | several agents: as tools of another, and handing over to each other |
//!
//! # What it is not
//!
//! There is no HTTP in it and no provider.

pub mod approval;
pub mod middleware;
pub mod model;
pub mod team;
#[cfg(feature = "testing")]
pub mod testing;
pub mod tool;

mod agent;
mod state;

pub use agent::{Agent, AnswerStrategy, ToolErrors};
pub use approval::{Approval, ApprovalFormat, Decision};
pub use model::{
    ChatModel, Conversation, ModelError, ModelRequest, ModelStream, Price, Profile, ToolChoice,
    Trouble,
};
pub use state::{AgentState, AgentUpdate, JumpTo, LayerChannel, say};
pub use superstep_macros::tool;
pub use tool::{AnyTool, Call, IntoTool, Invocation, Json, Tool, ToolError, ToolOutput, ToolSpec};

/// What code written by `#[tool]` needs.
#[doc(hidden)]
pub mod __private {
    pub use schemars::{self, JsonSchema};
    pub use serde::{self, Deserialize};
}
