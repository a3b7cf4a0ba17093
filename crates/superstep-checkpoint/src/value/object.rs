//! Objects of classes that LangGraph stores by name.
//!
//! LangGraph stores a pydantic model as module and name of its class and a map of its fields. Your
//! own type that serializes itself with [`serialize`] is stored in that form, so that LangGraph
//! finds an object of that class; other formats, JSON among them, see the fields alone. With
//! [`deserialize`] a type learns the class of the object it is read from.
//!
//! ```
//! use serde::{Serialize, Serializer};
//! use superstep_checkpoint::{Value, object, to_value};
//!
//! struct Point {
//!     x: i64,
//!     y: i64,
//! }
//!
//! impl Serialize for Point {
//!     fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
//!         let fields = Value::from_iter([("x", self.x), ("y", self.y)]);
//!         object::serialize("shapes.models", "Point", &fields, serializer)
//!     }
//! }
//!
//! let stored = to_value(&Point { x: 1, y: 2 })?;
//! assert_eq!(stored.get("y"), Some(&Value::from(2)));
//! assert_eq!(stored.to_string(), r#"{"x":1,"y":2}"#);
//! assert_eq!(serde_json::to_string(&Point { x: 1, y: 2 })?, r#"{"x":1,"y":2}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, EnumAccess, SeqAccess, VariantAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde::ser::{Serialize, SerializeTuple, Serializer};

use super::Mark;
use super::mark::OBJECT;

/// Serializes `fields`, which must serialize as a map or struct, as an object of this class.
///
/// # Errors
/// Those of `fields`.
pub fn serialize<T: Serialize + ?Sized, S: Serializer>(
    module: &str,
    name: &str,
    fields: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_newtype_struct(Mark::Object.name(), &Object { module, name, fields })
}

/// Deserializes what may be an object.
///
/// If it is one and is stored with its class, `visitor.visit_enum` is called: the variant is a [`Class`] and its content, read
/// with `struct_variant`, the fields. Otherwise `visitor.visit_newtype_struct` is called, as for any newtype struct.
///
/// # Errors
/// Those of `visitor`.
pub fn deserialize<'de, D: Deserializer<'de>, V: Visitor<'de>>(
    deserializer: D,
    visitor: V,
) -> Result<V::Value, D::Error> {
    deserializer.deserialize_newtype_struct(OBJECT, visitor)
}

/// The class of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Class<'de> {
    /// The module that defines it.
    pub module: Cow<'de, str>,
    /// Its name.
    pub name: Cow<'de, str>,
}

struct Object<'a, T: ?Sized> {
    module: &'a str,
    name: &'a str,
    fields: &'a T,
}

impl<T: Serialize + ?Sized> Serialize for Object<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return self.fields.serialize(serializer);
        }
        let mut parts = serializer.serialize_tuple(4)?;
        parts.serialize_element(self.module)?;
        parts.serialize_element(self.name)?;
        parts.serialize_element(self.fields)?;
        parts.serialize_element("model_validate_json")?;
        parts.end()
    }
}

impl<'de> Deserialize<'de> for Class<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_tuple(2, ClassVisitor)
    }
}

struct ClassVisitor;

impl<'de> Visitor<'de> for ClassVisitor {
    type Value = Class<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("module and name of a class")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Class<'de>, A::Error> {
        let mut part = |at| {
            let part: Option<Text<'de>> = parts.next_element()?;
            part.map(|text| text.0).ok_or_else(|| de::Error::invalid_length(at, &self))
        };
        Ok(Class { module: part(0)?, name: part(1)? })
    }
}

/// Text that is borrowed where it can be.
// Read as a text and not as a struct with one field: serde's own deserializers of texts give the latter nothing.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Deserializes from the object that a visitor was called with: for a type that takes an object or something else, and
/// hands the object on.
///
/// A type that does not ask for the class is given the fields.
#[derive(Debug)]
pub struct ObjectDeserializer<A>(pub A);

impl<'de, A: EnumAccess<'de>> Deserializer<'de> for ObjectDeserializer<A> {
    type Error = A::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, A::Error> {
        let (_, fields) = self.0.variant::<Class<'de>>()?;
        fields.struct_variant(&[], visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        if name == OBJECT {
            return visitor.visit_enum(self.0);
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, A::Error> {
        visitor.visit_some(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
