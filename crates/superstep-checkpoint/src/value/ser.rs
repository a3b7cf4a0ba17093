use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant,
};
use serde::{Serialize, Serializer};

use super::{Fault, Map, Mark, Value};
use crate::{Error, blob};

/// Converts any `Serialize` value.
///
/// Structs become maps in the order of their fields, enums take serde's externally tagged form,
/// nothing and unit become null, and maps with keys that are not text become [`Value::Pairs`]. A
/// `Value` comes out as it went in, also from inside a struct.
///
/// # Errors
/// The type refuses, or a whole number has more than 64 bits.
pub fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Value, Error> {
    Ok(value.serialize(ToValue::default())?)
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(yes) => serializer.serialize_bool(*yes),
            Self::Int(number) => serializer.serialize_i64(*number),
            Self::UInt(number) => serializer.serialize_u64(*number),
            Self::Float(number) => serializer.serialize_f64(*number),
            Self::Str(text) => serializer.serialize_str(text),
            Self::Bytes(bytes) => serializer.serialize_bytes(bytes),
            Self::List(items) => serializer.collect_seq(items),
            Self::Map(map) => serializer.collect_map(map),
            Self::Pairs(pairs) => {
                serializer.collect_map(pairs.iter().map(|(key, value)| (key, value)))
            }
            Self::Set(items) => serializer.serialize_newtype_struct(Mark::Set.name(), items),
            Self::Ext(ext) => ext.serialize(serializer),
        }
    }
}

/// Bytes that serialize as bytes and not as a sequence of numbers.
pub(super) struct Raw<'a>(pub(super) &'a [u8]);

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

/// Serializes into a [`Value`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ToValue {
    /// Set while a marked type is asked for its stored form; holds for that type alone, not for what it contains.
    stored_form: bool,
}

impl ToValue {
    pub(crate) const STORED_FORM: Self = Self { stored_form: true };
}

impl Serializer for ToValue {
    type Ok = Value;
    type Error = Fault;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Items;
    type SerializeMap = Entries;
    type SerializeStruct = Fields;
    type SerializeStructVariant = Fields;

    fn is_human_readable(&self) -> bool {
        !self.stored_form
    }

    fn serialize_bool(self, v: bool) -> Result<Value, Fault> {
        Ok(v.into())
    }

    fn serialize_i8(self, v: i8) -> Result<Value, Fault> {
        Ok(v.into())
    }

    fn serialize_i16(self, v: i16) -> Result<Value, Fault> {
        Ok(v.into())
    }

    fn serialize_i32(self, v: i32) -> Result<Value, Fault> {
        Ok(v.into())
    }

    fn serialize_i64(self, v: i64) -> Result<Value, Fault> {
        Ok(v.into())
    }

    fn serialize_i128(self, v: i128) -> Result<Value, Fault> {
        if let Ok(number) = i64::try_from(v) {
            return Ok(number.into());
        }
        u64::try_from(v).map(Value::from).map_err(|_| too_great(v))
    }

    fn serialize_u8(self, v: u8) -> Result<Value, Fault> {
        Ok(v.into())
    }

    fn serialize_u16(self, v: u16) -> Result<Value, Fault> {
        Ok(v.into())
    }

    fn serialize_u32(self, v: u32) -> Result<Value, Fault> {
        Ok(v.into())
    }

    fn serialize_u64(self, v: u64) -> Result<Value, Fault> {
        Ok(v.into())
    }

    fn serialize_u128(self, v: u128) -> Result<Value, Fault> {
        u64::try_from(v).map(Value::from).map_err(|_| too_great(v))
    }

    fn serialize_f32(self, v: f32) -> Result<Value, Fault> {
        Ok(v.into())
    }

    fn serialize_f64(self, v: f64) -> Result<Value, Fault> {
        Ok(v.into())
    }

    fn serialize_char(self, v: char) -> Result<Value, Fault> {
        Ok(v.into())
    }

    fn serialize_str(self, v: &str) -> Result<Value, Fault> {
        Ok(v.into())
    }

    fn serialize_bytes(self, v: &[u8]) -> Result<Value, Fault> {
        Ok(Value::Bytes(v.to_vec()))
    }

    fn serialize_none(self) -> Result<Value, Fault> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, Fault> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, Fault> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, Fault> {
        Ok(Value::Null)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value, Fault> {
        Ok(variant.into())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Value, Fault> {
        let Some(mark) = Mark::of(name) else {
            return value.serialize(self);
        };
        if mark == Mark::Object {
            return blob::object(value);
        }
        let payload = value.serialize(Self { stored_form: mark.has_stored_form() })?;
        mark.restore(payload).ok_or_else(|| Fault::new(format_args!("{mark:?} has another form")))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, Fault> {
        let value = value.serialize(Self::default()).map_err(|fault| fault.in_field(variant))?;
        Ok(tagged(variant, value))
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Items, Fault> {
        Ok(Items::new(len, None))
    }

    fn serialize_tuple(self, len: usize) -> Result<Items, Fault> {
        Ok(Items::new(Some(len), None))
    }

    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<Items, Fault> {
        Ok(Items::new(Some(len), None))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Items, Fault> {
        Ok(Items::new(Some(len), Some(variant)))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Entries, Fault> {
        Ok(Entries { map: Map::new(), pairs: Vec::new(), key: None })
    }

    fn serialize_struct(self, _: &'static str, len: usize) -> Result<Fields, Fault> {
        Ok(Fields { map: Map::with_capacity(len.min(CAPACITY_MAX)), variant: None })
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Fields, Fault> {
        Ok(Fields { map: Map::with_capacity(len.min(CAPACITY_MAX)), variant: Some(variant) })
    }
}

/// A length that someone only claims reserves no more than this.
const CAPACITY_MAX: usize = 4096;

fn too_great(number: impl std::fmt::Display) -> Fault {
    Fault::new(format_args!("whole number {number} does not fit into 64 bits"))
}

fn tagged(variant: &'static str, value: Value) -> Value {
    std::iter::once((variant, value)).collect()
}

/// A sequence on its way to a value.
#[derive(Debug)]
pub(crate) struct Items {
    items: Vec<Value>,
    variant: Option<&'static str>,
}

impl Items {
    fn new(len: Option<usize>, variant: Option<&'static str>) -> Self {
        Self { items: Vec::with_capacity(len.unwrap_or(0).min(CAPACITY_MAX)), variant }
    }

    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        let item = value.serialize(ToValue::default());
        self.items.push(item.map_err(|fault| fault.in_item(self.items.len()))?);
        Ok(())
    }

    fn finish(self) -> Value {
        let list = Value::List(self.items);
        match self.variant {
            Some(variant) => tagged(variant, list),
            None => list,
        }
    }
}

macro_rules! push_items {
    ($($trait:ident :: $method:ident),*) => {$(
        impl $trait for Items {
            type Ok = Value;
            type Error = Fault;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
                self.push(value)
            }

            fn end(self) -> Result<Value, Fault> {
                Ok(self.finish())
            }
        }
    )*};
}

push_items! {
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
}

/// A map on its way to a value; `pairs` is in use from the first key that is not text.
#[derive(Debug)]
pub(crate) struct Entries {
    map: Map,
    pairs: Vec<(Value, Value)>,
    key: Option<Value>,
}

impl SerializeMap for Entries {
    type Ok = Value;
    type Error = Fault;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Fault> {
        self.key = Some(key.serialize(ToValue::default())?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        let key = self.key.take().ok_or_else(|| Fault::new("a map gave a value before its key"))?;
        let value = value.serialize(ToValue::default());
        let value = value.map_err(|fault| match &key {
            Value::Str(key) => fault.in_field(key),
            other => fault.in_field(other.to_string()),
        })?;
        match key {
            Value::Str(key) if self.pairs.is_empty() => {
                self.map.insert(key, value);
            }
            key => {
                let texts = std::mem::take(&mut self.map).into_iter();
                self.pairs.extend(texts.map(|(key, value)| (Value::Str(key), value)));
                self.pairs.push((key, value));
            }
        }
        Ok(())
    }

    fn end(self) -> Result<Value, Fault> {
        Ok(if self.pairs.is_empty() { Value::Map(self.map) } else { Value::Pairs(self.pairs) })
    }
}

/// A struct on its way to a value.
#[derive(Debug)]
pub(crate) struct Fields {
    map: Map,
    variant: Option<&'static str>,
}

macro_rules! insert_fields {
    ($($trait:ident),*) => {$(
        impl $trait for Fields {
            type Ok = Value;
            type Error = Fault;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Fault> {
                let value = value.serialize(ToValue::default());
                self.map.insert(key.to_owned(), value.map_err(|fault| fault.in_field(key))?);
                Ok(())
            }

            fn end(self) -> Result<Value, Fault> {
                let map = Value::Map(self.map);
                Ok(match self.variant {
                    Some(variant) => tagged(variant, map),
                    None => map,
                })
            }
        }
    )*};
}

insert_fields!(SerializeStruct, SerializeStructVariant);
