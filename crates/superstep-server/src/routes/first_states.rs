//! Threads that are created with states: the supersteps of another thread, or of another program.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value as Json;
use superstep::{AnyGraph, StateUpdate};

use super::state::{place_metadata, refresh};
use crate::access::Caller;
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::store::Thread;
use crate::threads;
use crate::wire::Object;

/// What several nodes wrote in one superstep.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ThreadSuperstep")]
pub(super) struct Superstep {
    updates: Vec<SuperstepUpdate>,
}

/// What a node wrote.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ThreadSuperstepUpdate")]
struct SuperstepUpdate {
    /// The node, or `__input__`.
    as_node: String,
    /// An object; nothing is written without it.
    values: Option<Object>,
    /// `{"update", "goto"}` instead of values.
    command: Option<Object>,
}

/// The graph that the metadata of a thread names.
pub(super) fn graph_in(app: &App, caller: &Caller, metadata: &Object) -> ApiResult<AnyGraph> {
    let Some(name) = metadata.get("graph_id").and_then(Json::as_str) else {
        return Err(ApiError::bad_request(
            "`supersteps` need a graph; name it as `graph_id` in the metadata of the thread",
        ));
    };
    let missing = || ApiError::not_found(format!("there is no graph `{name}`"));
    app.graph_of(caller.tenant(), name).ok_or_else(missing)
}

/// The updates that were asked for.
pub(super) fn read_steps(steps: Vec<Superstep>) -> ApiResult<Vec<Vec<StateUpdate>>> {
    let update = |update: SuperstepUpdate| {
        let made = match (update.values, update.command) {
            (Some(_), Some(_)) => {
                return Err(ApiError::invalid("an update has `values` or a `command`, not both"));
            }
            (_, Some(command)) => StateUpdate::command(&Json::Object(command))
                .map_err(|error| ApiError::invalid(error.to_string()))?,
            (Some(values), None) => StateUpdate::data(Json::Object(values)),
            (None, None) => StateUpdate::nothing(),
        };
        Ok(made.as_node(update.as_node))
    };
    let step = |step: Superstep| step.updates.into_iter().map(update).collect();
    steps.into_iter().map(step).collect()
}

/// Stores the first states of a thread that was just created. If they cannot be stored, the thread is deleted again.
pub(super) async fn first_states(
    app: &App,
    caller: &Caller,
    graph: &AnyGraph,
    made: &Thread,
    steps: Vec<Vec<StateUpdate>>,
) -> ApiResult<Thread> {
    let key = &made.thread_id;
    let thread = graph.thread(made.id());
    let stored = match thread.update_with(steps, place_metadata(made, None)).await {
        Ok(_) => refresh(app, key, &thread).await,
        Err(error) => Err(error.into()),
    };
    if let Err(error) = stored {
        threads::remove(app, key).await?;
        return Err(error);
    }
    app.thread(caller, key).await
}
