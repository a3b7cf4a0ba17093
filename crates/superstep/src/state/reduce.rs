//! Reducers: how a write changes the value of a channel.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, Hash};
use std::ops::AddAssign;

use super::message::{Identified, MessageUpdate};

/// Applies updates to a value of type `T`, in place.
///
/// A reducer must be deterministic: its effect may depend only on its two arguments. Updates of one
/// superstep are folded in the order of their tasks, whatever order the tasks finished in.
#[diagnostic::on_unimplemented(
    message = "the reducer `{Self}` does not fit a field of type `{T}`",
    label = "not a reducer of `{T}`",
    note = "`Append` is for `Vec` and `String`, `Sum` and `Max` for numbers, `Union` for sets, `Merge` for maps, `Messages` for lists of messages, `Last` for everything; `reduce_with` takes a function of yours"
)]
#[doc(alias = "BinaryOperatorAggregate")]
#[doc(alias = "Annotated")]
pub trait Reducer<T>: 'static {
    /// The writes of a node.
    type Update;

    /// Whether the channel counts as written from the beginning, with its default value.
    const STARTS_FILLED: bool = true;

    /// Whether storing the updates is cheaper than storing the value, because the value keeps all of them.
    const APPENDS: bool = false;

    /// Checks an update before it is applied. If it is refused, the run fails with the returned
    /// text.
    ///
    /// Called when a node has written, not when stored updates are replayed.
    ///
    /// # Errors
    /// The update does not fit the value. The default takes every update.
    fn check(_value: &T, _update: &Self::Update) -> Result<(), String> {
        Ok(())
    }

    /// Whether this update replaces the whole value.
    ///
    /// A channel that stores updates then also stores its whole value, as after an overwrite,
    /// because LangGraph's reducer may not know such updates.
    fn replaces(_update: &Self::Update) -> bool {
        false
    }

    /// Folds one update in.
    fn reduce(value: &mut T, update: Self::Update);

    /// Replays updates in order, when a thread is loaded.
    ///
    /// Override it if applying updates in bulk is cheaper.
    fn reduce_all(value: &mut T, updates: Vec<Self::Update>) {
        updates.into_iter().for_each(|update| Self::reduce(value, update));
    }

    /// Returns how to undo an update before it is applied.
    ///
    /// A router sees the state with the writes of its own node before the barrier; undoing them
    /// avoids a copy of the state. The default keeps a clone of the value.
    fn undo(value: &T, _update: &Self::Update) -> Undo<T>
    where
        T: Clone,
    {
        Undo::Restore(value.clone())
    }

    /// Undoes an update. A reducer whose [`undo`](Self::undo) returns [`Undo::Truncate`] implements
    /// the truncation here.
    fn take_back(value: &mut T, undo: Undo<T>) {
        if let Undo::Restore(before) = undo {
            *value = before;
        }
    }

    /// The number of items, if the value is a collection.
    fn size(_value: &T) -> Option<usize> {
        None
    }
}

/// How to undo an update.
#[derive(Debug)]
pub enum Undo<T> {
    /// By putting this value back.
    Restore(T),
    /// Truncates the collection to this length.
    Truncate(usize),
}

/// Keeps the last value. The default for fields without an attribute.
#[derive(Debug)]
pub struct Last;

impl<T> Reducer<T> for Last {
    type Update = T;
    const STARTS_FILLED: bool = false;

    fn reduce(value: &mut T, update: T) {
        *value = update;
    }
}

/// Appends a list to a list.
#[doc(alias = "operator.add")]
#[derive(Debug)]
#[doc(alias = "DeltaChannel")]
pub struct Append;

impl<T> Reducer<Vec<T>> for Append {
    type Update = Vec<T>;
    const APPENDS: bool = true;

    fn reduce(value: &mut Vec<T>, update: Vec<T>) {
        value.extend(update);
    }

    fn undo(value: &Vec<T>, _: &Vec<T>) -> Undo<Vec<T>> {
        Undo::Truncate(value.len())
    }

    fn take_back(value: &mut Vec<T>, undo: Undo<Vec<T>>) {
        match undo {
            Undo::Restore(before) => *value = before,
            Undo::Truncate(len) => value.truncate(len),
        }
    }

    fn size(value: &Vec<T>) -> Option<usize> {
        Some(value.len())
    }
}

impl Reducer<String> for Append {
    type Update = String;
    const APPENDS: bool = true;

    fn reduce(value: &mut String, update: String) {
        value.push_str(&update);
    }

    fn undo(value: &String, _: &String) -> Undo<String> {
        Undo::Truncate(value.len())
    }

    fn take_back(value: &mut String, undo: Undo<String>) {
        match undo {
            Undo::Restore(before) => *value = before,
            Undo::Truncate(len) => value.truncate(len),
        }
    }

    fn size(value: &String) -> Option<usize> {
        Some(value.len())
    }
}

/// Adds numbers, or any type with `+=`.
#[derive(Debug)]
pub struct Sum;

#[diagnostic::do_not_recommend]
impl<T: AddAssign> Reducer<T> for Sum {
    type Update = T;

    fn reduce(value: &mut T, update: T) {
        *value += update;
    }
}

/// Keeps the greatest value.
#[derive(Debug)]
pub struct Max;

#[diagnostic::do_not_recommend]
impl<T: PartialOrd> Reducer<T> for Max {
    type Update = T;

    fn reduce(value: &mut T, update: T) {
        if update > *value {
            *value = update;
        }
    }
}

/// Adds the items of a set to a set.
#[derive(Debug)]
pub struct Union;

impl<T: Eq + Hash + 'static, H: BuildHasher + 'static> Reducer<HashSet<T, H>> for Union {
    type Update = HashSet<T, H>;

    fn reduce(value: &mut HashSet<T, H>, update: HashSet<T, H>) {
        value.extend(update);
    }

    fn size(value: &HashSet<T, H>) -> Option<usize> {
        Some(value.len())
    }
}

impl<T: Ord + 'static> Reducer<BTreeSet<T>> for Union {
    type Update = BTreeSet<T>;

    fn reduce(value: &mut BTreeSet<T>, update: BTreeSet<T>) {
        value.extend(update);
    }

    fn size(value: &BTreeSet<T>) -> Option<usize> {
        Some(value.len())
    }
}

/// Merges maps; the newer entry wins.
#[derive(Debug)]
pub struct Merge;

impl<K: Eq + Hash + 'static, V: 'static, H: BuildHasher + 'static> Reducer<HashMap<K, V, H>>
    for Merge
{
    type Update = HashMap<K, V, H>;

    fn reduce(value: &mut HashMap<K, V, H>, update: HashMap<K, V, H>) {
        value.extend(update);
    }

    fn size(value: &HashMap<K, V, H>) -> Option<usize> {
        Some(value.len())
    }
}

impl<K: Ord + 'static, V: 'static> Reducer<BTreeMap<K, V>> for Merge {
    type Update = BTreeMap<K, V>;

    fn reduce(value: &mut BTreeMap<K, V>, update: BTreeMap<K, V>) {
        value.extend(update);
    }

    fn size(value: &BTreeMap<K, V>) -> Option<usize> {
        Some(value.len())
    }
}

/// A list of messages: one with a known id replaces the old one, others are added at the end.
///
/// A [`Message::remove`](super::Message::remove) removes the message with its id, which must be there;
/// [`Message::remove_all`](super::Message::remove_all) removes all that came before it.
#[doc(alias = "add_messages")]
#[derive(Debug)]
#[doc(alias = "MessagesState")]
pub struct Messages;

#[diagnostic::do_not_recommend]
impl<M: Identified> Reducer<Vec<M>> for Messages {
    type Update = MessageUpdate<M>;
    const APPENDS: bool = true;

    fn check(value: &Vec<M>, update: &MessageUpdate<M>) -> Result<(), String> {
        update.check(value)
    }

    fn replaces(update: &MessageUpdate<M>) -> bool {
        update.removes_all()
    }

    fn reduce(value: &mut Vec<M>, update: MessageUpdate<M>) {
        update.apply(value);
    }

    fn reduce_all(value: &mut Vec<M>, updates: Vec<MessageUpdate<M>>) {
        MessageUpdate::apply_all(updates, value);
    }

    fn undo(value: &Vec<M>, update: &MessageUpdate<M>) -> Undo<Vec<M>> {
        if update.only_adds_to(value) {
            Undo::Truncate(value.len())
        } else {
            Undo::Restore(value.clone())
        }
    }

    fn take_back(value: &mut Vec<M>, undo: Undo<Vec<M>>) {
        match undo {
            Undo::Restore(before) => *value = before,
            Undo::Truncate(len) => value.truncate(len),
        }
    }

    fn size(value: &Vec<M>) -> Option<usize> {
        Some(value.len())
    }
}
