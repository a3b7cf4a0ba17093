//! Messages of a conversation with a model, compatible with LangChain's.

mod calls;
mod chunk;
mod merge;
mod partial;
mod read;
mod role;
#[cfg(test)]
mod tests;
mod update;
mod write;

use std::borrow::Cow;

use superstep_checkpoint::{Map, Value};

pub use calls::{InvalidToolCall, ToolCall, ToolCallChunk};
pub use chunk::MergeError;
pub use role::{Role, ToolStatus};
pub use update::{Identified, MessageUpdate};

/// The id of a [`Message::remove`] that removes all messages.
#[doc(alias = "REMOVE_ALL_MESSAGES")]
pub const REMOVE_ALL: &str = "__remove_all__";

/// A message of a conversation with a model.
///
/// It holds all fields of LangChain's message classes, unknown fields included, and is stored as an
/// object of its class. A list of messages passes from LangGraph to superstep and back unchanged.
///
/// As JSON it is what LangChain's `model_dump` returns. It is also read from the other forms that
/// `add_messages` takes: a text (which a person said), a pair of role and content, a map with
/// `role` or `type` and `content`, and LangChain's `{"lc": 1, "type": "constructor", ...}`.
///
/// ```
/// use superstep::state::{Message, Role, ToolCall};
///
/// let asked = Message::ai("Let me look.").with_tool_calls([ToolCall::new("call_1", "search", [("q", "Pregel")])]);
/// assert_eq!(asked.role, Role::Ai);
/// assert_eq!(asked.tool_calls[0].args["q"].as_str(), Some("Pregel"));
///
/// let answer = Message::tool("call_1", "a paper of 2010");
/// assert_eq!(answer.tool_call_id.as_deref(), Some("call_1"));
///
/// let said: Message = serde_json::from_str(r#"{"role": "user", "content": "Hello!"}"#)?;
/// assert_eq!(said, Message::human("Hello!"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Message {
    /// The text, or a list of content blocks.
    pub content: Value,
    /// Additional data of the provider.
    pub additional_kwargs: Map,
    /// The provider's metadata about the response.
    pub response_metadata: Map,
    /// The role of the speaker. It decides which of the fields below are stored.
    pub role: Role,
    /// A name for the speaker; of a function message, the function.
    pub name: Option<String>,
    /// The id of the message, assigned when the message is written if it has none.
    pub id: Option<String>,
    /// Tool calls the model asks for.
    pub tool_calls: Vec<ToolCall>,
    /// Tool calls of the model that cannot be made, because their arguments are not JSON.
    pub invalid_tool_calls: Vec<InvalidToolCall>,
    /// Token counts.
    pub usage_metadata: Option<Map>,
    /// The call that a tool message answers.
    pub tool_call_id: Option<String>,
    /// Output of the tool that is not sent to the model.
    pub artifact: Value,
    /// Whether the tool call succeeded.
    pub status: ToolStatus,
    /// Present in a piece of a message that is still being streamed.
    pub chunk: Option<Box<Chunk>>,
    /// Fields that LangChain's class does not declare, in their order.
    ///
    /// A declared field whose value is not of the declared type is here too, under its name, and is stored from here.
    pub extra: Map,
    /// The class, if it is not the one that LangChain has for the role.
    class: Option<Box<(String, String)>>,
}

/// The additional fields of a chunk.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Chunk {
    /// Pieces of tool calls, whose arguments are text that may end anywhere.
    pub tool_call_chunks: Vec<ToolCallChunk>,
    /// Whether it is the last piece.
    pub last: bool,
}

impl Message {
    /// A message of this role.
    pub fn new(role: impl Into<Role>, content: impl Into<Value>) -> Self {
        Self { role: role.into(), content: content.into(), ..Self::default() }
    }

    /// A message of a person.
    #[doc(alias = "HumanMessage")]
    pub fn human(content: impl Into<Value>) -> Self {
        Self::new(Role::Human, content)
    }

    /// A message of a model.
    #[doc(alias = "AIMessage")]
    pub fn ai(content: impl Into<Value>) -> Self {
        Self::new(Role::Ai, content)
    }

    /// A system message: instructions to the model.
    #[doc(alias = "SystemMessage")]
    pub fn system(content: impl Into<Value>) -> Self {
        Self::new(Role::System, content)
    }

    /// The result of a tool call.
    #[doc(alias = "ToolMessage")]
    pub fn tool(call: impl Into<String>, content: impl Into<Value>) -> Self {
        Self { tool_call_id: Some(call.into()), ..Self::new(Role::Tool, content) }
    }

    /// A request to remove the message with this id.
    #[doc(alias = "RemoveMessage")]
    pub fn remove(id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..Self::new(Role::Remove, "") }
    }

    /// A request to remove all earlier messages. Messages after it in the same update stay.
    pub fn remove_all() -> Self {
        Self::remove(REMOVE_ALL)
    }

    /// The same message with an id.
    #[must_use]
    pub fn with_id(self, id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..self }
    }

    /// The same message with a name.
    #[must_use]
    pub fn with_name(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// The same message with these tool calls.
    #[must_use]
    pub fn with_tool_calls(self, calls: impl IntoIterator<Item = ToolCall>) -> Self {
        Self { tool_calls: calls.into_iter().collect(), ..self }
    }

    /// The same message with an artifact.
    #[must_use]
    pub fn with_artifact(self, artifact: impl Into<Value>) -> Self {
        Self { artifact: artifact.into(), ..self }
    }

    /// The same message with another outcome of the tool call.
    #[must_use]
    pub fn with_status(self, status: ToolStatus) -> Self {
        Self { status, ..self }
    }

    /// The same message as an object of a class of yours, which LangGraph can import from `module`.
    #[must_use]
    pub fn with_class(self, module: impl Into<String>, name: impl Into<String>) -> Self {
        Self { class: Some(Box::new((module.into(), name.into()))), ..self }
    }

    /// Module and name of the class whose object this is in LangGraph.
    pub fn class(&self) -> (&str, &str) {
        match &self.class {
            Some(class) => (&class.0, &class.1),
            None => self.role.class(self.is_chunk()),
        }
    }

    /// Whether this is a chunk of a streamed message.
    pub fn is_chunk(&self) -> bool {
        self.chunk.is_some()
    }

    /// The text of the content: the content itself, or the text of all its blocks.
    pub fn text(&self) -> Cow<'_, str> {
        match &self.content {
            Value::Str(text) => Cow::Borrowed(text),
            Value::List(blocks) => blocks.iter().filter_map(text_of).collect(),
            _ => Cow::Borrowed(""),
        }
    }
}

fn text_of(block: &Value) -> Option<&str> {
    match block {
        Value::Str(text) => Some(text),
        block if block.get("type")?.as_str() == Some("text") => block.get("text")?.as_str(),
        _ => None,
    }
}

impl Identified for Message {
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    fn set_id(&mut self, id: String) {
        self.id = Some(id);
    }

    fn removes(&self) -> bool {
        self.role == Role::Remove
    }

    fn removes_all(&self) -> bool {
        self.removes() && self.id.as_deref() == Some(REMOVE_ALL)
    }

    fn into_whole(self) -> Self {
        self.into_message()
    }
}
