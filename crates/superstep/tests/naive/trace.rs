//! What a run of the naive engine leaves to be compared, and the texts in which streams are compared.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::behave::{View, Written};
use super::channel::Fault;

/// The channels that users see.
pub(crate) const STATE: [&str; 7] = ["log", "sum", "max", "last", "once", "topic", "any"];

/// What a task wrote, channel by channel.
pub(crate) type Output = Vec<(String, Written)>;

/// Writes that a superstep could not apply.
#[derive(Clone, Debug)]
pub(crate) struct Clash {
    pub(crate) channel: String,
    pub(crate) fault: Fault,
    /// The names of the nodes that wrote to the channel.
    pub(crate) writers: Vec<String>,
    pub(crate) paths: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum End {
    Done(View),
    RecursionLimit(u64),
    Failed {
        node: String,
        text: Option<String>,
    },
    /// Joins have some of what they need: the target of each, with what has arrived and what has not.
    Unfilled(Vec<(String, Vec<String>, Vec<String>)>),
    /// One of these is reported.
    Clashed {
        step: i64,
        clashes: Vec<Clash>,
    },
}

/// What a stream shows of one superstep, without the order in which tasks finish.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) starts: Vec<String>,
    pub(crate) updates: Vec<String>,
    pub(crate) ends: Vec<String>,
    pub(crate) values: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) step: i64,
    pub(crate) source: &'static str,
    pub(crate) values: View,
    pub(crate) next: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) groups: Vec<Group>,
    pub(crate) executed: Vec<String>,
    pub(crate) end: End,
}

impl Group {
    pub(crate) fn sort(&mut self) {
        self.starts.sort();
        self.updates.sort();
        self.ends.sort();
    }
}

pub(crate) fn executed(step: i64, node: &str, arg: Option<i64>) -> String {
    format!("{step} {node} {arg:?}")
}

pub(crate) fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("plain data")
}

/// The writes of a task to the state, as a stream shows them.
fn shown(output: &Output) -> Vec<(&String, Json)> {
    let state = output.iter().filter(|(name, _)| STATE.contains(&&**name));
    let value = |write: &Written| match write {
        Written::Update(value) => value.clone(),
        Written::Overwrite(value) => json!({ "__overwrite__": value }),
    };
    state.map(|(name, write)| (name, value(write))).collect()
}

pub(crate) fn update_of(output: &Output) -> String {
    let shown = shown(output);
    let mut names = BTreeSet::new();
    let repeated = shown.iter().any(|(name, _)| !names.insert(*name));
    if shown.is_empty() {
        "null".to_owned()
    } else if repeated {
        let maps: Vec<_> =
            shown.iter().map(|(name, value)| BTreeMap::from([(name, value)])).collect();
        text(&maps)
    } else {
        text(&shown.into_iter().collect::<BTreeMap<_, _>>())
    }
}

pub(crate) fn result_of(output: &Output) -> String {
    let mut by_name: BTreeMap<&String, Vec<Json>> = BTreeMap::new();
    for (name, value) in shown(output) {
        by_name.entry(name).or_default().push(value);
    }
    let folded = by_name.into_iter().map(|(name, mut values)| match values.len() {
        1 => (name, values.remove(0)),
        _ => (name, json!({ "$writes": values })),
    });
    text(&folded.collect::<BTreeMap<_, _>>())
}
