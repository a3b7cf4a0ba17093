//! Objects as clients see them.

use serde_json::{Map, Value as Json, json};
use superstep::checkpoint::Interrupt;

use crate::error::{ApiError, ApiResult};
use crate::store::{Assistant, Run, Thread};

pub(crate) fn assistant_json(assistant: &Assistant) -> Json {
    json!({
        "assistant_id": assistant.assistant_id,
        "graph_id": assistant.graph_id,
        "name": assistant.name,
        "description": assistant.description,
        "config": assistant.config,
        "context": assistant.context,
        "metadata": assistant.metadata,
        "version": assistant.version,
        "created_at": assistant.created_at.rfc3339(),
        "updated_at": assistant.updated_at.rfc3339(),
    })
}

pub(crate) fn assistant_version_json(assistant: &Assistant) -> Json {
    let mut json = assistant_json(assistant);
    if let Some(json) = json.as_object_mut() {
        json.remove("updated_at");
    }
    json
}

pub(crate) fn thread_json(thread: &Thread) -> Json {
    json!({
        "thread_id": thread.thread_id,
        "created_at": thread.created_at.rfc3339(),
        "updated_at": thread.updated_at.rfc3339(),
        "state_updated_at": thread.state_updated_at.rfc3339(),
        "metadata": thread.metadata,
        "status": thread.status.as_str(),
        "config": thread.config,
        "values": thread.values,
        "interrupts": thread.interrupts,
        "error": thread.error,
    })
}

pub(crate) fn run_json(run: &Run) -> Json {
    json!({
        "run_id": run.run_id,
        "thread_id": run.thread_id,
        "assistant_id": run.assistant_id,
        "created_at": run.created_at.rfc3339(),
        "updated_at": run.updated_at.rfc3339(),
        "status": run.status.as_str(),
        "metadata": run.metadata,
        "kwargs": run.kwargs,
        "multitask_strategy": run.multitask.as_str(),
    })
}

/// Questions as the results of runs show them.
pub(crate) fn interrupts_json(interrupts: &[Interrupt]) -> Json {
    let one = |interrupt: &Interrupt| {
        json!({
            "value": Json::from(interrupt.value.clone()),
            "id": interrupt.id.as_str(),
            "response_schema": interrupt.response_schema.clone().map(Json::from),
        })
    };
    interrupts.iter().map(one).collect()
}

/// Only these fields of an object.
pub(crate) fn select(object: Json, fields: Option<&[String]>) -> ApiResult<Json> {
    let Some(fields) = fields else { return Ok(object) };
    let mut chosen = Map::new();
    for field in fields {
        let value = object.get(field).ok_or_else(|| {
            ApiError::invalid(format!("`select` names the unknown field `{field}`"))
        })?;
        chosen.insert(field.clone(), value.clone());
    }
    Ok(Json::Object(chosen))
}
