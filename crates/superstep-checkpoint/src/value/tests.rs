mod depth;

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::*;

/// Values of every kind, nested a few levels.
pub(crate) fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,40}".prop_map(Value::from),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Value::Bytes),
        (prop_oneof![-128..0_i8, 8..=127_i8], prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(code, data)| Ext::Foreign(Foreign::new(code, data)).into()),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        let limits = prop::option::of((any::<Option<f64>>(), any::<Option<f64>>()))
            .prop_map(|limits| limits.map(|(run, idle)| TimeLimits { run, idle }));
        let schema = prop::option::of(inner.clone())
            .prop_map(|schema| schema.filter(|schema| !schema.is_null()));
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec(("[a-z]{0,3}", inner.clone()), 0..6)
                .prop_map(|entries| entries.into_iter().collect()),
            prop::collection::vec((inner.clone(), inner.clone()), 0..6).prop_map(Value::pairs),
            prop::collection::vec(inner.clone(), 0..6)
                .prop_map(|items| Value::Set(items.into_iter().collect())),
            ("[a-z]{1,5}", inner.clone(), limits).prop_map(|(node, arg, timeout)| Packet {
                node,
                arg,
                timeout
            }
            .into()),
            (inner.clone(), "[0-9a-f]{32}", schema).prop_map(|(value, id, response_schema)| {
                Interrupt { value, id: id.into(), response_schema }.into()
            }),
            inner.clone().prop_map(|value| Ext::Overwrite(value).into()),
            inner.prop_map(|value| Ext::Snapshot(value).into()),
        ]
    })
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Point,
    Circle(f64),
    Line(i32, i32),
    Box { width: u8, label: Option<String> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Everything {
    shapes: Vec<Shape>,
    by_number: BTreeMap<u16, String>,
    by_name: BTreeMap<String, (bool, char)>,
    id: Uuid,
    nothing: Option<()>,
    any: Value,
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        Just(Shape::Point),
        (-1e9..1e9).prop_map(Shape::Circle),
        any::<(i32, i32)>().prop_map(|(from, to)| Shape::Line(from, to)),
        (any::<u8>(), any::<Option<String>>())
            .prop_map(|(width, label)| Shape::Box { width, label }),
    ]
}

prop_compose! {
    fn everything()(
        shapes in prop::collection::vec(shape(), 0..4),
        by_number in any::<BTreeMap<u16, String>>(),
        by_name in any::<BTreeMap<String, (bool, char)>>(),
        id in any::<u128>(),
        any in any_value(),
    ) -> Everything {
        Everything { shapes, by_number, by_name, id: Uuid::from_u128(id), nothing: None, any }
    }
}

proptest! {
    // A typed value must come back from storage as it was, also through bytes, with types of their own inside.
    #[test]
    fn a_typed_value_comes_back(typed in everything()) {
        let value = to_value(&typed).expect("a value");
        prop_assert_eq!(&from_value::<Everything>(value.clone()).expect("typed"), &typed);
        let blob = crate::Blob::encode(&typed).expect("a blob");
        prop_assert_eq!(&blob, &crate::Blob::from_value(&value).expect("a blob"));
        prop_assert_eq!(blob.decode::<Everything>().expect("typed"), typed);
    }

    #[test]
    fn a_value_is_its_own_value(value in any_value()) {
        prop_assert_eq!(&to_value(&value).expect("a value"), &value);
        prop_assert_eq!(&from_value::<Value>(value.clone()).expect("a value"), &value);
    }

    // Sets rest on this: equality, order and hash must say the same.
    #[test]
    fn equality_order_and_hash_agree(a in any_value(), b in any_value()) {
        prop_assert_eq!(a == b, a.cmp(&b).is_eq());
        prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
        prop_assert!(a.cmp(&a).is_eq());
        let hasher = RandomState::new();
        prop_assert_eq!(hasher.hash_one(&a), hasher.hash_one(a.clone()));
    }

    // What serde_json prints through `Serialize` and what `From` makes are the same readable form.
    #[test]
    fn both_ways_to_json_agree(value in any_value()) {
        if let Ok(json) = serde_json::to_value(&value) {
            let mut text_keys = true;
            visit(&value, &mut |value| text_keys &= !matches!(value, Value::Pairs(_)));
            prop_assume!(text_keys);
            prop_assert_eq!(json, serde_json::Value::from(value));
        }
    }
}

fn visit(value: &Value, see: &mut impl FnMut(&Value)) {
    see(value);
    match value {
        Value::List(items) => items.iter().for_each(|item| visit(item, see)),
        Value::Set(items) => items.iter().for_each(|item| visit(item, see)),
        Value::Map(map) => map.values().for_each(|item| visit(item, see)),
        Value::Ext(ext) => match &**ext {
            Ext::Send(packet) => visit(&packet.arg, see),
            Ext::Interrupt(Interrupt { value, response_schema, .. }) => {
                visit(value, see);
                response_schema.iter().for_each(|schema| visit(schema, see));
            }
            Ext::Overwrite(value) | Ext::Snapshot(value) => visit(value, see),
            Ext::Foreign(_) => {}
        },
        _ => {}
    }
}

fn map(entries: &[(&str, Value)]) -> Value {
    entries.iter().cloned().collect()
}

#[test]
fn kinds_of_numbers_differ_and_maps_do_not_care_for_order() {
    assert_ne!(Value::from(1), Value::from(1.0));
    assert_ne!(Value::from(0.0), Value::from(-0.0));
    assert_eq!(Value::from(f64::NAN), Value::from(f64::NAN));
    assert_eq!(Value::from(7_u64), Value::Int(7));
    assert_eq!(Value::from(u64::MAX), Value::UInt(u64::MAX));
    let (there, back) =
        (map(&[("a", 1.into()), ("b", 2.into())]), map(&[("b", 2.into()), ("a", 1.into())]));
    assert_eq!(there, back);
    let hasher = RandomState::new();
    assert_eq!(hasher.hash_one(&there), hasher.hash_one(&back));
    let pairs = |keys: [i64; 2]| Value::pairs(keys.map(|key| (key.into(), key.into())).into());
    assert_eq!(pairs([1, 2]), pairs([2, 1]));
}

#[test]
fn values_read_as_json() {
    let interrupt =
        |schema| Interrupt { value: "ok?".into(), id: "i1".into(), response_schema: schema };
    let foreign = |code, payload: Value| {
        let parts = Value::List(vec!["some.module".into(), "Name".into(), payload]);
        let data = crate::Blob::from_value(&parts).expect("a blob").bytes().to_vec();
        Value::from(Ext::Foreign(Foreign::new(code, data)))
    };
    let cases: Vec<(Value, serde_json::Value)> = vec![
        (Value::Bytes(vec![1, 255]), json!([1, 255])),
        (Value::from(f64::INFINITY), json!(null)),
        (Value::UInt(u64::MAX), json!(u64::MAX)),
        (Value::Set([2, 1].map(Value::from).into()), json!([2, 1])),
        (Value::pairs(vec![(1.into(), "a".into())]), json!({"1": "a"})),
        (
            Packet { node: "n".into(), arg: 1.into(), timeout: None }.into(),
            json!({"node": "n", "arg": 1}),
        ),
        (interrupt(None).into(), json!({"value": "ok?", "id": "i1"})),
        (
            interrupt(Some(map(&[("type", "string".into())]))).into(),
            json!({"value": "ok?", "id": "i1", "response_schema": {"type": "string"}}),
        ),
        (Ext::Overwrite(5.into()).into(), json!({"__overwrite__": 5})),
        (Ext::Snapshot(5.into()).into(), json!(5)),
        (foreign(0, "1.10".into()), json!("1.10")),
        (foreign(5, map(&[("a", foreign(0, "x".into()))])), json!({"a": "x"})),
        (Ext::Foreign(Foreign::new(99, [1])).into(), json!([1])),
    ];
    for (value, expected) in cases {
        assert_eq!(serde_json::to_value(&value).expect("JSON"), expected, "Serialize of {value:?}");
        assert_eq!(value.to_string(), expected.to_string());
        assert_eq!(serde_json::Value::from(value), expected);
    }
}

#[test]
fn json_becomes_values() {
    let json = json!({"b": [1, -2, 1.5, u64::MAX], "a": {"x": null, "y": true}});
    let value = Value::from(json.clone());
    assert_eq!(value.get("b").and_then(Value::as_list).expect("a list")[3], Value::UInt(u64::MAX));
    assert_eq!(serde_json::from_value::<Value>(json.clone()).expect("a value"), value);
    assert_eq!(serde_json::Value::from(value), json);
}

// LangGraph stores objects as classes by name; a struct must be readable from each of them.
#[test]
fn typed_values_are_read_from_types_of_their_own() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Message {
        content: String,
        #[serde(default)]
        id: Option<Uuid>,
    }
    let foreign = |code, payload: Value| {
        let parts = Value::List(vec!["m".into(), "N".into(), payload]);
        let data = crate::Blob::from_value(&parts).expect("a blob").bytes().to_vec();
        Value::from(Ext::Foreign(Foreign::new(code, data)))
    };
    let id = Uuid::from_u128(7);
    let fields =
        map(&[("content", "hi".into()), ("id", foreign(0, id.simple().to_string().into()))]);
    for code in [2, 4, 5] {
        let message: Message = from_value(foreign(code, fields.clone())).expect("a message");
        assert_eq!(message, Message { content: "hi".into(), id: Some(id) });
    }
    let date: (i32, u8, u8) = from_value(foreign(1, vec![2025, 1, 2].into())).expect("a date");
    assert_eq!(date, (2025, 1, 2));
    let shape: Shape = from_value(foreign(0, "Point".into())).expect("a shape");
    assert_eq!(shape, Shape::Point);

    let packet = Packet {
        node: "n".into(),
        arg: Value::Set(Set::from([1.into()])),
        timeout: Some(TimeLimits { run: Some(1.5), idle: None }),
    };
    assert_eq!(from_value::<Packet>(packet.clone().into()).expect("a packet"), packet);
    let interrupt = Interrupt { value: 1.into(), id: "i".into(), response_schema: None };
    assert_eq!(from_value::<Interrupt>(interrupt.clone().into()).expect("a question"), interrupt);
    assert_eq!(from_value::<u8>(Ext::Overwrite(3.into()).into()).expect("a number"), 3);
    assert_eq!(from_value::<u8>(Ext::Snapshot(3.into()).into()).expect("a number"), 3);
    assert_eq!(from_value::<Vec<u8>>(Value::Bytes(vec![1, 2])).expect("bytes"), [1, 2]);
    let set = Value::Set([2, 1].map(Value::from).into());
    assert_eq!(from_value::<Vec<u8>>(set).expect("a list"), [2, 1]);
}

#[test]
fn keys_that_are_text_are_read_as_numbers() {
    let from_json: HashMap<u32, bool> = from_value(map(&[("7", true.into())])).expect("a map");
    assert_eq!(from_json, HashMap::from([(7, true)]));
    let stored = Value::pairs(vec![(7.into(), true.into())]);
    assert_eq!(from_value::<HashMap<u32, bool>>(stored).expect("a map"), from_json);
}

#[test]
fn reading_is_strict_and_says_where() {
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only the failure to read them is of interest")]
    struct Order {
        items: Vec<Line>,
    }
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only the failure to read them is of interest")]
    struct Line {
        name: String,
        shape: Shape,
    }
    let order = |name: Value, shape: Value| {
        let line = map(&[("name", name), ("shape", shape)]);
        map(&[(
            "items",
            vec![map(&[("name", "a".into()), ("shape", "Point".into())]), line].into(),
        )])
    };
    let cases = [
        (
            order(5.into(), "Point".into()),
            "at `items[1].name`: expected a string, found integer `5`",
        ),
        (
            order("b".into(), map(&[("Circle", "x".into())])),
            "at `items[1].shape.Circle`: expected f64, found text \"x\"",
        ),
        (
            order("b".into(), map(&[("Line", vec![1, 2, 3].into())])),
            "at `items[1].shape.Line`: expected a list of 2, found a list of 3",
        ),
        (order("b".into(), Value::Null), "at `items[1].shape`: expected a variant, found null"),
        (map(&[("items", vec![map(&[])].into())]), "at `items[0]`: missing field `name`"),
    ];
    for (value, message) in cases {
        assert_eq!(from_value::<Order>(value).expect_err("a fault").to_string(), message);
    }
    assert!(from_value::<i64>(Value::Float(2.0)).is_err());
    assert!(from_value::<u8>(Value::Int(256)).is_err());
    assert_eq!(from_value::<f64>(Value::Int(2)).expect("a float"), 2.0);
    let great = to_value(&u128::MAX).expect_err("a fault").to_string();
    assert!(great.contains("does not fit into 64 bits"), "{great}");
}

#[test]
fn questions_are_listed_from_what_is_stored() {
    let question = Interrupt { value: "ok?".into(), id: "i1".into(), response_schema: None };
    let questions = vec![question.clone()];
    let list = Interrupt::list_to(&questions);
    assert_eq!(Interrupt::list_from(&list).expect("questions"), questions);
    let alone = Value::from(question);
    assert_eq!(Interrupt::list_from(&alone).expect("questions"), questions);
    let error = Interrupt::list_from(&vec![5].into()).expect_err("a fault").to_string();
    assert_eq!(error, "expected an interrupt, found a whole number");
}
