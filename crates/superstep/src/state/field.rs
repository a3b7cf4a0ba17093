use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;
use superstep_checkpoint::{Blob, Error, Value, from_value, to_value};

use super::reduce::{Reducer, Undo};
use super::schema::{Channel, ChannelError, Taken};
use super::writes::{Payload, Writes};

/// The type of a field of a state: storable, with a default value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the type of a field of a state",
    label = "cannot be stored, cloned, or made without a value",
    note = "a field must be `Serialize`, `Deserialize`, `Clone`, `Default`, `Send`, `Sync` and `'static`; derive the first four for types of yours, also for what a list or map holds",
    note = "a client or a connection is not state: give it to the graph with `with_context`, and take it as `Ctx<T>`"
)]
pub trait FieldValue:
    Serialize + DeserializeOwned + Clone + Default + Send + Sync + 'static
{
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Clone + Default + Send + Sync + 'static> FieldValue for T {}

/// Checks at compile time that a type can be a field.
///
/// Derived code uses the same bound everywhere, so that the compiler reports one error.
#[doc(hidden)]
#[inline(always)]
pub fn storable<T: FieldValue>() {}

/// The type of a write to a field: storable.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written to a field of a state",
    label = "cannot be stored or cloned",
    note = "derive `Serialize`, `Deserialize` and `Clone` for `{Self}`, which must also be `Send`, `Sync` and `'static`"
)]
pub trait UpdateValue: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Clone + Send + Sync + 'static> UpdateValue for T {}

/// The parameter of a setter of a field of type `T` that the reducer `R` folds: whatever converts into its update.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an update of a field of type `{T}` with the reducer `{R}`",
    note = "give it what converts into the `Update` of the reducer: items for `Append` and `Union`, entries for `Merge`, messages for `Messages`"
)]
pub trait IntoWrite<R, T> {
    /// Adds the write to the channel at this position.
    fn write(self, writes: &mut Writes, channel: usize);
}

#[diagnostic::do_not_recommend]
impl<R, T, U> IntoWrite<R, T> for U
where
    R: Reducer<T>,
    R::Update: UpdateValue,
    U: Into<R::Update>,
{
    fn write(self, writes: &mut Writes, channel: usize) {
        writes.push::<R::Update>(channel, self.into());
    }
}

/// The parameter of a setter of an `Option<String>` field: text, or an option of text.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not text for a field of type `Option<String>`",
    note = "give it a `&str`, a `String`, an `Option<String>` or `None`"
)]
pub trait OptionalText {
    /// The value of the field.
    fn into_text(self) -> Option<String>;
}

impl OptionalText for Option<String> {
    fn into_text(self) -> Option<String> {
        self
    }
}

macro_rules! optional_text {
    ($($text:ty),*) => {
        $(impl OptionalText for $text {
            fn into_text(self) -> Option<String> {
                Some(self.into())
            }
        })*
    };
}

optional_text!(String, &str, &String, &mut str, Box<str>, std::borrow::Cow<'_, str>, char);

/// A field of a struct as a channel.
pub(super) struct Field<S, T, R> {
    get: fn(&S) -> &T,
    get_mut: fn(&mut S) -> &mut T,
    reducer: PhantomData<fn() -> R>,
}

impl<S, T, R> Field<S, T, R> {
    pub(super) fn new(get: fn(&S) -> &T, get_mut: fn(&mut S) -> &mut T) -> Self {
        Self { get, get_mut, reducer: PhantomData }
    }
}

fn mismatch(error: Error) -> ChannelError {
    ChannelError::Type(error.to_string())
}

impl<S: 'static, T: FieldValue, R: Reducer<T>> Channel<S> for Field<S, T, R>
where
    R::Update: UpdateValue,
{
    fn reduce(&self, state: &mut S, update: Payload) -> Result<(), ChannelError> {
        let (value, update) =
            ((self.get_mut)(state), update.take::<R::Update>().map_err(mismatch)?);
        R::check(value, &update).map_err(ChannelError::Type)?;
        R::reduce(value, update);
        Ok(())
    }

    fn reduce_all(&self, state: &mut S, updates: Vec<Payload>) -> Result<(), ChannelError> {
        let updates = updates.into_iter().map(Payload::take::<R::Update>);
        R::reduce_all((self.get_mut)(state), updates.collect::<Result<_, _>>().map_err(mismatch)?);
        Ok(())
    }

    fn set(&self, state: &mut S, value: Payload) -> Result<(), ChannelError> {
        *(self.get_mut)(state) = value.take::<T>().map_err(mismatch)?;
        Ok(())
    }

    fn swap(&self, state: &mut S, value: Payload) -> Result<Taken, ChannelError> {
        let value = value.take::<T>().map_err(mismatch)?;
        Ok(Taken::new(Undo::Restore(std::mem::replace((self.get_mut)(state), value))))
    }

    fn empty(&self, state: &mut S) -> Taken {
        Taken::new(Undo::Restore(std::mem::take((self.get_mut)(state))))
    }

    fn replaces(&self, update: &Payload) -> bool {
        update.downcast_ref::<R::Update>().is_some_and(R::replaces)
    }

    fn undo(&self, state: &S, update: &Payload) -> Taken {
        let value = (self.get)(state);
        Taken::new(match update.downcast_ref::<R::Update>() {
            Some(update) => R::undo(value, update),
            None => Undo::Restore(value.clone()),
        })
    }

    fn take_back(&self, state: &mut S, taken: Taken) {
        if let Ok(undo) = taken.0.downcast::<Undo<T>>() {
            R::take_back((self.get_mut)(state), *undo);
        }
    }

    fn clear(&self, state: &mut S) {
        *(self.get_mut)(state) = T::default();
    }

    fn is_empty(&self, state: &S) -> bool {
        self.size(state) == Some(0)
    }

    fn size(&self, state: &S) -> Option<usize> {
        R::size((self.get)(state))
    }

    fn value(&self, state: &S) -> Result<Value, Error> {
        to_value((self.get)(state))
    }

    fn encode(&self, state: &S) -> Result<Blob, Error> {
        Blob::encode((self.get)(state))
    }

    fn decode(&self, state: &mut S, blob: &Blob) -> Result<(), Error> {
        *(self.get_mut)(state) = blob.decode_whole()?;
        Ok(())
    }

    fn decode_update(&self, blob: &Blob) -> Result<Payload, Error> {
        Ok(Payload::new(blob.decode::<R::Update>()?))
    }

    fn parse_update(&self, value: Value) -> Result<Payload, Error> {
        Ok(Payload::new(from_value::<R::Update>(value)?))
    }

    fn parse_value(&self, value: Value) -> Result<Payload, Error> {
        Ok(Payload::new(from_value::<T>(value)?))
    }

    fn value_schema(&self) -> serde_json::Value {
        super::describe::<T>()
    }

    fn update_schema(&self) -> serde_json::Value {
        super::describe::<R::Update>()
    }
}
