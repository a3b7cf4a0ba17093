//! Compares an answer with a recorded one, in which ids and times are replaced by names such as `<run>` and `<ts>`.

use std::collections::HashMap;

use serde_json::Value as Json;

/// What the names in recordings stand for.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: HashMap<String, String>,
}

/// Names that stand for something else each time.
fn is_free(name: &str) -> bool {
    name == "ts" || name == "ms" || name.starts_with("sid:")
}

impl Names {
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.known.insert(name.to_owned(), value.to_owned());
    }

    /// Forgets what was named inside one recording.
    pub(crate) fn forget_numbered(&mut self) {
        self.known.retain(|name, _| !name.contains(':') || name.starts_with("assistant:"));
    }

    pub(crate) fn forget(&mut self, name: &str) {
        self.known.remove(name);
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.known.get(name).map(String::as_str)
    }

    /// The text with names replaced by what they stand for.
    pub(crate) fn fill(&self, text: &str) -> String {
        let filled = self.known.iter();
        filled
            .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("<{name}>"), value))
    }

    pub(crate) fn fill_json(&self, json: &Json) -> Json {
        match json {
            Json::String(text) => self.fill(text).into(),
            Json::Array(items) => items.iter().map(|item| self.fill_json(item)).collect(),
            Json::Object(map) => {
                map.iter().map(|(key, value)| (self.fill(key), self.fill_json(value))).collect()
            }
            other => other.clone(),
        }
    }

    /// Compares, and learns what names stand for.
    pub(crate) fn compare(&mut self, recorded: &Json, ours: &Json, at: &str) -> Result<(), String> {
        match (recorded, ours) {
            (Json::Array(recorded), Json::Array(ours)) => {
                for (nth, (recorded, ours)) in recorded.iter().zip(ours).enumerate() {
                    self.compare(recorded, ours, &format!("{at}[{nth}]"))?;
                }
                match recorded.len() == ours.len() {
                    true => Ok(()),
                    false => {
                        Err(format!("{at}: {} items, recorded {}", ours.len(), recorded.len()))
                    }
                }
            }
            (Json::Object(recorded), Json::Object(ours)) => {
                let mut left: Vec<&String> = ours.keys().collect();
                // Keys that are names are met last, when most of what they stand for is known.
                let mut keys: Vec<&String> = recorded.keys().collect();
                keys.sort_by_key(|key| key.starts_with('<'));
                for key in keys {
                    let found = left.iter().position(|ours| self.text(key, ours).is_ok());
                    let found = found.ok_or_else(|| format!("{at}: `{key}` is missing"))?;
                    let own = left.remove(found);
                    self.compare(&recorded[key], &ours[own], &format!("{at}.{key}"))?;
                }
                match left.is_empty() {
                    true => Ok(()),
                    false => Err(format!("{at}: not in the recording: {left:?}")),
                }
            }
            (Json::String(recorded), Json::Number(_)) if recorded == "<ms>" => Ok(()),
            (Json::String(recorded), Json::String(ours)) => self
                .text(recorded, ours)
                .map_err(|()| format!("{at}: {ours:?}, recorded {recorded:?}")),
            // A number is the same with and without a decimal point.
            (Json::Number(recorded), Json::Number(ours)) if recorded.as_f64() == ours.as_f64() => {
                Ok(())
            }
            (recorded, ours) if recorded == ours => Ok(()),
            (recorded, ours) => Err(format!("{at}: {ours}, recorded {recorded}")),
        }
    }

    /// Compares texts, in which names may stand.
    fn text(&mut self, recorded: &str, ours: &str) -> Result<(), ()> {
        let Some((before, rest)) = recorded.split_once('<') else {
            return if recorded == ours { Ok(()) } else { Err(()) };
        };
        let Some((name, after)) = rest.split_once('>') else {
            return if recorded == ours { Ok(()) } else { Err(()) };
        };
        let ours = ours.strip_prefix(before).ok_or(())?;
        let free = is_free(name);
        let part = |c: char| c.is_ascii_alphanumeric() || c == '-' || (free && ":.+".contains(c));
        let end = ours.find(|c| !part(c)).unwrap_or(ours.len());
        let (value, ours) = ours.split_at(end);
        if value.is_empty() {
            return Err(());
        }
        if !free {
            match self.known.get(name) {
                Some(known) if known != value => return Err(()),
                Some(_) => {}
                None if self.known.values().any(|known| known == value) && name.contains(':') => {
                    return Err(());
                }
                None => self.set(name, value),
            }
        }
        self.text(after, ours)
    }
}
