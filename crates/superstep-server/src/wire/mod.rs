//! The JSON of the API: what requests hold, and what objects look like. These types do not leave the crate.
//!
//! Knows the records of the store, which it shows, and the address of a webhook, which it checks. Knows nothing of how runs are
//! queued and driven.

mod body;
mod extract;
mod objects;
mod outline;
mod path;
mod query;
mod run_request;
mod shapes;
mod stream;
mod trace;
mod ttl;

pub(crate) use body::{Body, Keyed, RawBody, id_in_path, json, json_response, object};
pub(crate) use extract::Extract;
pub(crate) use objects::{
    AnswerObject, AssistantObject, AssistantVersionObject, CronObject, Detail, Id, QuestionObject,
    RunObject, Selected, ThreadObject, Time, answer_json, assistant_json, assistant_version_json,
    cron_json, interrupts_json, question_json, run_json, select, thread_json, webhook_json,
};
pub(crate) use outline::Outline;
pub(crate) use path::Path;
pub(crate) use query::Query;
pub(crate) use run_request::{
    CheckpointArg, Command, IfNotExists, OnDisconnect, RunRequest, as_object, parse_checkpoint,
};
pub(crate) use shapes::{Drawing, EventObject, LayoutObject, StateObject};
pub(crate) use stream::{Frames, engine_modes, message_metadata, task_with_metadata};
pub(crate) use ttl::{TtlArg, ttl_json};

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value as Json};

/// An object; null counts as an empty one.
pub(crate) type Object = Map<String, Json>;

/// A field for which null means the same as nothing.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A number between 1 and 1,000: how many rows are wanted.
pub(crate) fn limit(given: Option<i64>, default: usize) -> crate::error::ApiResult<usize> {
    match given {
        None => Ok(default),
        Some(limit @ 1..=1_000) => Ok(usize::try_from(limit).unwrap_or(default)),
        Some(limit) => Err(crate::error::ApiError::invalid(format!(
            "`limit` is {limit}; it must be between 1 and 1000"
        ))),
    }
}

/// How many rows are skipped.
pub(crate) fn offset(given: Option<i64>) -> crate::error::ApiResult<usize> {
    usize::try_from(given.unwrap_or(0))
        .map_err(|_| crate::error::ApiError::invalid("`offset` must not be negative".to_owned()))
}
