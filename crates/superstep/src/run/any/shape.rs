//! Events and snapshots in the JSON that LangGraph's clients know.

use std::collections::BTreeMap;

use serde_json::{Map as JsonMap, Value as Json, json};
use superstep_checkpoint::{Interrupt, Metadata, Value};

use super::run::AnyEvent;
use crate::engine::{CheckpointRef, RawSnapshot, SubgraphState, TaskSnapshot};
use crate::engine::{Data, DebugEvent, Event, UpdatesEvent, interrupt_value};
use crate::error::RunError;

pub(super) fn event(event: &Event) -> Result<AnyEvent, RunError> {
    let data = data(&event.data)?;
    let mode = event.mode().expect("nothing inside a run is its outcome");
    Ok(AnyEvent::Data { mode, ns: event.ns.clone(), data })
}

fn data(data: &Data) -> Result<Json, RunError> {
    Ok(match data {
        Data::Values(event) => {
            let mut values = Json::from(event.to_value()?);
            if !event.interrupts.is_empty() {
                values["__interrupt__"] = asked(&event.interrupts);
            }
            values
        }
        Data::Updates(UpdatesEvent::Interrupted(interrupts)) => {
            json!({ "__interrupt__": asked(interrupts) })
        }
        Data::Messages(event) => {
            let mut metadata = event.metadata.clone();
            if let Some(Value::Str(path)) = metadata.get("langgraph_path") {
                let path = task_path(path);
                metadata.insert("langgraph_path".to_owned(), path.into());
            }
            let ns = metadata.get("langgraph_checkpoint_ns").cloned();
            metadata.extend(ns.map(|ns| ("checkpoint_ns".to_owned(), ns)));
            json!([Json::from(event.chunk.clone()), Json::from(Value::Map(metadata))])
        }
        Data::Checkpoint(snapshot) => checkpoint(snapshot),
        Data::Debug(event) => debug(event)?,
        Data::Custom(_)
        | Data::Updates(_)
        | Data::TaskStart(_)
        | Data::TaskEnd(_)
        | Data::Outcome(_) => data.value_with(|_| Ok(Value::Null))?.into(),
    })
}

/// Questions as streams show them: with the schema of the answer, or null.
fn asked(interrupts: &[Interrupt]) -> Json {
    let one = |interrupt: &Interrupt| {
        let mut json = Json::from(interrupt_value(interrupt));
        if interrupt.response_schema.is_none() {
            json["response_schema"] = Json::Null;
        }
        json
    };
    interrupts.iter().map(one).collect()
}

/// Questions as states show them.
fn waiting(interrupts: &[Interrupt]) -> Json {
    interrupts.iter().map(|interrupt| Json::from(interrupt_value(interrupt))).collect()
}

fn debug(event: &DebugEvent) -> Result<Json, RunError> {
    let mut payload = data(&event.payload)?;
    if let Data::Checkpoint(snapshot) = &*event.payload {
        payload["checkpoint"] = place(&snapshot.config);
        payload["parent_checkpoint"] = snapshot.parent.as_ref().map_or(Json::Null, place);
    }
    Ok(json!({ "step": event.step, "type": event.kind(), "payload": payload }))
}

/// The payload of a `checkpoints` event.
fn checkpoint(snapshot: &RawSnapshot) -> Json {
    let task = |task: &TaskSnapshot| {
        let mut json = json!({ "id": task.id.to_string(), "name": &*task.name });
        match (&task.error, &task.result) {
            (Some(error), _) => json["error"] = error.as_str().into(),
            (None, Some(result)) => json["result"] = result.clone().into(),
            (None, None) => {}
        }
        if task.error.is_none() {
            json["interrupts"] = waiting(&task.interrupts);
        }
        json["state"] = match &task.state {
            Some(SubgraphState::At(at)) => config(at),
            Some(SubgraphState::Snapshot(inner)) => checkpoint(inner),
            None => Json::Null,
        };
        json
    };
    // What a caller attached is stored with a checkpoint, and not shown in its event.
    let metadata =
        snapshot.metadata.clone().map(|metadata| Metadata { extra: BTreeMap::new(), ..metadata });
    json!({
        "config": config(&snapshot.config),
        "parent_config": snapshot.parent.as_ref().map(config),
        "values": Json::from(snapshot.values.clone()),
        "metadata": metadata.as_ref().map(metadata_json),
        "next": names(snapshot),
        "tasks": snapshot.tasks.iter().map(task).collect::<Vec<_>>(),
    })
}

fn names(snapshot: &RawSnapshot) -> Vec<&str> {
    snapshot.next.iter().map(|name| &**name).collect()
}

fn config(at: &CheckpointRef) -> Json {
    json!({ "configurable": place(at) })
}

/// Where a checkpoint is.
fn place(at: &CheckpointRef) -> Json {
    let mut place = json!({ "thread_id": &*at.thread, "checkpoint_ns": &*at.ns });
    if let Some(id) = at.id {
        place["checkpoint_id"] = id.to_string().into();
    }
    if !at.ns.is_empty() && !at.parents.is_empty() {
        let mut map: JsonMap<String, Json> =
            at.parents.iter().map(|(ns, id)| (ns.clone(), id.to_string().into())).collect();
        map.extend(at.id.map(|id| (at.ns.to_string(), id.to_string().into())));
        place["checkpoint_map"] = map.into();
    }
    place
}

fn metadata_json(metadata: &Metadata) -> Json {
    let parents: JsonMap<String, Json> =
        metadata.parents.iter().map(|(ns, id)| (ns.clone(), id.to_string().into())).collect();
    let mut json = json!({
        "source": metadata.source.as_str(),
        "step": metadata.step,
        "parents": parents,
    });
    for (key, value) in &metadata.extra {
        json[key] = value.clone().into();
    }
    json
}

/// The path of a task as a list, from the text that it is stored as.
fn task_path(path: &str) -> Json {
    let parts = path.trim_start_matches('~').split(", ").map(|part| {
        let number = part.len() == 10 && part.bytes().all(|byte| byte.is_ascii_digit());
        match part.parse::<u64>() {
            Ok(index) if number => index.into(),
            _ => Json::from(part.trim_start_matches('~')),
        }
    });
    let mut parts: Vec<Json> = parts.collect();
    // The last number of a dispatch says whether it is a recorded call.
    if parts.first().is_some_and(|kind| kind == crate::engine::names::PUSH)
        && let Some(last) = parts.last_mut()
        && let Some(number) = last.as_u64()
    {
        *last = (number != 0).into();
    }
    parts.into()
}

impl RawSnapshot {
    /// The snapshot as the payload of an event of [`Mode::Checkpoints`](crate::Mode::Checkpoints).
    pub fn to_event_json(&self) -> Json {
        checkpoint(self)
    }

    /// The snapshot in LangGraph's `ThreadState` form. A thread that has not begun has no `checkpoint`.
    pub fn to_json(&self) -> Json {
        let begun = self.metadata.is_some();
        let checkpoint = begun.then(|| place(&self.config));
        let parent = self.parent.as_ref().map(place);
        let id = |place: &Option<Json>| place.as_ref().map(|place| place["checkpoint_id"].clone());
        json!({
            "values": Json::from(self.values.clone()),
            "next": names(self),
            "tasks": self.tasks.iter().map(TaskSnapshot::to_json).collect::<Vec<_>>(),
            "metadata": self.metadata.as_ref().map(metadata_json),
            "created_at": self.created_at,
            "checkpoint_id": id(&checkpoint),
            "parent_checkpoint_id": id(&parent),
            "checkpoint": checkpoint,
            "parent_checkpoint": parent,
            "interrupts": waiting(&self.interrupts),
        })
    }
}

impl TaskSnapshot {
    /// The task as LangGraph's `ThreadState` lists it.
    fn to_json(&self) -> Json {
        let (checkpoint, state) = match &self.state {
            Some(SubgraphState::At(at)) => (place(at), Json::Null),
            Some(SubgraphState::Snapshot(inner)) => (Json::Null, inner.to_json()),
            None => (Json::Null, Json::Null),
        };
        json!({
            "id": self.id.to_string(),
            "name": &*self.name,
            "path": task_path(&self.path),
            "error": self.error,
            "interrupts": waiting(&self.interrupts),
            "checkpoint": checkpoint,
            "state": state,
            "result": self.result.clone().map(Json::from),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_list() {
        assert_eq!(task_path("~__pregel_pull, wf"), json!(["__pregel_pull", "wf"]));
        let dispatch = "~__pregel_push, 0000000012, 0000000000";
        assert_eq!(task_path(dispatch), json!(["__pregel_push", 12, false]));
    }
}
