//! Stored values as readable JSON.

use serde_json::{Map, Value as Json, json};
use superstep_checkpoint::{Blob, Ext, Interrupt, Tag, Value};

use crate::out::brief;
use crate::time;

/// The depth limit for decoding types that only Python knows.
const DEPTH_MAX: usize = 64;

/// The value in a blob, or why it cannot be read.
pub(crate) fn blob(blob: &Blob) -> Json {
    match blob.to_value() {
        Ok(value) => readable(&value),
        Err(error) => {
            json!({ "unreadable": error.to_string(), "stored as": blob.tag().as_str(), "bytes": blob.bytes().len() })
        }
    }
}

/// A value. What is not JSON is shown as an object that says what it is: nothing is made of it and
/// nothing is run.
pub(crate) fn readable(value: &Value) -> Json {
    show(value, DEPTH_MAX)
}

fn show(value: &Value, depth: usize) -> Json {
    let Some(depth) = depth.checked_sub(1) else { return "…".into() };
    let list = |items: &mut dyn Iterator<Item = &Value>| -> Json {
        items.map(|item| show(item, depth)).collect()
    };
    match value {
        Value::Bytes(bytes) => json!({ "type": "bytes", "base64": crate::base64::encode(bytes) }),
        Value::List(items) => list(&mut items.iter()),
        Value::Set(items) => {
            let mut items: Vec<_> = items.iter().collect();
            items.sort();
            json!({ "type": "set", "items": list(&mut items.into_iter()) })
        }
        Value::Map(map) => {
            let entries = map.iter().map(|(key, value)| (key.clone(), show(value, depth)));
            Json::Object(entries.collect())
        }
        Value::Pairs(pairs) => {
            let key = |key: &Value| match key {
                Value::Str(text) => text.clone(),
                other => show(other, depth).to_string(),
            };
            let entries = pairs.iter().map(|(name, value)| (key(name), show(value, depth)));
            Json::Object(entries.collect::<Map<_, _>>())
        }
        Value::Ext(ext) => match &**ext {
            Ext::Send(packet) => {
                json!({ "type": "dispatch", "node": packet.node, "arg": show(&packet.arg, depth) })
            }
            Ext::Interrupt(asked) => question(asked),
            Ext::Overwrite(value) => json!({ "type": "overwrite", "value": show(value, depth) }),
            Ext::Snapshot(value) => show(value, depth),
            Ext::Foreign(value) => foreign(value.code(), value.data(), depth),
            _ => Json::from(value.clone()),
        },
        plain => Json::from(plain.clone()),
    }
}

/// A class only Python knows: its name, and what it was made of.
fn foreign(code: i8, data: &[u8], depth: usize) -> Json {
    let inside = Blob::new(Tag::Msgpack, data).to_value();
    match inside {
        Ok(Value::List(parts)) => match &parts[..] {
            [Value::Str(module), Value::Str(name), payload, ..] => {
                json!({ "type": format!("{module}.{name}"), "value": show(payload, depth) })
            }
            _ => {
                json!({ "type": format!("extension {code}"), "value": show(&Value::List(parts), depth) })
            }
        },
        Ok(other) => json!({ "type": format!("extension {code}"), "value": show(&other, depth) }),
        Err(_) => {
            json!({ "type": format!("extension {code}"), "base64": crate::base64::encode(data) })
        }
    }
}

/// An open question.
pub(crate) fn question(asked: &Interrupt) -> Json {
    let mut shown = json!({ "id": asked.id.as_str(), "value": readable(&asked.value) });
    if let Some(schema) = &asked.response_schema {
        shown["response_schema"] = readable(schema);
    }
    if let Some(due) = asked.due() {
        shown["due"] = time::iso(due).into();
        shown["sleeps"] = asked.is_sleep().into();
    }
    shown
}

/// The schema of the answer, without what says when the question is due.
pub(crate) fn schema(asked: &Interrupt) -> Option<Json> {
    let mut schema = readable(asked.response_schema.as_ref()?);
    if let (Some(_), Some(fields)) = (asked.due(), schema.as_object_mut()) {
        fields.retain(|name, _| name != "x-superstep" && name != "default");
        if fields.is_empty() {
            return None;
        }
    }
    Some(schema)
}

/// What happens at the due time of a question, if it has one.
pub(crate) fn due(asked: &Interrupt) -> Option<String> {
    let due = time::iso(asked.due()?);
    Some(match asked.due_answer() {
        Some(default) if !asked.is_sleep() => {
            format!("due {due}, then: {}", brief(&readable(&default).to_string(), 200))
        }
        _ => format!("sleeps until {due}"),
    })
}

/// Text as it is, and everything else as JSON: what fits on a line.
pub(crate) fn plain(json: &Json) -> String {
    match json {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}
