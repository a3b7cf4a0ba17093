use super::*;
use crate::{Checkpoint, Limits, Metadata, SharedMap, Source, Tag, Value, Version};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).expect("text"), 16);
    digits.chunks(2).map(|pair| byte(pair).expect("a digit")).collect()
}

fn sample() -> Checkpoint {
    let start: Arc<str> = "__start__".into();
    let version = Version::from_text("00000000000000000000000000000001.0.513930861720739");
    Checkpoint {
        v: 4,
        id: "1f1e1343-b0b3-6f28-bfff-f615d72d0c55".parse().expect("an id"),
        ts: "2026-11-15T20:36:27.023418+00:00".into(),
        channel_values: [(start.clone(), Blob::encode(&21).expect("a blob"))].into_iter().collect(),
        channel_versions: [(start.clone(), version)].into_iter().collect(),
        versions_seen: [("__input__".into(), SharedMap::new_sync())].into_iter().collect(),
        updated_channels: Some(vec![start]),
    }
}

/// The bytes are those LangGraph writes for the same checkpoint (section by section, as it prints
/// them).
#[test]
fn a_checkpoint_has_the_bytes_of_the_other_engine() {
    let bytes = checkpoint_to_msgpack(&sample()).expect("bytes");
    assert_eq!(bytes.len(), 244 - 1, "one digit less than the sample that was measured");
    assert_eq!(bytes[..9], hex("87 a176 04 a27473 d920"));
    let values = hex("ae6368616e6e656c5f76616c756573 81 a95f5f73746172745f5f 15 b0");
    assert_eq!(bytes[0x52..0x52 + values.len()], values);
    let end = hex("b0757064617465645f6368616e6e656c73 91 a95f5f73746172745f5f");
    assert!(bytes.ends_with(&end));
    assert_eq!(checkpoint_from_msgpack(&bytes, Limits::DEFAULT).expect("a checkpoint"), sample());
}

#[test]
fn values_come_back_as_the_bytes_they_were() {
    let mut checkpoint = sample();
    let foreign = Blob::new(Tag::Msgpack, hex("c7 03 63 01 02 03"));
    for (name, blob) in [
        ("foreign", foreign),
        ("null", Blob::null()),
        ("bytes", Blob::new(Tag::Bytes, [0u8; 70_000])),
        ("padded", Blob::new(Tag::Msgpack, hex("d3 0000000000000001"))),
    ] {
        checkpoint.channel_values.insert_mut(name.into(), blob);
    }
    let bytes = checkpoint_to_msgpack(&checkpoint).expect("bytes");
    assert_eq!(checkpoint_from_msgpack(&bytes, Limits::DEFAULT).expect("read"), checkpoint);
    let parts = CheckpointParts::new(&bytes, Limits::DEFAULT).expect("parts");
    let padded = parts.value("padded", Limits::DEFAULT).expect("read").expect("a value");
    assert_eq!(padded.bytes().len(), 9);
}

#[test]
fn a_value_that_is_not_one_value_does_not_spoil_the_checkpoint() {
    for (tag, bytes) in [(Tag::Msgpack, "92 01"), (Tag::Msgpack, "01 01"), (Tag::Msgpack, "")] {
        let mut checkpoint = sample();
        checkpoint.channel_values.insert_mut("odd".into(), Blob::new(tag, hex(bytes)));
        let error = checkpoint_to_msgpack(&checkpoint).expect_err("refused").to_string();
        assert!(error.contains("`odd`"), "{error}");
    }
    let mut checkpoint = sample();
    checkpoint.channel_values.insert_mut("odd".into(), Blob::new("pickle".into(), *b"x"));
    let error = checkpoint_to_msgpack(&checkpoint).expect_err("refused").to_string();
    assert!(error.contains("`pickle`"), "{error}");
}

#[test]
fn any_cut_or_flipped_byte_is_a_checkpoint_or_an_error() {
    let bytes = checkpoint_to_msgpack(&sample()).expect("bytes");
    for cut in 0..bytes.len() {
        assert!(checkpoint_from_msgpack(&bytes[..cut], Limits::DEFAULT).is_err(), "cut at {cut}");
    }
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << bit;
            // Only that it ends: text may still be text.
            drop(checkpoint_from_msgpack(&bytes, Limits::DEFAULT));
        }
    }
}

#[test]
fn lengths_that_lie_are_refused_before_anything_is_made_of_them() {
    for lie in
        ["dd ffffffff", "df ffffffff", "81 a176 dd ffffffff", "c6 ffffffff", "c9 ffffffff 01"]
    {
        assert!(checkpoint_from_msgpack(&hex(lie), Limits::DEFAULT).is_err(), "{lie}");
    }
    // A million lists, one inside the other, are bytes to be skipped and no reason to recurse.
    let deep = [hex("81 a178"), vec![0x91; 1_000_000], vec![0xc0]].concat();
    let error = checkpoint_from_msgpack(&deep, Limits::DEFAULT).expect_err("no checkpoint");
    assert!(error.to_string().contains("`v`"), "{error}");
}

#[test]
fn a_newer_format_is_refused_with_the_way_out() {
    let bytes = checkpoint_to_msgpack(&Checkpoint { v: 5, ..sample() }).expect("bytes");
    let error = checkpoint_from_msgpack(&bytes, Limits::DEFAULT).expect_err("refused").to_string();
    assert!(error.contains("format 5") && error.contains("update"), "{error}");
}

#[test]
fn dispatches_of_old_checkpoints_are_the_value_of_a_channel() {
    let old = |v: u32, sends: &str| {
        let mut bytes = checkpoint_to_msgpack(&Checkpoint { v, ..sample() }).expect("bytes");
        bytes[0] = 0x88;
        bytes.extend(hex("ad 70656e64696e675f73656e6473"));
        bytes.extend(hex(sends));
        checkpoint_from_msgpack(&bytes, Limits::DEFAULT).expect("a checkpoint")
    };
    let found = old(3, "91 05");
    assert_eq!(found.value("__pregel_tasks"), Some(&Blob::encode(&[5]).expect("a blob")));
    assert_eq!(found.version("__pregel_tasks"), found.version("__start__"));
    for (v, sends) in [(3, "90"), (4, "91 05")] {
        assert_eq!(old(v, sends), Checkpoint { v, ..sample() }, "{v} {sends}");
    }
}

#[test]
fn versions_that_are_numbers_stay_numbers_and_sort_by_size() {
    let [nine, ten] = [9, 10].map(|n| version_from_value(&Value::Int(n)).expect("a version"));
    assert!(nine < ten);
    assert_eq!((ten.number(), version_to_value(&ten)), (Some(10), Value::Int(10)));
    let text = Version::after(3, 7);
    assert_eq!(version_to_value(&text), Value::from(text.as_str()));
    let mut checkpoint = sample();
    checkpoint.channel_versions.insert_mut("n".into(), ten);
    let bytes = checkpoint_to_msgpack(&checkpoint).expect("bytes");
    assert_eq!(checkpoint_from_msgpack(&bytes, Limits::DEFAULT).expect("read"), checkpoint);
}

#[test]
fn metadata_is_the_text_the_other_engine_writes() {
    let mut metadata = Metadata::new(Source::Loop, 3);
    assert_eq!(
        metadata_to_json(&metadata).expect("JSON"),
        r#"{"source": "loop", "step": 3, "parents": {}}"#
    );
    metadata.parents.insert(String::new(), sample().id);
    metadata.delta_counters.insert("log".into(), (2, 5));
    metadata.extra.insert("user".into(), "Zo\u{eb} \"q\"\n\u{1}".into());
    let nested: Value = [("b", Value::from(1)), ("a", vec![1, 2].into())]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    metadata.extra.insert("nested".into(), nested);
    let text = metadata_to_json(&metadata).expect("JSON");
    assert_eq!(
        text,
        "{\"source\": \"loop\", \"step\": 3, \"parents\": {\"\": \"1f1e1343-b0b3-6f28-bfff-f615d72d0c55\"}, \
         \"counters_since_delta_snapshot\": {\"log\": [2, 5]}, \"nested\": {\"b\": 1, \"a\": [1, 2]}, \
         \"user\": \"Zo\u{eb} \\\"q\\\"\\n\\u0001\"}"
    );
    assert_eq!(metadata_from_json(text.as_bytes()).expect("metadata"), metadata);
}

#[test]
fn metadata_loses_what_databases_cannot_hold_and_says_what_is_missing() {
    let mut metadata = Metadata::new(Source::Input, -1);
    metadata.extra.insert("name".into(), "a\0b".into());
    metadata.extra.insert("score".into(), f64::NAN.into());
    metadata.extra.insert("source".into(), "forged".into());
    let text = metadata_to_json(&metadata).expect("JSON");
    assert_eq!(
        text,
        r#"{"source": "input", "step": -1, "parents": {}, "name": "ab", "score": null}"#
    );
    for (text, wanted) in [
        ("[]", "a list"),
        (r#"{"source": "loop"}"#, "`step`"),
        (r#"{"source": "x", "step": 1}"#, "`source`"),
        (r#"{"source": "loop", "step": 1, "parents": {"": 5}}"#, "`parents`"),
        ("{", "not JSON"),
    ] {
        let error = metadata_from_json(text.as_bytes()).expect_err(text).to_string();
        assert!(error.contains(wanted), "{error}");
    }
}
