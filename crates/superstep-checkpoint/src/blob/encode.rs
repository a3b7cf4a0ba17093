use rmp::encode as msgpack;
use rmp::encode::ValueWriteError;
use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant,
};
use serde::{Serialize, Serializer};

use super::{Blob, Limits, Tag};
use crate::value::{Fault, Foreign, Mark, ToValue};
use crate::{Ext, Value};

pub(super) fn blob<T: Serialize + ?Sized>(value: &T) -> Result<Blob, Fault> {
    let mut encoder = Encoder { out: Vec::new(), depth: 0, stored_form: false };
    value.serialize(&mut encoder)?;
    // Nothing and bytes are not wrapped in MessagePack when they are the whole value.
    Ok(match encoder.out.as_slice() {
        [0xc0] => Blob::null(),
        [0xc4, _, bytes @ ..] => Blob::new(Tag::Bytes, bytes),
        [0xc5, _, _, bytes @ ..] => Blob::new(Tag::Bytes, bytes),
        [0xc6, _, _, _, _, bytes @ ..] => Blob::new(Tag::Bytes, bytes),
        _ => Blob::new(Tag::Msgpack, encoder.out),
    })
}

/// Serializes into MessagePack.
struct Encoder {
    out: Vec<u8>,
    depth: usize,
    /// Set while a marked type is asked for its stored form; holds for that type alone, not for what it contains.
    stored_form: bool,
}

impl Encoder {
    /// Goes one level down.
    fn enter(&mut self) -> Result<(), Fault> {
        self.stored_form = false;
        self.depth += 1;
        if self.depth > Limits::DEFAULT.depth {
            let depth = Limits::DEFAULT.depth;
            return Err(Fault::new(format_args!("nested deeper than {depth} levels")));
        }
        Ok(())
    }

    fn list(&mut self, len: Option<usize>) -> Result<Compound<'_>, Fault> {
        Compound::open(self, write_list_len, len, 1)
    }

    fn map(&mut self, len: Option<usize>) -> Result<Compound<'_>, Fault> {
        Compound::open(self, write_map_len, len, 1)
    }

    /// The one entry of a map that holds a variant, up to its value.
    fn variant(&mut self, variant: &'static str) -> Result<(), Fault> {
        self.enter()?;
        written(msgpack::write_map_len(&mut self.out, 1))?;
        written(msgpack::write_str(&mut self.out, variant))
    }

    fn marked<T: Serialize + ?Sized>(&mut self, mark: Mark, value: &T) -> Result<(), Fault> {
        self.enter()?;
        if mark == Mark::Foreign {
            self.foreign(value)?;
            self.depth -= 1;
            return Ok(());
        }
        let start = self.out.len();
        let code = match mark.class() {
            Some((code, module, name)) => {
                written(msgpack::write_array_len(&mut self.out, 3).map(drop))?;
                written(msgpack::write_str(&mut self.out, module))?;
                written(msgpack::write_str(&mut self.out, name))?;
                code
            }
            None if mark == Mark::Object => OBJECT,
            None => SNAPSHOT,
        };
        self.stored_form = mark.has_stored_form();
        value.serialize(&mut *self)?;
        let header = ext_header(code, self.out.len() - start)?;
        self.out.splice(start..start, header);
        self.depth -= 1;
        Ok(())
    }
}

impl Encoder {
    /// Writes a foreign type back as it was read.
    fn foreign<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        let stored = value.serialize(ToValue::STORED_FORM)?;
        let Some([Value::Int(code), Value::Bytes(data)]) = stored.as_list() else {
            return Err(Fault::new("a foreign type is a code and bytes"));
        };
        let code = i8::try_from(*code).map_err(Fault::new)?;
        self.out.extend_from_slice(&ext_header(code, data.len())?);
        self.out.extend_from_slice(data);
        Ok(())
    }
}

/// The object that `value` serializes as, of which the stored form is kept.
pub(crate) fn object<T: Serialize + ?Sized>(value: &T) -> Result<Value, Fault> {
    let mut encoder = Encoder { out: Vec::new(), depth: 0, stored_form: true };
    value.serialize(&mut encoder)?;
    Ok(Ext::Foreign(Foreign::new(OBJECT, encoder.out)).into())
}

/// The snapshot of the value that these bytes are.
pub(super) fn snapshot(value: &[u8]) -> Result<Blob, Fault> {
    let mut bytes = ext_header(SNAPSHOT, value.len())?;
    bytes.extend_from_slice(value);
    Ok(Blob::new(Tag::Msgpack, bytes))
}

/// The extension code of an object with the module and name of its class.
const OBJECT: i8 = 5;

/// The extension code of the whole value of a delta channel.
const SNAPSHOT: i8 = 7;

fn ext_header(code: i8, len: usize) -> Result<Vec<u8>, Fault> {
    let mut header = Vec::with_capacity(6);
    written(msgpack::write_ext_meta(&mut header, length(len)?, code).map(drop))?;
    Ok(header)
}

fn length(len: usize) -> Result<u32, Fault> {
    u32::try_from(len).map_err(|_| Fault::new("longer than 4 GiB"))
}

fn written<T>(result: Result<T, ValueWriteError<std::io::Error>>) -> Result<(), Fault> {
    result.map(drop).map_err(Fault::new)
}

fn write_list_len(out: &mut Vec<u8>, len: u32) -> Result<(), Fault> {
    written(msgpack::write_array_len(out, len))
}

fn write_map_len(out: &mut Vec<u8>, len: u32) -> Result<(), Fault> {
    written(msgpack::write_map_len(out, len))
}

type WriteLen = fn(&mut Vec<u8>, u32) -> Result<(), Fault>;

/// A list or map whose elements are being written.
struct Compound<'a> {
    encoder: &'a mut Encoder,
    write_len: WriteLen,
    /// The length in the header; without it the header is put in front at the end.
    declared: Option<usize>,
    start: usize,
    count: usize,
    levels: usize,
}

impl<'a> Compound<'a> {
    fn open(
        encoder: &'a mut Encoder,
        write_len: WriteLen,
        declared: Option<usize>,
        levels: usize,
    ) -> Result<Self, Fault> {
        encoder.enter()?;
        let start = encoder.out.len();
        if let Some(len) = declared {
            write_len(&mut encoder.out, length(len)?)?;
        }
        Ok(Self { encoder, write_len, declared, start, count: 0, levels })
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        value.serialize(&mut *self.encoder).map_err(|fault| fault.in_item(self.count))?;
        self.count += 1;
        Ok(())
    }

    fn field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Fault> {
        written(msgpack::write_str(&mut self.encoder.out, key))?;
        value.serialize(&mut *self.encoder).map_err(|fault| fault.in_field(key))?;
        self.count += 1;
        Ok(())
    }

    fn close(self) -> Result<(), Fault> {
        match self.declared {
            Some(len) if len == self.count => {}
            Some(len) => {
                let count = self.count;
                let message = format_args!("a type announced {len} elements and gave {count}");
                return Err(Fault::new(message));
            }
            None => {
                let mut header = Vec::with_capacity(5);
                (self.write_len)(&mut header, length(self.count)?)?;
                self.encoder.out.splice(self.start..self.start, header);
            }
        }
        self.encoder.depth -= self.levels;
        Ok(())
    }
}

impl<'a> Serializer for &'a mut Encoder {
    type Ok = ();
    type Error = Fault;
    type SerializeSeq = Compound<'a>;
    type SerializeTuple = Compound<'a>;
    type SerializeTupleStruct = Compound<'a>;
    type SerializeTupleVariant = Compound<'a>;
    type SerializeMap = Compound<'a>;
    type SerializeStruct = Compound<'a>;
    type SerializeStructVariant = Compound<'a>;

    fn is_human_readable(&self) -> bool {
        !self.stored_form
    }

    fn serialize_bool(self, v: bool) -> Result<(), Fault> {
        msgpack::write_bool(&mut self.out, v).map_err(Fault::new)
    }

    fn serialize_i8(self, v: i8) -> Result<(), Fault> {
        self.serialize_i64(v.into())
    }

    fn serialize_i16(self, v: i16) -> Result<(), Fault> {
        self.serialize_i64(v.into())
    }

    fn serialize_i32(self, v: i32) -> Result<(), Fault> {
        self.serialize_i64(v.into())
    }

    fn serialize_i64(self, v: i64) -> Result<(), Fault> {
        written(msgpack::write_sint(&mut self.out, v))
    }

    fn serialize_i128(self, v: i128) -> Result<(), Fault> {
        ToValue::default().serialize_i128(v)?.serialize(self)
    }

    fn serialize_u8(self, v: u8) -> Result<(), Fault> {
        self.serialize_u64(v.into())
    }

    fn serialize_u16(self, v: u16) -> Result<(), Fault> {
        self.serialize_u64(v.into())
    }

    fn serialize_u32(self, v: u32) -> Result<(), Fault> {
        self.serialize_u64(v.into())
    }

    fn serialize_u64(self, v: u64) -> Result<(), Fault> {
        written(msgpack::write_uint(&mut self.out, v))
    }

    fn serialize_u128(self, v: u128) -> Result<(), Fault> {
        ToValue::default().serialize_u128(v)?.serialize(self)
    }

    fn serialize_f32(self, v: f32) -> Result<(), Fault> {
        self.serialize_f64(v.into())
    }

    fn serialize_f64(self, v: f64) -> Result<(), Fault> {
        written(msgpack::write_f64(&mut self.out, v))
    }

    fn serialize_char(self, v: char) -> Result<(), Fault> {
        self.serialize_str(v.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, v: &str) -> Result<(), Fault> {
        length(v.len())?;
        written(msgpack::write_str(&mut self.out, v))
    }

    fn serialize_bytes(self, v: &[u8]) -> Result<(), Fault> {
        length(v.len())?;
        written(msgpack::write_bin(&mut self.out, v))
    }

    fn serialize_none(self) -> Result<(), Fault> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Fault> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Fault> {
        msgpack::write_nil(&mut self.out).map_err(Fault::new)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Fault> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Fault> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Fault> {
        match Mark::of(name) {
            Some(mark) => self.marked(mark, value),
            None => value.serialize(self),
        }
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Fault> {
        self.variant(variant)?;
        value.serialize(&mut *self).map_err(|fault| fault.in_field(variant))?;
        self.depth -= 1;
        Ok(())
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Compound<'a>, Fault> {
        self.list(len)
    }

    fn serialize_tuple(self, len: usize) -> Result<Compound<'a>, Fault> {
        self.list(Some(len))
    }

    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<Compound<'a>, Fault> {
        self.list(Some(len))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Compound<'a>, Fault> {
        self.variant(variant)?;
        Compound::open(self, write_list_len, Some(len), 2)
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Compound<'a>, Fault> {
        self.map(len)
    }

    fn serialize_struct(self, _: &'static str, len: usize) -> Result<Compound<'a>, Fault> {
        self.map(Some(len))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Compound<'a>, Fault> {
        self.variant(variant)?;
        Compound::open(self, write_map_len, Some(len), 2)
    }
}

macro_rules! items {
    ($($trait:ident :: $method:ident),*) => {$(
        impl $trait for Compound<'_> {
            type Ok = ();
            type Error = Fault;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
                self.item(value)
            }

            fn end(self) -> Result<(), Fault> {
                self.close()
            }
        }
    )*};
}

items! {
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
}

macro_rules! fields {
    ($($trait:ident),*) => {$(
        impl $trait for Compound<'_> {
            type Ok = ();
            type Error = Fault;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Fault> {
                self.field(key, value)
            }

            fn end(self) -> Result<(), Fault> {
                self.close()
            }
        }
    )*};
}

fields!(SerializeStruct, SerializeStructVariant);

impl SerializeMap for Compound<'_> {
    type Ok = ();
    type Error = Fault;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Fault> {
        key.serialize(&mut *self.encoder)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        value.serialize(&mut *self.encoder)?;
        self.count += 1;
        Ok(())
    }

    fn end(self) -> Result<(), Fault> {
        self.close()
    }
}
