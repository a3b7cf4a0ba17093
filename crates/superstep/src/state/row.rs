use std::any::Any;
use std::fmt;
use std::sync::Arc;

use superstep_checkpoint::{Blob, Error, Map, Value};

use super::schema::{ChannelError, ErasedSchema, Taken};
use super::writes::{Payload, WriteValue};

/// The user's state together with the schema that knows its type. `None` while it is lent out.
#[derive(Clone)]
pub(crate) struct Row(Option<Typed>);

#[derive(Clone)]
struct Typed {
    cells: Arc<dyn Any + Send + Sync>,
    schema: Arc<dyn ErasedSchema>,
}

const LENT: &str = "a state that is lent out is not read";

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Row")
    }
}

impl Row {
    pub(crate) fn new(cells: Arc<dyn Any + Send + Sync>, schema: Arc<dyn ErasedSchema>) -> Self {
        Self(Some(Typed { cells, schema }))
    }

    /// Takes the row out; what stays behind is unusable until it gets a row back.
    pub(crate) fn take(&mut self) -> Self {
        Self(self.0.take())
    }

    pub(crate) fn is_hollow(&self) -> bool {
        self.0.is_none()
    }

    fn typed(&self) -> &Typed {
        self.0.as_ref().expect(LENT)
    }

    /// The state itself. If it is kept, the next barrier clones the state once.
    pub(crate) fn cells(&self) -> &Arc<dyn Any + Send + Sync> {
        &self.typed().cells
    }

    /// The state for writing: in place if it is not shared, else a clone.
    pub(crate) fn open(&mut self) -> OpenRow<'_> {
        let Typed { cells, schema } = self.0.as_mut().expect(LENT);
        if !is_owned(cells) {
            *cells = schema.fork(&**cells);
        }
        let cells = Arc::get_mut(cells).expect("who has the only share has it alone");
        OpenRow { cells, schema: &**schema }
    }

    /// Whether a write would be in place.
    pub(crate) fn is_alone(&mut self) -> bool {
        self.0.as_mut().is_some_and(|typed| is_owned(&mut typed.cells))
    }

    pub(crate) fn value(&self, at: usize) -> Result<Value, Error> {
        let Typed { cells, schema } = self.typed();
        schema.value(&**cells, at)
    }

    pub(crate) fn encode(&self, at: usize) -> Result<Blob, Error> {
        let Typed { cells, schema } = self.typed();
        schema.encode(&**cells, at)
    }

    /// Whether nothing of the value before is left after this write.
    pub(crate) fn is_replaced_by(&self, at: usize, write: &WriteValue) -> bool {
        match write {
            WriteValue::Update(update) => self.typed().schema.replaces(at, update),
            WriteValue::Overwrite(_) => true,
        }
    }

    pub(crate) fn size(&self, at: usize) -> Option<usize> {
        let Typed { cells, schema } = self.typed();
        schema.size(&**cells, at)
    }
}

/// Whether the state is not shared. `&mut` guarantees that no share is made meanwhile.
fn is_owned(cells: &mut Arc<dyn Any + Send + Sync>) -> bool {
    Arc::strong_count(cells) == 1 && Arc::weak_count(cells) == 0
}

/// A row that is being written.
pub(crate) struct OpenRow<'a> {
    cells: &'a mut (dyn Any + Send + Sync),
    schema: &'a dyn ErasedSchema,
}

impl OpenRow<'_> {
    pub(crate) fn reduce(&mut self, at: usize, update: Payload) -> Result<(), ChannelError> {
        self.schema.reduce(self.cells, at, update)
    }

    /// Replaces the value.
    pub(crate) fn set(&mut self, at: usize, value: Payload) -> Result<(), ChannelError> {
        self.schema.set(self.cells, at, value)
    }

    /// Replaces the value and returns how to restore the old one.
    pub(crate) fn swap(&mut self, at: usize, value: Payload) -> Result<Taken, ChannelError> {
        self.schema.swap(self.cells, at, value)
    }

    /// Clears the channel and returns how to restore the value.
    pub(crate) fn empty(&mut self, at: usize) -> Taken {
        self.schema.empty(self.cells, at)
    }

    /// Returns how to undo an update before it is applied.
    pub(crate) fn undo(&self, at: usize, update: &Payload) -> Taken {
        self.schema.undo(self.cells, at, update)
    }

    pub(crate) fn take_back(&mut self, at: usize, taken: Taken) {
        self.schema.take_back(self.cells, at, taken);
    }

    pub(crate) fn clear(&mut self, at: usize) {
        self.schema.clear(self.cells, at);
    }

    pub(crate) fn is_empty(&self, at: usize) -> bool {
        self.schema.is_empty(self.cells, at)
    }

    /// Folds stored writes in.
    pub(crate) fn replay(&mut self, at: usize, writes: &[Blob]) -> Result<(), ChannelError> {
        self.schema.replay(self.cells, at, writes)
    }

    pub(crate) fn decode(&mut self, at: usize, blob: &Blob) -> Result<(), Error> {
        self.schema.decode(self.cells, at, blob)
    }

    pub(crate) fn keep_unknown(&mut self, unknown: Map) {
        self.schema.keep_unknown(self.cells, unknown);
    }
}
