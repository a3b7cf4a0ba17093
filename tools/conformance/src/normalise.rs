//! Making two runs of a case comparable: ids become labels, unordered things are sorted.

use std::collections::HashMap;

use serde_json::{Map, Value as Json};

/// JSON with sorted keys and no spaces.
pub(crate) fn sorted_json(value: &Json) -> String {
    fn write(value: &Json, text: &mut String) {
        match value {
            Json::Object(map) => {
                let mut keys: Vec<_> = map.keys().collect();
                keys.sort();
                text.push('{');
                for (at, key) in keys.into_iter().enumerate() {
                    if at > 0 {
                        text.push(',');
                    }
                    text.push_str(&Json::String(key.clone()).to_string());
                    text.push(':');
                    write(&map[key], text);
                }
                text.push('}');
            }
            Json::Array(list) => {
                text.push('[');
                for (at, item) in list.iter().enumerate() {
                    if at > 0 {
                        text.push(',');
                    }
                    write(item, text);
                }
                text.push(']');
            }
            other => text.push_str(&other.to_string()),
        }
    }
    let mut text = String::new();
    write(value, &mut text);
    text
}

/// The text by which unordered things are sorted: JSON with the ids blanked.
pub(crate) fn sort_text(value: &Json) -> String {
    mask(&sorted_json(value))
}

fn mask(text: &str) -> String {
    replace_ids(text, |id| if id.contains('-') { "#".to_owned() } else { "!".to_owned() })
}

/// Replaces every part of a text that looks like an id: a UUID, or 32 hexadecimal digits.
fn replace_ids(text: &str, mut by: impl FnMut(&str) -> String) -> String {
    let bytes = text.as_bytes();
    let is_hex =
        |at: usize| bytes.get(at).is_some_and(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b));
    let uuid_at = |start: usize| {
        (0..36).all(|offset| match offset {
            8 | 13 | 18 | 23 => bytes.get(start + offset) == Some(&b'-'),
            _ => is_hex(start + offset),
        })
    };
    let mut result = String::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let length = if uuid_at(at) {
            36
        } else if (0..32).all(|offset| is_hex(at + offset)) {
            32
        } else {
            0
        };
        if length > 0 {
            result.push_str(&by(&text[at..at + length]));
            at += length;
        } else {
            let next = text[at..].chars().next().map_or(1, char::len_utf8);
            result.push_str(&text[at..at + next]);
            at += next;
        }
    }
    result
}

pub(crate) fn normalise(entries: Vec<Json>, want: &Json, pinned: bool) -> Json {
    let mut trace = sort_interrupts(Json::Array(entries));
    if let Json::Array(list) = &mut trace {
        for (at, entry) in list.iter_mut().enumerate() {
            let sizes = group_sizes(&want[at]);
            if let Some(Json::Array(events)) = entry.get_mut("events") {
                *events = regroup(std::mem::take(events), &sizes);
            }
        }
    }
    if pinned { trace } else { Labels::default().apply(&trace) }
}

fn sort_interrupts(value: Json) -> Json {
    match value {
        Json::Array(list) => Json::Array(list.into_iter().map(sort_interrupts).collect()),
        Json::Object(map) => Json::Object(
            map.into_iter()
                .map(|(key, part)| {
                    let mut part = sort_interrupts(part);
                    if let ("interrupts" | "__interrupt__", Json::Array(list)) = (&*key, &mut part)
                    {
                        list.sort_by_key(sort_text);
                    }
                    (key, part)
                })
                .collect(),
        ),
        other => other,
    }
}

fn group_sizes(entry: &Json) -> Vec<usize> {
    let events = entry["events"].as_array().into_iter().flatten();
    events.map(|event| event["any_order"].as_array().map_or(1, Vec::len)).collect()
}

fn regroup(events: Vec<Json>, sizes: &[usize]) -> Vec<Json> {
    let mut events = events.into_iter();
    let mut grouped = Vec::new();
    for size in sizes {
        let mut part: Vec<Json> = events.by_ref().take(*size).collect();
        if *size > 1 {
            part.sort_by_key(sort_text);
            grouped.push(Json::Object(Map::from_iter([("any_order".to_owned(), part.into())])));
        } else {
            grouped.append(&mut part);
        }
    }
    grouped.extend(events);
    grouped
}

#[derive(Default)]
struct Labels {
    known: HashMap<String, String>,
    uuids: usize,
    others: usize,
}

impl Labels {
    fn label(&mut self, id: &str) -> String {
        if let Some(label) = self.known.get(id) {
            return label.clone();
        }
        let label = if id.contains('-') {
            self.uuids += 1;
            format!("#{}", self.uuids)
        } else {
            self.others += 1;
            format!("!{}", self.others)
        };
        self.known.insert(id.to_owned(), label.clone());
        label
    }

    fn text(&mut self, text: &str) -> String {
        replace_ids(text, |id| self.label(id))
    }

    fn apply(&mut self, value: &Json) -> Json {
        match value {
            Json::String(text) => Json::String(self.text(text)),
            Json::Array(list) => Json::Array(list.iter().map(|item| self.apply(item)).collect()),
            Json::Object(map) => {
                let mut keys: Vec<_> = map.keys().collect();
                keys.sort_by_key(|key| mask(key));
                let entries = keys.into_iter().map(|key| (self.text(key), self.apply(&map[key])));
                Json::Object(entries.collect())
            }
            other => other.clone(),
        }
    }
}

/// A trace without the parts that are informative only.
pub(crate) fn comparable(value: &Json) -> Json {
    match value {
        Json::Array(list) => Json::Array(list.iter().map(comparable).collect()),
        Json::Object(map) => Json::Object(
            map.iter()
                .map(|(key, part)| {
                    let mut part = comparable(part);
                    if let ("error", Json::Object(error)) = (&**key, &mut part) {
                        error.remove("message");
                    }
                    (key.clone(), part)
                })
                .collect(),
        ),
        other => other.clone(),
    }
}

/// Where two traces first differ, and how.
pub(crate) fn first_difference(want: &Json, got: &Json, path: &str) -> Option<String> {
    match (want, got) {
        (Json::Object(a), Json::Object(b)) => {
            let mut keys: Vec<_> = a.keys().chain(b.keys()).collect();
            keys.sort();
            keys.dedup();
            keys.into_iter().find_map(|key| match (a.get(key), b.get(key)) {
                (Some(a), Some(b)) => first_difference(a, b, &format!("{path}.{key}")),
                (Some(a), None) => Some(format!("{path}.{key}: missing {}", compact(a))),
                (None, Some(b)) => Some(format!("{path}.{key}: unexpected {}", compact(b))),
                (None, None) => None,
            })
        }
        (Json::Array(a), Json::Array(b)) => {
            let inside = a.iter().zip(b).enumerate();
            let mut inside =
                inside.filter_map(|(at, (a, b))| first_difference(a, b, &format!("{path}[{at}]")));
            inside.next().or_else(|| {
                let extra = a.get(b.len()).or_else(|| b.get(a.len()))?;
                let (want, got) = (a.len(), b.len());
                Some(format!(
                    "{path}: expected {want} items, got {got}; first extra {}",
                    compact(extra)
                ))
            })
        }
        (a, b) if a == b => None,
        (a, b) => Some(format!("{path}: expected {}, got {}", compact(a), compact(b))),
    }
}

fn compact(value: &Json) -> String {
    let text = value.to_string();
    if text.chars().count() <= 240 {
        text
    } else {
        text.chars().take(240).collect::<String>() + "..."
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ids_become_labels_in_the_order_they_are_met() {
        let a = "11111111-2222-3333-4444-555555555555";
        let trace =
            json!([{"b": [a, "x:".to_owned() + a], "a": "0123456789abcdef0123456789abcdef"}]);
        let labelled = Labels::default().apply(&trace);
        assert_eq!(labelled, json!([{"a": "!1", "b": ["#1", "x:#1"]}]));
    }

    #[test]
    fn events_are_grouped_as_the_stored_trace_groups_them() {
        let events = vec![json!(3), json!(2), json!(1), json!(4)];
        assert_eq!(regroup(events, &[1, 2]), [json!(3), json!({"any_order": [1, 2]}), json!(4)]);
    }

    #[test]
    fn a_difference_names_its_place() {
        let found = first_difference(&json!({"a": [1, 2]}), &json!({"a": [1, 3]}), "trace");
        assert_eq!(found.as_deref(), Some("trace.a[1]: expected 2, got 3"));
        assert_eq!(first_difference(&json!([1]), &json!([1]), "trace"), None);
    }
}
