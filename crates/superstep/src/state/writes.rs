use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use smallvec::SmallVec;
use superstep_checkpoint::{Blob, Error, Ext, Map, Value, from_value, to_value};

use super::State;
use super::brief::brief;
use super::schema::ErasedSchema;

/// A typed bundle of writes to a state `S`.
///
/// The derive macro generates one per state, with a method for each field.
pub trait Update<S: State>: Send + 'static {
    /// The writes, in the order they were made.
    fn into_writes(self) -> Writes;
}

/// A type-erased value for a channel or a node. Cheap to clone.
#[derive(Clone)]
pub struct Payload(Arc<dyn AnyPayload>);

trait AnyPayload: Send + Sync {
    fn to_value(&self) -> Result<Value, Error>;
    fn encode(&self) -> Result<Blob, Error>;
    fn brief(&self) -> Arc<str>;
    fn type_name(&self) -> &'static str;
    fn as_any(&self) -> &dyn Any;
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<T: Serialize + Send + Sync + 'static> AnyPayload for T {
    fn to_value(&self) -> Result<Value, Error> {
        to_value(self)
    }

    fn encode(&self) -> Result<Blob, Error> {
        Blob::encode(self)
    }

    fn brief(&self) -> Arc<str> {
        brief(self)
    }

    fn type_name(&self) -> &'static str {
        std::any::type_name::<T>()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl Payload {
    /// Erases the type of a value.
    pub fn new<T: Serialize + Send + Sync + 'static>(value: T) -> Self {
        Self(Arc::new(value))
    }

    /// The value, if it is a `T`.
    pub fn downcast_ref<T: 'static>(&self) -> Option<&T> {
        self.0.as_any().downcast_ref()
    }

    /// The value as a `T`: as it is if it is one, else converted through serde, as after storage.
    /// It is cloned only if it is shared.
    ///
    /// # Errors
    /// The value does not fit a `T`. The text names both types.
    pub fn take<T: DeserializeOwned + Clone + Send + Sync + 'static>(self) -> Result<T, Error> {
        if self.0.as_any().is::<T>() {
            let same = self.0.into_any().downcast::<T>().ok();
            return Ok(Arc::unwrap_or_clone(same.expect("its type was compared")));
        }
        let misfit = |found: &str, error: Error| {
            let wanted = std::any::type_name::<T>();
            Error::codec(format_args!("{found} does not fit the type `{wanted}`: {error}"))
        };
        if self.0.as_any().is::<Value>() {
            let data = self.0.into_any().downcast::<Value>().ok();
            let data = Arc::unwrap_or_clone(data.expect("its type was compared"));
            return from_value(data).map_err(|error| misfit("the value", error));
        }
        let found = format!("a value of type `{}`", self.0.type_name());
        let data = self.0.to_value().map_err(|error| misfit(&found, error))?;
        from_value(data).map_err(|error| misfit(&found, error))
    }

    /// The value as data.
    ///
    /// # Errors
    /// The type's `Serialize` fails.
    pub fn to_value(&self) -> Result<Value, Error> {
        self.0.to_value()
    }

    /// The beginning of the value on part of a line. A type that panics when it is serialized is not shown.
    pub(crate) fn brief(&self) -> Arc<str> {
        let shown = catch_unwind(AssertUnwindSafe(|| self.0.brief()));
        shown.unwrap_or_else(|_| format!("<{}>", self.0.type_name()).into())
    }

    /// Encodes the value.
    ///
    /// # Errors
    /// The type's `Serialize` fails.
    pub fn encode(&self) -> Result<Blob, Error> {
        self.0.encode()
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_value() {
            Ok(value) => value.fmt(f),
            Err(error) => write!(f, "<{error}>"),
        }
    }
}

/// The effect of a write to its channel.
#[derive(Clone, Debug)]
pub(crate) enum WriteValue {
    /// Applies the payload, by the channel's kind.
    Update(Payload),
    /// Replaces the value, whatever the kind.
    Overwrite(Payload),
}

impl WriteValue {
    pub(crate) fn to_value(&self) -> Result<Value, Error> {
        match self {
            Self::Update(payload) => payload.to_value(),
            Self::Overwrite(payload) => {
                Ok(Value::Ext(Box::new(Ext::Overwrite(payload.to_value()?))))
            }
        }
    }

    pub(crate) fn encode(&self) -> Result<Blob, Error> {
        match self {
            Self::Update(payload) => payload.encode(),
            Self::Overwrite(_) => Blob::from_value(&self.to_value()?),
        }
    }
}

/// Writes to the channels of a state, by position of the channel in its [`Schema`](super::Schema).
#[derive(Clone, Debug, Default)]
pub struct Writes {
    pub(crate) list: SmallVec<[(usize, WriteValue); 2]>,
    /// Typed updates, which most are, have none of this.
    loose: Option<Box<Loose>>,
}

/// Writes that are, or were, data.
#[derive(Clone, Debug, Default)]
struct Loose {
    /// Updates that have to be checked against the channels of the graph they reach.
    data: Vec<Value>,
    /// Keys of such an update that name no channel.
    unknown: Map,
}

impl Writes {
    /// No writes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a write of `value` to the channel at this position.
    pub fn push<U: Serialize + Send + Sync + 'static>(&mut self, channel: usize, value: U) {
        self.list.push((channel, WriteValue::Update(Payload::new(value))));
    }

    /// Adds a write that replaces the value of the channel at this position, whatever its reducer.
    pub fn overwrite<T: Serialize + Send + Sync + 'static>(&mut self, channel: usize, value: T) {
        self.list.push((channel, WriteValue::Overwrite(Payload::new(value))));
    }

    /// An update that is data. It is checked against the channels of the graph it reaches: a map of channels, or a list
    /// of pairs of channel and value.
    pub fn data(value: Value) -> Self {
        let loose = Loose { data: vec![value], unknown: Map::new() };
        Self { list: SmallVec::new(), loose: Some(Box::new(loose)) }
    }

    /// Whether some of it is data that has to be checked.
    pub(crate) fn is_unchecked(&self) -> bool {
        self.loose.as_ref().is_some_and(|loose| !loose.data.is_empty())
    }

    /// The keys of updates given as data that name no channel.
    pub(crate) fn unknown(&self) -> Option<&Map> {
        self.loose.as_ref().map(|loose| &loose.unknown).filter(|unknown| !unknown.is_empty())
    }

    pub(crate) fn unknown_keys(&self) -> impl Iterator<Item = &String> {
        self.unknown().into_iter().flat_map(Map::keys)
    }

    pub(crate) fn set_unknown(&mut self, unknown: Map) {
        self.loose.get_or_insert_default().unknown = unknown;
    }

    pub(crate) fn forget_unknown(&mut self) {
        if let Some(loose) = &mut self.loose {
            loose.unknown.clear();
        }
    }

    /// The number of writes.
    pub fn len(&self) -> usize {
        self.list.len() + self.loose.as_ref().map_or(0, |loose| loose.data.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && !self.is_unchecked()
    }

    /// The same writes with what is data turned into typed writes.
    pub(crate) fn resolved(mut self, schema: &dyn ErasedSchema) -> Result<Self, UpdateProblem> {
        let data = self.loose.as_mut().map(|loose| std::mem::take(&mut loose.data));
        for data in data.unwrap_or_default() {
            match data {
                Value::Null => {}
                Value::Map(_) => self.add_map(schema, data)?,
                Value::List(pairs) if pairs.iter().all(is_pair) => {
                    for pair in pairs {
                        if let Some([Value::Str(name), value]) = pair.as_list() {
                            let one = Map::from_iter([(name.clone(), value.clone())]);
                            self.add_map(schema, Value::Map(one))?;
                        }
                    }
                }
                other => return Err(UpdateProblem::NotAnUpdate(other)),
            }
        }
        Ok(self)
    }

    fn add_map(&mut self, schema: &dyn ErasedSchema, map: Value) -> Result<(), UpdateProblem> {
        let fit = |error: Error| UpdateProblem::Problems(error.to_string());
        let (writes, problems) = schema.parse_map(map).map_err(fit)?;
        if !problems.is_empty() {
            return Err(UpdateProblem::Problems(problems.join("; ")));
        }
        self.extend(writes);
        Ok(())
    }

    /// The same writes for a state that has these channels from this position on, as
    /// [`Schema::nest`](super::Schema::nest) adds them. Writes that are data have names and no positions.
    #[must_use]
    pub fn shifted(mut self, by: usize) -> Self {
        self.list.iter_mut().for_each(|(channel, _)| *channel += by);
        self
    }

    /// Adds the writes of another update after these.
    pub fn extend(&mut self, other: Self) {
        self.list.extend(other.list);
        if let Some(other) = other.loose {
            let loose = self.loose.get_or_insert_default();
            loose.data.extend(other.data);
            loose.unknown.extend(other.unknown);
        }
    }
}

fn is_pair(value: &Value) -> bool {
    matches!(value.as_list(), Some([Value::Str(_), _]))
}

/// Why data is not an update of a graph.
#[derive(Debug)]
pub(crate) enum UpdateProblem {
    /// It is not a map of channels.
    NotAnUpdate(Value),
    /// Channels that refuse their value.
    Problems(String),
}

impl Update<super::Table> for Value {
    fn into_writes(self) -> Writes {
        Writes::data(self)
    }
}

impl<S: State> Update<S> for Writes {
    fn into_writes(self) -> Writes {
        self
    }
}
