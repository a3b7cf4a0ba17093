//! Metadata as the JSON text LangGraph writes.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value as Json;
use serde_json::ser::Formatter;

use crate::{Error, Map, Metadata, Source, Value};

const COUNTERS: &str = "counters_since_delta_snapshot";

/// The metadata as a map, in the order of keys LangGraph writes.
///
/// NUL is taken out of texts at the outermost level, which not every database can store; floats
/// that are not a number are null, which not every reader of JSON knows.
pub fn metadata_to_map(metadata: &Metadata) -> Map {
    let mut map = Map::new();
    let stub = metadata.source == Source::Stub;
    if !stub {
        map.insert("source".into(), metadata.source.as_str().into());
    }
    map.insert("step".into(), metadata.step.into());
    if !stub || !metadata.parents.is_empty() {
        let parents = metadata.parents.iter().map(|(ns, id)| (ns.clone(), id.to_string().into()));
        map.insert("parents".into(), Value::Map(parents.collect()));
    }
    if !metadata.delta_counters.is_empty() {
        let pair = |(updates, steps): (u64, u64)| vec![Value::from(updates), Value::from(steps)];
        let counters = metadata
            .delta_counters
            .iter()
            .map(|(name, counts)| (name.to_string(), pair(*counts).into()));
        map.insert(COUNTERS.into(), Value::Map(counters.collect()));
    }
    for (key, value) in &metadata.extra {
        let value = match value {
            Value::Str(text) if text.contains('\0') => text.replace('\0', "").into(),
            Value::Float(number) if !number.is_finite() => Value::Null,
            other => other.clone(),
        };
        map.entry(key.clone()).or_insert(value);
    }
    map
}

/// The metadata as JSON text; see [`metadata_to_map`].
///
/// # Errors
/// Never, for metadata that was read; JSON has a form for every value.
pub fn metadata_to_json(metadata: &Metadata) -> Result<String, Error> {
    let mut out = Vec::new();
    write(&Value::Map(metadata_to_map(metadata)), &mut out)?;
    String::from_utf8(out).map_err(Error::codec)
}

/// Maps keep their order, which a JSON value of the JSON library would not.
fn write(value: &Value, out: &mut Vec<u8>) -> Result<(), Error> {
    match value {
        Value::Map(map) => {
            out.push(b'{');
            for (nth, (key, value)) in map.iter().enumerate() {
                out.extend_from_slice(if nth == 0 { b"" } else { b", " });
                spaced(&key.as_str(), out)?;
                out.extend_from_slice(b": ");
                write(value, out)?;
            }
            out.push(b'}');
            Ok(())
        }
        Value::List(items) => {
            out.push(b'[');
            for (nth, item) in items.iter().enumerate() {
                out.extend_from_slice(if nth == 0 { b"" } else { b", " });
                write(item, out)?;
            }
            out.push(b']');
            Ok(())
        }
        other => spaced(&Json::from(other.clone()), out),
    }
}

fn spaced<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), Error> {
    let mut serializer = serde_json::Serializer::with_formatter(out, Spaced);
    value.serialize(&mut serializer).map_err(Error::codec)
}

/// A space after commas and colons.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        w: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { w.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        w: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { w.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, w: &mut W) -> io::Result<()> {
        w.write_all(b": ")
    }
}

/// Reads metadata. Keys that are not known are kept in [`Metadata::extra`].
///
/// # Errors
/// The bytes are no JSON map, `step` is missing, or something is not what it should be.
pub fn metadata_from_json(bytes: &[u8]) -> Result<Metadata, Error> {
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| Error::codec(format_args!("its metadata is not JSON: {error}")))?;
    let Value::Map(mut map) = value else {
        return Err(Error::codec(format_args!("its metadata is {}, not a map", value.kind())));
    };
    let source = match map.shift_remove("source") {
        None => Some(Source::Stub),
        Some(source) => source.as_str().and_then(Source::from_word),
    };
    let step = map.shift_remove("step").and_then(|step| step.as_i64());
    Ok(Metadata {
        source: source.ok_or_else(|| fault("source"))?,
        step: step.ok_or_else(|| fault("step"))?,
        parents: parents(map.shift_remove("parents"))?,
        delta_counters: counters(map.shift_remove(COUNTERS))?,
        extra: map.into_iter().collect(),
    })
}

fn fault(key: &str) -> Error {
    Error::codec(format_args!("`{key}` of its metadata is missing or not what it should be"))
}

fn parents(value: Option<Value>) -> Result<BTreeMap<String, crate::CheckpointId>, Error> {
    let entries = match value {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Map(map)) => map.into_iter(),
        Some(_) => return Err(fault("parents")),
    };
    entries
        .map(|(ns, id)| Ok((ns, id.as_str().ok_or_else(|| fault("parents"))?.parse()?)))
        .collect()
}

fn counters(value: Option<Value>) -> Result<BTreeMap<Arc<str>, (u64, u64)>, Error> {
    let entries = match value {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Map(map)) => map.into_iter(),
        Some(_) => return Err(fault(COUNTERS)),
    };
    let count = |value: &Value| value.as_i64().and_then(|count| u64::try_from(count).ok());
    entries
        .map(|(name, pair)| match pair.as_list() {
            Some([updates, steps]) => Ok((
                name.into(),
                (
                    count(updates).ok_or_else(|| fault(COUNTERS))?,
                    count(steps).ok_or_else(|| fault(COUNTERS))?,
                ),
            )),
            _ => Err(fault(COUNTERS)),
        })
        .collect()
}
