//! Reading a type straight from bytes gives what reading it through the tree gives, message for message.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Debug};

use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use uuid::Uuid;

use super::objects::{Classed, HandedOn};
use super::*;
use crate::blob::{de, decode};
use crate::from_value;

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "they are compared as they print")]
struct Plain {
    a: u8,
    #[serde(default)]
    b: Option<String>,
    #[serde(default)]
    c: Vec<External>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "they are compared as they print")]
struct Closed {
    a: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "they are compared as they print")]
struct Flat {
    a: Option<i64>,
    #[serde(flatten)]
    inner: Option<Closed>,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
enum External {
    A,
    B(i8),
    C(u8, Option<Box<External>>),
    D { a: i32, b: Option<Box<External>> },
}

#[derive(Debug, Deserialize)]
#[serde(tag = "a", rename_all = "snake_case")]
#[expect(dead_code, reason = "they are compared as they print")]
enum Internal {
    A,
    B { b: Option<i64>, c: Option<String> },
    C(BTreeMap<String, Value>),
}

#[derive(Debug, Deserialize)]
#[serde(tag = "a", content = "b", rename_all = "snake_case")]
#[expect(dead_code, reason = "they are compared as they print")]
enum Adjacent {
    A,
    B(f64),
    C(u8, u8),
    D { a: char },
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "they are compared as they print")]
enum Untagged {
    Small(u8),
    Text(String),
    Closed(Closed),
    Plain(Plain),
    Numbers(BTreeMap<i16, Untagged>),
    Many(Vec<Untagged>),
    Any(Value),
}

#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Newtype(u16);

#[derive(Debug, Deserialize)]
struct Unit;

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "they are compared as they print")]
struct Tuple(bool, Option<()>, Option<Value>);

/// Takes what it can get, so that a fault inside leaves the bytes half read.
#[derive(Debug)]
struct Lenient<T>(Result<T, String>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(T::deserialize(deserializer).map_err(|error| error.to_string())))
    }
}

/// Reads nothing at all.
#[derive(Debug)]
struct Idle;

impl<'de> Deserialize<'de> for Idle {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Ok(Self)
    }
}

/// Sees what a visitor sees: entries that come twice, in their order, and, with `ENTRIES`, only so many of them.
#[derive(Debug)]
#[expect(dead_code, reason = "they are compared as they print")]
enum AnyValue<const ENTRIES: usize> {
    Bytes(Vec<u8>),
    Items(Vec<Value>),
    Entries(Vec<(String, Option<Value>)>),
}

impl<'de, const ENTRIES: usize> Deserialize<'de> for AnyValue<ENTRIES> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SeenVisitor)
    }
}

struct SeenVisitor<const ENTRIES: usize>;

impl<'de, const ENTRIES: usize> Visitor<'de> for SeenVisitor<ENTRIES> {
    type Value = AnyValue<ENTRIES>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes, items or entries")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(AnyValue::Bytes(bytes.to_vec()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while items.len() < ENTRIES
            && let Some(item) = seq.next_element()?
        {
            items.push(item);
        }
        Ok(AnyValue::Items(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while entries.len() < ENTRIES
            && let Some(key) = map.next_key()?
        {
            // The value of the last entry that it looks at is left alone.
            let looks = entries.len() + 1 < ENTRIES;
            entries.push((key, if looks { Some(map.next_value()?) } else { None }));
        }
        Ok(AnyValue::Entries(entries))
    }
}

/// Continues after every fault, of keys too, and asks for the value of each entry so many times.
#[derive(Debug)]
#[expect(dead_code, reason = "they are compared as they print")]
struct Stubborn<const VALUES: usize>(Vec<String>);

impl<'de, const VALUES: usize> Deserialize<'de> for Stubborn<VALUES> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StubbornVisitor)
    }
}

struct StubbornVisitor<const VALUES: usize>;

impl<'de, const VALUES: usize> Visitor<'de> for StubbornVisitor<VALUES> {
    type Value = Stubborn<VALUES>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("items or entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let items = (0..30).map(|_| said(seq.next_element::<u8>()));
        Ok(Stubborn(items.take_while(|item| item != "None").collect()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        for _ in 0..30 {
            let key = said(map.next_key::<char>());
            if key == "None" {
                break;
            }
            entries.push(key);
            entries.extend((0..VALUES).map(|_| said(map.next_value::<u8>())));
        }
        Ok(Stubborn(entries))
    }
}

fn said<T: Debug, E: fmt::Display>(result: Result<T, E>) -> String {
    result.map_or_else(|error| error.to_string(), |found| format!("{found:?}"))
}

fn through_the_tree<T: DeserializeOwned>(bytes: &[u8], limits: Limits) -> Result<T, Error> {
    from_value(decode::value(bytes, limits)?)
}

fn print<T: Debug>(result: Result<T, Error>) -> Result<String, String> {
    result.map(|typed| format!("{typed:?}")).map_err(|error| error.to_string())
}

/// Asserts for each of the types that both ways agree.
macro_rules! assert_same {
    ($bytes:expr, $limits:expr; $($type:ty),* $(,)?) => {$(
        let direct = print(de::typed::<$type>($bytes, $limits));
        let expected = print(through_the_tree::<$type>($bytes, $limits));
        assert_eq!(direct, expected, "{} from {:02x?}", stringify!($type), $bytes);
    )*};
}

fn assert_all_same(bytes: &[u8], limits: Limits) {
    assert_same!(bytes, limits;
        Value, serde_json::Value, IgnoredAny, (), bool, char, String, Cow<'static, str>, Box<str>,
        u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64, Uuid,
        Option<u8>, Option<Option<Value>>, Option<()>, Vec<u8>, Vec<i64>, Vec<f32>, Vec<String>,
        [u8; 2], (u8, Option<String>), (Value,), Vec<Value>, Vec<Option<Value>>,
    );
    assert_same!(bytes, limits;
        Plain, Closed, Flat, External, Internal, Adjacent, Untagged, Newtype, Unit, Tuple,
        Vec<Plain>, Vec<Flat>, Vec<External>, Vec<Internal>, Vec<Adjacent>, Vec<Untagged>,
        Option<External>, Box<Plain>, (External, Untagged), Interrupt, Packet, TimeLimits,
    );
    assert_same!(bytes, limits;
        BTreeMap<String, Value>, BTreeMap<String, Untagged>, IndexMap<String, u8>, BTreeMap<i32, u8>,
        BTreeMap<u64, Value>, BTreeMap<bool, Value>, BTreeMap<char, Value>, BTreeMap<Newtype, Value>,
        BTreeMap<Option<u8>, Value>, BTreeMap<External, Value>, BTreeMap<Value, Value>,
        BTreeMap<(), Value>, BTreeMap<Vec<u8>, Value>, BTreeMap<String, IgnoredAny>,
    );
    assert_same!(bytes, limits;
        Idle, Vec<Idle>, BTreeMap<String, Idle>, Lenient<u8>, Vec<Lenient<External>>,
        Vec<Lenient<Plain>>, BTreeMap<String, Lenient<Vec<Lenient<u8>>>>, (Idle, Lenient<String>, u8),
        AnyValue<0>, AnyValue<1>, AnyValue<2>, AnyValue<9>, Vec<AnyValue<1>>, Vec<AnyValue<9>>,
        Stubborn<0>, Stubborn<1>, Stubborn<2>, Vec<Stubborn<1>>,
    );
    assert_same!(bytes, limits;
        Classed, Vec<Classed>, Option<Classed>, BTreeMap<String, Classed>, Vec<Lenient<Classed>>,
        HandedOn<Classed>, HandedOn<Plain>, Vec<HandedOn<Value>>, HandedOn<Option<Vec<u8>>>,
    );
}

/// A header for so many items or bytes, in the short form or a longer one.
fn header(short: u8, most: usize, long: u8, len: usize) -> Vec<u8> {
    if len <= most { vec![short | len as u8] } else { vec![long, 0, len as u8] }
}

fn list(items: Vec<Vec<u8>>) -> Vec<u8> {
    [header(0x90, 15, 0xdc, items.len()), items.concat()].concat()
}

fn entries(entries: Vec<(Vec<u8>, Vec<u8>)>) -> Vec<u8> {
    let header = header(0x80, 15, 0xde, entries.len());
    header
        .into_iter()
        .chain(entries.into_iter().flat_map(|(key, value)| [key, value].concat()))
        .collect()
}

fn extension(code: i8, data: &[u8]) -> Vec<u8> {
    [&[0xc8], &(data.len() as u16).to_be_bytes()[..], &code.to_be_bytes(), data].concat()
}

fn bytes_of(value: &Value) -> Vec<u8> {
    // A list, so that nothing and bytes are MessagePack as well.
    Blob::from_value(&vec![value.clone()].into()).expect("a blob").bytes()[1..].to_vec()
}

/// Words that the types above know, and numbers that are keys in JSON.
fn word() -> impl Strategy<Value = Vec<u8>> {
    let known =
        prop::sample::select(vec!["a", "b", "c", "d", "7", "true", "value", "node", "id", "é"]);
    prop_oneof![9 => known.prop_map(|word| bytes_of(&word.into())), 1 => any_value().prop_map(|value| bytes_of(&value))]
}

/// Bytes of values in the shapes of the types above, also in forms that nobody writes: keys that come twice, numbers of four
/// bytes for floats, types of their own around anything.
fn shaped() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        word(),
        (-3..300_i64).prop_map(|number| bytes_of(&number.into())),
        any_value().prop_map(|value| bytes_of(&value)),
        Just(hex("c0")),
        Just(hex("ca 3fc00000")),
        Just(hex("cf 0000000000000005")),
        Just(hex("c4 02 0102")),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let class = prop::sample::select(vec![
            ("builtins", "set"),
            ("langgraph.types", "Send"),
            ("langgraph.types", "Interrupt"),
            ("langgraph.types", "Overwrite"),
            ("m", "N"),
        ]);
        prop_oneof![
            2 => prop::collection::vec(inner.clone(), 0..5).prop_map(list),
            4 => prop::collection::vec((word(), inner.clone()), 0..5).prop_map(entries),
            1 => prop::collection::vec((word(), inner.clone()), 7..20).prop_map(entries),
            1 => (0..8_i8, class, inner.clone()).prop_map(|(code, (module, name), payload)| {
                let [module, name] = [module, name].map(|text| bytes_of(&text.into()));
                extension(code, &list(vec![module, name, payload]))
            }),
            1 => inner.prop_map(|inside| extension(7, &inside)),
        ]
    })
}

fn opened(blob: &Blob) -> Result<Value, Error> {
    Ok(match blob.to_value()? {
        Value::Ext(ext) => match *ext {
            Ext::Snapshot(whole) => whole,
            other => other.into(),
        },
        other => other,
    })
}

proptest! {
    #[test]
    fn any_value_is_read_as_through_the_tree(value in any_value()) {
        assert_all_same(&bytes_of(&value), Limits::DEFAULT);
    }

    #[test]
    fn any_shape_is_read_as_through_the_tree(bytes in shaped()) {
        assert_all_same(&bytes, Limits::DEFAULT);
    }

    #[test]
    fn damaged_bytes_are_read_as_through_the_tree(
        bytes in shaped(),
        at in any::<prop::sample::Index>(),
        instead in prop::collection::vec(any::<u8>(), 0..3),
    ) {
        let at = at.index(bytes.len());
        let damaged = [&bytes[..at], &instead, &bytes[at + 1..]].concat();
        assert_all_same(&damaged, Limits::DEFAULT);
        assert_all_same(&bytes[..at], Limits::DEFAULT);
    }

    // One of the ways counts as it goes, the other before; both must come to the same.
    #[test]
    fn limits_hold_as_in_the_tree(bytes in shaped(), depth in 0..6_usize, items in 0..30_usize) {
        assert_all_same(&bytes, Limits { depth, items, bytes: 200 });
    }

    #[test]
    fn a_snapshot_is_opened_as_in_the_tree(bytes in shaped()) {
        for bytes in [bytes.clone(), extension(7, &bytes), extension(7, &extension(7, &bytes))] {
            let blob = Blob::new(Tag::Msgpack, bytes);
            prop_assert_eq!(print(blob.decode_whole::<Value>()), print(opened(&blob)));
            let typed = opened(&blob).and_then(from_value::<Option<Vec<Untagged>>>);
            prop_assert_eq!(print(blob.decode_whole::<Option<Vec<Untagged>>>()), print(typed));
        }
    }

    #[test]
    fn an_object_is_known_by_how_it_begins(bytes in shaped()) {
        let blob = Blob::new(Tag::Msgpack, bytes);
        if let Ok(value) = blob.to_value() {
            let is_object = matches!(value, Value::Map(_) | Value::Pairs(_) | Value::Set(_) | Value::Ext(_));
            prop_assert_eq!(blob.is_object(), is_object);
            let text = serde_json::Value::from(value).to_string();
            let json = Blob::new(Tag::Json, format!(" {text}").into_bytes());
            prop_assert_eq!(json.is_object(), text.starts_with('{'));
        }
    }
}

// If everything took the long way, all of the above would hold too.
#[test]
fn what_is_plain_is_read_without_a_tree() {
    fn is_direct<T: DeserializeOwned>(value: Value) -> bool {
        de::directly::<T>(&bytes_of(&value), Limits::DEFAULT).is_some()
    }
    let plain = |c: Vec<Value>| {
        map(&[("a", 1.into()), ("ignored", vec![map(&[("x", 1.into())])].into()), ("c", c.into())])
    };
    let variants = vec![
        "a".into(),
        map(&[("b", (-1).into())]),
        map(&[("c", vec![Value::from(1), Value::Null].into())]),
        map(&[("d", map(&[("a", 1.into()), ("b", "a".into())]))]),
    ];
    assert!(is_direct::<Plain>(plain(variants.clone())));
    assert!(is_direct::<Vec<Plain>>(vec![plain(variants); 2000].into()));
    assert!(is_direct::<Flat>(map(&[("a", 1.into()), ("z", 1.5.into())])));
    assert!(is_direct::<Internal>(map(&[("a", "b".into()), ("c", "x".into())])));
    assert!(is_direct::<Adjacent>(map(&[("b", 1.5.into()), ("a", "b".into())])));
    assert!(is_direct::<Vec<Untagged>>(vec![Value::from(1), "x".into(), Value::Null].into()));
    assert!(is_direct::<BTreeMap<i16, Newtype>>(map(&[("7", 1.into())])));
    assert!(is_direct::<BTreeMap<i16, Newtype>>(Value::pairs(vec![(7.into(), 1.into())])));
    assert!(is_direct::<Vec<u8>>(Value::Bytes(vec![1, 2])));
    assert!(is_direct::<(Option<u64>, f64, char)>(
        vec![Value::UInt(u64::MAX), 1.into(), "x".into()].into()
    ));
    let set = Value::Set([1.into()].into());
    assert!(
        is_direct::<Vec<Vec<u8>>>(vec![set].into()),
        "types of their own are read where they stand"
    );

    let twice =
        entries(vec![(bytes_of(&"a".into()), hex("01")), (bytes_of(&"a".into()), hex("02"))]);
    assert!(de::directly::<BTreeMap<String, u8>>(&twice, Limits::DEFAULT).is_none());
    assert!(!is_direct::<Vec<Lenient<u8>>>(vec!["x"].into()));
    assert!(!is_direct::<Vec<Idle>>(vec![1].into()));
}

/// How much a type was told to expect, at each level.
struct Told(Vec<usize>);

impl<'de> Deserialize<'de> for Told {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ToldVisitor)
    }
}

struct ToldVisitor;

impl<'de> Visitor<'de> for ToldVisitor {
    type Value = Told;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Told, A::Error> {
        let hint = seq.size_hint().unwrap_or(0);
        assert!(hint <= 4096, "a type was told to expect {hint} items that are not there");
        let mut told = vec![hint];
        while let Some(Told(inside)) = seq.next_element()? {
            told.extend(inside);
        }
        Ok(Told(told))
    }
}

// Some types reserve what they are told to expect, so a length that nothing has confirmed yet must not reach them.
#[test]
fn lengths_that_lie_are_not_passed_on() {
    let lie = hex("dd 000f0000").repeat(200);
    let bytes = [lie, vec![0x90; 1 << 20]].concat();
    assert!(Blob::new(Tag::Msgpack, bytes).decode::<Told>().is_err());
    let true_lengths = list(vec![hex("90"), hex("91 90")]);
    let told = Blob::new(Tag::Msgpack, true_lengths).decode::<Told>().expect("a list");
    assert_eq!(told.0, [2, 0, 1, 0]);
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "only the failure to read them is of interest")]
enum Nested {
    Map(BTreeMap<String, Nested>),
    List(Vec<Nested>),
    None,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only the failure to read them is of interest")]
enum Chain {
    #[serde(rename = "a")]
    A(Box<Chain>),
}

#[test]
fn hostile_bytes_are_refused_by_types() {
    let deep = [&[0x91][..], &[0x81, 0xa1, 0x61], &[0x81], &hex("dc 0002"), &hex("c7 ff 07")];
    let deep = deep.into_iter().map(|unit| unit.repeat(200_000));
    let lengths = [
        "dd ffffffff 01",
        "df ffffffff 01 01",
        "c6 ffffffff 00",
        "c9 ffffffff 00 01",
        "db ffffffff 41",
    ];
    for bytes in deep.chain(lengths.map(hex)).chain([vec![], hex("c1"), hex("91 a2 fffe")]) {
        let blob = Blob::new(Tag::Msgpack, bytes);
        assert!(blob.decode::<Nested>().is_err());
        assert!(blob.decode::<Chain>().is_err());
        assert!(blob.decode::<IgnoredAny>().is_err());
        assert!(blob.decode::<Vec<Lenient<Chain>>>().is_err());
        assert!(blob.decode_whole::<serde_json::Value>().is_err());
    }
}
