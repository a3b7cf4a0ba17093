//! Reads a thread without its graph, from what is stored.

// Stored data is untrusted. What is indexed is the list of nodes and tasks that is made here.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::disallowed_methods))]

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use superstep_checkpoint::{
    AnyCheckpointer, Error, Ext, Interrupt, PendingWrite, Stored, TaskId, Value,
};

use crate::out::{brief, tame};
use crate::readable;

/// The number of characters of an argument that are shown.
const ARG_MAX: usize = 80;

/// A task of the open superstep, as far as it has stored something.
pub(crate) struct TaskSeen {
    pub(crate) id: TaskId,
    pub(crate) node: String,
    /// The beginning of what it was dispatched with.
    pub(crate) arg: Option<String>,
    pub(crate) finished: bool,
    pub(crate) error: Option<String>,
    pub(crate) questions: Vec<Interrupt>,
}

impl TaskSeen {
    pub(crate) fn to_json(&self) -> Json {
        json!({
            "id": self.id.to_string(),
            "node": self.node,
            "arg": self.arg,
            "finished": self.finished,
            "error": self.error,
            "questions": self.questions.iter().map(readable::question).collect::<Vec<_>>(),
        })
    }
}

/// The nodes that are to run next.
pub(crate) fn next(stored: &Stored) -> Result<Vec<String>, Error> {
    Ok(stored.next()?.iter().map(ToString::to_string).collect())
}

/// The nodes that are to run next on one line; one that was dispatched many times is named once.
pub(crate) fn counted(next: &[String]) -> String {
    let mut counts: Vec<(&String, usize)> = Vec::new();
    for node in next {
        match counts.last_mut() {
            Some((last, count)) if *last == node => *count = count.saturating_add(1),
            _ => counts.push((node, 1)),
        }
    }
    let counted = counts.into_iter().map(|(node, count)| match count {
        1 => tame(node),
        count => format!("{} ×{count}", tame(node)),
    });
    counted.collect::<Vec<_>>().join(", ")
}

/// The tasks of the open superstep that have stored something, in the order of their paths.
pub(crate) fn tasks(stored: &Stored) -> Result<Vec<TaskSeen>, Error> {
    let packets = stored.packets()?.unwrap_or_default();
    let mut found: Vec<TaskSeen> = Vec::new();
    let mut places: BTreeMap<TaskId, usize> = BTreeMap::new();
    let own = |write: &&PendingWrite| !write.task.is_reserved();
    for write in stored.writes.iter().filter(own) {
        let at = *places.entry(write.task).or_insert_with(|| {
            let (node, arg) = node_of(&packets, &write.path);
            let arg = arg.map(|arg| brief(&readable::readable(arg).to_string(), ARG_MAX));
            let (id, questions) = (write.task, Vec::new());
            found.push(TaskSeen { id, node, arg, finished: false, error: None, questions });
            found.len().saturating_sub(1)
        });
        let task = &mut found[at];
        match &*write.channel {
            "__error__" => task.error = Some(readable::plain(&readable::blob(&write.value))),
            "__interrupt__" => task.questions = Interrupt::list_from(&write.value.to_value()?)?,
            "__resume__" | "__scheduled__" | "__error_source_node__" => {}
            _ => task.finished = true,
        }
    }
    Ok(found)
}

/// The node a path belongs to, as far as the path tells, and what it was dispatched with.
fn node_of<'a>(packets: &'a [Value], path: &str) -> (String, Option<&'a Value>) {
    let bare = path.trim_start_matches('~');
    if let Some(node) = bare.strip_prefix("__pregel_pull, ") {
        return (node.split(", ").next().unwrap_or(node).to_owned(), None);
    }
    let Some(rest) = bare.strip_prefix("__pregel_push, ") else { return ("?".to_owned(), None) };
    if let Some(caller) = rest.strip_prefix('~') {
        let (caller, arg) = node_of(packets, caller);
        return (format!("a call of {caller}"), arg);
    }
    let nth = rest.split(", ").next().and_then(|nth| nth.parse::<usize>().ok());
    match nth.and_then(|nth| packets.get(nth)) {
        Some(Value::Ext(ext)) => match &**ext {
            Ext::Send(packet) => (packet.node.clone(), Some(&packet.arg)),
            _ => ("?".to_owned(), None),
        },
        _ => ("?".to_owned(), None),
    }
}

/// The channels that are the user's, with their values, and the names of those that were rebuilt from their writes.
pub(crate) async fn values(
    checkpointer: &AnyCheckpointer,
    stored: &Stored,
) -> Result<(Map<String, Json>, Vec<String>), Error> {
    let checkpoint = &stored.checkpoint;
    let stored_values = checkpoint.channel_values.iter().filter(|(name, _)| !is_control(name));
    let mut values: BTreeMap<Arc<str>, Json> =
        stored_values.map(|(name, blob)| (name.clone(), readable::blob(blob))).collect();
    let deltas = stored.metadata.delta_counters.keys();
    let deltas: Vec<Arc<str>> =
        deltas.filter(|name| checkpoint.value(name).is_none()).cloned().collect();
    let mut rebuilt = Vec::new();
    if !deltas.is_empty() {
        let (thread, ns) = (&stored.thread, &stored.ns);
        let histories = checkpointer.delta_history(thread, ns, checkpoint.id, &deltas).await?;
        for (name, history) in histories {
            let seed = history.seed.map(|seed| seed.to_value()).transpose()?;
            let mut writes = Vec::with_capacity(history.writes.len());
            for write in &history.writes {
                writes.push(write.to_value()?);
            }
            rebuilt.push(name.to_string());
            values.insert(name, readable::readable(&append(seed, writes)));
        }
    }
    Ok((values.into_iter().map(|(name, value)| (name.to_string(), value)).collect(), rebuilt))
}

/// Appends writes. The reducer is code and not stored, so this is an approximation.
fn append(seed: Option<Value>, writes: Vec<Value>) -> Value {
    let mut all = Vec::new();
    let mut add = |value: Value| match value {
        Value::List(items) => all.extend(items),
        Value::Ext(ext) => match *ext {
            Ext::Snapshot(Value::List(items)) => all.extend(items),
            Ext::Snapshot(value) => all.push(value),
            Ext::Overwrite(value) => {
                all = match value {
                    Value::List(items) => items,
                    one => vec![one],
                };
            }
            other => all.push(other.into()),
        },
        Value::Null => {}
        one => all.push(one),
    };
    seed.into_iter().chain(writes).for_each(&mut add);
    Value::List(all)
}

fn is_control(channel: &str) -> bool {
    let control = channel.starts_with("branch:to:") || channel.starts_with("join:");
    // The state of graphs without keys, and the results of functions, are the user's.
    let known = ["__root__", "__end__", "__previous__"].contains(&channel);
    control || channel.starts_with("__") && !known
}
