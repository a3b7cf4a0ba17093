//! The JSON Schema of a type, as far as serde tells: what `Deserialize` asks for when it is run against a probe.
//!
//! A type need not implement anything for this. Names, kinds, lists, maps, options and the fields of structs are found; what
//! a type does with the values it is given is not. Where nothing can be said, the schema is `{}`, which allows everything.

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, Visitor};
use serde_json::{Map, Value as Json, json};

/// Types may contain themselves; below this depth everything is allowed.
const DEPTH_MAX: usize = 8;
/// The maximum number of reads of a type: one for each field that is found.
const READS_MAX: usize = 256;

/// The schema of what `T` is read from.
pub(crate) fn describe<T: DeserializeOwned>() -> Json {
    let probe = Probe::default();
    let mut schema = json!({});
    for _ in 0..READS_MAX {
        probe.complete.set(true);
        // What comes out does not matter, only what was asked for.
        let _ = T::deserialize(Reader { probe: &probe, found: &mut schema, depth: 0 });
        if probe.complete.get() {
            break;
        }
    }
    schema
}

/// The state between two reads of a type.
#[derive(Default)]
struct Probe {
    /// Nothing was left out in this read.
    complete: Cell<bool>,
    /// The place of the value that is read.
    place: RefCell<Vec<String>>,
    /// Fields that were read, by their place.
    done: RefCell<std::collections::HashSet<Vec<String>>>,
}

/// Reads one value, and notes in `found` what was asked for.
struct Reader<'a> {
    probe: &'a Probe,
    found: &'a mut Json,
    depth: usize,
}

/// There is nothing to read.
#[derive(Debug)]
struct Nothing;

impl fmt::Display for Nothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a schema is made, and nothing is read")
    }
}

impl std::error::Error for Nothing {}

impl de::Error for Nothing {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

impl<'a> Reader<'a> {
    fn note(&mut self, schema: Json) {
        if self.found.as_object().is_none_or(Map::is_empty) {
            *self.found = schema;
        }
    }

    /// The value under `key` in what was found so far.
    fn inside(&mut self, key: &str) -> Reader<'_> {
        let found = &mut self.found[key];
        if found.is_null() {
            *found = json!({});
        }
        Reader { probe: self.probe, found, depth: self.depth + 1 }
    }

    fn too_deep(&self) -> bool {
        self.depth >= DEPTH_MAX
    }
}

macro_rules! plain {
    ($($method:ident: $visit:ident($($value:expr)?), $schema:tt;)*) => {$(
        fn $method<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Nothing> {
            self.note(json!($schema));
            visitor.$visit($($value)?)
        }
    )*};
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Nothing;

    plain! {
        deserialize_bool: visit_bool(true), { "type": "boolean" };
        deserialize_i8: visit_i8(1), { "type": "integer" };
        deserialize_i16: visit_i16(1), { "type": "integer" };
        deserialize_i32: visit_i32(1), { "type": "integer" };
        deserialize_i64: visit_i64(1), { "type": "integer" };
        deserialize_i128: visit_i128(1), { "type": "integer" };
        deserialize_u8: visit_u8(1), { "type": "integer", "minimum": 0 };
        deserialize_u16: visit_u16(1), { "type": "integer", "minimum": 0 };
        deserialize_u32: visit_u32(1), { "type": "integer", "minimum": 0 };
        deserialize_u64: visit_u64(1), { "type": "integer", "minimum": 0 };
        deserialize_u128: visit_u128(1), { "type": "integer", "minimum": 0 };
        deserialize_f32: visit_f32(1.0), { "type": "number" };
        deserialize_f64: visit_f64(1.0), { "type": "number" };
        deserialize_char: visit_char('a'), { "type": "string" };
        deserialize_str: visit_str(""), { "type": "string" };
        deserialize_string: visit_str(""), { "type": "string" };
        deserialize_unit: visit_unit(), { "type": "null" };
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Nothing> {
        Err(Nothing)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Nothing> {
        visitor.visit_unit()
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Nothing> {
        Err(Nothing)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Nothing> {
        Err(Nothing)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Nothing> {
        visitor.visit_str("")
    }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Nothing> {
        if self.too_deep() {
            return visitor.visit_none();
        }
        self.note(json!({ "anyOf": [{}, { "type": "null" }] }));
        let found = &mut self.found["anyOf"][0];
        visitor.visit_some(Reader { probe: self.probe, found, depth: self.depth + 1 })
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Nothing> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Nothing> {
        if self.too_deep() {
            return Err(Nothing);
        }
        visitor.visit_newtype_struct(Reader { depth: self.depth + 1, ..self })
    }

    fn deserialize_seq<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Nothing> {
        self.note(json!({ "type": "array", "items": {} }));
        if self.too_deep() {
            return Err(Nothing);
        }
        visitor.visit_seq(One(Some(self.inside("items"))))
    }

    fn deserialize_tuple<V: Visitor<'de>>(mut self, len: usize, _: V) -> Result<V::Value, Nothing> {
        self.note(json!({ "type": "array", "minItems": len, "maxItems": len }));
        Err(Nothing)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Nothing> {
        self.deserialize_tuple(len, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Nothing> {
        self.note(json!({ "type": "object", "additionalProperties": {} }));
        if self.too_deep() {
            return Err(Nothing);
        }
        visitor.visit_map(OneEntry { key: Some(""), value: self.inside("additionalProperties") })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Nothing> {
        let properties: Map<_, _> =
            fields.iter().map(|field| ((*field).to_owned(), json!({}))).collect();
        self.note(json!({ "type": "object", "title": name, "properties": properties }));
        if self.too_deep() {
            return Err(Nothing);
        }
        // One field is read at a time, because a value that a field does not take ends the read.
        let probe = self.probe;
        let here = probe.place.borrow().clone();
        let at = |field: &str| [here.as_slice(), &[field.to_owned()]].concat();
        let open = |field: &&&str| !probe.done.borrow().contains(&at(field));
        let Some(field) = fields.iter().find(open) else { return Err(Nothing) };
        probe.place.replace(at(field));
        let whole = probe.complete.replace(true);
        let mut properties = self.inside("properties");
        let read =
            visitor.visit_map(OneEntry { key: Some(field), value: properties.inside(field) });
        if probe.complete.get() {
            probe.done.borrow_mut().insert(at(field));
        }
        let left = fields.iter().any(|field| open(&field));
        probe.complete.set(whole && !left);
        probe.place.replace(here);
        read
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Nothing> {
        // Whether a variant is a word or an object is not known before it is read.
        Err(Nothing)
    }
}

/// A list of one item.
struct One<'a>(Option<Reader<'a>>);

impl<'de> de::SeqAccess<'de> for One<'_> {
    type Error = Nothing;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Nothing> {
        self.0.take().map(|reader| seed.deserialize(reader)).transpose()
    }
}

/// A map of one entry.
struct OneEntry<'a> {
    key: Option<&'a str>,
    value: Reader<'a>,
}

impl<'de> de::MapAccess<'de> for OneEntry<'_> {
    type Error = Nothing;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Nothing> {
        let key = self.key.take();
        key.map(|key| seed.deserialize(StrDeserializer::<Nothing>::new(key))).transpose()
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Nothing> {
        let Reader { probe, found, depth } = &mut self.value;
        seed.deserialize(Reader { probe, found, depth: *depth })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[test]
    fn plain_types_lists_maps_and_options() {
        assert_eq!(describe::<String>(), json!({ "type": "string" }));
        assert_eq!(describe::<u32>(), json!({ "type": "integer", "minimum": 0 }));
        let lists = json!({ "type": "array", "items": { "type": "array", "items": { "type": "boolean" } } });
        assert_eq!(describe::<Vec<Vec<bool>>>(), lists);
        let map = json!({ "type": "object", "additionalProperties": { "type": "number" } });
        assert_eq!(describe::<BTreeMap<String, f64>>(), map);
        let maybe = json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] });
        assert_eq!(describe::<Option<String>>(), maybe);
        assert_eq!(describe::<Json>(), json!({}), "it takes everything");
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its shape is read")]
    struct Outer {
        port: std::num::NonZeroU16,
        /// Does not take the empty text it is offered, which must not hide the fields after it.
        address: std::net::IpAddr,
        inner: Nested,
        last: bool,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its shape is read")]
    struct Nested {
        names: Vec<String>,
        again: Option<Box<Nested>>,
        count: i64,
    }

    #[test]
    fn every_field_of_a_struct_is_found_and_a_type_inside_itself_ends() {
        let schema = describe::<Outer>();
        let property =
            |path: &[&str]| path.iter().fold(&schema, |schema, field| &schema["properties"][field]);
        assert_eq!(property(&["last"])["type"], "boolean", "{schema}");
        assert_eq!(property(&["inner", "count"])["type"], "integer", "{schema}");
        assert_eq!(property(&["inner", "names"])["items"]["type"], "string", "{schema}");
        assert_eq!(property(&["inner", "again"])["anyOf"][0]["title"], "Nested", "{schema}");
    }
}
