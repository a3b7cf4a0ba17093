//! Reads untrusted MessagePack.
//!
//! Lengths are checked against the remaining bytes before anything is allocated, recursion is
//! bounded by the limit, and no type is ever constructed from a name in the bytes.

// Bytes from anywhere are read here.
#![cfg_attr(
    not(test),
    warn(clippy::arithmetic_side_effects, clippy::disallowed_methods, clippy::indexing_slicing)
)]

use rmp::Marker;

use crate::value::{Fault, Foreign, Mark};
use crate::{Ext, Map, Value};

/// The limits for decoding bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum nesting depth. Lists, maps, sets and extension types are one level each.
    pub depth: usize,
    /// The maximum number of values, counting keys. A value takes up to a hundred times its bytes
    /// in memory.
    pub items: usize,
    /// The maximum number of bytes.
    pub bytes: usize,
}

impl Limits {
    /// The limits of [`Blob::to_value`](crate::Blob::to_value).
    ///
    /// The depth is what LangGraph can write, and fits into the stack of a thread. The other limits
    /// are far above what a state should hold, and low enough to fail before memory runs out.
    pub const DEFAULT: Self = Self { depth: 255, items: 1 << 26, bytes: 1 << 29 };

    /// Checks the number of bytes against the limit.
    pub(super) fn admit(self, bytes: usize) -> Result<(), Fault> {
        if bytes > self.bytes {
            let most = self.bytes;
            return Err(Fault::new(format_args!("{bytes} bytes, more than the {most} allowed")));
        }
        Ok(())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The one value that `bytes` hold.
pub(crate) fn value(bytes: &[u8], limits: Limits) -> Result<Value, Fault> {
    limits.admit(bytes.len())?;
    let mut reader = Reader { rest: bytes, items: limits.items };
    let value = reader.value(limits.depth)?;
    reader.end()?;
    Ok(value)
}

/// The most that is reserved because of a length in the bytes; the rest grows as it is read.
pub(super) const CAPACITY_MAX: usize = 1024;

/// What begins: a whole value, or something of this length that holds others.
pub(crate) enum Head<'a> {
    Single(Single<'a>),
    List(usize),
    Map(usize),
    Ext(usize),
}

/// A value that holds no others, as it stands in the bytes.
#[derive(Clone, Copy)]
pub(crate) enum Single<'a> {
    Null,
    Bool(bool),
    Int(i64),
    /// Only what is too great for `Int`.
    UInt(u64),
    Float(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl From<u64> for Single<'_> {
    fn from(number: u64) -> Self {
        i64::try_from(number).map_or(Self::UInt(number), Self::Int)
    }
}

impl From<Single<'_>> for Value {
    fn from(single: Single<'_>) -> Self {
        match single {
            Single::Null => Self::Null,
            Single::Bool(yes) => Self::Bool(yes),
            Single::Int(number) => Self::Int(number),
            Single::UInt(number) => Self::UInt(number),
            Single::Float(number) => Self::Float(number),
            Single::Text(text) => Self::Str(text.to_owned()),
            Single::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
        }
    }
}

/// The extension code of [`Ext::Snapshot`].
const SNAPSHOT: i8 = 7;

/// The bytes of the value inside, if `bytes` are a snapshot and nothing else.
pub(super) fn in_snapshot(bytes: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader { rest: bytes, items: 1 };
    let Head::Ext(len) = reader.head().ok()? else { return None };
    let (code, data) = reader.code_and_data(len).ok()?;
    reader.end().ok()?;
    (code == SNAPSHOT).then_some(data)
}

/// Whether `bytes` begin a map or a type of its own.
pub(super) fn is_map_or_ext(bytes: &[u8]) -> bool {
    let mut reader = Reader { rest: bytes, items: 1 };
    matches!(reader.head(), Ok(Head::Map(_) | Head::Ext(_)))
}

/// Module and name of the class, if a value with this extension code and these bytes is stored with them.
pub(crate) fn class(code: i8, data: &[u8]) -> Option<(&str, &str)> {
    if !(0..=5).contains(&code) {
        return None;
    }
    let mut reader = Reader { rest: data, items: 3 };
    let Head::List(3..) = reader.head().ok()? else { return None };
    Some((reader.key().ok()?, reader.key().ok()?))
}

/// Whether values with this extension code are objects: class and fields.
pub(crate) fn is_object(code: i8) -> bool {
    matches!(code, 4 | 5)
}

#[derive(Clone)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    /// The number of values that are left.
    items: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], limits: Limits) -> Result<Self, Fault> {
        limits.admit(bytes.len())?;
        Ok(Self { rest: bytes, items: limits.items })
    }

    /// The bytes of the next value, undecoded.
    pub(crate) fn skip(&mut self) -> Result<&'a [u8], Fault> {
        let start = self.rest;
        // How many values are still to come. A value has at least one byte, so what cannot come is refused at once.
        let mut due = 1usize;
        while let Some(rest) = due.checked_sub(1) {
            due = rest;
            let more = match Marker::from_u8(self.byte()?) {
                Marker::FixArray(len) => len.into(),
                Marker::Array16 => self.sized(2)?,
                Marker::Array32 => self.sized(4)?,
                Marker::FixMap(len) => usize::from(len).saturating_mul(2),
                Marker::Map16 => self.sized(2)?.saturating_mul(2),
                Marker::Map32 => self.sized(4)?.saturating_mul(2),
                single => {
                    let len = self.len_of_single(single)?;
                    self.take(len)?;
                    0
                }
            };
            due = due.saturating_add(more);
            self.holds(due)?;
        }
        let read = start.len().saturating_sub(self.rest.len());
        Ok(start.split_at_checked(read).map_or(start, |(value, _)| value))
    }

    /// How many bytes follow the marker, and the length if there is one, of a value that holds no others.
    fn len_of_single(&mut self, marker: Marker) -> Result<usize, Fault> {
        Ok(match marker {
            Marker::FixStr(len) => len.into(),
            Marker::Str8 | Marker::Bin8 => self.sized(1)?,
            Marker::Str16 | Marker::Bin16 => self.sized(2)?,
            Marker::Str32 | Marker::Bin32 => self.sized(4)?,
            Marker::Ext8 => self.sized(1)?.saturating_add(1),
            Marker::Ext16 => self.sized(2)?.saturating_add(1),
            Marker::Ext32 => self.sized(4)?.saturating_add(1),
            Marker::FixExt1 => 2,
            Marker::FixExt2 => 3,
            Marker::FixExt4 => 5,
            Marker::FixExt8 => 9,
            Marker::FixExt16 => 17,
            Marker::U8 | Marker::I8 => 1,
            Marker::U16 | Marker::I16 => 2,
            Marker::U32 | Marker::I32 | Marker::F32 => 4,
            Marker::U64 | Marker::I64 | Marker::F64 => 8,
            Marker::Reserved => return Err(Fault::new("byte c1 begins no value")),
            _ => 0,
        })
    }

    /// The text that comes next.
    pub(crate) fn key(&mut self) -> Result<&'a str, Fault> {
        let marker = Marker::from_u8(self.byte()?);
        self.text(marker)
    }

    /// The recursive functions are separate from those that read single values: without
    /// optimization each branch of a function has its own stack slots, and a large function at each
    /// level would overflow the stack.
    pub(super) fn value(&mut self, depth: usize) -> Result<Value, Fault> {
        let head = self.head()?;
        self.value_of(head, depth)
    }

    /// The value that began with `head`.
    pub(super) fn value_of(&mut self, head: Head<'a>, depth: usize) -> Result<Value, Fault> {
        match head {
            Head::Single(single) => Ok(single.into()),
            Head::List(len) => self.list(len, depth),
            Head::Map(len) => self.map(len, depth),
            Head::Ext(len) => self.ext(len, depth),
        }
    }

    /// Skips a value, with the checks of [`Reader::value`].
    pub(super) fn pass(&mut self, depth: usize) -> Result<(), Fault> {
        let (values, depth) = match self.head()? {
            Head::Single(_) => return Ok(()),
            Head::List(len) => (len, self.enter_list(len, depth)?),
            Head::Map(len) => (len.saturating_mul(2), self.enter_map(len, depth)?),
            Head::Ext(len) => return self.ext(len, depth).map(drop),
        };
        (0..values).try_for_each(|_| self.pass(depth))
    }

    /// Whether null comes next; if so, it has been read.
    pub(super) fn take_null(&mut self) -> Result<bool, Fault> {
        if self.rest.first() != Some(&Marker::Null.to_u8()) {
            return Ok(false);
        }
        self.head()?;
        Ok(true)
    }

    pub(crate) fn head(&mut self) -> Result<Head<'a>, Fault> {
        self.items = self.items.checked_sub(1).ok_or_else(|| Fault::new("too many values"))?;
        let marker = Marker::from_u8(self.byte()?);
        Ok(match marker {
            Marker::FixArray(len) => Head::List(len.into()),
            Marker::Array16 => Head::List(self.sized(2)?),
            Marker::Array32 => Head::List(self.sized(4)?),
            Marker::FixMap(len) => Head::Map(len.into()),
            Marker::Map16 => Head::Map(self.sized(2)?),
            Marker::Map32 => Head::Map(self.sized(4)?),
            Marker::FixExt1 => Head::Ext(1),
            Marker::FixExt2 => Head::Ext(2),
            Marker::FixExt4 => Head::Ext(4),
            Marker::FixExt8 => Head::Ext(8),
            Marker::FixExt16 => Head::Ext(16),
            Marker::Ext8 => Head::Ext(self.sized(1)?),
            Marker::Ext16 => Head::Ext(self.sized(2)?),
            Marker::Ext32 => Head::Ext(self.sized(4)?),
            single => Head::Single(self.single(single)?),
        })
    }

    #[inline]
    fn single(&mut self, marker: Marker) -> Result<Single<'a>, Fault> {
        Ok(match marker {
            Marker::Null => Single::Null,
            Marker::True => Single::Bool(true),
            Marker::False => Single::Bool(false),
            Marker::FixPos(number) => Single::Int(number.into()),
            Marker::FixNeg(number) => Single::Int(number.into()),
            Marker::U8 => Single::Int(u8::from_be_bytes(self.array()?).into()),
            Marker::U16 => Single::Int(u16::from_be_bytes(self.array()?).into()),
            Marker::U32 => Single::Int(u32::from_be_bytes(self.array()?).into()),
            Marker::U64 => u64::from_be_bytes(self.array()?).into(),
            Marker::I8 => Single::Int(i8::from_be_bytes(self.array()?).into()),
            Marker::I16 => Single::Int(i16::from_be_bytes(self.array()?).into()),
            Marker::I32 => Single::Int(i32::from_be_bytes(self.array()?).into()),
            Marker::I64 => Single::Int(i64::from_be_bytes(self.array()?)),
            Marker::F32 => Single::Float(f32::from_be_bytes(self.array()?).into()),
            Marker::F64 => Single::Float(f64::from_be_bytes(self.array()?)),
            Marker::Bin8 => Single::Bytes(self.bin(1)?),
            Marker::Bin16 => Single::Bytes(self.bin(2)?),
            Marker::Bin32 => Single::Bytes(self.bin(4)?),
            Marker::Reserved => return Err(Fault::new("byte c1 begins no value")),
            text => Single::Text(self.text(text)?),
        })
    }

    /// The depth left for the items of a list, if the bytes can hold that many.
    pub(super) fn enter_list(&self, len: usize, depth: usize) -> Result<usize, Fault> {
        let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
        self.holds(len)?;
        Ok(depth)
    }

    /// The depth left for the entries of a map, if the bytes can hold that many.
    pub(super) fn enter_map(&self, len: usize, depth: usize) -> Result<usize, Fault> {
        self.enter_list(len.saturating_mul(2), depth)
    }

    fn list(&mut self, len: usize, depth: usize) -> Result<Value, Fault> {
        let depth = self.enter_list(len, depth)?;
        let mut items = Vec::with_capacity(len.min(CAPACITY_MAX));
        for index in 0..len {
            items.push(self.value(depth).map_err(|fault| fault.in_item(index))?);
        }
        Ok(Value::List(items))
    }

    fn map(&mut self, len: usize, depth: usize) -> Result<Value, Fault> {
        let depth = self.enter_map(len, depth)?;
        let mut map = Map::with_capacity(len.min(CAPACITY_MAX));
        let mut pairs = Vec::new();
        for _ in 0..len {
            match self.value(depth)? {
                Value::Str(key) if pairs.is_empty() => {
                    let value = self.value(depth).map_err(|fault| fault.in_field(&key))?;
                    map.insert(key, value);
                }
                key => {
                    let texts = std::mem::take(&mut map).into_iter();
                    pairs.extend(texts.map(|(key, value)| (Value::Str(key), value)));
                    pairs.push((key, self.value(depth)?));
                }
            }
        }
        Ok(if pairs.is_empty() { Value::Map(map) } else { Value::Pairs(pairs) })
    }

    fn ext(&mut self, len: usize, depth: usize) -> Result<Value, Fault> {
        let (code, data) = self.code_and_data(len)?;
        let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
        let mut inner = Reader { rest: data, items: self.items };
        let known = inner.known(code, depth)?;
        self.items = inner.items;
        Ok(known.unwrap_or_else(|| Ext::Foreign(Foreign::new(code, data)).into()))
    }

    pub(crate) fn code_and_data(&mut self, len: usize) -> Result<(i8, &'a [u8]), Fault> {
        Ok((i8::from_be_bytes(self.array()?), self.take(len)?))
    }

    /// The value of a known extension type; `None` for others, which are kept as bytes.
    fn known(&mut self, code: i8, depth: usize) -> Result<Option<Value>, Fault> {
        let mark = match code {
            SNAPSHOT => Mark::Snapshot,
            0..=2 => {
                match self.class().and_then(|(module, name)| Mark::of_class(code, module, name)) {
                    Some(mark) => mark,
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        let payload = self.value(depth)?;
        self.end()?;
        Ok(mark.restore(payload))
    }

    /// Module and name at the beginning of `[module, name, payload]`.
    fn class(&mut self) -> Option<(&'a str, &'a str)> {
        if Marker::from_u8(self.byte().ok()?) != Marker::FixArray(3) {
            return None;
        }
        let module = Marker::from_u8(self.byte().ok()?);
        let module = self.text(module).ok()?;
        let name = Marker::from_u8(self.byte().ok()?);
        Some((module, self.text(name).ok()?))
    }

    #[inline]
    fn text(&mut self, marker: Marker) -> Result<&'a str, Fault> {
        let len = match marker {
            Marker::FixStr(len) => len.into(),
            Marker::Str8 => self.sized(1)?,
            Marker::Str16 => self.sized(2)?,
            Marker::Str32 => self.sized(4)?,
            _ => return Err(Fault::new("expected text")),
        };
        str::from_utf8(self.take(len)?).map_err(|_| Fault::new("text is not UTF-8"))
    }

    #[inline]
    fn bin(&mut self, width: usize) -> Result<&'a [u8], Fault> {
        let len = self.sized(width)?;
        self.take(len)
    }

    /// A length of `width` bytes.
    #[inline]
    fn sized(&mut self, width: usize) -> Result<usize, Fault> {
        let digits = self.take(width)?;
        Ok(digits.iter().fold(0, |len, digit| (len << 8) | usize::from(*digit)))
    }

    /// Refuses a length that the rest cannot hold, before anything is made of it.
    fn holds(&self, len: usize) -> Result<(), Fault> {
        if len > self.rest.len() { Err(cut_short()) } else { Ok(()) }
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, Fault> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (head, rest) = self.rest.split_first_chunk().ok_or_else(cut_short)?;
        self.rest = rest;
        Ok(*head)
    }

    #[inline]
    fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or_else(cut_short)?;
        self.rest = rest;
        Ok(head)
    }

    /// Enters an extension type, and returns what follows it.
    pub(super) fn enter_ext(&mut self, data: &'a [u8]) -> &'a [u8] {
        std::mem::replace(&mut self.rest, data)
    }

    /// Continues after an extension type, which must have been read completely.
    pub(super) fn leave_ext(&mut self, after: &'a [u8]) -> Result<(), Fault> {
        self.end()?;
        self.rest = after;
        Ok(())
    }

    pub(crate) fn end(&self) -> Result<(), Fault> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(Fault::new(format_args!("{left} bytes left over after the value"))),
        }
    }
}

fn too_deep() -> Fault {
    Fault::new("nested too deep")
}

fn cut_short() -> Fault {
    Fault::new("the bytes end before the value does")
}
