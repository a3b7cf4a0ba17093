//! Which events of a session a client wants.

use serde_json::Value as Json;

const CHANNELS: [&str; 9] = [
    "values",
    "updates",
    "messages",
    "tools",
    "lifecycle",
    "input",
    "tasks",
    "custom",
    "checkpoints",
];

/// More than this is refused, in numbers of channels, namespaces and their levels.
const PARTS_MAX: usize = 256;

/// The events that a client wants.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    channels: Vec<String>,
    /// Prefixes of namespaces; all namespaces if nothing is said.
    namespaces: Vec<Vec<String>>,
    /// How many levels below a prefix.
    depth: Option<usize>,
    /// Only events after this number.
    pub(crate) since: Option<u64>,
}

impl Filter {
    /// Reads the form that clients send. The error says what is wrong.
    pub(crate) fn read(params: &Json) -> Result<Self, String> {
        let channels = match params.get("channels") {
            Some(Json::Array(channels)) if !channels.is_empty() => words(channels, "channels")?,
            _ => return Err(format!("`channels` is a list of at least one of {}", known())),
        };
        for channel in &channels {
            let named = channel.strip_prefix("custom:").is_some_and(|name| !name.is_empty());
            if !named && !CHANNELS.contains(&&**channel) {
                return Err(format!("unknown channel `{channel}`; there are {}", known()));
            }
        }
        let namespaces = match params.get("namespaces") {
            None | Some(Json::Null) => Vec::new(),
            Some(Json::Array(list)) if list.len() <= PARTS_MAX => {
                let each = list.iter().map(|one| match one {
                    Json::Array(levels) => words(levels, "namespaces"),
                    _ => Err("each of `namespaces` is a list of texts".to_owned()),
                });
                each.collect::<Result<_, _>>()?
            }
            Some(_) => return Err("`namespaces` is a list of lists of texts".to_owned()),
        };
        let depth =
            number(params, "depth")?.map(|depth| usize::try_from(depth).unwrap_or(usize::MAX));
        Ok(Self { channels, namespaces, depth, since: number(params, "since")? })
    }

    /// Whether an event is one of those.
    pub(super) fn wants(&self, method: &str, name: Option<&str>, ns: &[String]) -> bool {
        let channel = if method == "input.requested" { "input" } else { method };
        let wanted = self.channels.iter().any(|wanted| match wanted.strip_prefix("custom:") {
            Some(wanted) => channel == "custom" && name == Some(wanted),
            None => wanted == channel,
        });
        let below = |prefix: &Vec<String>| {
            is_prefix(prefix, ns)
                && self.depth.is_none_or(|depth| ns.len().saturating_sub(prefix.len()) <= depth)
        };
        wanted && (self.namespaces.is_empty() || self.namespaces.iter().any(below))
    }
}

/// A level without `:` stands for all tasks of the node.
fn is_prefix(prefix: &[String], ns: &[String]) -> bool {
    prefix.len() <= ns.len()
        && prefix.iter().zip(ns).all(|(wanted, level)| {
            let node = level.split(':').next().unwrap_or_default();
            wanted == level || (!wanted.contains(':') && wanted == node)
        })
}

fn known() -> String {
    format!("{}, custom:NAME", CHANNELS.join(", "))
}

fn words(list: &[Json], what: &str) -> Result<Vec<String>, String> {
    if list.len() > PARTS_MAX {
        return Err(format!("`{what}` has more than {PARTS_MAX} parts"));
    }
    let word = |word: &Json| word.as_str().map(str::to_owned);
    list.iter().map(word).collect::<Option<_>>().ok_or_else(|| format!("`{what}` holds texts only"))
}

fn number(params: &Json, name: &str) -> Result<Option<u64>, String> {
    match params.get(name) {
        None | Some(Json::Null) => Ok(None),
        Some(given) => {
            let number = given.as_u64();
            number.map(Some).ok_or_else(|| format!("`{name}` is {given}, not a number from 0"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ns(levels: &[&str]) -> Vec<String> {
        levels.iter().map(|level| (*level).to_owned()).collect()
    }

    #[test]
    fn events_pass_by_channel_namespace_and_depth() {
        let filter = |params: Json| Filter::read(&params).expect("a filter");
        let root = filter(json!({ "channels": ["values"], "namespaces": [[]], "depth": 1 }));
        let child = filter(json!({ "channels": ["values"], "namespaces": [["child"]] }));
        let task = filter(json!({ "channels": ["values"], "namespaces": [["child:2"]] }));
        for (at, in_root, in_child, in_task) in [
            (&[][..], true, false, false),
            (&["child:1"], true, true, false),
            (&["child:2"], true, true, true),
            (&["other:1"], true, false, false),
            (&["child:2", "deep:3"], false, true, true),
        ] {
            let wants = |filter: &Filter| filter.wants("values", None, &ns(at));
            assert_eq!(
                (wants(&root), wants(&child), wants(&task)),
                (in_root, in_child, in_task),
                "{at:?}"
            );
        }
        assert!(!root.wants("updates", None, &[]));
        let input = filter(json!({ "channels": ["input"] }));
        assert!(input.wants("input.requested", None, &ns(&["a:1"])));
        let named = filter(json!({ "channels": ["custom:x"] }));
        assert!(named.wants("custom", Some("x"), &[]));
        assert!(!named.wants("custom", Some("y"), &[]) && !named.wants("custom", None, &[]));
        assert!(filter(json!({ "channels": ["custom"] })).wants("custom", Some("y"), &[]));
    }

    #[test]
    fn what_cannot_be_a_filter_is_named() {
        for (params, part) in [
            (json!({}), "`channels`"),
            (json!({ "channels": [] }), "`channels`"),
            (json!({ "channels": ["valeus"] }), "`valeus`"),
            (json!({ "channels": ["custom:"] }), "`custom:`"),
            (json!({ "channels": [1] }), "texts only"),
            (json!({ "channels": ["values"], "namespaces": ["a"] }), "`namespaces`"),
            (json!({ "channels": ["values"], "depth": -1 }), "`depth`"),
            (json!({ "channels": ["values"], "since": "x" }), "`since`"),
        ] {
            let error = Filter::read(&params).expect_err("no filter");
            assert!(error.contains(part), "{error}");
        }
    }
}
