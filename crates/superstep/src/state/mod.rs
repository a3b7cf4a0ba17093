//! State: a struct whose fields are channels.
//!
//! `#[derive(State)]` turns each field of a struct into a channel. A channel keeps its last value
//! unless `#[channel(...)]` says how writes are applied:
//!
//! | attribute | a write | two writes in one superstep |
//! | --- | --- | --- |
//! | none | replaces the value | an error that names both nodes |
//! | `reduce = Append` (or `Sum`, `Max`, `Union`, `Merge`, `Messages`, any [`Reducer`]) | is applied | are folded in task order |
//! | `reduce_with = function` | is applied by `fn(&mut T, U)`; `update = U` if it is not the field's type | the same |
//! | `any_value` | replaces the value, which is emptied by a superstep without a write | the last one wins |
//! | `ephemeral` | is there for the next superstep only | an error, or with `guard = false` the last one wins |
//! | `untracked` | replaces the value, which is never stored | an error, or with `guard = false` the last one wins |
//! | `topic` | is one of the list of what the last superstep wrote; `accumulate` keeps all of them | are both in the list |
//!
//! `delta = n` stores a whole value of a reduced field only every `n` updates, and the updates in between; `delta = false`
//! stores the whole value each time. `private` keeps a field out of a graph's input and output. `rename = "name"` gives
//! the channel another name than the field.
//!
//! The macro is optional. This is what it generates:
//!
//! ```
//! use superstep::state::{Append, Schema, State, Update, Writes};
//!
//! #[derive(Clone, Default)]
//! struct Essay {
//!     topic: String,
//!     notes: Vec<String>,
//! }
//!
//! impl State for Essay {
//!     type Update = EssayUpdate;
//!
//!     fn channels(schema: &mut Schema<Self>) {
//!         schema.last("topic", |essay| &essay.topic, |essay| &mut essay.topic);
//!         schema.reduce::<_, Append>("notes", |essay| &essay.notes, |essay| &mut essay.notes);
//!     }
//!
//!     fn empty(_: &std::sync::Arc<Schema<Self>>) -> Self {
//!         Self::default()
//!     }
//!
//!     fn duplicate(&self) -> Self {
//!         self.clone()
//!     }
//! }
//!
//! #[derive(Clone, Debug, Default)]
//! struct EssayUpdate(Writes);
//!
//! impl EssayUpdate {
//!     fn topic(mut self, topic: impl Into<String>) -> Self {
//!         self.0.push::<String>(0, topic.into());
//!         self
//!     }
//!
//!     fn notes(mut self, notes: impl Into<Vec<String>>) -> Self {
//!         self.0.push::<Vec<String>>(1, notes.into());
//!         self
//!     }
//! }
//!
//! impl Update<Essay> for EssayUpdate {
//!     fn into_writes(self) -> Writes {
//!         self.0
//!     }
//! }
//!
//! let update = EssayUpdate::default().topic("Pregel").notes(["a note".to_owned()]);
//! assert_eq!(update.into_writes().len(), 2);
//! ```
//!
//! A state whose channels are known only at run time is a [`Table`].

mod brief;
mod describe;
mod field;
mod message;
mod nested;
mod reduce;
mod row;
mod schema;
mod table;
mod writes;

pub(crate) use describe::describe;
#[doc(hidden)]
pub use field::storable;
pub use field::{FieldValue, IntoWrite, OptionalText, UpdateValue};
pub use message::{
    Chunk, Identified, InvalidToolCall, MergeError, Message, MessageUpdate, REMOVE_ALL, Role,
    ToolCall, ToolCallChunk, ToolStatus,
};
pub use reduce::{Append, Last, Max, Merge, Messages, Reducer, Sum, Undo, Union};
pub(crate) use row::{OpenRow, Row};
pub(crate) use schema::ErasedSchema;
pub(crate) use schema::Spec;
pub use schema::{Channel, ChannelError, Deltas, Kind, Managed, Schema, Taken};
pub use table::{Fold, Table, TableChannel, TableSchema};
pub use writes::{Payload, Update, Writes};
pub(crate) use writes::{UpdateProblem, WriteValue};

use std::sync::Arc;

/// The state of a graph: a set of channels.
///
/// Derive it with `#[derive(State)]`, or write it by hand as the [module page](self) shows.
///
/// Tasks of a superstep share one `Arc` of the state. At the barrier they have dropped it, so
/// writes are applied in place; if a clone of the `Arc` is left, the state is cloned once instead.
#[doc(alias = "TypedDict")]
#[doc(alias = "LastValue")]
#[doc(alias = "EphemeralValue")]
#[doc(alias = "UntrackedValue")]
#[doc(alias = "AnyValue")]
#[doc(alias = "Topic")]
pub trait State: Sized + Send + Sync + 'static {
    /// The typed bundle of writes that nodes return.
    type Update: Update<Self>;

    /// Declares the channels, in order.
    fn channels(schema: &mut Schema<Self>);

    /// The initial state.
    fn empty(schema: &Arc<Schema<Self>>) -> Self;

    /// Clones the state, if a clone of its `Arc` is left at a barrier.
    ///
    /// This is `Clone::clone`. It is a method here instead of a supertrait, so that the compiler
    /// reports a state without `Clone` once.
    fn duplicate(&self) -> Self;

    /// Stores the keys of an update that are not channels, so that a router sees them. Only a state
    /// without fixed fields can.
    #[doc(hidden)]
    fn keep_unknown(&mut self, _unknown: superstep_checkpoint::Map) {}
}

/// No channels: what a generic state is extended with if there is nothing to add.
impl State for () {
    type Update = Writes;

    fn channels(_: &mut Schema<Self>) {}

    fn empty(_: &Arc<Schema<Self>>) -> Self {}

    fn duplicate(&self) -> Self {}
}
