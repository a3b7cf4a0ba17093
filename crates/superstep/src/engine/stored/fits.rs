//! Checks an answer against the JSON schema of its question. Supports the common keywords only.

use superstep_checkpoint::{Interrupt, Value};

/// The depth limit for references, which may form a cycle.
const DEPTH_MAX: usize = 32;

/// Returns why `value` cannot be the answer to a question, as far as the schema of the question says.
pub(crate) fn fits_question(question: &Interrupt, value: &Value) -> Result<(), String> {
    let Some(schema) = &question.response_schema else { return Ok(()) };
    check(schema, value).map_err(|why| {
        let id = &question.id;
        format!("the answer does not fit the schema of question `{id}`: {why}")
    })
}

/// Returns why `value` does not fit. Unknown schema keywords are ignored.
fn check(schema: &Value, value: &Value) -> Result<(), String> {
    fits(schema, schema, value, "the answer", 0)
}

fn fits(root: &Value, schema: &Value, value: &Value, at: &str, depth: usize) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Ok(());
    }
    let inner = |schema: &Value, value: &Value, at: &str| {
        fits(root, schema, value, at, depth.saturating_add(1))
    };
    if schema.as_bool() == Some(false) {
        return Err(format!("{at} is not allowed"));
    }
    if let Some(named) =
        schema.get("$ref").and_then(Value::as_str).and_then(|name| find(root, name))
    {
        inner(named, value, at)?;
    }
    if let Some(kinds) = schema.get("type") {
        let one = [kinds.clone()];
        let kinds = kinds.as_list().unwrap_or(&one);
        let mut known = kinds.iter().filter_map(Value::as_str);
        if !known.any(|kind| is_of(kind, value)) {
            let names: Vec<_> = kinds.iter().filter_map(Value::as_str).collect();
            return Err(format!("{at} is {value}, expected {}", names.join(" or ")));
        }
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_list)
        && !allowed.contains(value)
    {
        let allowed: Vec<_> = allowed.iter().map(ToString::to_string).collect();
        return Err(format!("{at} is {value}, expected one of {}", allowed.join(", ")));
    }
    if let Some(only) = schema.get("const").filter(|only| *only != value) {
        return Err(format!("{at} is {value}, expected {only}"));
    }
    for key in schema.get("required").and_then(Value::as_list).into_iter().flatten() {
        let key = key.as_str().unwrap_or_default();
        if value.as_map().is_some_and(|map| !map.contains_key(key)) {
            return Err(format!("{at} has no `{key}`"));
        }
    }
    if let (Some(properties), Some(map)) =
        (schema.get("properties").and_then(Value::as_map), value.as_map())
    {
        for (key, schema) in properties {
            if let Some(value) = map.get(key) {
                inner(schema, value, &format!("`{key}` of {at}"))?;
            }
        }
    }
    if let (Some(schema), Some(items)) = (schema.get("items"), value.as_list()) {
        for (nth, item) in items.iter().enumerate() {
            inner(schema, item, &format!("item {nth} of {at}"))?;
        }
    }
    if let Some(items) = value.as_list() {
        let limit = |name| schema.get(name).and_then(Value::as_i64);
        #[expect(clippy::disallowed_methods, reason = "no list is as long")]
        let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
        if let Some(least) = limit("minItems").filter(|least| count < *least) {
            return Err(format!("{at} has {count} items, expected at least {least}"));
        }
        if let Some(most) = limit("maxItems").filter(|most| count > *most) {
            return Err(format!("{at} has {count} items, expected at most {most}"));
        }
    }
    for all in schema.get("allOf").and_then(Value::as_list).into_iter().flatten() {
        inner(all, value, at)?;
    }
    for word in ["anyOf", "oneOf"] {
        let Some(choices) = schema.get(word).and_then(Value::as_list) else { continue };
        let why: Vec<_> = choices.iter().map(|choice| inner(choice, value, at)).collect();
        if !why.iter().any(Result::is_ok) {
            let why: Vec<_> = why.into_iter().filter_map(Result::err).collect();
            return Err(why.join("; or "));
        }
    }
    Ok(())
}

/// Resolves a reference inside the schema.
fn find<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    reference.strip_prefix("#/")?.split('/').try_fold(root, |at, key| at.get(key))
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.as_bool().is_some(),
        "integer" => matches!(value, Value::Int(_) | Value::UInt(_)),
        "number" => value.as_f64().is_some(),
        "string" => value.as_str().is_some(),
        "array" => value.as_list().is_some(),
        "object" => value.as_map().is_some(),
        // Not a JSON type, so there is nothing to check.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_schema_says_plainly_is_checked() {
        let schema = json!({
            "$defs": { "verdict": { "enum": ["approve", "reject"] } },
            "anyOf": [
                { "$ref": "#/$defs/verdict" },
                { "type": "object", "required": ["edit"], "properties": { "edit": { "type": "string" } } },
            ],
        });
        let fits = |value: serde_json::Value| check(&schema.clone().into(), &value.into());
        assert_eq!(fits(json!("approve")), Ok(()));
        assert_eq!(fits(json!({ "edit": "so" })), Ok(()));
        let why = fits(json!("perhaps")).expect_err("not allowed");
        assert!(why.contains("expected one of \"approve\", \"reject\""), "{why}");
        assert!(fits(json!({})).expect_err("not allowed").contains("has no `edit`"));
        assert!(
            fits(json!({ "edit": 1 }))
                .expect_err("not allowed")
                .contains("`edit` of the answer is 1")
        );
    }

    #[test]
    fn kinds_items_and_circles() {
        let of = |schema: serde_json::Value, value: serde_json::Value| {
            check(&schema.into(), &value.into()).is_ok()
        };
        assert!(of(json!({ "type": ["integer", "null"] }), json!(null)));
        assert!(!of(json!({ "type": "integer" }), json!(1.5)));
        assert!(of(json!({ "type": "number" }), json!(1)));
        assert!(!of(json!({ "type": "array", "items": { "type": "boolean" } }), json!([true, 1])));
        assert!(!of(json!({ "type": "array", "maxItems": 1 }), json!([1, 2])));
        assert!(!of(json!({ "minItems": 1 }), json!([])));
        assert!(!of(json!({ "const": 7 }), json!(8)));
        assert!(of(json!({ "$ref": "#" }), json!(8)));
        assert!(of(json!({ "allOf": [{ "$ref": "#/allOf/0" }] }), json!(8)));
        assert!(of(json!({ "minLength": 70 }), json!("short")), "not known, so not checked");
    }
}
