//! What the nodes and routers of a random graph do: pure functions of what they see.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::graph::{Channel, Graph, How, LOG_MAX, NAMES, Place, Router};

/// The channels that have a value.
pub(crate) type View = BTreeMap<String, Json>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Update(Json),
    Overwrite(Json),
}

pub(crate) type Writes = Vec<(&'static str, Written)>;

pub(crate) enum Done {
    Wrote(Writes, Vec<Place>),
    Failed(String),
}

fn hash(text: &str) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
    (hash ^ (hash >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 7
}

fn seen(view: &View) -> String {
    serde_json::to_string(view).expect("a map of plain values")
}

fn may_go(view: &View) -> bool {
    view.get("log").and_then(Json::as_array).map_or(0, Vec::len) < LOG_MAX
}

pub(crate) fn channel_name(channel: Channel) -> &'static str {
    match channel {
        Channel::Sum => "sum",
        Channel::Max => "max",
        Channel::Last => "last",
        Channel::Ephemeral => "once",
        Channel::Topic => "topic",
        Channel::Any => "any",
    }
}

/// What node `index` does in the run with this number.
pub(crate) fn behave(graph: &Graph, index: usize, view: &View, arg: Option<i64>, run: u32) -> Done {
    let node = &graph.nodes[index];
    let name = NAMES[index];
    let digest = hash(&format!("{name} {arg:?} {}", seen(view)));
    if node.fails.is_some_and(|fails| run < fails.runs && digest % 4 == fails.remainder) {
        return Done::Failed(format!("{name} gave up"));
    }
    let mut writes = Writes::new();
    if !node.silent {
        let arg = arg.map_or_else(String::new, |arg| arg.to_string());
        writes.push(("log", Written::Update(json!([format!("{name}{arg}:{}", digest % 997)]))));
    }
    for (at, write) in node.writes.iter().enumerate() {
        let value = (digest >> (at * 7)) % 10;
        let name = channel_name(write.channel);
        let guarded = matches!(write.channel, Channel::Last | Channel::Ephemeral);
        let repeated = writes.iter().any(|(other, _)| *other == name);
        if run >= write.until || guarded && repeated {
            continue;
        }
        let folds = matches!(write.channel, Channel::Sum | Channel::Max);
        let overwritten =
            |(other, old): &(&str, Written)| *other == name && matches!(old, Written::Overwrite(_));
        let written = match write.how {
            How::Overwrite if folds && !writes.iter().any(overwritten) => {
                Written::Overwrite(json!(value))
            }
            How::Misfit if folds => Written::Update(json!("no number")),
            How::List if !folds => {
                Written::Update(Json::Array((0..value % 3).map(Json::from).collect()))
            }
            _ => Written::Update(json!(value)),
        };
        writes.push((name, written));
    }
    let goes = may_go(view);
    let goto = node.goto.iter().filter(|place| goes && !(node.silent && is_dispatch(place)));
    Done::Wrote(writes, goto.copied().collect())
}

fn is_dispatch(place: &Place) -> bool {
    matches!(place, Place::Dispatch(..))
}

/// Where a router leads.
pub(crate) fn route(router: &Router, silent: bool, view: &View) -> Vec<Place> {
    if !may_go(view) {
        return Vec::new();
    }
    let way = hash(&seen(view)) as usize % router.ways.len();
    let places = router.ways[way].iter();
    places.filter(|place| !(silent && is_dispatch(place))).copied().collect()
}

/// How long a task takes, in virtual milliseconds. Different tasks of one superstep take different times.
pub(crate) fn takes(graph: &Graph, run: u32, step: i64, index: usize, arg: Option<i64>) -> u64 {
    let random = hash(&format!("{} {run} {step} {index} {arg:?}", graph.seed)) % 65_536;
    random * 64 + index as u64 * 8 + arg.map_or(0, |arg| arg as u64 + 1) + 1
}

pub(crate) fn input(number: i64) -> Json {
    json!({ "log": [format!("in{number}")], "sum": number })
}
