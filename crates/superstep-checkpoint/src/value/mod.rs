//! Values whose type is only known at run time, and conversions from and to typed values.

mod convert;
mod de;
mod due;
mod ext;
mod fault;
mod foreign;
mod json;
mod mark;
pub mod object;
mod order;
mod ser;
#[cfg(test)]
pub(crate) mod tests;
mod visit;

use indexmap::{IndexMap, IndexSet};

pub use de::from_value;
pub(crate) use due::due_text;
pub use due::storable_time;
pub use ext::{Ext, Interrupt, Packet, TimeLimits};
pub use foreign::Foreign;
pub use ser::to_value;

pub(crate) use de::{FromValue, Key};
pub(crate) use fault::Fault;
pub(crate) use foreign::foreign_data;
pub(crate) use mark::{Mark, OBJECT, VALUE};
pub(crate) use ser::ToValue;

/// A map with text keys that keeps the order of its entries.
pub type Map = IndexMap<String, Value>;

/// A set that keeps the order of its items, in which LangGraph has stored them.
pub type Set = IndexSet<Value>;

/// A value in storage: MessagePack's types, and the few extension types that superstep and
/// LangGraph share.
///
/// Values have a total order and can be hashed, so that they can be members of sets and compared in tests.
/// Numbers of different kinds are never equal (`1` is not `1.0`), floats compare by IEEE total order, and maps
/// and sets are equal whatever the order of their entries.
///
/// ```
/// use superstep_checkpoint::{Value, from_value, to_value};
///
/// let value = to_value(&("a", [1, 2]))?;
/// assert_eq!(value.to_string(), r#"["a",[1,2]]"#);
/// let (name, numbers): (String, Vec<u8>) = from_value(value)?;
/// assert_eq!((name.as_str(), numbers), ("a", vec![1, 2]));
/// # Ok::<(), superstep_checkpoint::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// Nothing.
    #[default]
    Null,
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// An integer too large for [`Value::Int`]; `Value::from(u64)` chooses.
    UInt(u64),
    /// A number with a fraction.
    Float(f64),
    /// Text.
    Str(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A sequence.
    List(Vec<Value>),
    /// A map with text keys.
    Map(Map),
    /// A map with at least one key that is not text; [`Value::pairs`] chooses.
    Pairs(Vec<(Value, Value)>),
    /// A set.
    Set(Set),
    /// An extension type.
    Ext(Box<Ext>),
}

impl Value {
    /// The map with these entries: [`Value::Map`] if all keys are text, else [`Value::Pairs`].
    ///
    /// Of several entries with one text key the last wins.
    pub fn pairs(entries: Vec<(Value, Value)>) -> Self {
        if !entries.iter().all(|(key, _)| matches!(key, Value::Str(_))) {
            return Self::Pairs(entries);
        }
        let texts = entries.into_iter().filter_map(|(key, value)| match key {
            Value::Str(key) => Some((key, value)),
            _ => None,
        });
        Self::Map(texts.collect())
    }

    /// Whether this is [`Value::Null`].
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The text, if this is text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(yes) => Some(*yes),
            _ => None,
        }
    }

    /// The number, if this is an integer that fits.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The number, if this is one; large integers are rounded.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(number) => Some(*number as f64),
            Self::UInt(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// The items, if this is a list.
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// The entries, if this is a map with text keys.
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The entries, to be changed, if this is a map with text keys.
    pub fn as_map_mut(&mut self) -> Option<&mut Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The entries of a map with text keys, or the fields of an object that only LangGraph knows.
    pub fn fields(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            Self::Ext(ext) => match &**ext {
                Ext::Foreign(foreign) => foreign.fields(),
                _ => None,
            },
            _ => None,
        }
    }

    /// The value of this key, if this is a map that has it; or the field of an object that only
    /// LangGraph knows.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.fields()?.get(key)
    }

    /// The kind of the value, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) | Self::UInt(_) => "a whole number",
            Self::Float(_) => "a number with a fraction",
            Self::Str(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "a list",
            Self::Map(_) | Self::Pairs(_) => "a map",
            Self::Set(_) => "a set",
            Self::Ext(ext) => match **ext {
                Ext::Send(_) => "a dispatch",
                Ext::Interrupt(_) => "an interrupt",
                Ext::Overwrite(_) => "an overwrite",
                Ext::Snapshot(_) => "a snapshot",
                Ext::Foreign(_) => "a foreign type",
            },
        }
    }
}
