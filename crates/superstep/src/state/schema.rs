use std::any::Any;
use std::fmt;
use std::sync::Arc;

use superstep_checkpoint::{Blob, Error, Ext, Map, Value};

use super::field::{Field, FieldValue, UpdateValue};
use super::reduce::{Last, Reducer};
use super::writes::{Payload, WriteValue, Writes};
use super::{State, Undo};

/// How a channel applies writes and what it stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The last value; two writes in one superstep are an error.
    Last,
    /// The last value, emptied by a superstep without a write; of several writes the last one wins.
    Any,
    /// Available for one superstep. With `guard`, two writes in one superstep are an error.
    Ephemeral {
        /// Whether several writes are an error.
        guard: bool,
    },
    /// The last value, never stored.
    Untracked {
        /// Whether several writes are an error.
        guard: bool,
    },
    /// The list of what was written in the last superstep, or in all of them.
    Topic {
        /// Whether items of earlier supersteps stay.
        accumulate: bool,
    },
    /// Writes are applied by a reducer; the whole value is stored.
    Reduce,
    /// Writes are applied by a reducer; the writes are stored, and the whole value occasionally.
    Delta(Deltas),
}

/// When a delta channel stores its whole value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Deltas {
    /// After this many updates.
    Every(u64),
    /// After this many updates, and no sooner than the value has grown to eight times its size; or when nothing is left to
    /// run and an eighth of the value is new. So the cost of storing stays in proportion to what is written, and a thread at
    /// rest is loaded mostly in one piece.
    Growing(u64),
}

/// A value that the engine computes for a node when it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Managed {
    /// The number of supersteps left before the recursion limit.
    RemainingSteps,
    /// Whether this is the last superstep before the recursion limit.
    IsLastStep,
}

/// Why a channel did not take a write.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// The write has the wrong type or shape for the channel.
    #[error("{0}")]
    Type(String),
    /// The channel's value could not be encoded or decoded.
    #[error(transparent)]
    Codec(#[from] Error),
}

/// The operations on one channel of a state `S`, with the type of its value erased.
///
/// [`Schema`]'s methods make these; only a state of a new shape, such as [`Table`](super::Table), implements them.
#[doc(alias = "BaseChannel")]
pub trait Channel<S>: Send + Sync {
    /// The value a channel of a [`Table`](super::Table) begins with.
    fn start(&self) -> Option<Value> {
        None
    }
    /// Applies an update.
    fn reduce(&self, state: &mut S, update: Payload) -> Result<(), ChannelError>;
    /// Replays updates in order, when a thread is loaded.
    fn reduce_all(&self, state: &mut S, updates: Vec<Payload>) -> Result<(), ChannelError> {
        updates.into_iter().try_for_each(|update| self.reduce(state, update))
    }
    /// Replaces the value.
    fn set(&self, state: &mut S, value: Payload) -> Result<(), ChannelError> {
        self.swap(state, value).map(drop)
    }
    /// Replaces the value and returns how to restore the old one.
    fn swap(&self, state: &mut S, value: Payload) -> Result<Taken, ChannelError>;
    /// Clears the channel and returns how to restore the value.
    fn empty(&self, state: &mut S) -> Taken;
    /// Whether this update replaces the whole value.
    fn replaces(&self, _update: &Payload) -> bool {
        false
    }
    /// Returns how to undo an update before it is applied.
    fn undo(&self, state: &S, update: &Payload) -> Taken;
    /// Undoes a write.
    fn take_back(&self, state: &mut S, taken: Taken);
    /// Clears the channel.
    fn clear(&self, state: &mut S);
    /// Whether the value is an empty collection.
    fn is_empty(&self, state: &S) -> bool;
    /// The number of items, if the value is a collection.
    fn size(&self, state: &S) -> Option<usize>;
    /// The value as data.
    fn value(&self, state: &S) -> Result<Value, Error>;
    /// Encodes the value.
    fn encode(&self, state: &S) -> Result<Blob, Error>;
    /// Takes a stored value.
    fn decode(&self, state: &mut S, blob: &Blob) -> Result<(), Error>;
    /// Reads a stored update.
    fn decode_update(&self, blob: &Blob) -> Result<Payload, Error> {
        self.parse_update(blob.to_value()?)
    }
    /// An update given as data, checked against the type.
    fn parse_update(&self, value: Value) -> Result<Payload, Error>;
    /// A whole value given as data, checked against the type.
    fn parse_value(&self, value: Value) -> Result<Payload, Error>;
    /// The JSON Schema of the value; `{}`, which allows everything, where nothing is known.
    fn value_schema(&self) -> serde_json::Value {
        serde_json::Value::Object(serde_json::Map::new())
    }
    /// The JSON Schema of an update.
    fn update_schema(&self) -> serde_json::Value {
        serde_json::Value::Object(serde_json::Map::new())
    }
}

/// Undoes a write of the channel that returned it.
pub struct Taken(pub(super) Box<dyn Any + Send + Sync>);

impl fmt::Debug for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Taken")
    }
}

impl Taken {
    /// Wraps what the channel needs to undo a write.
    pub fn new<T: Send + Sync + 'static>(undo: Undo<T>) -> Self {
        Self(Box::new(undo))
    }
}

pub(crate) struct ChannelEntry<S> {
    pub(crate) spec: Spec,
    pub(crate) ops: Box<dyn Channel<S>>,
}

/// The properties of a channel, besides its operations.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) name: Arc<str>,
    pub(crate) kind: Kind,
    /// Whether the channel counts as written from the beginning.
    pub(crate) starts_filled: bool,
    /// Whether the channel belongs only to nodes that name it.
    pub(crate) private: bool,
}

/// The channels of a state, in order.
pub struct Schema<S> {
    pub(crate) entries: Vec<ChannelEntry<S>>,
    pub(crate) managed: Vec<(Arc<str>, Managed)>,
    /// The schemas of fields that are states themselves.
    pub(super) nested: Vec<Arc<dyn Any + Send + Sync>>,
}

impl<S> fmt::Debug for Schema<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries.iter().map(|entry| &entry.spec)).finish()
    }
}

impl<S> Default for Schema<S> {
    fn default() -> Self {
        Self { entries: Vec::new(), managed: Vec::new(), nested: Vec::new() }
    }
}

impl<S: State> Schema<S> {
    /// The channels that `S` declares.
    pub fn of() -> Self {
        let mut schema = Self::default();
        S::channels(&mut schema);
        schema
    }

    /// Adds a channel that keeps its last value.
    pub fn last<T: FieldValue>(
        &mut self,
        name: impl Into<Arc<str>>,
        get: fn(&S) -> &T,
        get_mut: fn(&mut S) -> &mut T,
    ) -> &mut Self {
        self.add(name, Kind::Last, false, Field::<S, T, Last>::new(get, get_mut))
    }

    /// Adds a channel with the reducer `R`.
    ///
    /// If the value keeps all that is written ([`Reducer::APPENDS`]), the writes are stored instead
    /// of the value.
    pub fn reduce<T: FieldValue, R: Reducer<T>>(
        &mut self,
        name: impl Into<Arc<str>>,
        get: fn(&S) -> &T,
        get_mut: fn(&mut S) -> &mut T,
    ) -> &mut Self
    where
        R::Update: UpdateValue,
    {
        let kind = if R::APPENDS { Kind::Delta(Deltas::Growing(250)) } else { Kind::Reduce };
        self.field::<T, R>(name, kind, get, get_mut)
    }

    /// Adds a channel of any kind.
    pub fn field<T: FieldValue, R: Reducer<T>>(
        &mut self,
        name: impl Into<Arc<str>>,
        kind: Kind,
        get: fn(&S) -> &T,
        get_mut: fn(&mut S) -> &mut T,
    ) -> &mut Self
    where
        R::Update: UpdateValue,
    {
        let filled = matches!(kind, Kind::Reduce | Kind::Delta(_)) && R::STARTS_FILLED;
        self.add(name, kind, filled, Field::<S, T, R>::new(get, get_mut))
    }

    /// Adds a channel with operations of its own.
    pub fn add(
        &mut self,
        name: impl Into<Arc<str>>,
        kind: Kind,
        starts_filled: bool,
        ops: impl Channel<S> + 'static,
    ) -> &mut Self {
        let spec = Spec { name: name.into(), kind, starts_filled, private: false };
        self.entries.push(ChannelEntry { spec, ops: Box::new(ops) });
        self
    }

    /// Excludes the channel added last from the graph's input and output.
    pub fn private(&mut self) -> &mut Self {
        if let Some(entry) = self.entries.last_mut() {
            entry.spec.private = true;
        }
        self
    }

    /// Adds a name under which nodes read a value that the engine computes.
    pub fn managed(&mut self, name: impl Into<Arc<str>>, what: Managed) -> &mut Self {
        self.managed.push((name.into(), what));
        self
    }

    /// The names of the channels, in order.
    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.entries.iter().map(|entry| &entry.spec.name)
    }

    /// Turns an update given as data into typed writes.
    ///
    /// # Errors
    /// A key that is not a channel, with the nearest name; a value its channel does not take. All
    /// problems at once.
    pub fn parse(&self, update: Value) -> Result<Writes, Error> {
        let (writes, mut problems) = ErasedSchema::parse_map(self, update)?;
        problems.extend(writes.unknown_keys().map(|key| {
            let near = crate::error::nearest(key, self.names().map(|name| &**name));
            format!("the update has the unknown key `{key}`{near}")
        }));
        if problems.is_empty() { Ok(writes) } else { Err(Error::codec(problems.join("; "))) }
    }
}

/// A [`Schema`] whose state type is erased. The kernel sees only this.
pub(crate) trait ErasedSchema: Send + Sync {
    fn specs(&self) -> Vec<Spec>;
    fn managed_values(&self) -> &[(Arc<str>, Managed)];
    fn fork(&self, state: &(dyn Any + Send + Sync)) -> Arc<dyn Any + Send + Sync>;
    fn keep_unknown(&self, state: &mut (dyn Any + Send + Sync), unknown: Map);
    fn reduce(
        &self,
        state: &mut (dyn Any + Send + Sync),
        at: usize,
        update: Payload,
    ) -> Result<(), ChannelError>;
    fn set(
        &self,
        state: &mut (dyn Any + Send + Sync),
        at: usize,
        value: Payload,
    ) -> Result<(), ChannelError>;
    fn swap(
        &self,
        state: &mut (dyn Any + Send + Sync),
        at: usize,
        value: Payload,
    ) -> Result<Taken, ChannelError>;
    fn empty(&self, state: &mut (dyn Any + Send + Sync), at: usize) -> Taken;
    fn replaces(&self, at: usize, update: &Payload) -> bool;
    fn undo(&self, state: &(dyn Any + Send + Sync), at: usize, update: &Payload) -> Taken;
    fn take_back(&self, state: &mut (dyn Any + Send + Sync), at: usize, taken: Taken);
    fn clear(&self, state: &mut (dyn Any + Send + Sync), at: usize);
    fn is_empty(&self, state: &(dyn Any + Send + Sync), at: usize) -> bool;
    fn size(&self, state: &(dyn Any + Send + Sync), at: usize) -> Option<usize>;
    fn value(&self, state: &(dyn Any + Send + Sync), at: usize) -> Result<Value, Error>;
    fn encode(&self, state: &(dyn Any + Send + Sync), at: usize) -> Result<Blob, Error>;
    fn decode(
        &self,
        state: &mut (dyn Any + Send + Sync),
        at: usize,
        blob: &Blob,
    ) -> Result<(), Error>;
    /// Folds stored writes in.
    fn replay(
        &self,
        state: &mut (dyn Any + Send + Sync),
        at: usize,
        writes: &[Blob],
    ) -> Result<(), ChannelError>;
    /// A stored write to a channel.
    fn decode_write(&self, at: usize, blob: &Blob) -> Result<WriteValue, Error>;
    fn parse_write(&self, at: usize, value: Value) -> Result<WriteValue, Error>;

    /// Typed writes from a map, those of them that could not be read, and (in the writes) the unknown keys.
    fn parse_map(&self, update: Value) -> Result<(Writes, Vec<String>), Error>;

    /// The JSON Schemas of a channel: of its value, and of an update.
    fn schemas(&self, at: usize) -> (serde_json::Value, serde_json::Value);
}

/// The kernel only ever hands a schema the state it was made for.
const OWN_STATE: &str = "a schema works on rows of its own state type";

fn own<S: 'static>(state: &(dyn Any + Send + Sync)) -> &S {
    state.downcast_ref().expect(OWN_STATE)
}

fn own_mut<S: 'static>(state: &mut (dyn Any + Send + Sync)) -> &mut S {
    state.downcast_mut().expect(OWN_STATE)
}

impl<S: State> ErasedSchema for Schema<S> {
    fn specs(&self) -> Vec<Spec> {
        self.entries.iter().map(|entry| entry.spec.clone()).collect()
    }

    fn managed_values(&self) -> &[(Arc<str>, Managed)] {
        &self.managed
    }

    fn fork(&self, state: &(dyn Any + Send + Sync)) -> Arc<dyn Any + Send + Sync> {
        Arc::new(own::<S>(state).duplicate())
    }

    fn keep_unknown(&self, state: &mut (dyn Any + Send + Sync), unknown: Map) {
        own_mut::<S>(state).keep_unknown(unknown);
    }

    fn reduce(
        &self,
        state: &mut (dyn Any + Send + Sync),
        at: usize,
        update: Payload,
    ) -> Result<(), ChannelError> {
        self.entries[at].ops.reduce(own_mut(state), update)
    }

    fn set(
        &self,
        state: &mut (dyn Any + Send + Sync),
        at: usize,
        value: Payload,
    ) -> Result<(), ChannelError> {
        self.entries[at].ops.set(own_mut(state), value)
    }

    fn swap(
        &self,
        state: &mut (dyn Any + Send + Sync),
        at: usize,
        value: Payload,
    ) -> Result<Taken, ChannelError> {
        self.entries[at].ops.swap(own_mut(state), value)
    }

    fn empty(&self, state: &mut (dyn Any + Send + Sync), at: usize) -> Taken {
        self.entries[at].ops.empty(own_mut(state))
    }

    fn replaces(&self, at: usize, update: &Payload) -> bool {
        self.entries[at].ops.replaces(update)
    }

    fn undo(&self, state: &(dyn Any + Send + Sync), at: usize, update: &Payload) -> Taken {
        self.entries[at].ops.undo(own(state), update)
    }

    fn take_back(&self, state: &mut (dyn Any + Send + Sync), at: usize, taken: Taken) {
        self.entries[at].ops.take_back(own_mut(state), taken);
    }

    fn clear(&self, state: &mut (dyn Any + Send + Sync), at: usize) {
        self.entries[at].ops.clear(own_mut(state));
    }

    fn is_empty(&self, state: &(dyn Any + Send + Sync), at: usize) -> bool {
        self.entries[at].ops.is_empty(own(state))
    }

    fn size(&self, state: &(dyn Any + Send + Sync), at: usize) -> Option<usize> {
        self.entries[at].ops.size(own(state))
    }

    fn value(&self, state: &(dyn Any + Send + Sync), at: usize) -> Result<Value, Error> {
        self.entries[at].ops.value(own(state))
    }

    fn encode(&self, state: &(dyn Any + Send + Sync), at: usize) -> Result<Blob, Error> {
        self.entries[at].ops.encode(own(state))
    }

    fn decode(
        &self,
        state: &mut (dyn Any + Send + Sync),
        at: usize,
        blob: &Blob,
    ) -> Result<(), Error> {
        self.entries[at].ops.decode(own_mut(state), blob)
    }

    fn replay(
        &self,
        state: &mut (dyn Any + Send + Sync),
        at: usize,
        writes: &[Blob],
    ) -> Result<(), ChannelError> {
        let ops = &self.entries[at].ops;
        let mut updates = Vec::with_capacity(writes.len());
        for blob in writes {
            match self.decode_write(at, blob)? {
                WriteValue::Update(update) => updates.push(update),
                WriteValue::Overwrite(value) => {
                    ops.reduce_all(own_mut(state), std::mem::take(&mut updates))?;
                    ops.set(own_mut(state), value)?;
                }
            }
        }
        ops.reduce_all(own_mut(state), updates)
    }

    fn decode_write(&self, at: usize, blob: &Blob) -> Result<WriteValue, Error> {
        // Whatever form an overwrite has, it is an object.
        if blob.is_object() {
            return self.parse_write(at, blob.to_value()?);
        }
        Ok(WriteValue::Update(self.entries[at].ops.decode_update(blob)?))
    }

    fn parse_write(&self, at: usize, value: Value) -> Result<WriteValue, Error> {
        let ops = &self.entries[at].ops;
        match overwritten(value) {
            Ok(whole) => Ok(WriteValue::Overwrite(ops.parse_value(whole)?)),
            Err(update) => Ok(WriteValue::Update(ops.parse_update(update)?)),
        }
    }

    fn schemas(&self, at: usize) -> (serde_json::Value, serde_json::Value) {
        let channel = &self.entries[at].ops;
        (channel.value_schema(), channel.update_schema())
    }

    fn parse_map(&self, update: Value) -> Result<(Writes, Vec<String>), Error> {
        let Value::Map(map) = update else {
            return Err(Error::codec(format_args!("expected a map of channels, found {update}")));
        };
        let mut writes = Writes::new();
        let mut unknown = Map::new();
        let mut problems = Vec::new();
        for (key, value) in map {
            let Some(at) = self.entries.iter().position(|entry| *entry.spec.name == *key) else {
                if !self.managed.iter().any(|(name, _)| **name == *key) {
                    unknown.insert(key, value);
                }
                continue;
            };
            match self.parse_write(at, value) {
                Ok(write) => writes.list.push((at, write)),
                Err(error) => {
                    problems.push(format!("channel `{key}` cannot take the update: {error}"));
                }
            }
        }
        if !unknown.is_empty() {
            writes.set_unknown(unknown);
        }
        Ok((writes, problems))
    }
}

/// The value inside an overwrite, in any of the three forms it has; otherwise the value back.
fn overwritten(value: Value) -> Result<Value, Value> {
    const MARK: &str = "__overwrite__";
    match value {
        Value::Ext(ext) => match *ext {
            Ext::Overwrite(whole) => Ok(whole),
            other => Err(Value::Ext(Box::new(other))),
        },
        Value::Map(mut map) if map.len() == 1 && map.contains_key(MARK) => {
            Ok(map.swap_remove(MARK).unwrap_or_default())
        }
        Value::Map(mut map)
            if map.get("type").and_then(Value::as_str) == Some(MARK)
                && map.contains_key("value") =>
        {
            Ok(map.swap_remove("value").unwrap_or_default())
        }
        other => Err(other),
    }
}
