mod objects;
mod typed;

use proptest::prelude::*;
use serde::{Serialize, Serializer};

use super::*;
use crate::value::tests::any_value;
use crate::{Ext, Foreign, Interrupt, Packet, Set, TimeLimits};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

fn msgpack(text: &str) -> Blob {
    Blob::new(Tag::Msgpack, hex(text))
}

fn map(entries: &[(&str, Value)]) -> Value {
    entries.iter().cloned().collect()
}

/// `langgraph.types` as it stands in every class of the engine.
const TYPES: &str = "af6c616e6767726170682e7479706573";

// Each of these was produced by LangGraph; a byte that differs is a thread that cannot move over.
#[test]
fn values_have_the_bytes_of_the_reference() {
    let interrupt = Interrupt {
        value: map(&[("question", "ok?".into())]),
        id: "0007aee01ddd1018a946e3cf4d322629".into(),
        response_schema: None,
    };
    let send = Packet { node: "n".into(), arg: map(&[("a", 1.into())]), timeout: None };
    let cases: Vec<(Value, String)> = vec![
        (true.into(), "c3".into()),
        (5.into(), "05".into()),
        ((-1).into(), "ff".into()),
        ((1_u64 << 63).into(), "cf 8000000000000000".into()),
        (1.0.into(), "cb 3ff0000000000000".into()),
        ("hi".into(), "a2 6869".into()),
        (vec![Value::from(1), "a".into()].into(), "92 01 a161".into()),
        (Value::pairs(vec![(1.into(), "a".into())]), "81 01 a161".into()),
        (Value::Set([1.into()].into()), "d8 00 93 a8 6275696c74696e73 a3 736574 91 01".into()),
        (send.into(), format!("c7 1d 01 93 {TYPES} a453656e64 92 a16e 81 a161 01")),
        (
            Ext::Overwrite(vec![1].into()).into(),
            format!(
                "c7 37 02 93 {TYPES} a9 4f7665727772697465 82 a576616c7565 91 01
                 a474797065 ad5f5f6f76657277726974655f5f"
            ),
        ),
        (Ext::Snapshot(vec![1, 2].into()).into(), "c7 03 07 92 01 02".into()),
        (
            Interrupt::list_to(&[interrupt]),
            "91c7660293af6c616e6767726170682e7479706573a9496e7465727275707483a576616c756581a8717565
             7374696f6ea36f6b3fa26964d9203030303761656530316464643130313861393436653363663464333232
             363239af726573706f6e73655f736368656d61c0"
                .into(),
        ),
    ];
    for (value, bytes) in cases {
        let blob = msgpack(&bytes);
        assert_eq!(Blob::from_value(&value).expect("a blob").bytes(), blob.bytes(), "{value}");
        assert_eq!(blob.to_value().expect("a value"), value);
    }
}

// Put together from the documented order of the fields; the reference gave no bytes for this one.
#[test]
fn a_dispatch_carries_its_time_limits_as_a_policy() {
    let timeout = Some(TimeLimits { run: Some(1.0), idle: None });
    let value = Value::from(Packet { node: "n".into(), arg: map(&[("a", 1.into())]), timeout });
    let blob = msgpack(&format!(
        "c7 73 01 93 {TYPES} a453656e64 93 a16e 81 a161 01
         c7 53 02 93 {TYPES} ad 54696d656f7574506f6c696379 83
         ab 72756e5f74696d656f7574 cb3ff0000000000000 ac 69646c655f74696d656f7574 c0
         aa 726566726573685f6f6e a4 6175746f"
    ));
    assert_eq!(Blob::from_value(&value).expect("a blob").bytes(), blob.bytes());
    assert_eq!(blob.to_value().expect("a value"), value);
}

#[test]
fn foreign_types_are_written_back_as_they_were_read() {
    let cases = [
        // UUID, Decimal, datetime, date, timedelta.
        "c7 2d 00 93 a475756964 a455554944 d920
         3132333435363738313233343536373831323334353637383132333435363738",
        "c7 16 00 93 a7646563696d616c a7446563696d616c a4312e3130",
        "c7 35 03 94 a86461746574696d65 a86461746574696d65
         b3 323032352d30312d30325430333a30343a3035 ad 66726f6d69736f666f726d6174",
        "c7 15 01 93 a86461746574696d65 a464617465 93 cd07e9 01 02",
        "c7 18 01 93 a86461746574696d65 a974696d6564656c7461 93 01 02 03",
        // An enum, a dataclass, a pydantic model, an array of numbers.
        "c7 12 00 93 a85f5f6d61696e5f5f a5436f6c6f72 a172",
        "c7 15 02 93 a85f5f6d61696e5f5f a24443 82 a178 01 a179 91 02",
        "c7 29 05 94 a85f5f6d61696e5f5f a2504d 82 a161 01 a162 a17a
         b3 6d6f64656c5f76616c69646174655f6a736f6e",
        "c7 14 06 94 a33c6932 92 02 02 a143 c408 0100020003000400",
        // A command, and a message.
        "c7 3a 02 93 af6c616e6767726170682e7479706573 a7436f6d6d616e64 84 a56772617068 c0
         a6757064617465 c0 a6726573756d65 a3796573 a4676f746f 90",
        "c7 89 05 94 bd 6c616e67636861696e5f636f72652e6d657373616765732e68756d616e
         ac 48756d616e4d657373616765 86 a7636f6e74656e74 a26869
         b1 6164646974696f6e616c5f6b7761726773 80 b1 726573706f6e73655f6d65746164617461 80
         a474797065 a568756d616e a46e616d65 c0 a26964 a26d31
         b3 6d6f64656c5f76616c69646174655f6a736f6e",
        // Known classes in a shape that they do not have.
        "c7 17 01 93 af6c616e6767726170682e7479706573 a453656e64 90",
        "d8 00 93 a8 6275696c74696e73 a3 736574 a178",
        "d4 63 00",
    ];
    for bytes in cases {
        let blob = msgpack(bytes);
        let value = blob.to_value().expect("a value");
        assert!(matches!(&value, Value::Ext(ext) if matches!(**ext, Ext::Foreign(_))), "{value:?}");
        assert_eq!(Blob::from_value(&value).expect("a blob").bytes(), blob.bytes());
        let inside = vec![map(&[("m", value)])];
        let blob = Blob::encode(&inside).expect("a blob");
        assert_eq!(blob.decode::<Vec<Value>>().expect("values"), inside);
    }
}

#[test]
fn classes_are_known_under_the_path_they_had_before() {
    let cases = [
        (
            "c7 21 01 93 b3 6c616e6767726170682e636f6e7374616e7473 a453656e64 92 a16e 81 a161 01",
            Value::from(Packet { node: "n".into(), arg: map(&[("a", 1.into())]), timeout: None }),
        ),
        (
            "c7 2c 02 93 b3 6c616e6767726170682e636f6e7374616e7473 a9 496e74657272757074
             82 a576616c7565 01 a26964 a16a",
            Interrupt { value: 1.into(), id: "j".into(), response_schema: None }.into(),
        ),
    ];
    for (bytes, value) in cases {
        assert_eq!(msgpack(bytes).to_value().expect("a value"), value);
    }
}

#[test]
fn whole_values_that_need_no_wrapping_have_tags_of_their_own() {
    for bytes in [vec![], vec![1, 2], vec![0xc0; 300], vec![7; 70_000]] {
        let value = Value::Bytes(bytes.clone());
        let blob = Blob::from_value(&value).expect("a blob");
        assert_eq!((blob.tag(), blob.bytes()), (&Tag::Bytes, &bytes[..]));
        assert_eq!(blob.to_value().expect("a value"), value);
    }
    assert_eq!(Blob::encode(&None::<u8>).expect("a blob"), Blob::null());
    assert_eq!(Blob::encode(&()).expect("a blob"), Blob::null());
    assert_eq!(Blob::null().decode::<Option<u8>>().expect("nothing"), None);
}

#[test]
fn tags_decide_how_bytes_are_read() {
    let read = |word: &str, bytes: &[u8]| Blob::new(Tag::from_word(word), bytes).to_value();
    assert_eq!(read("empty", b"").expect("a value"), Value::Null);
    assert_eq!(read("bytearray", b"x").expect("a value"), Value::Bytes(b"x".to_vec()));
    assert_eq!(read("json", br#"{"a":[1]}"#).expect("a value"), map(&[("a", vec![1].into())]));
    for word in ["pickle", "msgpack+aes"] {
        assert_eq!(Tag::from_word(word).as_str(), word);
        let error = read(word, b"x").expect_err("a fault").to_string();
        assert!(error.contains(&format!("`{word}`")), "{error}");
    }
    let deep = "[".repeat(100_000);
    assert!(read("json", deep.as_bytes()).is_err());
}

// An iterator that does not know its length, and types that lie about it.
#[test]
fn lengths_are_those_of_what_was_written() {
    struct Unsized(usize);
    impl Serialize for Unsized {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_seq((0..self.0).filter(|_| true).map(|_| "x"))
        }
    }
    for len in [0, 15, 16, 70_000] {
        let value = Value::List(vec!["x".into(); len]);
        let blob = Blob::encode(&Unsized(len)).expect("a blob");
        assert_eq!(blob, Blob::from_value(&value).expect("a blob"));
    }

    struct Liar;
    impl Serialize for Liar {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            use serde::ser::SerializeSeq;
            serializer.serialize_seq(Some(3))?.end()
        }
    }
    let error = Blob::encode(&Liar).expect_err("a fault").to_string();
    assert_eq!(error, "a type announced 3 elements and gave 0");
}

#[test]
fn hostile_bytes_are_refused() {
    let deep = |len: usize, unit: &[u8]| unit.repeat(len);
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("nothing at all", vec![]),
        ("a byte that begins no value", hex("c1")),
        ("bytes left over", hex("01 02")),
        ("text cut short", hex("a5 6869")),
        ("text that is no text", hex("a2 ff fe")),
        ("a list of four billion", hex("dd ffffffff 01")),
        ("a map of four billion", hex("df ffffffff 01 01")),
        ("bytes of four gigabytes", hex("c6 ffffffff 00")),
        ("a type of four gigabytes", hex("c9 ffffffff 00 01")),
        ("text of four gigabytes", hex("db ffffffff 41")),
        ("lists within lists", deep(1_000_000, &[0x91])),
        ("maps within maps", deep(1_000_000, &[0x81, 0xa1, 0x61])),
        ("keys within keys", deep(1_000_000, &[0x81])),
        ("long lists within long lists", deep(200_000, &hex("dc 0002"))),
        ("a snapshot with bytes left over", hex("d5 07 01 02")),
        ("a set cut short", hex("d8 00 93 a8 6275696c74696e73 a3 736574 92 01")),
    ];
    for (what, bytes) in cases {
        let result = Blob::new(Tag::Msgpack, bytes).to_value();
        assert!(matches!(result, Err(Error::Codec(_))), "{what}: {result:?}");
    }
}

#[test]
fn snapshots_within_snapshots_are_refused() {
    let mut bytes = vec![0x01];
    for _ in 0..300 {
        let mut outer = vec![0xc9];
        outer.extend((bytes.len() as u32).to_be_bytes());
        outer.push(7);
        outer.extend(&bytes);
        bytes = outer;
    }
    let error = Blob::new(Tag::Msgpack, bytes).to_value().expect_err("a fault");
    assert_eq!(error.to_string(), "nested too deep");
}

#[test]
fn limits_are_what_they_say() {
    let nested = |depth| (0..depth).fold(Value::Null, |inner, _| Value::List(vec![inner]));
    let deepest = Blob::from_value(&nested(255)).expect("a blob");
    assert_eq!(deepest.to_value().expect("a value"), nested(255));
    assert!(Blob::from_value(&nested(256)).is_err());

    // Types of their own count in both directions, so that whatever is written can be read.
    let set = (0..127).fold(Value::Null, |inner, _| Value::Set(Set::from([inner])));
    assert_eq!(Blob::from_value(&set).expect("a blob").to_value().expect("a value"), set);
    assert!(Blob::from_value(&Value::Set([set].into())).is_err());

    let three = Blob::encode(&[1, 2]).expect("a blob");
    let within = |limits| three.to_value_within(limits).map_err(|error| error.to_string());
    assert!(within(Limits { items: 3, bytes: 3, depth: 1 }).is_ok());
    let few = within(Limits { items: 2, ..Limits::DEFAULT });
    assert_eq!(few, Err("at `[1]`: too many values".into()));
    let short = within(Limits { bytes: 2, ..Limits::DEFAULT });
    assert_eq!(short, Err("3 bytes, more than the 2 allowed".into()));
}

#[test]
fn integers_and_lengths_take_the_shortest_form() {
    let cases: [(i64, &str); 14] = [
        (0, "00"),
        (127, "7f"),
        (128, "cc80"),
        (255, "ccff"),
        (256, "cd0100"),
        (65_535, "cdffff"),
        (65_536, "ce00010000"),
        (1 << 32, "cf0000000100000000"),
        (-32, "e0"),
        (-33, "d0df"),
        (-128, "d080"),
        (-129, "d1ff7f"),
        (-32_769, "d2ffff7fff"),
        (i64::MIN, "d38000000000000000"),
    ];
    for (number, bytes) in cases {
        assert_eq!(Blob::encode(&number).expect("a blob").bytes(), hex(bytes), "{number}");
    }
    for (len, header) in
        [(31, "bf"), (32, "d920"), (255, "d9ff"), (256, "da0100"), (65_536, "db00010000")]
    {
        let blob = Blob::encode(&"x".repeat(len)).expect("a blob");
        assert!(blob.bytes().starts_with(&hex(header)), "text of {len}");
    }
    for (len, header) in [(1, "d409"), (3, "c70309"), (16, "d809"), (256, "c8010009")] {
        let value = Value::from(Ext::Foreign(Foreign::new(9, vec![0; len])));
        let blob = Blob::from_value(&value).expect("a blob");
        assert!(blob.bytes().starts_with(&hex(header)), "a type of {len}");
    }
    assert_eq!(Blob::encode(&1.5_f32).expect("a blob").bytes(), hex("cb3ff8000000000000"));
}

proptest! {
    #[test]
    fn a_value_comes_back_from_its_bytes(value in any_value()) {
        let blob = Blob::from_value(&value).expect("a blob");
        prop_assert_eq!(blob.to_value().expect("a value"), value);
    }

    // Whatever the bytes are, reading ends; and what could be read can be written and read again.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(value) = Blob::new(Tag::Msgpack, bytes).to_value() {
            let again = Blob::from_value(&value).expect("a blob");
            prop_assert_eq!(again.to_value().expect("a value"), value);
        }
    }

    // Random bytes are seldom nearly right, so bytes of a value with one changed are tried as well.
    #[test]
    fn nearly_right_bytes_are_read_or_refused(
        value in any_value(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = Blob::from_value(&vec![value].into()).expect("a blob").bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(value) = Blob::new(Tag::Msgpack, bytes).to_value() {
            let json = serde_json::Value::from(value.clone());
            prop_assert_eq!(value.to_string(), json.to_string());
        }
    }
}
