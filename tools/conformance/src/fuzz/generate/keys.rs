//! State keys: every kind of channel.

use serde_json::{Map, Value as Json, json};

use super::Generator;

/// A key, and what may be written to it.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    spec: Json,
    pub(super) kind: Kind,
    /// The index of the only node that writes it; none if several may.
    pub(super) writer: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The log of the graph, a list.
    Log,
    Number,
    Max,
    Dict,
    Set,
    ById,
    /// Anything, of which the last counts.
    Any,
    Untracked,
    Ephemeral,
    Topic,
    Managed,
}

impl Generator {
    /// The keys of a graph with so many nodes.
    pub(super) fn draw_keys(&mut self, log: &'static str, nodes: usize) -> Vec<Key> {
        let mut keys = Vec::new();
        let mut add = |name, spec, kind, writer| keys.push(Key { name, spec, kind, writer });
        let deltas = self.has.deltas;
        let frequency = |rng: &mut super::Rng| *rng.pick(&[1, 2, 3, 100]);
        let rng = &mut self.rng;
        add(
            log,
            reduced(deltas && rng.percent(50), "list", "append", frequency(rng)),
            Kind::Log,
            None,
        );
        add(
            "n",
            reduced(deltas && rng.percent(25), "int", "sum", frequency(rng)),
            Kind::Number,
            None,
        );
        if rng.percent(40) {
            let writer =
                if self.has.wild && rng.percent(40) { None } else { Some(rng.below(nodes)) };
            add("x", json!({"type": "int"}), Kind::Any, writer);
        }
        if rng.percent(20) {
            add(
                "m",
                reduced(deltas && rng.percent(30), "int", "max", frequency(rng)),
                Kind::Max,
                None,
            );
        }
        if rng.percent(20) {
            add(
                "d",
                reduced(deltas && rng.percent(50), "dict", "merge", frequency(rng)),
                Kind::Dict,
                None,
            );
        }
        if rng.percent(15) {
            add(
                "s",
                reduced(deltas && rng.percent(50), "set", "union", frequency(rng)),
                Kind::Set,
                None,
            );
        }
        if rng.percent(15) {
            add(
                "b",
                reduced(deltas && rng.percent(60), "list", "by_id", frequency(rng)),
                Kind::ById,
                None,
            );
        }
        if rng.percent(15) && (self.has.wild || self.has.ephemeral) {
            add("v", json!({"type": "any", "channel": "any_value"}), Kind::Any, None);
        }
        if rng.percent(10) {
            add("w", json!({"type": "any", "reducer": "append"}), Kind::Log, None);
        }
        if self.has.ephemeral {
            let guard = rng.percent(30);
            let writer = (guard && !self.has.wild).then(|| rng.below(nodes));
            let spec = json!({"type": "int", "channel": "ephemeral", "guard": guard});
            add("e", spec, Kind::Ephemeral, writer);
        }
        if self.has.untracked {
            let guard = rng.percent(30);
            let writer = (guard && !self.has.wild).then(|| rng.below(nodes));
            let spec = json!({"type": "int", "channel": "untracked", "guard": guard});
            add("u", spec, Kind::Untracked, writer);
        }
        if self.has.topics {
            let spec = json!({"type": "list", "channel": "topic", "accumulate": rng.percent(50)});
            add("t", spec, Kind::Topic, None);
        }
        if rng.percent(6) {
            let managed = *rng.pick(&["remaining_steps", "is_last_step"]);
            add("r", json!({ "managed": managed }), Kind::Managed, None);
        }
        keys
    }

    /// A value to write to a key, given something that tells writers apart.
    pub(super) fn value_for(&mut self, key: &Key, mark: &Json) -> Json {
        let number = self.rng.below(5);
        match key.kind {
            Kind::Log => json!([mark]),
            Kind::Number => json!(1),
            Kind::Max | Kind::Any | Kind::Untracked | Kind::Ephemeral => json!(number),
            Kind::Dict => json!({ *self.rng.pick(&["p", "q"]): number }),
            Kind::Set => json!({ "$set": [number, 9] }),
            Kind::ById => {
                let mut item = json!({ "id": *self.rng.pick(&["i", "j"]), "of": number });
                if self.rng.percent(20) {
                    item["remove"] = json!(true);
                }
                json!([item])
            }
            Kind::Topic => {
                if self.rng.percent(50) {
                    json!([mark, number])
                } else {
                    mark.clone()
                }
            }
            Kind::Managed => Json::Null,
        }
    }
}

/// A key that folds its writes, stored whole or as deltas.
fn reduced(delta: bool, typ: &str, reducer: &str, frequency: u64) -> Json {
    if delta {
        json!({"type": typ, "reducer": reducer, "channel": "delta", "snapshot_frequency": frequency})
    } else {
        json!({"type": typ, "reducer": reducer})
    }
}

pub(super) fn specs(keys: &[Key]) -> Json {
    let entries = keys.iter().map(|key| (key.name.to_owned(), key.spec.clone()));
    Json::Object(entries.collect::<Map<_, _>>())
}

pub(super) fn is_delta(key: &Key) -> bool {
    key.spec["channel"] == "delta"
}

/// Whether an overwrite of a key is unwrapped (F24).
pub(super) fn can_overwrite(key: &Key) -> bool {
    key.spec.get("reducer").is_some() && key.spec["type"] != "any"
}
