use super::*;

// Foreign types nest without the decoder looking inside, so only the readers can stop them from using up the stack.
#[test]
fn foreign_types_nested_without_end_are_refused() {
    let mut value = Value::Null;
    for _ in 0..2_000 {
        let data = crate::Blob::from_value(&vec!["m".into(), "N".into(), value].into());
        let data = data.expect("a blob").bytes().to_vec();
        value = Ext::Foreign(Foreign::new(0, data)).into();
    }
    let error = from_value::<serde_json::Value>(value.clone()).expect_err("a fault").to_string();
    assert!(error.ends_with("nested too deep"), "{error}");
    // What people look at has no way to fail; it shows the bytes from where it went too deep.
    assert!(serde_json::Value::from(value).is_array());
}

// Readers and writers recurse, so what they allow has to fit into the two megabytes a thread of a runtime has.
#[test]
fn values_as_deep_as_allowed_fit_on_the_stack_of_a_thread() {
    let depth = crate::Limits::DEFAULT.depth;
    type Wrap = fn(Value) -> Value;
    let wraps: [(Wrap, usize); 6] = [
        (|inner| Value::List(vec![inner]), 1),
        (|inner| map(&[("a", inner)]), 1),
        (|inner| Value::pairs(vec![(1.into(), inner)]), 1),
        (|inner| Value::Set([inner].into()), 2),
        (|inner| Ext::Snapshot(inner).into(), 1),
        (|inner| Ext::Overwrite(inner).into(), 2),
    ];
    for (wrap, levels) in wraps {
        let nested = |depth: usize| (0..depth / levels).fold(Value::Null, |inner, _| wrap(inner));
        let deepest = nested(depth);
        assert_eq!(to_value(&deepest).expect("a value"), deepest);
        assert_eq!(from_value::<Value>(deepest.clone()).expect("a value"), deepest);
        let blob = crate::Blob::from_value(&deepest).expect("a blob");
        assert_eq!(blob.to_value().expect("a value"), deepest);
        assert!(deepest.to_string().contains("null"));
        // JSON has no keys that are not text, so as a type it cannot be read from such a map.
        let has_text_keys = !matches!(deepest, Value::Pairs(_));
        assert_eq!(from_value::<serde_json::Value>(deepest).is_ok(), has_text_keys);
        assert_eq!(blob.decode::<serde_json::Value>().is_ok(), has_text_keys);
        assert!(crate::Blob::from_value(&nested(depth + levels)).is_err());
    }
    let too_deep = (0..=depth).fold(Value::Null, |inner, _| Value::List(vec![inner]));
    let error = from_value::<serde_json::Value>(too_deep).expect_err("a fault");
    assert!(error.to_string().ends_with("nested deeper than 255 levels"), "{error}");
}
