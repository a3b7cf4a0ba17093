//! Shows that whatever stands in a database, reading it gives a value or an error: no panic, no overflow of the stack. The
//! bytes are random, or valid ones that were damaged: bits flipped, cut off, lengths that promise gigabytes, deep nesting.
//!
//! `SUPERSTEP_TEST_CASES` sets how many cases are tried, `SUPERSTEP_TEST_SEED` where they begin.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use serde::Deserialize;
use superstep_checkpoint::{
    Blob, CheckpointId, Interrupt, Limits, Map, Tag, TaskId, Value, Version, wire,
};

fn runner() -> TestRunner {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let cases = number("SUPERSTEP_TEST_CASES").unwrap_or(4_000);
    TestRunner::new(ProptestConfig {
        cases: cases.try_into().unwrap_or(u32::MAX),
        rng_seed: RngSeed::Fixed(number("SUPERSTEP_TEST_SEED").unwrap_or(15)),
        failure_persistence: None,
        ..ProptestConfig::default()
    })
}

/// What is well formed: values, a checkpoint, metadata.
fn valid() -> Vec<Vec<u8>> {
    let question = Interrupt {
        value: Value::from("go on?"),
        id: "0123456789abcdef0123456789abcdef".into(),
        response_schema: None,
    };
    let values = [
        Value::List(vec![Value::Null, Value::Bool(true), Value::from(-7), Value::from(u64::MAX)]),
        Value::Map(Map::from_iter([
            ("text".to_owned(), Value::from("x".repeat(40))),
            ("bytes".to_owned(), Value::Bytes(vec![0; 300])),
            ("float".to_owned(), Value::from(0.5)),
        ])),
        Interrupt::list_to(&[question]),
    ];
    let mut all: Vec<Vec<u8>> = values
        .iter()
        .map(|value| Blob::from_value(value).expect("a value").bytes().to_vec())
        .collect();
    let checkpoint = serde_json::json!({
        "v": 4, "ts": "2026-01-01T00:00:00+00:00", "id": "1f0e7d3a-0000-6000-8000-000000000000",
        "channel_values": {"a": 1, "b": ["x"]}, "channel_versions": {"a": "00000000000000000000000000000002.5"},
        "versions_seen": {"n": {"a": "00000000000000000000000000000001.5"}}, "updated_channels": ["a"],
    });
    all.push(Blob::encode(&checkpoint).expect("data").bytes().to_vec());
    all.push(checkpoint.to_string().into_bytes());
    let metadata = r#"{"source": "loop", "step": 3, "parents": {"": "1f0e7d3a-0000-6000-8000-000000000000"}, "counters_since_delta_snapshot": {"a": [1, 2]}, "x": "y"}"#;
    all.push(metadata.as_bytes().to_vec());
    all
}

/// A way to damage bytes.
#[derive(Clone, Debug)]
enum Damage {
    Flip(usize, u8),
    Cut(usize),
    Insert(usize, Vec<u8>),
    /// Puts this many beginnings of something that holds one other in front.
    Nest(usize, usize),
    /// A length that no bytes follow.
    Bomb(usize, usize),
}

/// A list, a map with the key nil, an extension of a code that holds a value, and JSON.
const BEGINNINGS: [&[u8]; 5] = [b"\x91", b"\x81\xa1a", b"\xc7\xff\x05", b"[", b"{\"a\":"];
const BOMBS: [&[u8]; 5] = [
    b"\xdd\xff\xff\xff\xff",
    b"\xdf\xff\xff\xff\xff",
    b"\xdb\xff\xff\xff\xff",
    b"\xc6\xff\xff\xff\xff",
    b"\xc9\xff\xff\xff\xff\x05",
];

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        any::<usize>().prop_map(Damage::Cut),
        (any::<usize>(), prop::collection::vec(any::<u8>(), 1..8))
            .prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        (0..5usize, 1..5_000usize).prop_map(|(with, times)| Damage::Nest(with, times)),
        (0..5usize, any::<usize>()).prop_map(|(with, at)| Damage::Bomb(with, at)),
    ]
}

fn damaged(mut bytes: Vec<u8>, all: &[Damage]) -> Vec<u8> {
    for damage in all {
        let place = |at: usize, bytes: &[u8]| at % (bytes.len() + 1);
        match damage {
            Damage::Flip(at, bits) if !bytes.is_empty() => {
                let at = at % bytes.len();
                bytes[at] ^= bits;
            }
            Damage::Flip(..) => {}
            Damage::Cut(at) => bytes.truncate(place(*at, &bytes)),
            Damage::Insert(at, more) => {
                let at = place(*at, &bytes);
                bytes.splice(at..at, more.iter().copied());
            }
            Damage::Nest(with, times) => {
                let mut nested = BEGINNINGS[*with].repeat(*times);
                nested.append(&mut bytes);
                bytes = nested;
            }
            Damage::Bomb(with, at) => {
                let at = place(*at, &bytes);
                bytes.splice(at..at, BOMBS[*with].iter().copied());
            }
        }
    }
    bytes
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let damaged = (prop::sample::select(valid()), prop::collection::vec(damage(), 0..5))
        .prop_map(|(bytes, all)| damaged(bytes, &all));
    prop_oneof![1 => prop::collection::vec(any::<u8>(), 0..200), 3 => damaged]
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "it is only read")]
struct Typed {
    text: Option<String>,
    float: f64,
    bytes: Vec<u8>,
    nested: Option<Box<Typed>>,
}

/// Whatever was read can be shown, and stored again.
fn use_value(value: &Value) {
    let _ = (value.to_string(), format!("{value:?}"), serde_json::to_string(value));
    let _ = (Interrupt::list_from(value), wire::version_from_value(value));
    let again = Blob::from_value(value).expect("what was read can be stored");
    again.to_value().expect("and read again");
}

#[test]
fn blobs() {
    let tags = ["null", "bytes", "bytearray", "msgpack", "json", "empty", "pickle"];
    let case = (bytes(), prop::sample::select(tags.to_vec()));
    let tried = runner().run(&case, |(bytes, tag)| {
        let blob = Blob::new(Tag::from(tag), bytes);
        let _ = (format!("{blob:?}"), blob.is_object());
        if let Ok(value) = blob.to_value() {
            use_value(&value);
        }
        let _ = (blob.decode::<Typed>(), blob.decode::<Vec<Typed>>(), blob.decode_whole::<Typed>());
        let _ = (blob.decode::<BTreeMap<String, u8>>(), blob.decode::<(i8, String)>());
        let _ = (blob.decode::<serde_json::Value>(), blob.decode_whole::<Vec<Value>>());
        Ok(())
    });
    tried.expect("a value or an error");
}

#[test]
fn checkpoints() {
    let tried = runner().run(&bytes(), |bytes| {
        if let Ok(parts) = wire::CheckpointParts::new(&bytes, Limits::DEFAULT) {
            let _ = parts.channels(Limits::DEFAULT);
            let _ = parts.value("a", Limits::DEFAULT).map(|blob| blob.map(|blob| blob.to_value()));
            let _ = parts.version("a", Limits::DEFAULT);
        }
        if let Ok(read) = wire::checkpoint_from_msgpack(&bytes, Limits::DEFAULT) {
            let _ = (format!("{read:?}"), wire::checkpoint_to_msgpack(&read));
        }
        Ok(())
    });
    tried.expect("a checkpoint or an error");
}

#[test]
fn metadata() {
    let tried = runner().run(&bytes(), |bytes| {
        if let Ok(read) = wire::metadata_from_json(&bytes) {
            let again = wire::metadata_to_json(&read).expect("what was read can be stored");
            wire::metadata_from_json(again.as_bytes()).expect("and read again");
        }
        Ok(())
    });
    tried.expect("metadata or an error");
}

#[test]
fn ids_and_versions() {
    let tried = runner().run(&(bytes(), any::<[u8; 16]>(), any::<i64>()), |(bytes, id, step)| {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let _ = (text.parse::<CheckpointId>(), text.parse::<TaskId>());
        let version = Version::from_text(text);
        let _ = (version.number(), wire::whole_number(&version), version.to_string());
        let id = CheckpointId::from_bytes(id);
        let clock = superstep_checkpoint::IdClock::new();
        let _ = (id.time(), clock.next(step, Some(id)), clock.next_unstored(step, id));
        Ok(())
    });
    tried.expect("no panic");
}
