//! Which texts of a value are indexed.

use serde_json::Value as Json;

use crate::Value;

/// The texts at a path, in their order: `$` is the whole value as JSON, `a.b` a key in a key,
/// `a[0]` and `a[-1]` an element, `a[*]` and `*` all of them, `{a,b}` several keys. A missing path
/// has no texts.
pub(super) fn texts(value: &Value, path: &str) -> Vec<String> {
    let mut found = Vec::new();
    if path.is_empty() || path == "$" {
        found.push(Json::from(value.clone()).to_string());
    } else {
        collect(value, &tokens(path), &mut found);
    }
    found
}

/// `a[0].{b,c}` as `a`, `[0]`, `{b,c}`.
fn tokens(path: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let (mut start, mut depth) = (0, 0_usize);
    for (at, letter) in path.char_indices() {
        let before = depth;
        match letter {
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if before == 0 && matches!(letter, '.' | '[') {
            tokens.push(&path[start..at]);
            start = if letter == '.' { at + 1 } else { at };
        }
    }
    tokens.push(&path[start..]);
    tokens.retain(|token| !token.is_empty());
    tokens
}

fn collect(value: &Value, tokens: &[&str], found: &mut Vec<String>) {
    let Some((token, rest)) = tokens.split_first() else {
        match value {
            Value::Null => {}
            Value::Str(text) => found.push(text.clone()),
            other => found.push(Json::from(other.clone()).to_string()),
        }
        return;
    };
    let inside = |open, close| token.strip_prefix(open).and_then(|t: &str| t.strip_suffix(close));
    if let Some(index) = inside('[', ']') {
        let Some(list) = value.as_list() else { return };
        if index == "*" {
            list.iter().for_each(|element| collect(element, rest, found));
        } else if let Some(element) = index.parse().ok().and_then(|index| element(list, index)) {
            collect(element, rest, found);
        }
    } else if let Some(keys) = inside('{', '}') {
        for key in keys.split(',') {
            let path: Vec<&str> = self::tokens(key.trim());
            let path: Vec<&str> = path.iter().chain(rest).copied().collect();
            if !path.is_empty() {
                collect(value, &path, found);
            }
        }
    } else if *token == "*" {
        match value {
            Value::List(list) => list.iter().for_each(|element| collect(element, rest, found)),
            other => {
                let values = other.as_map().into_iter().flat_map(|map| map.values());
                values.for_each(|element| collect(element, rest, found));
            }
        }
    } else if let Some(inner) = value.get(token) {
        collect(inner, rest, found);
    }
}

/// An element counted from the front, or with a negative number from the back.
fn element(list: &[Value], index: i64) -> Option<&Value> {
    let back = || list.len().checked_sub(usize::try_from(index.unsigned_abs()).ok()?);
    let at = if index < 0 { back()? } else { usize::try_from(index).ok()? };
    list.get(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lead_to_texts() {
        let value = Value::from(json!({
            "a": {"b": "x", "c": 5, "d": null},
            "l": [{"t": "one"}, {"t": "two"}, {"u": "three"}],
        }));
        for (path, wanted) in [
            ("a.b", vec!["x"]),
            ("a.c", vec!["5"]),
            ("a.d", vec![]),
            ("a.missing", vec![]),
            ("l[0].t", vec!["one"]),
            ("l[-1].u", vec!["three"]),
            ("l[-4].u", vec![]),
            ("l[9].t", vec![]),
            ("l[*].t", vec!["one", "two"]),
            ("l.*.t", vec!["one", "two"]),
            ("a.{b,c}", vec!["x", "5"]),
            ("a.*", vec!["x", "5"]),
            ("l[0]", vec![r#"{"t":"one"}"#]),
        ] {
            assert_eq!(texts(&value, path), wanted, "{path}");
        }
        assert_eq!(texts(&Value::from(json!({"k": 1})), "$"), [r#"{"k":1}"#]);
    }
}
