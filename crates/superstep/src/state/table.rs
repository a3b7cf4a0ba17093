use std::fmt;
use std::sync::Arc;

use superstep_checkpoint::{Blob, Error, Map, Value};

use super::reduce::Undo;
use super::schema::{Channel, ChannelError, Kind, Schema, Taken};
use super::writes::{Payload, Writes};
use super::{Deltas, State};

/// A state whose channels are known only at run time.
///
/// Its values are data ([`Value`]). Build a schema with [`Schema::table`] and pass it to
/// [`StateGraph::with_schema`](crate::StateGraph::with_schema); everything else works as with a
/// struct, except that wrong names are found at run time.
///
/// ```
/// use superstep::state::{Fold, Schema, Table, TableChannel};
///
/// let mut schema = Schema::<Table>::default();
/// schema.table("topic", TableChannel::last());
/// schema.table("notes", TableChannel::folded(Fold::Append, Some(Vec::<String>::new().into())));
/// ```
#[derive(Clone)]
pub struct Table {
    schema: Arc<Schema<Self>>,
    values: Vec<Option<Value>>,
    unknown: Map,
}

/// The channels of a [`Table`].
pub type TableSchema = Schema<Table>;

impl Table {
    /// The value of a channel; `None` if it was never written, has been cleared, or does not exist.
    pub fn get(&self, channel: &str) -> Option<&Value> {
        let at = self.schema.names().position(|name| &**name == channel);
        match at {
            Some(at) => self.values[at].as_ref(),
            None => self.unknown.get(channel),
        }
    }

    /// The channels that have a value, in order, and after them what a router's node returned under other names.
    pub fn to_map(&self) -> Map {
        let known = self.schema.names().zip(&self.values);
        let filled = known.filter_map(|(name, value)| Some((name.to_string(), value.clone()?)));
        let unknown = self.unknown.iter().map(|(name, value)| (name.clone(), value.clone()));
        unknown.chain(filled).collect()
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.to_map()).finish()
    }
}

impl State for Table {
    type Update = Writes;

    /// Declares nothing: the schema of a table is given at run time.
    fn channels(_: &mut Schema<Self>) {}

    fn empty(schema: &Arc<Schema<Self>>) -> Self {
        let values = schema.entries.iter().map(|entry| entry.ops.start());
        Self { schema: schema.clone(), values: values.collect(), unknown: Map::new() }
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }

    fn keep_unknown(&mut self, unknown: Map) {
        self.unknown = unknown;
    }
}

/// A rule that folds a write into a value of a [`Table`].
#[derive(Clone)]
#[non_exhaustive]
pub enum Fold {
    /// Appends a list to a list, or a text to a text.
    Append,
    /// Adds numbers; texts and lists are joined.
    Sum,
    /// Keeps the greater of two numbers or texts.
    Max,
    /// Merges maps; the newer entry wins.
    Merge,
    /// Adds the items of a set to a set.
    Union,
    /// A list of maps with an `id`: an item (or each of a list of items) replaces the one with the same id or is added
    /// at the end; with `remove: true` it removes it.
    ById,
    /// Any function of the value and the write.
    With(Arc<dyn Fn(Value, Value) -> Result<Value, String> + Send + Sync>),
}

impl fmt::Debug for Fold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Append => "Append",
            Self::Sum => "Sum",
            Self::Max => "Max",
            Self::Merge => "Merge",
            Self::Union => "Union",
            Self::ById => "ById",
            Self::With(_) => "With",
        })
    }
}

/// The reducer and kind of a channel of a [`Table`].
#[derive(Clone, Debug)]
pub struct TableChannel {
    kind: Kind,
    fold: Option<Fold>,
    start: Option<Value>,
}

impl TableChannel {
    /// Keeps the last value.
    pub fn last() -> Self {
        Self { kind: Kind::Last, fold: None, start: None }
    }

    /// Applies writes with a reducer, beginning with `start`; without it, the first write is the
    /// value.
    pub fn folded(fold: Fold, start: Option<Value>) -> Self {
        Self { kind: Kind::Reduce, fold: Some(fold), start }
    }

    /// As [`folded`](Self::folded), but stores writes, and whole values only occasionally.
    pub fn delta(fold: Fold, start: Option<Value>, deltas: Deltas) -> Self {
        Self { kind: Kind::Delta(deltas), ..Self::folded(fold, start) }
    }

    /// A channel of any other kind.
    pub fn of_kind(kind: Kind) -> Self {
        let topic = matches!(kind, Kind::Topic { .. });
        Self { kind, fold: topic.then_some(Fold::Append), start: None }
    }
}

impl Schema<Table> {
    /// Adds a channel to the table.
    pub fn table(&mut self, name: impl Into<Arc<str>>, channel: TableChannel) -> &mut Self {
        let cell = Cell {
            at: self.entries.len(),
            fold: channel.fold,
            start: channel.start,
            topic: matches!(channel.kind, Kind::Topic { .. }),
        };
        self.add(name, channel.kind, cell.start.is_some(), cell)
    }
}

struct Cell {
    at: usize,
    fold: Option<Fold>,
    start: Option<Value>,
    topic: bool,
}

impl Cell {
    fn fold(&self, slot: &mut Option<Value>, write: Value) -> Result<(), ChannelError> {
        let write = if self.topic { as_items(write) } else { write };
        let (Some(fold), Some(value)) = (&self.fold, slot.as_mut()) else {
            *slot = Some(write);
            return Ok(());
        };
        fold.apply(value, write).map_err(ChannelError::Type)
    }
}

/// A topic takes an item or a list of items.
fn as_items(write: Value) -> Value {
    match write {
        Value::List(items) => Value::List(items),
        item => Value::List(vec![item]),
    }
}

fn data(payload: Payload) -> Result<Value, ChannelError> {
    payload.take().map_err(|error| ChannelError::Type(error.to_string()))
}

impl Channel<Table> for Cell {
    fn start(&self) -> Option<Value> {
        self.start.clone()
    }

    fn reduce(&self, table: &mut Table, update: Payload) -> Result<(), ChannelError> {
        self.fold(&mut table.values[self.at], data(update)?)
    }

    fn swap(&self, table: &mut Table, value: Payload) -> Result<Taken, ChannelError> {
        let value = data(value)?;
        let value = if self.topic { as_items(value) } else { value };
        let before = table.values[self.at].replace(value);
        Ok(Taken::new(Undo::Restore(before)))
    }

    fn empty(&self, table: &mut Table) -> Taken {
        Taken::new(Undo::Restore(table.values[self.at].take()))
    }

    fn undo(&self, table: &Table, _: &Payload) -> Taken {
        let slot = &table.values[self.at];
        Taken::new(match (&self.fold, slot) {
            (Some(Fold::Append), Some(Value::List(items))) => {
                Undo::<Option<Value>>::Truncate(items.len())
            }
            _ => Undo::Restore(slot.clone()),
        })
    }

    fn take_back(&self, table: &mut Table, taken: Taken) {
        let slot = &mut table.values[self.at];
        match taken.0.downcast::<Undo<Option<Value>>>().map(|undo| *undo) {
            Ok(Undo::Restore(before)) => *slot = before,
            Ok(Undo::Truncate(len)) => {
                if let Some(Value::List(items)) = slot {
                    items.truncate(len);
                }
            }
            Err(_) => {}
        }
    }

    fn clear(&self, table: &mut Table) {
        table.values[self.at] = None;
    }

    fn is_empty(&self, table: &Table) -> bool {
        self.size(table).unwrap_or(0) == 0
    }

    fn size(&self, table: &Table) -> Option<usize> {
        match table.values[self.at].as_ref()? {
            Value::List(items) => Some(items.len()),
            Value::Map(map) => Some(map.len()),
            Value::Set(set) => Some(set.len()),
            _ => None,
        }
    }

    fn value(&self, table: &Table) -> Result<Value, Error> {
        Ok(table.values[self.at].clone().unwrap_or_default())
    }

    fn encode(&self, table: &Table) -> Result<Blob, Error> {
        table.values[self.at].as_ref().map_or(Ok(Blob::null()), Blob::from_value)
    }

    fn decode(&self, table: &mut Table, blob: &Blob) -> Result<(), Error> {
        let value: Value = blob.decode_whole()?;
        // A topic without items has no value, whether it was stored or not.
        let nothing = self.topic && value.as_list().is_some_and(<[Value]>::is_empty);
        table.values[self.at] = (!nothing).then_some(value);
        Ok(())
    }

    fn parse_update(&self, value: Value) -> Result<Payload, Error> {
        Ok(Payload::new(value))
    }

    fn parse_value(&self, value: Value) -> Result<Payload, Error> {
        Ok(Payload::new(value))
    }
}

impl Fold {
    fn apply(&self, value: &mut Value, write: Value) -> Result<(), String> {
        match self {
            Self::Append | Self::Sum => join(value, write),
            Self::Max => keep_greater(value, write),
            Self::Merge => match (value, write) {
                (Value::Map(map), Value::Map(new)) => {
                    map.extend(new);
                    Ok(())
                }
                (value, write) => Err(misfit("merge", value, &write)),
            },
            Self::Union => match (value, write) {
                (Value::Set(set), Value::Set(new)) => {
                    set.extend(new);
                    Ok(())
                }
                (value, write) => Err(misfit("unite", value, &write)),
            },
            Self::ById => match (value, write) {
                (Value::List(list), Value::List(new)) => {
                    new.into_iter().try_for_each(|item| put_by_id(list, item))
                }
                (Value::List(list), item) => put_by_id(list, item),
                (value, write) => Err(misfit("add by id", value, &write)),
            },
            Self::With(function) => {
                *value = function(std::mem::take(value), write)?;
                Ok(())
            }
        }
    }
}

fn misfit(verb: &str, value: &Value, write: &Value) -> String {
    format!("cannot {verb} {value} and {write}")
}

fn join(value: &mut Value, write: Value) -> Result<(), String> {
    let overflow = |a: i64, b: i64| format!("the sum of {a} and {b} is too large");
    match (&mut *value, write) {
        (Value::List(list), Value::List(items)) => list.extend(items),
        (Value::Str(text), Value::Str(more)) => text.push_str(&more),
        (Value::Int(a), Value::Int(b)) => *a = a.checked_add(b).ok_or_else(|| overflow(*a, b))?,
        (Value::Float(a), Value::Float(b)) => *a += b,
        (Value::Float(a), Value::Int(b)) => *a += b as f64,
        (Value::Int(a), Value::Float(b)) => *value = Value::Float(*a as f64 + b),
        (left, right) => return Err(misfit("add", left, &right)),
    }
    Ok(())
}

fn keep_greater(value: &mut Value, write: Value) -> Result<(), String> {
    let greater = match (&*value, &write) {
        (Value::Int(a), Value::Int(b)) => b > a,
        (Value::Str(a), Value::Str(b)) => b > a,
        (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => {
            write.as_f64() > value.as_f64()
        }
        (left, right) => return Err(misfit("compare", left, right)),
    };
    if greater {
        *value = write;
    }
    Ok(())
}

fn put_by_id(list: &mut Vec<Value>, item: Value) -> Result<(), String> {
    let Some(id) = item.get("id") else {
        return Err(format!("an item added by id needs an `id`, which {item} has not"));
    };
    let at = list.iter().rposition(|old| old.get("id") == Some(id));
    let remove = item.get("remove").is_some_and(|flag| *flag != Value::Bool(false));
    match at {
        Some(at) if remove => drop(list.remove(at)),
        Some(at) => list[at] = item,
        None if remove => {}
        None => list.push(item),
    }
    Ok(())
}
