use std::fmt;

/// The role of a [`Message`](super::Message), which determines its LangChain class.
///
/// A role compares equal to its name: `message.role == "human"`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// A person.
    #[default]
    Human,
    /// A model.
    Ai,
    /// The system prompt.
    System,
    /// A tool, with the answer to a call.
    Tool,
    /// A function, with its result; what tools were called before.
    Function,
    /// No speaker: the message asks to remove the message with its id.
    Remove,
    /// Another role, by the provider's name for it.
    Chat(String),
    /// A user-defined message class, by its `type`.
    Other(String),
}

impl Role {
    /// The name: what LangChain has in the field `type`.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Human => "human",
            Self::Ai => "ai",
            Self::System => "system",
            Self::Tool => "tool",
            Self::Function => "function",
            Self::Remove => "remove",
            Self::Chat(_) => "chat",
            Self::Other(name) => name,
        }
    }

    /// The field `type` of a message of this role.
    pub(super) fn kind(&self, chunk: bool) -> &str {
        if chunk && !matches!(self, Self::Other(_)) { self.class(true).1 } else { self.as_str() }
    }

    /// Module and name of LangChain's class for the role.
    pub(super) fn class(&self, chunk: bool) -> (&'static str, &'static str) {
        const MODULES: [&str; 8] = [
            "langchain_core.messages.human",
            "langchain_core.messages.ai",
            "langchain_core.messages.system",
            "langchain_core.messages.tool",
            "langchain_core.messages.function",
            "langchain_core.messages.chat",
            "langchain_core.messages.modifier",
            "langchain_core.messages.base",
        ];
        let (module, whole, piece) = match self {
            Self::Human => (0, "HumanMessage", "HumanMessageChunk"),
            Self::Ai => (1, "AIMessage", "AIMessageChunk"),
            Self::System => (2, "SystemMessage", "SystemMessageChunk"),
            Self::Tool => (3, "ToolMessage", "ToolMessageChunk"),
            Self::Function => (4, "FunctionMessage", "FunctionMessageChunk"),
            Self::Chat(_) => (5, "ChatMessage", "ChatMessageChunk"),
            Self::Remove => (6, "RemoveMessage", "RemoveMessage"),
            Self::Other(_) => (7, "BaseMessage", "BaseMessageChunk"),
        };
        (MODULES[module], if chunk { piece } else { whole })
    }

    /// The fields of a message of this role, beside those that all messages have.
    pub(super) fn fields(&self, chunk: bool) -> &'static [&'static str] {
        const AI: [&str; 5] = [
            "tool_calls",
            "invalid_tool_calls",
            "usage_metadata",
            "tool_call_chunks",
            "chunk_position",
        ];
        match self {
            Self::Ai if chunk => &AI,
            Self::Ai => &AI[..3],
            Self::Tool => &["tool_call_id", "artifact", "status"],
            Self::Chat(_) => &["role"],
            _ => &[],
        }
    }

    /// The role whose messages have this `type`, and whether they are pieces.
    pub(super) fn of_kind(kind: &str) -> (Self, bool) {
        match kind {
            "human" => (Self::Human, false),
            "ai" => (Self::Ai, false),
            "system" => (Self::System, false),
            "tool" => (Self::Tool, false),
            "function" => (Self::Function, false),
            "remove" => (Self::Remove, false),
            "chat" => (Self::Chat(String::new()), false),
            "AIMessageChunk" => (Self::Ai, true),
            "HumanMessageChunk" => (Self::Human, true),
            "SystemMessageChunk" => (Self::System, true),
            "ToolMessageChunk" => (Self::Tool, true),
            "FunctionMessageChunk" => (Self::Function, true),
            "ChatMessageChunk" => (Self::Chat(String::new()), true),
            other => (Self::Other(other.to_owned()), false),
        }
    }

    /// The role that a provider, or a person, calls by this name.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "user" => Self::Human,
            "assistant" => Self::Ai,
            "developer" => Self::System,
            name => match Self::of_kind(name).0 {
                Self::Chat(_) | Self::Other(_) => return None,
                role => role,
            },
        })
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The role with this name; a name that LangChain has no class for is one defined by the user.
impl From<&str> for Role {
    fn from(name: &str) -> Self {
        Self::of_name(name).unwrap_or_else(|| Self::Other(name.to_owned()))
    }
}

impl From<String> for Role {
    fn from(name: String) -> Self {
        Self::of_name(&name).unwrap_or(Self::Other(name))
    }
}

impl PartialEq<str> for Role {
    fn eq(&self, name: &str) -> bool {
        self.as_str() == name
    }
}

impl PartialEq<&str> for Role {
    fn eq(&self, name: &&str) -> bool {
        self.as_str() == *name
    }
}

/// Whether a tool call succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ToolStatus {
    /// It did.
    #[default]
    Success,
    /// It failed; the content says how.
    Error,
}

impl ToolStatus {
    /// The word that is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
        }
    }
}
