//! Objects of classes that only LangGraph knows.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, EnumAccess, VariantAccess, Visitor};

use super::*;
use crate::object::{self, Class, ObjectDeserializer};
use crate::to_value;

/// What was read, with the class if there is one.
#[derive(Debug, PartialEq)]
pub(super) enum Classed {
    Object(String, BTreeMap<String, Value>),
    Other(Value),
}

impl<'de> Deserialize<'de> for Classed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        object::deserialize(deserializer, ClassedVisitor)
    }
}

struct ClassedVisitor;

impl<'de> Visitor<'de> for ClassedVisitor {
    type Value = Classed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object, or anything else")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Classed, D::Error> {
        Value::deserialize(inner).map(Classed::Other)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, object: A) -> Result<Classed, A::Error> {
        let (class, fields) = object.variant::<Class<'de>>()?;
        let fields = fields.newtype_variant()?;
        Ok(Classed::Object(format!("{}.{}", class.module, class.name), fields))
    }
}

/// Hands an object on, to a type that asks for the class or to one that does not.
#[derive(Debug, PartialEq)]
pub(super) struct HandedOn<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for HandedOn<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        object::deserialize(deserializer, HandedOnVisitor(std::marker::PhantomData))
    }
}

struct HandedOnVisitor<T>(std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for HandedOnVisitor<T> {
    type Value = HandedOn<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object, or anything else")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<HandedOn<T>, D::Error> {
        T::deserialize(inner).map(HandedOn)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, object: A) -> Result<HandedOn<T>, A::Error> {
        T::deserialize(ObjectDeserializer(object)).map(HandedOn)
    }
}

/// A type that is stored as an object.
struct Point(i64);

impl Serialize for Point {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        object::serialize("shapes", "Point", &map(&[("x", self.0.into())]), serializer)
    }
}

#[test]
fn an_object_has_a_class_when_it_is_read() {
    let blob = Blob::encode(&vec![Point(1), Point(2)]).expect("a blob");
    let expected =
        |x: i64| Classed::Object("shapes.Point".into(), BTreeMap::from([("x".into(), x.into())]));
    assert_eq!(blob.decode::<Vec<Classed>>().expect("objects"), [expected(1), expected(2)]);
    let handed = blob.decode::<Vec<HandedOn<Classed>>>().expect("objects");
    assert_eq!(handed, [HandedOn(expected(1)), HandedOn(expected(2))]);
    let fields = blob.decode::<Vec<HandedOn<BTreeMap<String, i64>>>>().expect("fields");
    assert_eq!(fields[1].0["x"], 2);
    assert_eq!(blob.to_value().expect("data"), to_value(&[Point(1), Point(2)]).expect("data"));
}

#[test]
fn the_fields_of_an_object_are_found_in_data() {
    let object = to_value(&Point(3)).expect("data");
    assert_eq!(object.get("x"), Some(&3.into()));
    assert_eq!(object.get("y"), None);
    let Value::Ext(ext) = &object else { panic!("an object is a type of its own") };
    let Ext::Foreign(foreign) = &**ext else { panic!("only the other engine knows it") };
    assert_eq!((foreign.code(), foreign.class()), (5, Some(("shapes", "Point"))));
}

/// Python stores a set in the order of its hashes.
#[test]
fn a_set_is_written_back_in_the_order_it_had() {
    let blob = msgpack("c7 12 00 93 a86275696c74696e73 a3736574 93 03 01 02");
    let value = blob.to_value().expect("a set");
    assert_eq!(value, Value::Set(Set::from([1.into(), 2.into(), 3.into()])));
    assert_eq!(Blob::from_value(&value).expect("a blob"), blob);
}
