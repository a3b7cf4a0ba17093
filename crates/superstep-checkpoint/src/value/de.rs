use std::cell::Cell;

use serde::de::value::SeqDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess,
    SeqAccess, VariantAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};

use super::{Ext, Fault, Map, Value, mark};
use crate::blob::decode;
use crate::{Error, Limits};

/// Reads a typed value.
///
/// Reading is strict: text is not read as a number, and a fraction is not read as an integer; an
/// integer is read as a float. Lists and sets are sequences. Extension types are read as their
/// data, so a struct can be read from an object that LangGraph stored. Text keys are also read as
/// numbers, for values that came as JSON.
///
/// # Errors
/// The value does not fit the type; the message says where.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    Ok(T::deserialize(FromValue::new(value, Limits::DEFAULT.depth))?)
}

/// Deserializes from a [`Value`].
pub(crate) struct FromValue {
    value: Value,
    /// The depth that is left. Foreign types are opened on the way, so the decoder's own limit does
    /// not bound this walk.
    depth: usize,
}

impl FromValue {
    pub(crate) fn new(value: Value, depth: usize) -> Self {
        Self { value, depth }
    }

    /// The data without the type, if this is a type of its own, and the depth left for what it contains.
    fn open(self) -> Result<(Value, usize), Fault> {
        let mut value = self.value;
        let mut depth = self.depth;
        loop {
            let holds_others = matches!(
                value,
                Value::List(_) | Value::Map(_) | Value::Pairs(_) | Value::Set(_) | Value::Ext(_)
            );
            if holds_others {
                depth = depth.checked_sub(1).ok_or_else(too_deep)?;
            }
            value = match value {
                Value::Ext(ext) => ext.into_data(depth)?,
                plain => return Ok((plain, depth)),
            };
        }
    }

    fn visit<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let (value, depth) = self.open()?;
        Self::visit_opened(value, depth, visitor)
    }

    fn visit_opened<'de, V: Visitor<'de>>(
        value: Value,
        depth: usize,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(yes) => visitor.visit_bool(yes),
            Value::Int(number) => visitor.visit_i64(number),
            Value::UInt(number) => visitor.visit_u64(number),
            Value::Float(number) => visitor.visit_f64(number),
            Value::Str(text) => visitor.visit_string(text),
            Value::Bytes(bytes) => visitor.visit_byte_buf(bytes),
            Value::List(items) => visit_items(items.into_iter(), depth, visitor),
            Value::Set(items) => visit_items(items.into_iter(), depth, visitor),
            Value::Map(map) => visit_entries(text_keys(map), depth, visitor),
            Value::Pairs(pairs) => visit_entries(pairs.into_iter(), depth, visitor),
            Value::Ext(_) => Err(Fault::new("a type of its own was left unopened")),
        }
    }

    /// Gives the value to the visitor of [`Value`] as it is.
    ///
    /// Serde has no call that could carry it, so it is laid aside and the visitor told to fetch it. It moves
    /// instead of being taken apart and built again, which also spares the stack one descent.
    fn hand_over<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        HANDED.set(Some(self.value));
        let result = visitor.visit_enum(mark::VALUE.into_deserializer());
        HANDED.take();
        result
    }
}

thread_local! {
    /// A value on its way to its visitor; empty whenever none is.
    static HANDED: Cell<Option<Value>> = const { Cell::new(None) };
}

/// The value that was laid aside for the visitor that is being called.
pub(super) fn handed() -> Option<Value> {
    HANDED.take()
}

fn too_deep() -> Fault {
    Fault::new(format_args!("nested deeper than {} levels", Limits::DEFAULT.depth))
}

fn text_keys(map: Map) -> impl ExactSizeIterator<Item = (Value, Value)> {
    map.into_iter().map(|(key, value)| (Value::Str(key), value))
}

impl<'de> Deserializer<'de> for FromValue {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.visit(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            Value::Null => visitor.visit_none(),
            value => visitor.visit_some(Self::new(value, self.depth)),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match name {
            mark::VALUE => self.hand_over(visitor),
            mark::OBJECT => match self.object()? {
                Ok(object) => visitor.visit_enum(object),
                Err(other) => visitor.visit_newtype_struct(other),
            },
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let (value, depth) = self.open()?;
        match value {
            // A vector of small numbers asks for a sequence, whatever serialized it.
            Value::Bytes(bytes) => visit_items(bytes.into_iter().map(Value::from), depth, visitor),
            other => Self::visit_opened(other, depth, visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let (value, depth) = self.open()?;
        let (tag, content) = match value {
            Value::Map(map) if map.len() == 1 => {
                map.into_iter().next().map(|(tag, value)| (tag, Some(value))).unwrap_or_default()
            }
            Value::Str(tag) => (tag, None),
            Value::Map(map) => {
                let found =
                    format_args!("expected a variant, found a map with {} entries", map.len());
                return Err(Fault::new(found));
            }
            other => {
                let found = format_args!("expected a variant, found {}", other.kind());
                return Err(Fault::new(found));
            }
        };
        match content {
            Some(value) => visitor.visit_enum(Tagged { tag, content: Self::new(value, depth) }),
            None => visitor.visit_enum(tag.into_deserializer()),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct tuple tuple_struct map struct identifier
    }
}

fn visit_items<'de, V: Visitor<'de>>(
    items: impl ExactSizeIterator<Item = Value>,
    depth: usize,
    visitor: V,
) -> Result<V::Value, Fault> {
    let len = items.len();
    let mut access = Items { items, depth, index: 0 };
    let value = visitor.visit_seq(&mut access)?;
    match access.items.len() {
        0 => Ok(value),
        left => {
            let read = len - left;
            Err(Fault::new(format_args!("expected a list of {read}, found a list of {len}")))
        }
    }
}

struct Items<I> {
    items: I,
    depth: usize,
    index: usize,
}

impl<'de, I: ExactSizeIterator<Item = Value>> SeqAccess<'de> for Items<I> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let Some(item) = self.items.next() else {
            return Ok(None);
        };
        let index = self.index;
        self.index += 1;
        let item = seed.deserialize(FromValue::new(item, self.depth));
        item.map(Some).map_err(|fault| fault.in_item(index))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

fn visit_entries<'de, V: Visitor<'de>>(
    entries: impl ExactSizeIterator<Item = (Value, Value)>,
    depth: usize,
    visitor: V,
) -> Result<V::Value, Fault> {
    visitor.visit_map(Entries { entries, depth, key: String::new(), value: None })
}

struct Entries<I> {
    entries: I,
    depth: usize,
    /// The key of `value`, for messages.
    key: String,
    value: Option<Value>,
}

impl<'de, I: ExactSizeIterator<Item = (Value, Value)>> MapAccess<'de> for Entries<I> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        let Some((key, value)) = self.entries.next() else {
            return Ok(None);
        };
        self.key.clear();
        match &key {
            Value::Str(text) => self.key.push_str(text),
            Value::Int(number) => self.key = number.to_string(),
            other => self.key.push_str(other.kind()),
        }
        self.value = Some(value);
        let key = seed.deserialize(Key(FromValue::new(key, self.depth)));
        key.map(Some).map_err(|fault| fault.in_field(&self.key))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Fault> {
        let value =
            self.value.take().ok_or_else(|| Fault::new("a value was read before its key"))?;
        let value = seed.deserialize(FromValue::new(value, self.depth));
        value.map_err(|fault| fault.in_field(&self.key))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}

/// A key of a map. In JSON a number can only be a key as text, so text that is asked to be a number is parsed.
pub(crate) struct Key(pub(crate) FromValue);

macro_rules! parse_text {
    ($($method:ident $visit:ident $type:ty),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            match self.0.value.as_str().and_then(|text| text.parse::<$type>().ok()) {
                Some(parsed) => visitor.$visit(parsed),
                None => self.0.visit(visitor),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Key {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.0.visit(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.0.deserialize_option(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        if name == mark::VALUE {
            self.0.hand_over(visitor)
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    parse_text! {
        deserialize_bool visit_bool bool, deserialize_i8 visit_i64 i64, deserialize_i16 visit_i64 i64,
        deserialize_i32 visit_i64 i64, deserialize_i64 visit_i64 i64, deserialize_u8 visit_u64 u64,
        deserialize_u16 visit_u64 u64, deserialize_u32 visit_u64 u64, deserialize_u64 visit_u64 u64
    }

    forward_to_deserialize_any! {
        i128 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map
        struct identifier ignored_any
    }
}

impl FromValue {
    /// The class and the fields, if this is an object.
    fn object(self) -> Result<Result<Fields, Self>, Fault> {
        let class = match &self.value {
            Value::Ext(ext) => match &**ext {
                Ext::Foreign(foreign) if decode::is_object(foreign.code()) => foreign.class(),
                _ => None,
            },
            _ => None,
        };
        let Some((module, name)) = class else { return Ok(Err(self)) };
        let class = [module.to_owned(), name.to_owned()];
        let depth = self.depth.checked_sub(1).ok_or_else(too_deep)?;
        let Value::Ext(ext) = self.value else { return Ok(Err(self)) };
        Ok(Ok(Fields { class, fields: Self::new(ext.into_data(depth)?, depth) }))
    }
}

/// The class of an object, and its fields.
struct Fields {
    class: [String; 2],
    fields: FromValue,
}

impl<'de> EnumAccess<'de> for Fields {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self), Fault> {
        let class = self.class.clone().into_iter().map(String::into_deserializer);
        Ok((seed.deserialize(SeqDeserializer::new(class))?, self))
    }
}

impl<'de> VariantAccess<'de> for Fields {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        <()>::deserialize(self.fields)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        seed.deserialize(self.fields)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.fields.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.fields.visit(visitor)
    }
}

/// A variant and what it holds.
struct Tagged {
    tag: String,
    content: FromValue,
}

impl<'de> EnumAccess<'de> for Tagged {
    type Error = Fault;
    type Variant = Content;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Content), Fault> {
        let variant = seed.deserialize(self.tag.as_str().into_deserializer())?;
        Ok((variant, Content { tag: self.tag, content: self.content }))
    }
}

struct Content {
    tag: String,
    content: FromValue,
}

impl Content {
    fn within<T>(self, read: impl FnOnce(FromValue) -> Result<T, Fault>) -> Result<T, Fault> {
        read(self.content).map_err(|fault| fault.in_field(self.tag))
    }
}

impl<'de> VariantAccess<'de> for Content {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        self.within(<()>::deserialize)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        self.within(|content| seed.deserialize(content))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.within(|content| content.deserialize_seq(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.within(|content| content.visit(visitor))
    }
}
