//! Reads typed values straight from MessagePack, without a [`Value`](crate::Value) in between.
//!
//! The result is the same as reading a [`Value`](crate::Value) and then the type from it, without
//! building the tree. To guarantee this for every type, the direct path handles only plain input:
//! single values, lists, and maps without repeated keys. Extension types are read as a `Value` in
//! place. In every other case (an error, an error that the type recovered from, a value that it
//! skipped) the bytes are read again through the tree, whose result counts.

// Bytes from anywhere are read here.
#![cfg_attr(
    not(test),
    warn(clippy::arithmetic_side_effects, clippy::disallowed_methods, clippy::indexing_slicing)
)]

use std::collections::BTreeSet;
use std::fmt;

use serde::de::value::{BorrowedStrDeserializer, SeqDeserializer};
use serde::de::{
    self, Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess,
    IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::decode::{self, CAPACITY_MAX, Head, Limits, Reader, Single};
use crate::value::{self, Fault, FromValue};
use crate::{Error, from_value};

/// The typed value that `bytes` hold.
pub(super) fn typed<T: DeserializeOwned>(bytes: &[u8], limits: Limits) -> Result<T, Error> {
    match directly(bytes, limits) {
        Some(typed) => Ok(typed),
        None => from_value(decode::value(bytes, limits)?),
    }
}

pub(super) fn directly<T: DeserializeOwned>(bytes: &[u8], limits: Limits) -> Option<T> {
    let reader = Reader::new(bytes, limits).ok()?;
    let spare_depth = Limits::DEFAULT.depth.saturating_sub(limits.depth);
    let mut source = Source { reader, spare_depth, due: 0 };
    let typed = T::deserialize(source.next(limits.depth)).ok()?;
    source.is_spent().then_some(typed)
}

struct Source<'de> {
    reader: Reader<'de>,
    /// The extra depth of a tree compared with the bytes.
    spare_depth: usize,
    /// The number of values that are handed out and not read completely.
    due: usize,
}

impl<'de> Source<'de> {
    fn next(&mut self, depth: usize) -> Next<'_, 'de> {
        self.due = self.due.saturating_add(1);
        Next { source: self, depth }
    }

    /// The value that began with `head`, to be deserialized as in the tree.
    fn value_of(&mut self, head: Head<'de>, depth: usize) -> Result<FromValue, NotPlain> {
        let value = self.reader.value_of(head, depth)?;
        Ok(FromValue::new(value, depth.saturating_add(self.spare_depth)))
    }

    fn is_spent(&self) -> bool {
        self.due == 0 && self.reader.end().is_ok()
    }
}

/// Not plain: the bytes are read again through the tree.
#[derive(Debug)]
struct NotPlain;

impl fmt::Display for NotPlain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not plain")
    }
}

impl std::error::Error for NotPlain {}

impl de::Error for NotPlain {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

impl From<Fault> for NotPlain {
    fn from(_: Fault) -> Self {
        Self
    }
}

/// Deserializes the value that comes next.
struct Next<'s, 'de> {
    source: &'s mut Source<'de>,
    /// The depth that is left.
    depth: usize,
}

impl<'de> Next<'_, 'de> {
    #[inline]
    fn head(&mut self) -> Result<Head<'de>, NotPlain> {
        Ok(self.source.reader.head()?)
    }

    /// Marks the value as completely read, if it is.
    fn ends<T>(self, read: Result<T, NotPlain>) -> Result<T, NotPlain> {
        if read.is_ok() {
            self.source.due = self.source.due.saturating_sub(1);
        }
        read
    }

    fn value_of(&mut self, head: Head<'de>) -> Result<FromValue, NotPlain> {
        self.source.value_of(head, self.depth)
    }

    fn visit<V: Visitor<'de>>(mut self, head: Head<'de>, visitor: V) -> Result<V::Value, NotPlain> {
        let visited = match head {
            Head::Single(single) => visit_single(single, visitor),
            Head::List(len) => self.visit_list(len, visitor),
            Head::Map(len) => self.visit_map(len, visitor),
            Head::Ext(_) => Ok(self.value_of(head)?.deserialize_any(visitor)?),
        };
        self.ends(visited)
    }

    fn visit_list<V: Visitor<'de>>(
        &mut self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, NotPlain> {
        let depth = self.source.reader.enter_list(len, self.depth)?;
        let mut items = Items { source: self.source, left: len, depth };
        let visited = visitor.visit_seq(&mut items)?;
        if items.left == 0 { Ok(visited) } else { Err(NotPlain) }
    }

    fn visit_map<V: Visitor<'de>>(&mut self, len: usize, visitor: V) -> Result<V::Value, NotPlain> {
        let mut entries = self.entries(len)?;
        let visited = visitor.visit_map(&mut entries)?;
        if entries.left == 0 && !entries.in_entry { Ok(visited) } else { Err(NotPlain) }
    }

    fn entries(&mut self, len: usize) -> Result<Entries<'_, 'de>, NotPlain> {
        let depth = self.source.reader.enter_map(len, self.depth)?;
        let keys = Keys::default();
        Ok(Entries { source: self.source, left: len, depth, in_entry: false, keys })
    }

    /// The variant that the only entry of a map names.
    fn visit_entry<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, NotPlain> {
        let depth = self.source.reader.enter_map(1, self.depth)?;
        let Head::Single(Single::Text(tag)) = self.head()? else { return Err(NotPlain) };
        visitor.visit_enum(Variant { tag, content: self.source.next(depth) })
    }
}

impl<'de> Next<'_, 'de> {
    /// Enters the next value if it is an object, and returns the bytes after it.
    fn enter_object(&mut self) -> Result<Option<&'de [u8]>, NotPlain> {
        let mut reader = self.source.reader.clone();
        let Head::Ext(len) = reader.head()? else { return Ok(None) };
        let (code, data) = reader.code_and_data(len)?;
        if !decode::is_object(code) {
            return Ok(None);
        }
        let after = reader.enter_ext(data);
        self.source.reader = reader;
        Ok(Some(after))
    }

    fn visit_object<V: Visitor<'de>>(
        self,
        after: &'de [u8],
        visitor: V,
    ) -> Result<V::Value, NotPlain> {
        let depth = self.depth.checked_sub(1).ok_or(NotPlain)?;
        let reader = &mut self.source.reader;
        let Head::List(len @ 3..=4) = reader.head()? else { return Err(NotPlain) };
        let depth = reader.enter_list(len, depth)?;
        let Head::Single(Single::Text(module)) = reader.head()? else { return Err(NotPlain) };
        let Head::Single(Single::Text(name)) = reader.head()? else { return Err(NotPlain) };
        let fields = self.source.next(depth);
        let visited = visitor.visit_enum(Fields { class: [module, name], fields })?;
        let reader = &mut self.source.reader;
        (3..len).try_for_each(|_| reader.pass(depth))?;
        reader.leave_ext(after)?;
        self.ends(Ok(visited))
    }
}

/// The class of an object, and its fields.
struct Fields<'s, 'de> {
    class: [&'de str; 2],
    fields: Next<'s, 'de>,
}

impl<'s, 'de> EnumAccess<'de> for Fields<'s, 'de> {
    type Error = NotPlain;
    type Variant = Next<'s, 'de>;

    fn variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<(T::Value, Next<'s, 'de>), NotPlain> {
        let class = self.class.into_iter().map(BorrowedStrDeserializer::<NotPlain>::new);
        let class = seed.deserialize(SeqDeserializer::new(class))?;
        Ok((class, self.fields))
    }
}

fn visit_single<'de, V: Visitor<'de>>(
    single: Single<'de>,
    visitor: V,
) -> Result<V::Value, NotPlain> {
    match single {
        Single::Null => visitor.visit_unit(),
        Single::Bool(yes) => visitor.visit_bool(yes),
        Single::Int(number) => visitor.visit_i64(number),
        Single::UInt(number) => visitor.visit_u64(number),
        Single::Float(number) => visitor.visit_f64(number),
        Single::Text(text) => visitor.visit_borrowed_str(text),
        Single::Bytes(bytes) => visitor.visit_borrowed_bytes(bytes),
    }
}

impl<'de> Deserializer<'de> for Next<'_, 'de> {
    type Error = NotPlain;

    fn deserialize_any<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, NotPlain> {
        let head = self.head()?;
        self.visit(head, visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotPlain> {
        if self.source.reader.take_null()? {
            return self.ends(visitor.visit_none());
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, NotPlain> {
        if name == value::OBJECT {
            return match self.enter_object()? {
                Some(after) => self.visit_object(after, visitor),
                None => visitor.visit_newtype_struct(self),
            };
        }
        if name != value::VALUE {
            return visitor.visit_newtype_struct(self);
        }
        let head = self.head()?;
        let value = self.value_of(head)?.deserialize_newtype_struct(name, visitor)?;
        self.ends(Ok(value))
    }

    fn deserialize_seq<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, NotPlain> {
        let head = self.head()?;
        if let Head::Single(Single::Bytes(_)) | Head::Ext(_) = head {
            let items = self.value_of(head)?.deserialize_seq(visitor)?;
            return self.ends(Ok(items));
        }
        self.visit(head, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NotPlain> {
        let variant = match self.head()? {
            Head::Single(Single::Text(tag)) => visitor.visit_enum(tag.into_deserializer()),
            Head::Map(1) => self.visit_entry(visitor),
            head => Ok(self.value_of(head)?.deserialize_enum(name, variants, visitor)?),
        };
        self.ends(variant)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotPlain> {
        self.source.reader.pass(self.depth)?;
        self.ends(visitor.visit_unit())
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct tuple tuple_struct map struct identifier
    }
}

struct Items<'s, 'de> {
    source: &'s mut Source<'de>,
    left: usize,
    depth: usize,
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = NotPlain;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, NotPlain> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        seed.deserialize(self.source.next(self.depth)).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        believable(self.left)
    }
}

struct Entries<'s, 'de> {
    source: &'s mut Source<'de>,
    left: usize,
    depth: usize,
    /// The key has been read and the value has not.
    in_entry: bool,
    keys: Keys<'de>,
}

impl<'de> MapAccess<'de> for Entries<'_, 'de> {
    type Error = NotPlain;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, NotPlain> {
        if self.left == 0 && !self.in_entry {
            return Ok(None);
        }
        // Until the key has been read, so that a type that gets over a fault here is not believed.
        self.source.due = self.source.due.saturating_add(1);
        if std::mem::replace(&mut self.in_entry, true) {
            return Err(NotPlain);
        }
        self.left = self.left.checked_sub(1).ok_or(NotPlain)?;
        let key = match self.source.reader.head()? {
            Head::Single(Single::Text(text)) => {
                self.keys.admit(text)?;
                seed.deserialize(Key(text))?
            }
            head => seed.deserialize(value::Key(self.source.value_of(head, self.depth)?))?,
        };
        self.source.due = self.source.due.saturating_sub(1);
        Ok(Some(key))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, NotPlain> {
        let value = self.source.next(self.depth);
        if !std::mem::take(&mut self.in_entry) {
            return Err(NotPlain);
        }
        seed.deserialize(value)
    }

    fn size_hint(&self) -> Option<usize> {
        believable(self.left)
    }
}

/// A type may reserve what it is told to expect, so it is not told of lengths that are not known to be true.
fn believable(len: usize) -> Option<usize> {
    (len <= CAPACITY_MAX).then_some(len)
}

/// The text keys of a map so far. In the tree, a key that comes again replaces the entry it had.
#[derive(Default)]
struct Keys<'de> {
    few: [&'de str; 8],
    count: usize,
    more: BTreeSet<&'de str>,
}

impl<'de> Keys<'de> {
    fn admit(&mut self, key: &'de str) -> Result<(), NotPlain> {
        let is_new = if self.few.iter().take(self.count).any(|few| *few == key) {
            false
        } else if let Some(place) = self.few.get_mut(self.count) {
            *place = key;
            self.count = self.count.saturating_add(1);
            true
        } else {
            self.more.insert(key)
        };
        if is_new { Ok(()) } else { Err(NotPlain) }
    }
}

/// A text key.
struct Key<'de>(&'de str);

impl Key<'_> {
    fn in_tree(self) -> value::Key {
        value::Key(FromValue::new(self.0.into(), Limits::DEFAULT.depth))
    }
}

macro_rules! as_in_tree {
    ($($method:ident($($arg:ident: $type:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(self, $($arg: $type,)* visitor: V) -> Result<V::Value, NotPlain> {
            Ok(self.in_tree().$method($($arg,)* visitor)?)
        }
    )*};
}

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = NotPlain;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotPlain> {
        visitor.visit_borrowed_str(self.0)
    }

    as_in_tree! {
        deserialize_bool() deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64()
        deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64() deserialize_option()
        deserialize_newtype_struct(name: &'static str)
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }

    forward_to_deserialize_any! {
        i128 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map
        struct identifier ignored_any
    }
}

/// A variant and what it holds.
struct Variant<'s, 'de> {
    tag: &'de str,
    content: Next<'s, 'de>,
}

impl<'s, 'de> EnumAccess<'de> for Variant<'s, 'de> {
    type Error = NotPlain;
    type Variant = Next<'s, 'de>;

    fn variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<(T::Value, Next<'s, 'de>), NotPlain> {
        let variant = seed.deserialize(self.tag.into_deserializer());
        variant.map(|variant| (variant, self.content))
    }
}

impl<'de> VariantAccess<'de> for Next<'_, 'de> {
    type Error = NotPlain;

    fn unit_variant(self) -> Result<(), NotPlain> {
        <()>::deserialize(self)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, NotPlain> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, NotPlain> {
        self.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NotPlain> {
        self.deserialize_any(visitor)
    }
}
