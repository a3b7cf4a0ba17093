//! What a stream yields.

use std::any::Any;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use superstep_checkpoint::{Error, Interrupt, Map, TaskId, Value, to_value};

use crate::engine::kernel::layout::Layout;
use crate::engine::outside::view::RawSnapshot;
use crate::engine::watch::outcome::Outcome;
use crate::error::NodeError;
use crate::state::Row;

/// What a stream yields.
#[doc(alias = "stream_mode")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// The whole state after each superstep that changed it.
    Values,
    /// What each task wrote, as it finishes.
    Updates,
    /// What nodes pass to [`Task::emit`](crate::Task::emit).
    Custom,
    /// Chunks of messages that nodes pass to [`Task::emit_message`](crate::Task::emit_message), and messages in what nodes
    /// write.
    Messages,
    /// The start and the end of each task.
    Tasks,
    /// Each checkpoint, when the superstep after it is planned.
    Checkpoints,
    /// `Tasks` and `Checkpoints`, with the superstep they belong to.
    Debug,
}

impl Mode {
    pub(crate) const fn bit(self) -> u16 {
        1 << self as u16
    }

    /// The name of the mode.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Values => "values",
            Self::Updates => "updates",
            Self::Custom => "custom",
            Self::Messages => "messages",
            Self::Tasks => "tasks",
            Self::Checkpoints => "checkpoints",
            Self::Debug => "debug",
        }
    }

    /// The mode with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        use Mode::{Checkpoints, Custom, Debug, Messages, Tasks, Updates, Values};
        [Values, Updates, Custom, Messages, Tasks, Checkpoints, Debug]
            .into_iter()
            .find(|mode| mode.as_str() == name)
    }
}

/// An event of a run that returns `O`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Event<O = Infallible> {
    /// The graph of the event: empty for the outermost, else the namespace of a subgraph, level by
    /// level.
    pub ns: Vec<String>,
    /// What happened.
    pub data: Data<O>,
}

impl<O> Event<O> {
    pub(crate) fn outcome(outcome: Outcome<O>) -> Self {
        Self { ns: Vec::new(), data: Data::Outcome(outcome) }
    }

    /// The mode this event belongs to; `None` for the outcome, which comes in every mode.
    pub fn mode(&self) -> Option<Mode> {
        Some(match &self.data {
            Data::Values(_) => Mode::Values,
            Data::Updates(_) => Mode::Updates,
            Data::Custom(_) => Mode::Custom,
            Data::Messages(_) => Mode::Messages,
            Data::TaskStart(_) | Data::TaskEnd(_) => Mode::Tasks,
            Data::Checkpoint(_) => Mode::Checkpoints,
            Data::Debug(_) => Mode::Debug,
            Data::Outcome(_) => return None,
        })
    }
}

impl<O: Serialize> Event<O> {
    /// The payload as data: in LangGraph's form, or the serialized outcome.
    ///
    /// # Errors
    /// The state has a value that cannot be serialized.
    pub fn to_value(&self) -> Result<Value, Error> {
        self.data.to_value()
    }
}

impl Event {
    /// The same event in the stream of a run that returns `O`.
    pub(crate) fn typed<O>(self) -> Event<O> {
        let data = match self.data {
            Data::Values(event) => Data::Values(event),
            Data::Updates(event) => Data::Updates(event),
            Data::Custom(value) => Data::Custom(value),
            Data::Messages(event) => Data::Messages(event),
            Data::TaskStart(event) => Data::TaskStart(event),
            Data::TaskEnd(event) => Data::TaskEnd(event),
            Data::Checkpoint(snapshot) => Data::Checkpoint(snapshot),
            Data::Debug(event) => Data::Debug(event),
            Data::Outcome(outcome) => Data::Outcome(outcome.map(|never| match never {})),
        };
        Event { ns: self.ns, data }
    }
}

/// The payload of an [`Event`] of a run that returns `O`.
///
/// Without a type parameter it is an event inside a run, never an outcome.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Data<O = Infallible> {
    /// Mode `values`.
    Values(ValuesEvent),
    /// Mode `updates`.
    Updates(UpdatesEvent),
    /// Mode `custom`.
    Custom(Value),
    /// Mode `messages`.
    Messages(MessageEvent),
    /// Mode `tasks`: a task starts.
    TaskStart(TaskStart),
    /// Mode `tasks`: a task has ended.
    TaskEnd(TaskEnd),
    /// Mode `checkpoints`.
    Checkpoint(Box<RawSnapshot>),
    /// Mode `debug`.
    Debug(DebugEvent),
    /// How the run ended: the last event of every stream whose run did not fail.
    Outcome(Outcome<O>),
}

impl<O: Serialize> Data<O> {
    /// The payload as data.
    ///
    /// # Errors
    /// The state has a value that cannot be serialized.
    pub fn to_value(&self) -> Result<Value, Error> {
        self.value_with(to_value)
    }
}

impl<O> Data<O> {
    pub(crate) fn value_with(
        &self,
        outcome_value: impl FnOnce(&Outcome<O>) -> Result<Value, Error>,
    ) -> Result<Value, Error> {
        Ok(match self {
            Self::Values(event) => event.to_value()?,
            Self::Updates(event) => event.to_value(),
            Self::Custom(value) => value.clone(),
            Self::Messages(event) => event.to_value(),
            Self::TaskStart(event) => event.to_value(),
            Self::TaskEnd(event) => event.to_value(),
            Self::Checkpoint(snapshot) => snapshot.to_event_value(),
            Self::Debug(event) => event.to_value()?,
            Self::Outcome(outcome) => outcome_value(outcome)?,
        })
    }
}

/// The state after a superstep.
#[derive(Clone)]
pub struct ValuesEvent {
    pub(crate) layout: Arc<Layout>,
    pub(crate) row: Row,
    pub(crate) filled: Vec<bool>,
    pub(crate) keys: Arc<[usize]>,
    /// Questions that were asked in this superstep.
    pub interrupts: Vec<Interrupt>,
}

impl ValuesEvent {
    /// The state itself, if this event is from a graph over `S`.
    ///
    /// If it is kept while the run continues, the next superstep clones the state once.
    pub fn state<S: Any + Send + Sync>(&self) -> Option<Arc<S>> {
        self.row.cells().clone().downcast().ok()
    }

    /// The channels that have a value, as data.
    ///
    /// # Errors
    /// One of them cannot be serialized.
    pub fn to_value(&self) -> Result<Value, Error> {
        let mut filled = self.keys.iter().filter(|at| self.filled[**at]);
        let name = |at: &usize| &self.layout.channels[*at].name;
        let value = |at: &usize| {
            self.row.value(*at).map_err(|error| {
                Error::codec(format_args!("channel `{}` cannot be serialized: {error}", name(at)))
            })
        };
        let asked = Value::List(self.interrupts.iter().map(interrupt_value).collect());
        if self.layout.single {
            if self.interrupts.is_empty() {
                return filled.next().map_or(Ok(Value::Null), value);
            }
            return Ok(Value::Map(Map::from_iter([("__interrupt__".to_owned(), asked)])));
        }
        let mut map = Map::new();
        for at in filled {
            map.insert(name(at).to_string(), value(at)?);
        }
        if !self.interrupts.is_empty() {
            map.insert("__interrupt__".to_owned(), asked);
        }
        Ok(Value::Map(map))
    }
}

impl fmt::Debug for ValuesEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_value() {
            Ok(value) => write!(f, "ValuesEvent({value})"),
            Err(error) => write!(f, "ValuesEvent(<{error}>)"),
        }
    }
}

/// What a task wrote.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum UpdatesEvent {
    /// A task finished.
    Task {
        /// The node, or the name of a recorded call.
        node: Arc<str>,
        /// The task.
        task: TaskId,
        /// The argument of the dispatch: at most 80 characters of its JSON.
        arg: Option<Arc<str>>,
        /// The update; null if it wrote nothing. Several writes to one channel give a list of maps.
        update: Value,
        /// The result comes from storage or a cache; the node did not run.
        cached: bool,
    },
    /// A task stopped to ask something; nothing is listed at a breakpoint.
    Interrupted(Vec<Interrupt>),
}

impl UpdatesEvent {
    /// The event as data.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        match self {
            Self::Task { node, update, cached, .. } => {
                map.insert(node.to_string(), update.clone());
                if *cached {
                    let metadata = Map::from_iter([("cached".to_owned(), Value::Bool(true))]);
                    map.insert("__metadata__".to_owned(), Value::Map(metadata));
                }
            }
            Self::Interrupted(asked) => {
                let asked = asked.iter().map(interrupt_value).collect();
                map.insert("__interrupt__".to_owned(), Value::List(asked));
            }
        }
        Value::Map(map)
    }
}

/// A chunk of a message, and its origin.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MessageEvent {
    /// The chunk, or the whole message.
    pub chunk: Value,
    /// The node, superstep and task of its origin.
    pub metadata: Map,
}

impl MessageEvent {
    /// The event as data: a list of the chunk and the metadata.
    pub fn to_value(&self) -> Value {
        Value::List(vec![self.chunk.clone(), Value::Map(self.metadata.clone())])
    }
}

/// A task starts.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskStart {
    /// The task.
    pub id: TaskId,
    /// The node.
    pub name: Arc<str>,
    /// What the node gets.
    pub input: Value,
    /// The channels that can trigger the node.
    pub triggers: Vec<Arc<str>>,
}

impl TaskStart {
    /// The event as data.
    pub fn to_value(&self) -> Value {
        let triggers = self.triggers.iter().map(|name| Value::from(&**name)).collect();
        Value::Map(Map::from_iter([
            ("id".to_owned(), Value::from(self.id.to_string())),
            ("name".to_owned(), Value::from(&*self.name)),
            ("input".to_owned(), self.input.clone()),
            ("triggers".to_owned(), Value::List(triggers)),
        ]))
    }
}

/// A task has ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskEnd {
    /// The task.
    pub id: TaskId,
    /// The node.
    pub name: Arc<str>,
    /// Why it failed, if it did.
    pub error: Option<NodeError>,
    /// What it wrote.
    pub result: Value,
    /// What it asked.
    pub interrupts: Vec<Interrupt>,
}

impl TaskEnd {
    /// The event as data.
    pub fn to_value(&self) -> Value {
        let error = self.error.as_ref().map(NodeError::stored);
        Value::Map(Map::from_iter([
            ("id".to_owned(), Value::from(self.id.to_string())),
            ("name".to_owned(), Value::from(&*self.name)),
            ("error".to_owned(), Value::from(error)),
            ("result".to_owned(), self.result.clone()),
            (
                "interrupts".to_owned(),
                Value::List(self.interrupts.iter().map(interrupt_value).collect()),
            ),
        ]))
    }
}

/// A task or a checkpoint, and the superstep it belongs to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DebugEvent {
    /// The superstep.
    pub step: i64,
    /// What happened: one of the payloads of the modes `tasks` and `checkpoints`.
    pub payload: Box<Data>,
}

impl DebugEvent {
    /// What kind of event it is.
    pub fn kind(&self) -> &'static str {
        match *self.payload {
            Data::Checkpoint(_) => "checkpoint",
            Data::TaskStart(_) => "task",
            _ => "task_result",
        }
    }

    /// The event as data.
    ///
    /// # Errors
    /// A checkpoint in it has a value that cannot be serialized.
    pub fn to_value(&self) -> Result<Value, Error> {
        let payload = self.payload.value_with(|_| Ok(Value::Null))?;
        Ok(Value::Map(Map::from_iter([
            ("step".to_owned(), Value::from(self.step)),
            ("type".to_owned(), Value::from(self.kind())),
            ("payload".to_owned(), payload),
        ])))
    }
}

pub(crate) fn interrupt_value(interrupt: &Interrupt) -> Value {
    let mut map = Map::from_iter([
        ("value".to_owned(), interrupt.value.clone()),
        ("id".to_owned(), Value::from(interrupt.id.as_str())),
    ]);
    if let Some(schema) = &interrupt.response_schema {
        map.insert("response_schema".to_owned(), schema.clone());
    }
    Value::Map(map)
}
