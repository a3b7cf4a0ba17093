//! A checkpoint as one piece of MessagePack: a map of its fields, values and all.
//!
//! Values go in and come out as the bytes they are. They are neither decoded nor encoded again, so storing a checkpoint
//! costs a copy of its values and foreign types come back as they went in.

use std::sync::Arc;

use rmp::encode as msgpack;

use crate::blob::decode::{Head, Reader};
use crate::value::Fault;
use crate::{Blob, Checkpoint, Error, Limits, SharedMap, Tag, Value, Version};

/// The whole checkpoint, in the order of fields LangGraph writes.
///
/// A value stored as JSON is stored as MessagePack from then on, a byte array as bytes; [`Tag::Empty`] is left out.
///
/// # Errors
/// A value has a tag that cannot stand inside MessagePack, or is not the one value it should be.
pub fn checkpoint_to_msgpack(checkpoint: &Checkpoint) -> Result<Vec<u8>, Error> {
    let values = checkpoint.channel_values.iter().filter(|(_, blob)| *blob.tag() != Tag::Empty);
    // To go through the map again costs more than a list of what is in it.
    let values: Vec<_> = values.collect();
    let bytes: usize = values
        .iter()
        .map(|(name, blob)| name.len().saturating_add(blob.bytes().len()).saturating_add(10))
        .fold(0, usize::saturating_add);
    let versions =
        checkpoint.channel_versions.size().saturating_add(checkpoint.versions_seen.size());
    let mut out =
        Vec::with_capacity(bytes.saturating_add(versions.saturating_mul(128)).saturating_add(256));
    encode(checkpoint, &values, &mut out)?;
    Ok(out)
}

fn encode(
    checkpoint: &Checkpoint,
    values: &[(&Arc<str>, &Blob)],
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    map(out, 7)?;
    text(out, "v")?;
    msgpack::write_uint(out, checkpoint.v.into()).map_err(Error::codec)?;
    text(out, "ts")?;
    text(out, &checkpoint.ts)?;
    text(out, "id")?;
    text(out, &checkpoint.id.to_string())?;
    text(out, "channel_values")?;
    map(out, values.len())?;
    for (name, blob) in values {
        text(out, name)?;
        value(out, blob).map_err(|error| {
            Error::codec(format_args!("channel `{name}` cannot be stored: {error}"))
        })?;
    }
    text(out, "channel_versions")?;
    versions(out, &checkpoint.channel_versions)?;
    text(out, "versions_seen")?;
    map(out, checkpoint.versions_seen.size())?;
    for (node, seen) in &checkpoint.versions_seen {
        text(out, node)?;
        versions(out, seen)?;
    }
    text(out, "updated_channels")?;
    match &checkpoint.updated_channels {
        None => out.push(0xc0),
        Some(names) => {
            msgpack::write_array_len(out, length(names.len())?).map_err(Error::codec)?;
            names.iter().try_for_each(|name| text(out, name))?;
        }
    }
    Ok(())
}

fn map(out: &mut Vec<u8>, len: usize) -> Result<(), Error> {
    msgpack::write_map_len(out, length(len)?).map(drop).map_err(Error::codec)
}

fn text(out: &mut Vec<u8>, text: &str) -> Result<(), Error> {
    length(text.len())?;
    msgpack::write_str(out, text).map_err(Error::codec)
}

fn length(len: usize) -> Result<u32, Error> {
    u32::try_from(len).map_err(|_| Error::codec("longer than 4 GiB"))
}

fn versions(out: &mut Vec<u8>, versions: &SharedMap<Version>) -> Result<(), Error> {
    map(out, versions.size())?;
    for (name, version) in versions {
        text(out, name)?;
        match whole_number(version) {
            Some(number) => {
                msgpack::write_uint(out, number).map_err(Error::codec)?;
            }
            None => text(out, version.as_str())?,
        }
    }
    Ok(())
}

fn value(out: &mut Vec<u8>, blob: &Blob) -> Result<(), Error> {
    match blob.tag() {
        Tag::Null | Tag::Empty => out.push(0xc0),
        Tag::Bytes | Tag::ByteArray => {
            length(blob.bytes().len())?;
            msgpack::write_bin(out, blob.bytes()).map_err(Error::codec)?;
        }
        Tag::Msgpack => {
            // Anything but one whole value here would make the rest of the checkpoint unreadable.
            let mut reader = Reader::new(blob.bytes(), Limits::DEFAULT)?;
            reader.skip()?;
            reader.end()?;
            out.extend_from_slice(blob.bytes());
        }
        Tag::Json => value(out, &Blob::from_value(&blob.to_value()?)?)?,
        Tag::Other(word) => {
            return Err(Error::codec(format_args!("`{word}` cannot stand inside `msgpack`")));
        }
    }
    Ok(())
}

/// A version as it is stored: text, or a whole number if that is what it was read from.
pub fn version_to_value(version: &Version) -> Value {
    whole_number(version).map_or_else(|| version.as_str().into(), Value::from)
}

/// The version that was stored. Numbers, which some checkpointers count in, are padded so that they compare as text.
///
/// # Errors
/// It is neither text nor a whole number.
pub fn version_from_value(value: &Value) -> Result<Version, Error> {
    match value {
        Value::Str(text) => Ok(Version::from_text(text.as_str())),
        Value::Int(number) if *number >= 0 => Ok(Version::from_text(format!("{number:032}"))),
        other => Err(Error::codec(format_args!("a version is text, found {}", other.kind()))),
    }
}

/// The whole number that a version is stored as, if it was read from one.
pub fn whole_number(version: &Version) -> Option<u64> {
    let text = version.as_str();
    let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// A checkpoint of which every value can be looked at without the others being read.
///
/// Made for walks along many checkpoints that need one channel of each.
#[derive(Debug)]
pub struct CheckpointParts<'a> {
    fields: Vec<(&'a str, &'a [u8])>,
}

impl<'a> CheckpointParts<'a> {
    /// Finds the fields.
    ///
    /// # Errors
    /// The bytes are not a map with text keys, or its format is newer than [`Checkpoint::FORMAT`].
    pub fn new(bytes: &'a [u8], limits: Limits) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes, limits)?;
        let fields = entries(&mut reader)?;
        reader.end()?;
        let parts = Self { fields };
        let v = parts.v(limits)?;
        if v > Checkpoint::FORMAT {
            let known = Checkpoint::FORMAT;
            return Err(Error::codec(format_args!(
                "it has format {v}, and the newest this version knows is {known}; update superstep"
            )));
        }
        Ok(parts)
    }

    /// The value of a channel.
    ///
    /// # Errors
    /// The values are not a map with text keys.
    pub fn value(&self, channel: &str, limits: Limits) -> Result<Option<Blob>, Error> {
        let values = self.values(limits)?;
        Ok(values.into_iter().rev().find(|(name, _)| *name == channel).map(|(_, raw)| blob(raw)))
    }

    /// The version of a channel.
    ///
    /// # Errors
    /// The versions are not a map with text keys, or that of the channel is neither text nor a
    /// number.
    pub fn version(&self, channel: &str, limits: Limits) -> Result<Option<Version>, Error> {
        let Some(raw) = self.field("channel_versions") else { return Ok(None) };
        let all = at("channel_versions", entries(&mut Reader::new(raw, limits)?))?;
        let found = all.into_iter().rev().find(|(name, _)| *name == channel);
        let read = |raw| version_from_value(&crate::blob::decode::value(raw, limits)?);
        found.map(|(_, raw)| read(raw)).transpose()
    }

    /// The channels that have a value.
    ///
    /// # Errors
    /// As [`value`](Self::value).
    pub fn channels(&self, limits: Limits) -> Result<Vec<Arc<str>>, Error> {
        Ok(self.values(limits)?.into_iter().map(|(name, _)| name.into()).collect())
    }

    fn values(&self, limits: Limits) -> Result<Vec<(&'a str, &'a [u8])>, Error> {
        match self.field("channel_values") {
            Some(raw) => at("channel_values", entries(&mut Reader::new(raw, limits)?)),
            None => Ok(Vec::new()),
        }
    }

    fn v(&self, limits: Limits) -> Result<u32, Error> {
        let v =
            at("v", self.needed("v").and_then(|raw| Ok(crate::blob::decode::value(raw, limits)?)))?;
        let whole = v.as_i64().and_then(|v| u32::try_from(v).ok());
        whole.ok_or_else(|| Error::codec(format_args!("format `{v}` is not a number")))
    }

    fn text(&self, field: &str, limits: Limits) -> Result<String, Error> {
        let value = at(
            field,
            self.needed(field).and_then(|raw| Ok(crate::blob::decode::value(raw, limits)?)),
        )?;
        let text = value.as_str().map(str::to_owned);
        text.ok_or_else(|| Error::codec(format_args!("`{field}` is {}, not text", value.kind())))
    }

    fn needed(&self, field: &str) -> Result<&'a [u8], Error> {
        self.field(field).ok_or_else(|| Error::codec("missing"))
    }

    fn field(&self, field: &str) -> Option<&'a [u8]> {
        self.fields.iter().rev().find(|(name, _)| *name == field).map(|(_, raw)| *raw)
    }
}

/// Reads what [`checkpoint_to_msgpack`] or LangGraph wrote. Fields that are not known are ignored.
///
/// # Errors
/// The bytes are not a checkpoint, a field that every checkpoint has is missing, or the format is
/// newer than [`Checkpoint::FORMAT`].
pub fn checkpoint_from_msgpack(bytes: &[u8], limits: Limits) -> Result<Checkpoint, Error> {
    let parts = CheckpointParts::new(bytes, limits)?;
    let mut channel_values = SharedMap::new_sync();
    for (name, raw) in parts.values(limits)? {
        channel_values.insert_mut(name.into(), blob(raw));
    }
    let mut versions_seen = SharedMap::new_sync();
    if let Some(raw) = parts.field("versions_seen") {
        for (node, raw) in at("versions_seen", entries(&mut Reader::new(raw, limits)?))? {
            versions_seen.insert_mut(node.into(), at(node, read_versions(raw, limits))?);
        }
    }
    let mut channel_versions = match parts.field("channel_versions") {
        Some(raw) => at("channel_versions", read_versions(raw, limits))?,
        None => SharedMap::new_sync(),
    };
    let v = parts.v(limits)?;
    if let Some(raw) = parts.field("pending_sends").filter(|raw| v < 4 && !is_nothing(raw)) {
        // Before format 4 dispatches had a field of their own; since then they are the value of a channel.
        let newest = channel_versions.values().max().cloned();
        channel_values.insert_mut(DISPATCHES.into(), blob(raw));
        channel_versions
            .insert_mut(DISPATCHES.into(), newest.unwrap_or_else(|| Version::after(0, 0)));
    }
    Ok(Checkpoint {
        v,
        id: parts.text("id", limits)?.parse()?,
        ts: parts.text("ts", limits)?,
        channel_values,
        channel_versions,
        versions_seen,
        updated_channels: updated(&parts, limits)?,
    })
}

/// The channel that holds dispatches.
const DISPATCHES: &str = "__pregel_tasks";

/// Whether this is null or an empty list.
fn is_nothing(raw: &[u8]) -> bool {
    matches!(raw, [0xc0] | [0x90])
}

fn at<T>(field: &str, result: Result<T, Error>) -> Result<T, Error> {
    result.map_err(|error| Error::codec(format_args!("at `{field}`: {error}")))
}

fn updated(parts: &CheckpointParts<'_>, limits: Limits) -> Result<Option<Vec<Arc<str>>>, Error> {
    let Some(raw) = parts.field("updated_channels") else { return Ok(None) };
    match crate::blob::decode::value(raw, limits)? {
        Value::Null => Ok(None),
        Value::List(names) => {
            let names = names.iter().map(|name| name.as_str().map(Arc::from));
            let names: Option<Vec<_>> = names.collect();
            Ok(Some(names.ok_or_else(|| Error::codec("`updated_channels` holds no names"))?))
        }
        other => Err(Error::codec(format_args!("`updated_channels` is {}", other.kind()))),
    }
}

fn read_versions(raw: &[u8], limits: Limits) -> Result<SharedMap<Version>, Error> {
    let mut found = SharedMap::new_sync();
    for (name, raw) in entries(&mut Reader::new(raw, limits)?)? {
        let version = version_from_value(&crate::blob::decode::value(raw, limits)?)?;
        found.insert_mut(name.into(), version);
    }
    Ok(found)
}

/// The entries of the map that comes next, their values unread.
fn entries<'a>(reader: &mut Reader<'a>) -> Result<Vec<(&'a str, &'a [u8])>, Error> {
    let Head::Map(len) = reader.head()? else {
        return Err(Error::codec("expected a map"));
    };
    let mut entries = Vec::new();
    for _ in 0..len {
        let key = reader.key()?;
        let raw = reader.skip().map_err(|fault: Fault| fault.in_field(key))?;
        entries.push((key, raw));
    }
    Ok(entries)
}

/// A value of a channel, as the blob it would be on its own.
fn blob(raw: &[u8]) -> Blob {
    match raw {
        [0xc0] => Blob::null(),
        [0xc4, _, bytes @ ..] | [0xc5, _, _, bytes @ ..] | [0xc6, _, _, _, _, bytes @ ..] => {
            Blob::new(Tag::Bytes, bytes)
        }
        _ => Blob::new(Tag::Msgpack, raw),
    }
}
