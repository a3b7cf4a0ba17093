use std::fmt;

use serde_json::Value as Json;

use super::{Ext, Value, foreign_data};
use crate::Limits;

impl From<Json> for Value {
    fn from(json: Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(yes) => Self::Bool(yes),
            Json::Number(number) => number
                .as_i64()
                .map(Self::Int)
                .or_else(|| number.as_u64().map(Self::UInt))
                .or_else(|| number.as_f64().map(Self::Float))
                .unwrap_or_else(|| Self::Str(number.to_string())),
            Json::String(text) => Self::Str(text),
            Json::Array(items) => items.into(),
            Json::Object(map) => map.into_iter().collect(),
        }
    }
}

/// Converts the value to JSON.
///
/// Sets and bytes become arrays, keys that are not text become text, floats that are not a number
/// become null. A dispatch becomes `{"node", "arg"}`, a question `{"value", "id"}`, an overwrite
/// `{"__overwrite__": value}`, a snapshot its value, and a foreign type the data it was made of.
/// The original types are lost.
impl From<Value> for Json {
    fn from(value: Value) -> Self {
        json(value, Limits::DEFAULT.depth)
    }
}

/// `depth` is how deep foreign types may still be opened; they nest without the decoder having looked.
fn json(value: Value, depth: usize) -> Json {
    let depth = depth.saturating_sub(1);
    match value {
        Value::Null => Json::Null,
        Value::Bool(yes) => yes.into(),
        Value::Int(number) => number.into(),
        Value::UInt(number) => number.into(),
        Value::Float(number) => number.into(),
        Value::Str(text) => text.into(),
        Value::Bytes(bytes) => bytes.into(),
        Value::List(items) => items.into_iter().map(|item| json(item, depth)).collect(),
        Value::Set(items) => items.into_iter().map(|item| json(item, depth)).collect(),
        Value::Map(map) => map.into_iter().map(|(key, value)| (key, json(value, depth))).collect(),
        Value::Pairs(pairs) => pairs
            .into_iter()
            .map(|(key, value)| (key_text(key, depth), json(value, depth)))
            .collect(),
        Value::Ext(ext) => ext_json(*ext, depth),
    }
}

fn key_text(key: Value, depth: usize) -> String {
    match key {
        Value::Str(text) => text,
        other => json(other, depth).to_string(),
    }
}

fn ext_json(ext: Ext, depth: usize) -> Json {
    match ext {
        Ext::Overwrite(value) => {
            Json::Object([("__overwrite__".to_owned(), json(value, depth))].into_iter().collect())
        }
        Ext::Foreign(foreign) => foreign_json(foreign.code(), foreign.data(), depth),
        known => known.into_data(depth).map_or(Json::Null, |data| json(data, depth)),
    }
}

fn foreign_json(code: i8, data: &[u8], depth: usize) -> Json {
    match foreign_data(code, data, depth) {
        Ok(payload) => json(payload, depth),
        Err(_) => data.into(),
    }
}

/// The JSON form of a foreign type.
pub(super) fn foreign(code: i8, data: &[u8]) -> Json {
    foreign_json(code, data, Limits::DEFAULT.depth.saturating_sub(1))
}

/// Compact JSON, as `serde_json::Value::from` makes it.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Json::from(self.clone()).fmt(f)
    }
}
