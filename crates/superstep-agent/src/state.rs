//! The state of an agent: LangChain's channels, those of yours, and those of middleware.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use superstep::checkpoint::{Error, Map, Value, from_value, to_value};
use superstep::state::{
    Kind, Last, Message, MessageUpdate, Messages, Role, Schema, State, Table, TableChannel, Update,
    Writes,
};
use superstep::{Input, IntoInput, IntoOutput, NodeError, Output};

const MESSAGES: usize = 0;
const STRUCTURED_RESPONSE: usize = 1;
const JUMP_TO: usize = 2;
const MORE: usize = 3;

/// The state of an agent: the channels of LangChain's `AgentState`, and the fields of your struct `X`.
///
/// ```
/// use superstep::prelude::*;
/// use superstep_agent::AgentState;
///
/// #[derive(State, Clone, Default)]
/// struct Desk {
///     customer: String,
/// }
///
/// let update = AgentState::update().messages([Message::human("Where is my parcel?")]);
/// let update = update.more(Desk::update().customer("Ada"));
/// # let _: superstep_agent::AgentUpdate<Desk> = update;
/// ```
pub struct AgentState<X: State = ()> {
    /// The conversation.
    pub messages: Vec<Message>,
    /// What the agent was asked to answer with, as data; null without one.
    pub structured_response: Value,
    /// Where a hook of a middleware has sent the agent, for one superstep.
    pub jump_to: Option<JumpTo>,
    /// The fields of yours.
    pub more: X,
    /// The channels of middleware.
    layers: Table,
}

/// Where a hook may send the agent instead of onwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JumpTo {
    /// To the tools that the last message asks for.
    Tools,
    /// To the model, by way of the hooks before it.
    Model,
    /// To the end, by way of the hooks after the agent.
    End,
}

impl<X: State> AgentState<X> {
    /// An update that writes nothing yet.
    pub fn update() -> AgentUpdate<X> {
        AgentUpdate::default()
    }

    /// The text of the last message of the model.
    pub fn reply(&self) -> Cow<'_, str> {
        self.last_ai().map_or(Cow::Borrowed(""), Message::text)
    }

    /// What the agent was asked to answer with, as a `T`.
    ///
    /// # Errors
    /// There is no such answer, or it is not a `T`.
    pub fn answer<T: DeserializeOwned>(&self) -> Result<T, Error> {
        from_value(self.structured_response.clone())
    }

    /// The value of a channel that a middleware has added.
    pub fn layer(&self, channel: &str) -> Option<&Value> {
        self.layers.get(channel)
    }

    /// The last message of the model.
    pub fn last_ai(&self) -> Option<&Message> {
        self.messages.iter().rfind(|message| message.role == Role::Ai)
    }

    /// The last message of the model and the tool messages after it.
    pub(crate) fn last_turn(&self) -> Option<(&Message, &[Message])> {
        let at = self.messages.iter().rposition(|message| message.role == Role::Ai)?;
        Some((&self.messages[at], &self.messages[at + 1..]))
    }

    /// The channels, with those of middleware.
    pub(crate) fn schema(layers: Schema<Table>, messages: Kind) -> Schema<Self> {
        let mut schema = Schema::default();
        schema
            .field::<_, Messages>("messages", messages, |s: &Self| &s.messages, |s| &mut s.messages)
            .last("structured_response", |s| &s.structured_response, |s| &mut s.structured_response)
            .field::<_, Last>(
                "jump_to",
                Kind::Ephemeral { guard: true },
                |s| &s.jump_to,
                |s| &mut s.jump_to,
            )
            .private()
            .nest(Schema::<X>::of(), |s| &s.more, |s| &mut s.more)
            .nest(layers, |s| &s.layers, |s| &mut s.layers);
        schema
    }
}

impl<X: State> State for AgentState<X> {
    type Update = AgentUpdate<X>;

    fn channels(schema: &mut Schema<Self>) {
        *schema = Self::schema(Schema::default(), Kind::Reduce);
    }

    fn empty(schema: &Arc<Schema<Self>>) -> Self {
        Self {
            messages: Vec::new(),
            structured_response: Value::Null,
            jump_to: None,
            more: X::empty(&schema.nested().unwrap_or_default()),
            layers: Table::empty(&schema.nested().unwrap_or_default()),
        }
    }

    fn duplicate(&self) -> Self {
        Self {
            messages: self.messages.clone(),
            structured_response: self.structured_response.clone(),
            jump_to: self.jump_to,
            more: self.more.duplicate(),
            layers: self.layers.clone(),
        }
    }
}

impl<X: State + fmt::Debug> fmt::Debug for AgentState<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentState")
            .field("messages", &self.messages)
            .field("structured_response", &self.structured_response)
            .field("more", &self.more)
            .field("layers", &self.layers)
            .finish_non_exhaustive()
    }
}

/// Writes to channels of an [`AgentState`].
#[must_use = "an update writes nothing until a node returns it or a run takes it"]
pub struct AgentUpdate<X = ()> {
    writes: Writes,
    of: PhantomData<fn() -> X>,
}

impl<X: State> AgentUpdate<X> {
    /// Adds messages, or replaces those with the same id.
    pub fn messages(mut self, messages: impl Into<MessageUpdate<Message>>) -> Self {
        self.writes.push::<MessageUpdate<Message>>(MESSAGES, messages.into());
        self
    }

    /// Writes the structured answer.
    pub fn structured_response(mut self, answer: impl Into<Value>) -> Self {
        self.writes.push::<Value>(STRUCTURED_RESPONSE, answer.into());
        self
    }

    /// Sends the agent elsewhere. For hooks of middleware.
    pub fn jump_to(mut self, target: JumpTo) -> Self {
        self.writes.push::<Option<JumpTo>>(JUMP_TO, Some(target));
        self
    }

    /// Writes to fields of yours.
    pub fn more(mut self, update: impl Update<X>) -> Self {
        self.writes.extend(update.into_writes().shifted(MORE));
        self
    }

    /// Writes to a channel by its name, such as one of a middleware. An unknown name, or a value that the channel does
    /// not take, fails the node.
    ///
    /// # Errors
    /// The value cannot be serialized.
    pub fn set(mut self, channel: &str, value: impl Serialize) -> Result<Self, Error> {
        let one = Map::from_iter([(channel.to_owned(), to_value(&value)?)]);
        self.writes.extend(Writes::data(Value::Map(one)));
        Ok(self)
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Adds the writes of another update.
    pub fn and(mut self, other: Self) -> Self {
        self.writes.extend(other.writes);
        self
    }
}

/// What a person says to an agent, as the input of a run.
///
/// ```
/// # use superstep_agent::{AgentUpdate, say};
/// let input: AgentUpdate = say("Tidy up.");
/// ```
pub fn say<X: State>(text: impl Into<Value>) -> AgentUpdate<X> {
    AgentUpdate::default().messages([Message::human(text)])
}

impl<X> Default for AgentUpdate<X> {
    fn default() -> Self {
        Self { writes: Writes::new(), of: PhantomData }
    }
}

impl<X> Clone for AgentUpdate<X> {
    fn clone(&self) -> Self {
        Self { writes: self.writes.clone(), of: PhantomData }
    }
}

impl<X> fmt::Debug for AgentUpdate<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AgentUpdate").field(&self.writes).finish()
    }
}

impl<X: State> Update<AgentState<X>> for AgentUpdate<X> {
    fn into_writes(self) -> Writes {
        self.writes
    }
}

impl<X: State> IntoOutput<AgentState<X>> for AgentUpdate<X> {
    fn into_output(self) -> Result<Output, NodeError> {
        Ok(Output::writes(self.writes))
    }
}

impl<X: State> IntoInput<AgentState<X>> for AgentUpdate<X> {
    fn into_input(self) -> Input {
        Input::writes(self.writes)
    }
}

/// A channel that a middleware adds to the state.
#[derive(Clone, Debug)]
pub struct LayerChannel {
    pub(crate) name: &'static str,
    pub(crate) channel: TableChannel,
    pub(crate) private: bool,
}

impl LayerChannel {
    /// A channel of this name.
    pub fn new(name: &'static str, channel: TableChannel) -> Self {
        Self { name, channel, private: false }
    }

    /// Keeps the channel out of the input and the result of the agent.
    #[must_use]
    pub fn private(self) -> Self {
        Self { private: true, ..self }
    }
}
