use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use super::{Fault, Map, Value};
use crate::Limits;
use crate::blob::decode;

/// A value of a type that only LangGraph knows, as it is stored.
///
/// It is written back byte for byte. What it was made of can be looked at: [`Value::get`] finds the fields of an object.
#[derive(Clone)]
pub struct Foreign {
    code: i8,
    data: Vec<u8>,
    /// The decoded content, cached.
    payload: OnceLock<Option<Box<Value>>>,
}

impl Foreign {
    /// A value with this extension code and these bytes behind it.
    pub fn new(code: i8, data: impl Into<Vec<u8>>) -> Self {
        Self { code, data: data.into(), payload: OnceLock::new() }
    }

    /// The extension code.
    pub fn code(&self) -> i8 {
        self.code
    }

    /// The bytes behind the code.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The decoded content: text for ids, times and big numbers, the fields of an object, the
    /// arguments of a call. `None` if the bytes cannot be read, or their form is unknown.
    pub fn payload(&self) -> Option<&Value> {
        let read = || match payload(self.code, &self.data, Limits::DEFAULT.depth) {
            Ok(Some(payload)) => Some(Box::new(payload)),
            Ok(None) | Err(_) => None,
        };
        self.payload.get_or_init(read).as_deref()
    }

    /// The fields, if this is an object that was stored with the names of its fields.
    pub fn fields(&self) -> Option<&Map> {
        self.payload().and_then(Value::as_map)
    }

    /// Module and name of the class, if it is stored with them.
    pub fn class(&self) -> Option<(&str, &str)> {
        decode::class(self.code, &self.data)
    }
}

/// The content of a foreign value, or its bytes if their form is unknown.
pub(crate) fn foreign_data(code: i8, data: &[u8], depth: usize) -> Result<Value, Fault> {
    Ok(payload(code, data, depth)?.unwrap_or_else(|| Value::Bytes(data.to_vec())))
}

fn payload(code: i8, data: &[u8], depth: usize) -> Result<Option<Value>, Fault> {
    if !(0..=6).contains(&code) {
        return Ok(None);
    }
    let limits = Limits { depth, ..Limits::DEFAULT };
    let whole = decode::value(data, limits)?;
    if code == 6 {
        return Ok(Some(whole));
    }
    let Value::List(parts) = whole else { return Ok(None) };
    Ok(match <[Value; 3]>::try_from(parts.into_iter().take(3).collect::<Vec<_>>()) {
        Ok([Value::Str(_module), Value::Str(_name), payload]) => Some(payload),
        _ => None,
    })
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Foreign").field("code", &self.code).field("data", &self.data).finish()
    }
}

impl PartialEq for Foreign {
    fn eq(&self, other: &Self) -> bool {
        (self.code, &self.data) == (other.code, &other.data)
    }
}

impl Eq for Foreign {}

impl PartialOrd for Foreign {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Foreign {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.code, &self.data).cmp(&(other.code, &other.data))
    }
}

impl Hash for Foreign {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.code, &self.data).hash(state);
    }
}
