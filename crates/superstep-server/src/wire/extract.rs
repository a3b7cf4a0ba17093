//! Single values out of the threads of a list.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::Object;
use crate::error::{ApiError, ApiResult};

/// How many values can be asked for.
const PATHS_MAX: usize = 10;

/// Where a path can begin.
const ROOTS: [&str; 4] = ["config", "interrupts", "metadata", "values"];

/// Paths to values, by the names that clients gave them.
#[derive(Debug)]
pub(crate) struct Extract(Vec<(String, Vec<Step>)>);

/// A step of a path.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    /// The place in a list; from its end if negative.
    At(i64),
}

impl Extract {
    /// Reads paths such as `values.messages[-1].content`. Nothing if none is asked for.
    pub(crate) fn read(asked: Option<&BTreeMap<String, String>>) -> ApiResult<Option<Self>> {
        let Some(asked) = asked.filter(|asked| !asked.is_empty()) else { return Ok(None) };
        if asked.len() > PATHS_MAX {
            return Err(ApiError::invalid(format!(
                "`extract` has {} paths; it can have {PATHS_MAX}",
                asked.len()
            )));
        }
        let read = |(name, path): (&String, &String)| Ok((name.clone(), read_path(path)?));
        asked.iter().map(read).collect::<ApiResult<_>>().map(|paths| Some(Self(paths)))
    }

    /// The values of a thread, by name; null where there is nothing.
    pub(crate) fn of(&self, thread: &Json) -> Json {
        let found = |steps: &[Step]| {
            let value = steps.iter().try_fold(thread, |value, step| step.of(value));
            value.cloned().unwrap_or_default()
        };
        self.0.iter().map(|(name, steps)| (name.clone(), found(steps))).collect::<Object>().into()
    }
}

impl Step {
    fn of<'a>(&self, value: &'a Json) -> Option<&'a Json> {
        match self {
            Self::Key(key) => value.get(key),
            Self::At(at) => {
                let list = value.as_array()?;
                let at = match usize::try_from(*at) {
                    Ok(at) => at,
                    Err(_) => list.len().checked_sub(usize::try_from(at.unsigned_abs()).ok()?)?,
                };
                list.get(at)
            }
        }
    }
}

fn read_path(path: &str) -> ApiResult<Vec<Step>> {
    let wrong = |why: &str| {
        ApiError::invalid(format!(
            "the path `{path}` in `extract` {why}; give one such as `values.messages[-1].content`"
        ))
    };
    let mut steps = Vec::new();
    for part in path.split('.') {
        let (key, places) = match part.find('[') {
            Some(at) => part.split_at(at),
            None => (part, ""),
        };
        steps.push(Step::Key(key.to_owned()));
        let mut rest = places;
        while let Some(inner) = rest.strip_prefix('[') {
            let (place, after) =
                inner.split_once(']').ok_or_else(|| wrong("has a bracket without its end"))?;
            steps
                .push(Step::At(place.parse().map_err(|_| wrong("has a place that is no number"))?));
            rest = after;
        }
        if !rest.is_empty() {
            return Err(wrong("goes on behind a bracket without a dot"));
        }
    }
    match steps.first() {
        Some(Step::Key(root)) if ROOTS.contains(&root.as_str()) => Ok(steps),
        _ => Err(wrong(&format!("must begin with one of {}", ROOTS.join(", ")))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn extract(path: &str) -> ApiResult<Json> {
        let asked = BTreeMap::from([("x".to_owned(), path.to_owned())]);
        let thread = json!({ "thread_id": "t", "values": { "log": ["a", ["b", "c"]], "n": 1 } });
        Ok(Extract::read(Some(&asked))?.map(|extract| extract.of(&thread)["x"].clone()).into())
    }

    #[test]
    fn a_path_leads_to_a_value_or_to_null() {
        for (path, expected) in [
            ("values.n", json!(1)),
            ("values.log[0]", json!("a")),
            ("values.log[-1][0]", json!("b")),
            ("values.log[2]", json!(null)),
            ("values.log[-9]", json!(null)),
            ("values.nothing.here", json!(null)),
            ("values..n", json!(null)),
            ("metadata", json!(null)),
        ] {
            assert_eq!(extract(path).expect("a path"), expected, "{path}");
        }
        assert!(Extract::read(Some(&BTreeMap::new())).expect("none").is_none());
    }

    #[test]
    fn a_path_that_leads_nowhere_is_named() {
        for path in ["thread_id", "values.log[", "values.log[x]", "values.log[0]x", "", "[0]"] {
            let error = extract(path).expect_err("no path").detail;
            assert!(error.contains(&format!("`{path}`")), "{error}");
        }
        let many = (0..11).map(|nth| (nth.to_string(), "values".to_owned())).collect();
        assert!(Extract::read(Some(&many)).is_err());
    }
}
