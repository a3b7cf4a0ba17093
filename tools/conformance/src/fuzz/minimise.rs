//! Making a case that differs smaller, as long as it still differs.

use serde_json::Value as Json;

/// The smallest case that was found for which `differs` still holds.
pub(super) fn minimised(case: &Json, differs: &mut dyn FnMut(&Json) -> bool) -> Json {
    let mut best = case.clone();
    let mut left = 400;
    loop {
        let mut smaller = None;
        for candidate in candidates(&best) {
            if left == 0 {
                return best;
            }
            left -= 1;
            if differs(&candidate) {
                smaller = Some(candidate);
                break;
            }
        }
        match smaller {
            Some(found) => best = found,
            None => return best,
        }
    }
}

/// Cases that are smaller by one thing, large things first.
fn candidates(case: &Json) -> Vec<Json> {
    let mut found = Vec::new();
    let calls = case["script"].as_array().map_or(0, Vec::len);
    // All calls after one, then single calls.
    for keep in 1..calls {
        let mut smaller = case.clone();
        if let Some(script) = smaller["script"].as_array_mut() {
            script.truncate(keep);
        }
        found.push(smaller);
    }
    for at in (0..calls).rev().filter(|_| calls > 1) {
        found.extend(without_call(case, at));
    }
    let mut paths = Vec::new();
    removable(case, &mut Vec::new(), &mut paths);
    for path in paths {
        found.extend(without(case, &path));
    }
    found
}

/// The case without one call; references to later calls move.
fn without_call(case: &Json, at: usize) -> Option<Json> {
    let mut smaller = case.clone();
    let script = smaller["script"].as_array_mut()?;
    script.remove(at);
    for call in script.iter_mut() {
        for place in ["at", "before"] {
            let Some(reference) = call.get_mut(place) else { continue };
            let Some(index) = reference["call"].as_u64() else { continue };
            match index.cmp(&(at as u64)) {
                std::cmp::Ordering::Equal => return None,
                std::cmp::Ordering::Greater => reference["call"] = Json::from(index - 1),
                std::cmp::Ordering::Less => {}
            }
        }
    }
    Some(smaller)
}

#[derive(Clone, Debug)]
enum Part {
    Key(String),
    Index(usize),
}

/// Paths of what a case may do without.
fn removable(value: &Json, path: &mut Vec<Part>, found: &mut Vec<Vec<Part>>) {
    let top = match path.first() {
        Some(Part::Key(key)) => key.clone(),
        _ => String::new(),
    };
    let top = top.as_str();
    match value {
        Json::Object(map) => {
            for (key, part) in map {
                let fixed = match (path.len(), top) {
                    (0, _) => !matches!(&**key, "graphs" | "tasks" | "script"),
                    (_, "script") => {
                        matches!(&**key, "op" | "modes" | "values" | "call" | "input" | "command")
                    }
                    _ => matches!(
                        &**key,
                        "name"
                            | "body"
                            | "graph"
                            | "state"
                            | "nodes"
                            | "type"
                            | "return"
                            | "to"
                            | "arg"
                    ),
                };
                let operator = map.len() == 1 && key.starts_with('$');
                path.push(Part::Key(key.clone()));
                if path.len() > 1 && !fixed && !operator && key != "main" {
                    found.push(path.clone());
                }
                removable(part, path, found);
                path.pop();
            }
        }
        Json::Array(items) => {
            let calls = path.len() == 1 && top == "script";
            for (at, item) in items.iter().enumerate().rev() {
                path.push(Part::Index(at));
                if !calls && !inside_operator(path) {
                    found.push(path.clone());
                }
                removable(item, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}

/// Arguments of operators belong together.
fn inside_operator(path: &[Part]) -> bool {
    let before = path.len().checked_sub(2).and_then(|at| path.get(at));
    matches!(before, Some(Part::Key(key)) if key.starts_with('$'))
}

fn without(case: &Json, path: &[Part]) -> Option<Json> {
    let mut smaller = case.clone();
    let (last, before) = path.split_last()?;
    let mut at = &mut smaller;
    for part in before {
        at = match part {
            Part::Key(key) => at.get_mut(key)?,
            Part::Index(index) => at.get_mut(index)?,
        };
    }
    match last {
        Part::Key(key) => drop(at.as_object_mut()?.shift_remove(key)?),
        Part::Index(index) => drop(at.as_array_mut()?.remove(*index)),
    }
    Some(smaller)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_does_not_matter_is_taken_away() {
        let case = json!({
            "name": "n",
            "graphs": {"main": {"nodes": [{"name": "a", "body": [{"count": "a"}, {"fail": "Fatal"}]}, {"name": "b"}]}},
            "script": [{"op": "invoke", "drain": "x"}, {"op": "get_state"}, {"op": "invoke", "at": {"call": 1}}],
        });
        let fails = |case: &Json| case.to_string().contains("Fatal");
        let small = minimised(&case, &mut |case| fails(case));
        let nodes = json!([{"name": "a", "body": [{"fail": "Fatal"}]}]);
        assert_eq!(small["graphs"]["main"]["nodes"], nodes);
        assert_eq!(small["script"], json!([{"op": "invoke"}]));
    }

    #[test]
    fn references_to_calls_stay_right() {
        let case = json!({"script": [{"op": "a"}, {"op": "b"}, {"op": "c", "at": {"call": 1}}]});
        let smaller = without_call(&case, 0).expect("a smaller case");
        assert_eq!(smaller["script"], json!([{"op": "b"}, {"op": "c", "at": {"call": 0}}]));
        assert_eq!(without_call(&case, 1), None);
    }
}
