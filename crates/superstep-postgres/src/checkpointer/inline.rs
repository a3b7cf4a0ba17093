//! Which channel values are stored inside the checkpoint, and which in their own row.
//!
//! LangGraph stores booleans, numbers, text and null in the checkpoint's JSON, all other values in
//! `checkpoint_blobs`. A reader prefers the row. So a value may always have a row, and gets one
//! here when JSON would change it, or would repeat a long value in every checkpoint.

use serde_json::Value as Json;
use superstep_checkpoint::{Blob, Error, Tag, Value};

/// Text up to this many bytes stands in the checkpoint. Longer text would be written again with each superstep.
const TEXT_MAX: usize = 1024;

/// Where a value goes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    /// Into the checkpoint.
    Inline(Json),
    /// Into a row. LangGraph would have put it into the checkpoint, so an older row may be missing.
    RowHere,
    /// Into a row, in both engines.
    Row,
    /// Into a row, with `true` in the checkpoint to say that it is the whole value of a delta channel.
    Snapshot,
}

pub(super) fn place(blob: &Blob) -> Place {
    match blob.tag() {
        Tag::Null if blob.bytes().is_empty() => Place::Inline(Json::Null),
        Tag::Msgpack => place_msgpack(blob),
        _ => Place::Row,
    }
}

fn place_msgpack(blob: &Blob) -> Place {
    let bytes = blob.bytes();
    if let Some(json) = short(bytes) {
        return Place::Inline(json);
    }
    match bytes.first() {
        Some(0xc7 | 0xc8 | 0xc9 | 0xd4..=0xd8) if ext_code(bytes) == Some(7) => Place::Snapshot,
        Some(0x00..=0x7f | 0xc2 | 0xc3 | 0xcb..=0xd3 | 0xe0..=0xff) => primitive(blob),
        Some(0xa0..=0xbf | 0xd9..=0xdb) if bytes.len() <= TEXT_MAX => primitive(blob),
        Some(0xd9..=0xdb) => Place::RowHere,
        _ => Place::Row,
    }
}

/// Small numbers and short text, which most values are. There is one way to write each, so nothing has to be compared.
fn short(bytes: &[u8]) -> Option<Json> {
    match bytes {
        [number @ 0x00..=0x7f] => Some(Json::from(*number)),
        [marker @ 0xa0..=0xbf, text @ ..] if text.len() == usize::from(marker & 0x1f) => {
            let text = std::str::from_utf8(text).ok()?;
            (!text.contains('\0')).then(|| Json::from(text))
        }
        _ => None,
    }
}

/// The code of an extension type, which stands after the marker and the length.
fn ext_code(bytes: &[u8]) -> Option<i8> {
    let at = match bytes.first()? {
        0xd4..=0xd8 => 1,
        0xc7 => 2,
        0xc8 => 3,
        0xc9 => 5,
        _ => return None,
    };
    bytes.get(at).map(|code| code.cast_signed())
}

fn primitive(blob: &Blob) -> Place {
    let Ok(value) = blob.to_value() else { return Place::Row };
    let json = match &value {
        Value::Bool(yes) => Json::from(*yes),
        Value::Int(number) => Json::from(*number),
        Value::UInt(number) => Json::from(*number),
        Value::Float(number) if survives(*number) => Json::from(*number),
        Value::Str(text) if !text.contains('\0') => Json::from(text.as_str()),
        _ => return Place::RowHere,
    };
    // What comes back is encoded again, so other bytes for the same value would not come back.
    match Blob::from_value(&value) {
        Ok(again) if again == *blob => Place::Inline(json),
        _ => Place::RowHere,
    }
}

/// Whether a number is the same after PostgreSQL has kept it as a decimal one.
///
/// It knows neither infinity nor the sign of zero, and writes great ones without a fraction, as whole numbers.
fn survives(number: f64) -> bool {
    number == 0.0 && number.is_sign_positive() || (1e-6..1e15).contains(&number.abs())
}

/// The value that stands in a checkpoint.
pub(super) fn from_inline(json: Json) -> Result<Blob, Error> {
    Blob::from_value(&Value::from(json))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed<T: serde::Serialize>(value: T) -> Place {
        place(&Blob::encode(&value).expect("a value"))
    }

    #[test]
    fn what_json_keeps_exactly_stands_in_the_checkpoint() {
        assert_eq!(place(&Blob::null()), Place::Inline(Json::Null));
        for number in [0, 1, -1, 127, -32, 128, i64::MAX, i64::MIN] {
            assert_eq!(placed(number), Place::Inline(number.into()));
        }
        assert_eq!(placed(u64::MAX), Place::Inline(u64::MAX.into()));
        for number in [0.0, 1.0, -2.5, 0.1, 123_456_789.25, 1e-6, 999_999_999_999_999.0] {
            assert_eq!(placed(number), Place::Inline(number.into()));
        }
        assert_eq!(placed("é"), Place::Inline("é".into()));
        for length in [31, 32, 255, 256] {
            let text = "x".repeat(length);
            assert_eq!(placed(&text), Place::Inline(text.into()));
        }
        assert_eq!(placed(""), Place::Inline("".into()));
        assert_eq!(placed(true), Place::Inline(true.into()));
    }

    #[test]
    fn what_json_would_change_has_a_row() {
        for number in [-0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e22, 1e15, 5e-324] {
            assert_eq!(placed(number), Place::RowHere, "{number}");
        }
        assert_eq!(placed("a\0b"), Place::RowHere);
        let longer_than_needed = Blob::new(Tag::Msgpack, [0xcc, 1]);
        assert_eq!(place(&longer_than_needed), Place::RowHere);
        assert_eq!(place(&Blob::new(Tag::Msgpack, [0xc1])), Place::Row);
        let (cut_off, more, no_text) = ([0xa2, b'x'], [0xa1, b'x', b'y'], [0xa1, 0xff]);
        assert_eq!(place(&Blob::new(Tag::Msgpack, cut_off)), Place::Row);
        assert_eq!(place(&Blob::new(Tag::Msgpack, more)), Place::Row);
        assert_eq!(place(&Blob::new(Tag::Msgpack, no_text)), Place::Row);
        assert_eq!(place(&Blob::new(Tag::Msgpack, [])), Place::Row);
    }

    #[test]
    fn what_is_long_or_no_primitive_has_a_row() {
        assert_eq!(placed("x".repeat(TEXT_MAX + 1)), Place::RowHere);
        assert_eq!(placed([1, 2]), Place::Row);
        assert_eq!(place(&Blob::new(Tag::Bytes, *b"x")), Place::Row);
        assert_eq!(place(&Blob::new(Tag::Msgpack, [0xc7, 3, 7, 0x92, 1, 2])), Place::Snapshot);
        assert_eq!(place(&Blob::new(Tag::Msgpack, [0xd4, 7, 1])), Place::Snapshot);
        assert_eq!(place(&Blob::new(Tag::Msgpack, [0xd4, 0, 1])), Place::Row);
    }

    #[test]
    fn what_stands_in_the_checkpoint_comes_back_as_it_was() {
        for blob in [
            Blob::null(),
            Blob::encode(&0.1).expect("a number"),
            Blob::encode(&u64::MAX).expect("a number"),
            Blob::encode("text").expect("text"),
        ] {
            let Place::Inline(json) = place(&blob) else { panic!("{blob:?}") };
            let text = json.to_string();
            let json = serde_json::from_str(&text).expect("JSON");
            assert_eq!(from_inline(json).expect("a value"), blob);
        }
    }
}
