//! A to-do list that the model keeps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use superstep::Command;
use superstep::checkpoint::to_value;
use superstep::state::{Message, State, TableChannel};

use super::{Middleware, ModelCall, ModelReply, NextModel};
use crate::model::ModelError;
use crate::state::{AgentState, LayerChannel};
use crate::tool::{self, AnyTool, Invocation, ToolError, ToolOutput};

/// Gives the model a tool to keep a list of what is to do, in the channel `todos`.
#[derive(Clone, Debug, Default)]
pub struct TodoList;

/// Something to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Todo {
    /// What it is.
    pub content: String,
    /// How far it is.
    pub status: TodoStatus,
}

/// How far something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
}

#[derive(Deserialize, JsonSchema)]
struct WriteTodos {
    /// The whole list.
    todos: Vec<Todo>,
}

const PROMPT: &str = "For work of several steps, keep a list with `write_todos`: write it before you begin, mark a step `in_progress` when you begin it \
and `completed` as soon as it is done, and change the list when the plan changes. Do without for simple requests.";

impl<X: State> Middleware<X> for TodoList {
    fn name(&self) -> &str {
        "TodoListMiddleware"
    }

    fn channels(&self) -> Vec<LayerChannel> {
        vec![LayerChannel::new("todos", TableChannel::last())]
    }

    fn tools(&self) -> Vec<AnyTool> {
        let write = |WriteTodos { todos }, _: Invocation| async move {
            let shown = to_value(&todos)?;
            let update = AgentState::<X>::update().set("todos", todos)?;
            let output = ToolOutput::new(format!("Updated todo list to {shown}"));
            Ok::<_, ToolError>(output.with_command(Command::update(update)))
        };
        let description = "Replaces the list of what is to do.";
        vec![tool::function::<WriteTodos>("write_todos", description).run(write)]
    }

    async fn wrap_model(
        &self,
        mut call: ModelCall<X>,
        next: NextModel<X>,
    ) -> Result<ModelReply<X>, ModelError> {
        let system = call.request.system.take().map(|system| system.text().into_owned());
        let system = system.map_or_else(|| PROMPT.to_owned(), |text| format!("{text}\n\n{PROMPT}"));
        call.request.system = Some(Message::system(system));
        next.run(call).await
    }
}
