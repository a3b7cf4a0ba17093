use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use superstep::{AnyThread, CheckpointRef, RunError, StateUpdate};

use super::operation::{Action, Limit, Operation, Resource, get, post};
use super::{Answer, State, json};
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::queue::{graph_of, open_questions};
use crate::store::{Thread, ThreadStatus};
use crate::time::Micros;
use crate::wire::{
    Body, CheckpointArg, Id, Object, Path, Query, StateObject, id_in_path, limit, object,
    or_default, parse_checkpoint,
};

pub(super) fn operations() -> Vec<Operation> {
    let kind = Resource::Threads;
    let subgraphs = "With the states of subgraphs";
    vec![
        get("/threads/{thread_id}/state", kind, Action::Read, latest)
            .summary("Get the state of a thread")
            .query::<bool>("subgraphs", subgraphs)
            .json::<StateObject>()
            .refuses([400, 404]),
        post("/threads/{thread_id}/state", kind, Action::Write, update)
            .summary("Change the state of a thread")
            .json::<Updated>()
            .refuses([400, 404, 409]),
        post("/threads/{thread_id}/state/checkpoint", kind, Action::Read, at_checkpoint)
            .summary("Get the state of a thread at a checkpoint")
            .json::<StateObject>()
            .refuses([400, 404]),
        get("/threads/{thread_id}/state/{checkpoint_id}", kind, Action::Read, by_id)
            .summary("Get the state of a thread at a checkpoint, by its id")
            .query::<bool>("subgraphs", subgraphs)
            .json::<StateObject>()
            .refuses([400, 404]),
        get("/threads/{thread_id}/history", kind, Action::Read, history_by_query)
            .summary("List past states of a thread, newest first")
            .query::<Limit>("limit", "How many states; 1 if nothing is said")
            .query::<Id<'static>>("before", "Only states before this checkpoint")
            .json::<Vec<StateObject>>()
            .refuses([400, 404]),
        post("/threads/{thread_id}/history", kind, Action::Read, history)
            .summary("List past states of a thread, newest first")
            .json::<Vec<StateObject>>()
            .refuses([400, 404]),
    ]
}

/// The thread with its graph, if it has had a run.
pub(super) async fn open(app: &App, id: &str) -> ApiResult<(Thread, Option<AnyThread>)> {
    let id = id_in_path("thread", id)?;
    let thread = app.thread(&id).await?;
    let opened = graph_of(app, &thread).map(|graph| graph.thread(id.as_str()));
    Ok((thread, opened))
}

/// What a thread without checkpoints looks like.
fn nothing() -> Json {
    json!({
        "values": {}, "next": [], "tasks": [], "interrupts": [], "metadata": null, "created_at": null,
        "checkpoint": null, "parent_checkpoint": null, "checkpoint_id": null, "parent_checkpoint_id": null,
    })
}

async fn look(thread: Option<AnyThread>, at: Option<CheckpointRef>, subgraphs: bool) -> Answer {
    let Some(thread) = thread else { return Ok(json(nothing())) };
    let thread = match at {
        Some(at) => thread.at(at),
        None => thread,
    };
    match thread.state(subgraphs).await {
        Ok(state) if state.metadata.is_none() => Ok(json(nothing())),
        Ok(state) => Ok(json(state.to_json())),
        // Clients rely on getting no error here.
        Err(RunError::UnknownCheckpoint { .. }) => Ok(json(nothing())),
        Err(error) => Err(error.into()),
    }
}

pub(super) async fn latest(state: State, Path(id): Path<String>, query: Query) -> Answer {
    let (_, thread) = open(&state, &id).await?;
    look(thread, None, query.flag("subgraphs")?).await
}

pub(super) async fn by_id(
    state: State,
    Path((id, checkpoint)): Path<(String, String)>,
    query: Query,
) -> Answer {
    let (known, thread) = open(&state, &id).await?;
    let at = CheckpointRef::latest(known.thread_id.as_str()).at(parse_checkpoint(&checkpoint)?);
    look(thread, Some(at), query.flag("subgraphs")?).await
}

#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "StateAtCheckpoint")]
pub(super) struct AtCheckpoint {
    #[serde(deserialize_with = "object")]
    #[schemars(with = "Option<CheckpointArg>")]
    checkpoint: Option<CheckpointArg>,
    subgraphs: Option<bool>,
}

pub(super) async fn at_checkpoint(
    state: State,
    Path(id): Path<String>,
    Body(body): Body<AtCheckpoint>,
) -> Answer {
    let (known, thread) = open(&state, &id).await?;
    let at = body.checkpoint.unwrap_or_default().to_ref(&known.thread_id)?;
    look(thread, Some(at), body.subgraphs.unwrap_or(false)).await
}

#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "StateUpdate")]
pub(super) struct Update {
    values: Option<Json>,
    as_node: Option<String>,
    #[serde(default, deserialize_with = "object")]
    checkpoint: Option<CheckpointArg>,
    checkpoint_id: Option<String>,
}

/// Where an update was stored, under the names that clients read.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "StateUpdated")]
struct Updated {
    checkpoint: Place,
    configurable: Place,
    checkpoint_id: Option<String>,
}

/// The place of a checkpoint.
#[derive(Clone, Serialize, JsonSchema)]
#[schemars(rename = "CheckpointPlace")]
struct Place {
    thread_id: String,
    checkpoint_ns: String,
    checkpoint_id: Option<String>,
}

pub(super) async fn update(
    state: State,
    Path(id): Path<String>,
    Body(body): Body<Update>,
) -> Answer {
    let (known, thread) = open(&state, &id).await?;
    let id = &known.thread_id;
    let Some(thread) = thread else {
        return Err(ApiError::bad_request(format!(
            "the thread `{id}` has no graph yet; start a run on it first"
        )));
    };
    if known.status == ThreadStatus::Busy {
        return Err(ApiError::conflict(
            "the thread has a run in progress; wait for it or cancel it before changing the state",
        ));
    }
    let at = match (body.checkpoint, body.checkpoint_id) {
        (Some(at), _) if at.checkpoint_id.is_some() || !at.checkpoint_ns.is_empty() => {
            Some(at.to_ref(id)?)
        }
        (_, Some(checkpoint)) => {
            Some(CheckpointRef::latest(id.as_str()).at(parse_checkpoint(&checkpoint)?))
        }
        (_, None) => None,
    };
    let values = match body.values {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::Array(several)) => several,
        Some(one) => vec![one],
    };
    let with_node = |update: StateUpdate| match &body.as_node {
        Some(node) => update.as_node(node.as_str()),
        None => update,
    };
    let mut updates: Vec<_> =
        values.into_iter().map(|values| with_node(StateUpdate::data(values))).collect();
    if updates.is_empty() {
        updates.push(with_node(StateUpdate::nothing()));
    }
    let steps = updates.into_iter().map(|update| vec![update]);
    let changed = match at {
        Some(at) => thread.at(at),
        None => thread.clone(),
    };
    let made = changed.update(steps).await?;
    refresh(&state, &thread).await?;
    let place = Place {
        thread_id: id.clone(),
        checkpoint_ns: made.ns.to_string(),
        checkpoint_id: made.id.map(|id| id.to_string()),
    };
    Ok(json(json!(Updated {
        checkpoint_id: place.checkpoint_id.clone(),
        configurable: place.clone(),
        checkpoint: place,
    })))
}

/// Brings the record of a thread up to date after its state was changed.
async fn refresh(app: &App, thread: &AnyThread) -> ApiResult<()> {
    let now = thread.state(true).await?;
    let values = Json::from(now.values.clone());
    let mut interrupts = Object::new();
    open_questions(&now, &mut interrupts);
    let status = if now.next.is_empty() { ThreadStatus::Idle } else { ThreadStatus::Interrupted };
    let change = Box::new(move |thread: &mut Thread| {
        thread.values = values;
        thread.interrupts = interrupts;
        thread.error = Json::Null;
        thread.state_updated_at = Micros::now();
        thread.updated_at = thread.state_updated_at;
        if thread.status != ThreadStatus::Busy {
            thread.status = status;
        }
    });
    app.store.update_thread(thread.id(), change).await?;
    Ok(())
}

#[derive(Default, Deserialize, JsonSchema)]
#[schemars(rename = "StateHistory")]
pub(super) struct History {
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<i64>,
    before: Option<Json>,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Object>")]
    metadata: Object,
    #[serde(default, deserialize_with = "object")]
    checkpoint: Option<CheckpointArg>,
}

/// The id in any of the forms that clients send: the id, a checkpoint, or a config.
fn before(before: &Json) -> ApiResult<Option<superstep::checkpoint::CheckpointId>> {
    let id = match before {
        Json::Null => return Ok(None),
        Json::String(id) => Some(id.as_str()),
        other => {
            let place = other.get("configurable").unwrap_or(other);
            place.get("checkpoint_id").and_then(Json::as_str)
        }
    };
    match id {
        Some(id) => parse_checkpoint(id).map(Some),
        None => Err(ApiError::invalid("`before` names no checkpoint id")),
    }
}

async fn list(app: &App, id: &str, asked: History) -> Answer {
    let (known, thread) = open(app, id).await?;
    let limit = limit(asked.limit, 1)?;
    let before = before(&asked.before.unwrap_or_default())?;
    let at = asked.checkpoint.unwrap_or_default();
    let at = CheckpointArg { checkpoint_id: None, ..at }.to_ref(&known.thread_id)?;
    let Some(thread) = thread else { return Ok(json(json!([]))) };
    let history = thread.at(at).history(limit, before, asked.metadata).await?;
    Ok(json(history.iter().map(superstep::RawSnapshot::to_json).collect()))
}

pub(super) async fn history(
    state: State,
    Path(id): Path<String>,
    Body(body): Body<History>,
) -> Answer {
    list(&state, &id, body).await
}

pub(super) async fn history_by_query(state: State, Path(id): Path<String>, query: Query) -> Answer {
    let before = query.get("before").map(|before| match serde_json::from_str(before) {
        Ok(json @ Json::Object(_)) => json,
        _ => before.into(),
    });
    let asked = History { limit: query.number("limit")?, before, ..History::default() };
    list(&state, &id, asked).await
}
