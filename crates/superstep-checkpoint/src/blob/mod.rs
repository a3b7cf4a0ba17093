//! Values as bytes.

mod de;
pub(crate) mod decode;
mod encode;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Error, Ext, Value, from_value};

pub use decode::Limits;
pub(crate) use encode::object;

/// The encoding of the bytes of a [`Blob`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Tag {
    /// Nothing; there are no bytes.
    Null,
    /// The value is the bytes.
    Bytes,
    /// The value is the bytes. Python distinguishes it from the other bytes type; superstep does
    /// not.
    ByteArray,
    /// MessagePack, with extension types for what it has no form for.
    Msgpack,
    /// JSON, from old threads.
    Json,
    /// A channel that has a version but no value.
    Empty,
    /// Any other encoding, which is stored but cannot be read.
    Other(String),
}

impl Tag {
    /// The word that is stored.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Null => "null",
            Self::Bytes => "bytes",
            Self::ByteArray => "bytearray",
            Self::Msgpack => "msgpack",
            Self::Json => "json",
            Self::Empty => "empty",
            Self::Other(word) => word,
        }
    }

    /// The tag a stored word stands for.
    pub fn from_word(word: &str) -> Self {
        [Self::Null, Self::Bytes, Self::ByteArray, Self::Msgpack, Self::Json, Self::Empty]
            .into_iter()
            .find(|tag| tag.as_str() == word)
            .unwrap_or_else(|| Self::Other(word.to_owned()))
    }
}

impl From<&str> for Tag {
    fn from(word: &str) -> Self {
        Self::from_word(word)
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An encoded value: bytes and their encoding. Cheap to clone.
///
/// The encoding is LangGraph's, so that equal values have equal bytes in both: the shortest form of
/// every integer and length, floats of eight bytes, structs as maps. Types that both know are
/// extension types; types that only LangGraph knows are kept unchanged.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Blob {
    tag: Tag,
    bytes: Arc<[u8]>,
}

impl Blob {
    /// A blob from stored bytes, which are not checked before they are read.
    pub fn new(tag: Tag, bytes: impl Into<Arc<[u8]>>) -> Self {
        Self { tag, bytes: bytes.into() }
    }

    /// The blob of nothing.
    pub fn null() -> Self {
        Self::new(Tag::Null, [])
    }

    /// The encoding of the bytes.
    pub fn tag(&self) -> &Tag {
        &self.tag
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Encodes a value that implements `Serialize`.
    ///
    /// # Errors
    /// Its `Serialize` fails, an integer has more than 64 bits, or the value is nested deeper than
    /// [`Limits::DEFAULT`] allows to read.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Self, Error> {
        Ok(encode::blob(value)?)
    }

    /// Encodes a value. The bytes are those [`Blob::encode`] gives.
    ///
    /// # Errors
    /// As [`Blob::encode`].
    pub fn from_value(value: &Value) -> Result<Self, Error> {
        Self::encode(value)
    }

    /// Reads the value.
    ///
    /// Untrusted bytes are safe to read: the result is a value or an error, within
    /// [`Limits::DEFAULT`].
    ///
    /// # Errors
    /// The bytes do not fit the tag, exceed the limits, or the tag is unknown.
    pub fn to_value(&self) -> Result<Value, Error> {
        self.to_value_within(Limits::DEFAULT)
    }

    /// Reads the value within limits of the caller's choice.
    ///
    /// # Errors
    /// As [`Blob::to_value`].
    pub fn to_value_within(&self, limits: Limits) -> Result<Value, Error> {
        match &self.tag {
            Tag::Null | Tag::Empty => Ok(Value::Null),
            Tag::Bytes | Tag::ByteArray => Ok(Value::Bytes(self.bytes.to_vec())),
            Tag::Msgpack => Ok(decode::value(&self.bytes, limits)?),
            Tag::Json => {
                limits.admit(self.bytes.len())?;
                serde_json::from_slice(&self.bytes).map_err(|error| {
                    Error::codec(format_args!("not the JSON it should be: {error}"))
                })
            }
            Tag::Other(word) => Err(Error::codec(format_args!(
                "a value is stored as `{word}`, which cannot be read here; store it as `msgpack`"
            ))),
        }
    }

    /// Reads a typed value; see [`from_value`], which gives the same from [`Blob::to_value`], and takes longer.
    ///
    /// # Errors
    /// As [`Blob::to_value`], or the value has not the form of the type.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, Error> {
        match &self.tag {
            Tag::Msgpack => de::typed(&self.bytes, Limits::DEFAULT),
            _ => from_value(self.to_value()?),
        }
    }

    /// Reads a typed value that may be wrapped in an [`Ext::Snapshot`](crate::Ext::Snapshot), without the wrapping.
    ///
    /// # Errors
    /// As [`Blob::decode`].
    pub fn decode_whole<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let inside = match &self.tag {
            Tag::Msgpack => decode::in_snapshot(&self.bytes),
            _ => None,
        };
        let Some(inside) = inside else { return self.decode() };
        let Limits { depth, items, bytes } = Limits::DEFAULT;
        Limits::DEFAULT.admit(self.bytes.len())?;
        de::typed(inside, Limits { depth: depth - 1, items: items - 1, bytes })
    }

    /// The blob of an [`Ext::Snapshot`](crate::Ext::Snapshot) with this value inside, without reading it.
    ///
    /// # Errors
    /// The tag is one that cannot be read, or there are too many bytes.
    pub fn to_snapshot(&self) -> Result<Self, Error> {
        match &self.tag {
            Tag::Msgpack => Ok(encode::snapshot(&self.bytes)?),
            _ => Self::encode(&Ext::Snapshot(self.to_value()?)),
        }
    }

    /// Whether the value is a map or a type of its own: what an object, and no plain list or text, is stored as.
    pub fn is_object(&self) -> bool {
        match &self.tag {
            Tag::Msgpack => decode::is_map_or_ext(&self.bytes),
            Tag::Json => self.bytes.trim_ascii_start().starts_with(b"{"),
            _ => false,
        }
    }
}

impl Default for Blob {
    fn default() -> Self {
        Self::null()
    }
}

/// Shows the value, or as many bytes as fit on a line if it cannot be read.
impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({}, ", self.tag)?;
        match self.to_value() {
            Ok(value) => write!(f, "{value})"),
            Err(_) => {
                let shown = &self.bytes[..self.bytes.len().min(32)];
                shown.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str(if shown.len() < self.bytes.len() { "…)" } else { ")" })
            }
        }
    }
}
