//! Answers of a type.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use superstep::NodeError;
use superstep::checkpoint::{Value, from_value};
use superstep::state::{Message, Role, State, ToolCall, ToolStatus};

use crate::model::{AnswerSchema, ModelRequest, Profile, ToolChoice};
use crate::state::{AgentState, AgentUpdate};
use crate::tool::{self, ToolSpec};

/// How a model is made to give an answer of a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnswerStrategy {
    /// By the provider if it can, else with a tool.
    #[default]
    Auto,
    /// With a tool whose arguments are the answer.
    Tool,
    /// By the provider, which enforces the schema.
    Provider,
}

/// The type of the answer, and how it is asked for.
#[derive(Clone)]
pub(crate) struct AnswerRule {
    pub(crate) schema: Arc<AnswerSchema>,
    pub(crate) strategy: AnswerStrategy,
    tool: Arc<ToolSpec>,
    check: Check,
}

type Check = Arc<dyn Fn(&Value) -> Result<(), String> + Send + Sync>;

/// How often an answer that does not fit is sent back.
const RETRIES_MAX: usize = 2;

impl AnswerRule {
    pub(crate) fn of<T: JsonSchema + DeserializeOwned>() -> Self {
        let name = T::schema_name().into_owned();
        let description = "Gives the final answer, and ends the conversation.";
        let tool = tool::specify::<T>(&*name, description);
        let schema = Arc::new(AnswerSchema { name, schema: tool.schema.clone() });
        let check = |value: &Value| {
            from_value::<T>(value.clone()).map(drop).map_err(|error| error.to_string())
        };
        let (strategy, check) = (AnswerStrategy::default(), Arc::new(check));
        Self { schema, strategy, tool: Arc::new(tool), check }
    }

    fn is_tool(&self, profile: &Profile) -> bool {
        match self.strategy {
            AnswerStrategy::Auto => !profile.structured_output,
            AnswerStrategy::Tool => true,
            AnswerStrategy::Provider => false,
        }
    }

    /// Asks for the answer.
    pub(crate) fn ask(&self, profile: &Profile, request: &mut ModelRequest) {
        if self.is_tool(profile) {
            request.tools.push(self.tool.clone());
            request.tool_choice = ToolChoice::Any;
        } else {
            request.answer = Some(self.schema.clone());
        }
    }

    /// What is written for this message of the model, which is not part of it.
    pub(crate) fn read<X: State>(
        &self,
        profile: &Profile,
        state: &AgentState<X>,
        message: &Message,
    ) -> Result<(Vec<Message>, AgentUpdate<X>), NodeError> {
        let nothing = || AgentUpdate::default().structured_response(Value::Null);
        if !self.is_tool(profile) {
            if !message.tool_calls.is_empty() {
                return Ok((Vec::new(), nothing()));
            }
            return match self.parse(&message.text()) {
                Ok(value) => Ok((Vec::new(), AgentUpdate::default().structured_response(value))),
                Err(why) => {
                    self.count(state, &why)?;
                    let again = Message::human(self.refusal(&why)).with_name(&*self.schema.name);
                    Ok((vec![again], nothing()))
                }
            };
        }
        let calls: Vec<_> =
            message.tool_calls.iter().filter(|call| call.name == self.schema.name).collect();
        let refuse = |why: &str| -> Result<_, NodeError> {
            self.count(state, why)?;
            let text = self.refusal(why);
            let answers = calls.iter().map(|call| reply(call, &text, ToolStatus::Error));
            Ok((answers.collect(), nothing()))
        };
        match &calls[..] {
            [] => Ok((Vec::new(), nothing())),
            [call] => {
                let value = Value::Map(call.args.clone());
                match (self.check)(&value) {
                    Ok(()) => {
                        let text = format!("Returning structured response: {value}");
                        let said = reply(call, &text, ToolStatus::Success);
                        Ok((vec![said], AgentUpdate::default().structured_response(value)))
                    }
                    Err(why) => refuse(&why),
                }
            }
            [_, _, ..] => refuse("it was given more than once; give one answer"),
        }
    }

    fn parse(&self, text: &str) -> Result<Value, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        (self.check)(&value).map(|()| value)
    }

    fn refusal(&self, why: &str) -> String {
        let name = &self.schema.name;
        format!("Error: the answer is not a `{name}`: {why}\n Please fix your mistakes.")
    }

    /// # Errors
    /// Too many answers were sent back since a person last said something.
    fn count<X: State>(&self, state: &AgentState<X>, why: &str) -> Result<(), NodeError> {
        let name = &self.schema.name;
        let sent_back = |message: &&Message| message.name.as_ref() == Some(name);
        let since = state.messages.iter().rev();
        let since = since.take_while(|it| it.role != Role::Human || sent_back(it));
        if since.filter(sent_back).count() < RETRIES_MAX {
            return Ok(());
        }
        let text = format!(
            "the model gave no answer of the type `{name}` in {RETRIES_MAX} more tries: {why}"
        );
        Err(NodeError::permanent(text).named("StructuredOutputError"))
    }
}

fn reply(call: &ToolCall, text: &str, status: ToolStatus) -> Message {
    let reply = Message::tool(call.id.clone().unwrap_or_default(), text);
    reply.with_name(&*call.name).with_status(status)
}

impl fmt::Debug for AnswerRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerRule").field("name", &self.schema.name).finish_non_exhaustive()
    }
}
