//! What calls gave, as entries of a trace.

use serde_json::{Map as JsonMap, Value as Json, json};
use superstep::checkpoint::{Ext, Interrupt, Metadata, PendingWrite, Stored, TaskId, Value};
use superstep::{
    CheckpointRef, Data, Event, Mode, RawSnapshot, RunError, SubgraphState, TaskSnapshot,
    UpdatesEvent,
};

use crate::normalise::sort_text;

/// Any value that can appear in a result, as JSON.
pub(crate) fn encode(value: &Value) -> Json {
    match value {
        Value::List(list) => Json::Array(list.iter().map(encode).collect()),
        Value::Map(map) => {
            Json::Object(map.iter().map(|(key, part)| (key.clone(), encode(part))).collect())
        }
        Value::Set(set) => {
            let mut items: Vec<Json> = set.iter().map(encode).collect();
            items.sort_by_key(sort_text);
            json!({ "$set": items })
        }
        Value::Ext(ext) => match &**ext {
            Ext::Send(packet) => {
                json!({ "$send": { "to": packet.node, "arg": encode(&packet.arg) } })
            }
            Ext::Interrupt(interrupt) => interrupt_entry(interrupt),
            Ext::Overwrite(value) => json!({ "$overwrite": encode(value) }),
            Ext::Snapshot(value) => json!({ "$delta_snapshot": encode(value) }),
            _ => Json::from(value.clone()),
        },
        other => Json::from(other.clone()),
    }
}

pub(crate) fn interrupt_entry(interrupt: &Interrupt) -> Json {
    json!({ "id": interrupt.id.as_str(), "value": encode(&interrupt.value) })
}

fn interrupt_entries(interrupts: &[Interrupt]) -> Json {
    Json::Array(interrupts.iter().map(interrupt_entry).collect())
}

pub(crate) fn error_entry(error: &RunError) -> Json {
    let mut entry = JsonMap::new();
    entry.insert("kind".to_owned(), Json::from(&*error.kind()));
    if let Some(code) = error.code() {
        entry.insert("code".to_owned(), Json::from(code.as_str()));
    }
    entry.insert("message".to_owned(), Json::from(without_task_ids(&error.to_string())));
    Json::Object(entry)
}

/// Messages are not compared, but the ids in them would be counted. Ours name tasks, also of
/// subgraphs; those of the reference do not.
fn without_task_ids(message: &str) -> String {
    let mut parts = message.split(" (task ");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str(part.split_once(')').map_or(part, |(_, rest)| rest));
    }
    kept
}

/// The kind of an error as it was stored: the first word of its text.
fn error_kind(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(text)
}

pub(crate) fn config_entry(at: &CheckpointRef) -> Json {
    json!({ "thread": &*at.thread, "ns": &*at.ns, "id": at.id.map(|id| id.to_string()) })
}

fn metadata_entry(metadata: &Metadata) -> Json {
    let parents: JsonMap<String, Json> =
        metadata.parents.iter().map(|(ns, id)| (ns.clone(), Json::from(id.to_string()))).collect();
    json!({ "source": metadata.source.as_str(), "step": metadata.step, "parents": parents })
}

fn task_entry(task: &TaskSnapshot) -> Json {
    json!({
        "id": task.id.to_string(),
        "name": &*task.name,
        "error": task.error.as_deref().map(error_kind),
        "interrupts": interrupt_entries(&task.interrupts),
        "result": task.result.as_ref().map(encode),
        "state": match &task.state {
            None => Json::Null,
            Some(SubgraphState::At(at)) => config_entry(at),
            Some(SubgraphState::Snapshot(snapshot)) => snapshot_entry(snapshot),
            Some(_) => Json::Null,
        },
    })
}

pub(crate) fn snapshot_entry(snapshot: &RawSnapshot) -> Json {
    let mut entry = checkpoint_entry(snapshot);
    entry["interrupts"] = interrupt_entries(&snapshot.interrupts);
    entry
}

fn checkpoint_entry(snapshot: &RawSnapshot) -> Json {
    json!({
        "values": encode(&snapshot.values),
        "next": snapshot.next.iter().map(|name| &**name).collect::<Vec<_>>(),
        "config": config_entry(&snapshot.config),
        "parent": snapshot.parent.as_ref().map(config_entry),
        "metadata": snapshot.metadata.as_ref().map(metadata_entry),
        "tasks": snapshot.tasks.iter().map(task_entry).collect::<Vec<_>>(),
    })
}

/// What is recorded of an event; of the outcome only that it is one.
pub(crate) fn event_entry<O>(event: &Event<O>, subgraphs: bool) -> Json {
    let mode = event.mode().map(Mode::as_str);
    let mut entry = json!({ "mode": mode, "data": data_entry(&event.data) });
    if subgraphs {
        entry["ns"] = Json::from(event.ns.clone());
    }
    entry
}

fn data_entry<O>(data: &Data<O>) -> Json {
    match data {
        Data::TaskStart(start) => json!({
            "event": "start",
            "id": start.id.to_string(),
            "name": &*start.name,
            "input": encode(&start.input),
            "triggers": start.triggers.iter().map(|name| &**name).collect::<Vec<_>>(),
        }),
        Data::TaskEnd(end) => json!({
            "event": "result",
            "id": end.id.to_string(),
            "name": &*end.name,
            "error": end.error.as_ref().map(|error| error.kind().to_owned()),
            "result": encode(&end.result),
            "interrupts": interrupt_entries(&end.interrupts),
        }),
        Data::Checkpoint(snapshot) => checkpoint_entry(snapshot),
        Data::Debug(debug) => json!({
            "step": debug.step,
            "type": debug.kind(),
            "payload": data_entry(&debug.payload),
        }),
        Data::Updates(UpdatesEvent::Interrupted(asked)) => {
            json!({ "__interrupt__": interrupt_entries(asked) })
        }
        Data::Values(values) => {
            let mut entry = data_or_error(values.to_value());
            if let (false, Json::Object(map)) = (values.interrupts.is_empty(), &mut entry) {
                map.insert("__interrupt__".to_owned(), interrupt_entries(&values.interrupts));
            }
            entry
        }
        Data::Updates(update) => encode(&update.to_value()),
        Data::Custom(value) => encode(value),
        Data::Messages(message) => encode(&message.to_value()),
        _ => Json::Null,
    }
}

fn data_or_error(data: Result<Value, superstep::checkpoint::Error>) -> Json {
    data.map_or_else(|error| json!({ "$error": error.to_string() }), |data| encode(&data))
}

/// One stored checkpoint, with everything the checkpointer keeps about it.
pub(crate) fn tuple_entry(stored: &Stored) -> Result<Json, String> {
    let at = |id: superstep::checkpoint::CheckpointId| json!({ "thread": &*stored.thread, "ns": &*stored.ns, "id": id.to_string() });
    let checkpoint = &stored.checkpoint;
    let decode = |blob: &superstep::checkpoint::Blob| {
        blob.to_value().map(|value| encode(&value)).map_err(|error| error.to_string())
    };
    let mut values = JsonMap::new();
    for (name, blob) in &checkpoint.channel_values {
        values.insert(name.to_string(), decode(blob)?);
    }
    let mut writes: Vec<(String, String, Json)> = Vec::new();
    // Who has taken the thread, and with which arguments calls were made, are our own records, which the reference has
    // none of.
    let shared = |write: &&PendingWrite| {
        write.task != TaskId::CLAIM && write.task != TaskId::ALARM && &*write.channel != "__args__"
    };
    for write in stored.writes.iter().filter(shared) {
        let mut value = decode(&write.value)?;
        if &*write.channel == "__error__" {
            value = Json::from(error_kind(value.as_str().unwrap_or_default()));
        }
        writes.push((write.task.to_string(), write.channel.to_string(), value));
    }
    writes.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    let versions: JsonMap<String, Json> = checkpoint
        .channel_versions
        .iter()
        .map(|(name, version)| (name.to_string(), Json::from(version.number())))
        .collect();
    let seen: JsonMap<String, Json> = checkpoint
        .versions_seen
        .iter()
        .map(|(node, seen)| {
            let seen: JsonMap<String, Json> = seen
                .iter()
                .map(|(name, version)| (name.to_string(), Json::from(version.number())))
                .collect();
            (node.to_string(), Json::Object(seen))
        })
        .collect();
    let updated = checkpoint.updated_channels.as_ref();
    Ok(json!({
        "config": at(checkpoint.id),
        "parent": stored.parent.map(at),
        "metadata": metadata_entry(&stored.metadata),
        "values": values,
        "versions": versions,
        "seen": seen,
        "updated": updated.map(|names| names.iter().map(|name| &**name).collect::<Vec<_>>()),
        "writes": writes.into_iter().map(|(a, b, c)| json!([a, b, c])).collect::<Vec<_>>(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_no_tasks() {
        let text = "node `a` failed: E: node `b` failed on `1` (task 0a-1): E: no (x)";
        assert_eq!(without_task_ids(text), "node `a` failed: E: node `b` failed on `1`: E: no (x)");
        assert_eq!(without_task_ids("plain"), "plain");
    }
}
