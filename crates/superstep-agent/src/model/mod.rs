//! Models: what an agent asks, and what comes back.
//!
//! A [`ChatModel`] takes a request and returns a stream of chunks. Nothing here knows a provider: a client of one
//! implements the trait, and so does the scripted model of the test kit.

mod conversation;
mod error;
mod reply;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use superstep::checkpoint::Map;
use superstep::state::Message;

pub use conversation::Conversation;
pub use error::{ModelError, Trouble};
pub(crate) use reply::collect;

use crate::tool::ToolSpec;

/// The answer of a model in pieces.
///
/// An item is a chunk ([`Message::ai_chunk`]) or a whole message ([`Message::ai`]), which must be the only item. The stream
/// ends after the last piece. An error ends it, too, and drops the pieces before it.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<Message, ModelError>> + Send>>;

/// A model that answers messages with a message.
///
/// Dropping the stream cancels the request.
pub trait ChatModel: Send + Sync + 'static {
    /// What the model can do.
    fn profile(&self) -> Profile {
        Profile::default()
    }

    /// Begins an answer. Errors come with the stream.
    fn stream(&self, request: ModelRequest) -> ModelStream;
}

impl<M: ChatModel + ?Sized> ChatModel for Arc<M> {
    fn profile(&self) -> Profile {
        (**self).profile()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        (**self).stream(request)
    }
}

/// What a model can do, and what it costs.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Profile {
    /// The name, for messages to people.
    pub name: String,
    /// Whether the provider can enforce a JSON schema on the answer.
    pub structured_output: bool,
    /// How many tokens a request may have.
    pub context_tokens: Option<u64>,
    /// What tokens cost, in millionths of the currency for each.
    pub price: Option<Price>,
}

/// What tokens cost: millionths of a unit of money per token, which is the price of a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// Of the request.
    pub input: f64,
    /// Of the answer.
    pub output: f64,
}

impl Profile {
    /// A model with this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// The same with a provider that can enforce a JSON schema.
    #[must_use]
    pub fn with_structured_output(self) -> Self {
        Self { structured_output: true, ..self }
    }

    /// The same with a price.
    #[must_use]
    pub fn with_price(self, price: Price) -> Self {
        Self { price: Some(price), ..self }
    }
}

/// What a model is asked.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The instructions, which are not part of the conversation.
    pub system: Option<Message>,
    /// The conversation.
    pub messages: Conversation,
    /// The tools that the model may ask for.
    pub tools: Vec<Arc<ToolSpec>>,
    /// Whether it must ask for one.
    pub tool_choice: ToolChoice,
    /// The schema that the answer must have, if the provider can enforce one.
    pub answer: Option<Arc<AnswerSchema>>,
    /// Other settings, such as `temperature`, by the name that providers share.
    pub settings: Map,
}

impl fmt::Debug for ModelRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<_> = self.tools.iter().map(|tool| &tool.name).collect();
        f.debug_struct("ModelRequest")
            .field("system", &self.system)
            .field("messages", &self.messages)
            .field("tools", &tools)
            .field("tool_choice", &self.tool_choice)
            .finish_non_exhaustive()
    }
}

/// Whether a model must ask for a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// It must ask for some tool.
    Any,
    /// It must not.
    None,
    /// It must ask for this one.
    Tool(String),
}

/// The schema of an answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AnswerSchema {
    /// The name of the type.
    pub name: String,
    /// Its JSON schema.
    pub schema: serde_json::Value,
}
