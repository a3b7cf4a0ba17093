//! The channels of a field that is a state itself.

use std::any::Any;
use std::sync::Arc;

use superstep_checkpoint::{Blob, Error, Value};

use super::State;
use super::schema::{Channel, ChannelEntry, ChannelError, Schema, Taken};
use super::writes::Payload;

impl<S: State> Schema<S> {
    /// Adds all channels of `inner`, whose state is a field of this one, under their own names.
    ///
    /// So a generic state is extended by a type parameter, and a state of fixed fields by a [`Table`](super::Table).
    /// Updates of the inner state count channels from its first one: move them with [`Writes::shifted`](super::Writes::shifted).
    /// [`State::empty`] finds the schema of the field with [`nested`](Self::nested).
    pub fn nest<T: State>(
        &mut self,
        inner: Schema<T>,
        get: fn(&S) -> &T,
        get_mut: fn(&mut S) -> &mut T,
    ) -> &mut Self {
        let inner = Arc::new(inner);
        for (at, entry) in inner.entries.iter().enumerate() {
            let ops = Nested { schema: inner.clone(), at, get, get_mut };
            self.entries.push(ChannelEntry { spec: entry.spec.clone(), ops: Box::new(ops) });
        }
        self.managed.extend(inner.managed.iter().cloned());
        self.nested.push(inner);
        self
    }

    /// The schema of the field of type `T`, if one was added with [`nest`](Self::nest).
    pub fn nested<T: 'static>(&self) -> Option<Arc<Schema<T>>> {
        self.nested.iter().find_map(|schema| schema.clone().downcast().ok())
    }
}

/// One channel of the inner state, on the outer one.
struct Nested<S, T> {
    schema: Arc<Schema<T>>,
    at: usize,
    get: fn(&S) -> &T,
    get_mut: fn(&mut S) -> &mut T,
}

impl<S, T> Nested<S, T> {
    fn ops(&self) -> &dyn Channel<T> {
        &*self.schema.entries[self.at].ops
    }
}

impl<S: Any, T: Any> Channel<S> for Nested<S, T> {
    fn start(&self) -> Option<Value> {
        self.ops().start()
    }

    fn reduce(&self, state: &mut S, update: Payload) -> Result<(), ChannelError> {
        self.ops().reduce((self.get_mut)(state), update)
    }

    fn reduce_all(&self, state: &mut S, updates: Vec<Payload>) -> Result<(), ChannelError> {
        self.ops().reduce_all((self.get_mut)(state), updates)
    }

    fn set(&self, state: &mut S, value: Payload) -> Result<(), ChannelError> {
        self.ops().set((self.get_mut)(state), value)
    }

    fn swap(&self, state: &mut S, value: Payload) -> Result<Taken, ChannelError> {
        self.ops().swap((self.get_mut)(state), value)
    }

    fn empty(&self, state: &mut S) -> Taken {
        self.ops().empty((self.get_mut)(state))
    }

    fn replaces(&self, update: &Payload) -> bool {
        self.ops().replaces(update)
    }

    fn undo(&self, state: &S, update: &Payload) -> Taken {
        self.ops().undo((self.get)(state), update)
    }

    fn take_back(&self, state: &mut S, taken: Taken) {
        self.ops().take_back((self.get_mut)(state), taken);
    }

    fn clear(&self, state: &mut S) {
        self.ops().clear((self.get_mut)(state));
    }

    fn is_empty(&self, state: &S) -> bool {
        self.ops().is_empty((self.get)(state))
    }

    fn size(&self, state: &S) -> Option<usize> {
        self.ops().size((self.get)(state))
    }

    fn value(&self, state: &S) -> Result<Value, Error> {
        self.ops().value((self.get)(state))
    }

    fn encode(&self, state: &S) -> Result<Blob, Error> {
        self.ops().encode((self.get)(state))
    }

    fn decode(&self, state: &mut S, blob: &Blob) -> Result<(), Error> {
        self.ops().decode((self.get_mut)(state), blob)
    }

    fn decode_update(&self, blob: &Blob) -> Result<Payload, Error> {
        self.ops().decode_update(blob)
    }

    fn parse_update(&self, value: Value) -> Result<Payload, Error> {
        self.ops().parse_update(value)
    }

    fn parse_value(&self, value: Value) -> Result<Payload, Error> {
        self.ops().parse_value(value)
    }

    fn value_schema(&self) -> serde_json::Value {
        self.ops().value_schema()
    }

    fn update_schema(&self) -> serde_json::Value {
        self.ops().update_schema()
    }
}
