//! Crons: runs that a schedule starts.
//!
//! Each cron knows when it is due next. A background task fires what is due: one call of the store admits the run and moves
//! the date, and only if the date is still the one that was seen, so several processes fire a cron once. A firing that is late
//! by more than [`fire::LATE_MAX`] was missed, because no server ran, and is skipped.
//!
//! Knows the store and the queue, which runs start through. Knows nothing of endpoints and events.

mod fire;
mod schedule;

pub(crate) use fire::run as run_crons;
pub(crate) use schedule::{Schedule, parse_time};

use serde_json::{Map, Value as Json, json};

use crate::error::{ApiError, ApiResult};
use crate::store::Cron;
use crate::tenant::id_of;
use crate::time::Micros;
use crate::wire::RunRequest;

/// The run that a cron asks for.
pub(crate) fn request(cron: &Cron) -> ApiResult<RunRequest> {
    let mut body = cron.payload.clone();
    body.insert("assistant_id".to_owned(), id_of(&cron.assistant_id).into());
    body.insert("metadata".to_owned(), Json::Object(cron.metadata.clone()));
    if let Some(configurable) =
        body.get_mut("config").and_then(|config| config.get_mut("configurable"))
    {
        // It is no context of the graph; it is added where the run is made.
        configurable.as_object_mut().map(|configurable| configurable.remove("cron_id"));
    }
    let request: RunRequest = serde_json::from_value(Json::Object(body)).map_err(|error| {
        ApiError::invalid(format!("the run of the cron does not have the right form: {error}"))
    })?;
    let stateless = cron.thread_id.is_none();
    request.check(stateless)?;
    let on_completion = stateless.then_some(cron.on_run_completed);
    Ok(RunRequest { on_completion, ..request })
}

/// Names the cron in what it asks for.
pub(crate) fn name_in(fields: &mut Map<String, Json>, id: &str) {
    let config = fields.entry("config").or_insert_with(|| json!({}));
    if !config.is_object() {
        *config = json!({});
    }
    if !config["configurable"].is_object() {
        config["configurable"] = json!({});
    }
    config["configurable"]["cron_id"] = id.into();
}

/// When a cron is due after this time; never if it is disabled or has ended.
pub(crate) fn next_date(cron: &Cron, after: Micros) -> ApiResult<Option<Micros>> {
    if !cron.enabled {
        return Ok(None);
    }
    date_after(cron, after)
}

/// The date that clients are shown. A disabled cron is not due, but it can be said when it would be.
pub(crate) fn shown_date(cron: &Cron) -> Option<Micros> {
    match cron.enabled {
        true => cron.next_run_date,
        // The schedule was read when the cron was stored.
        false => date_after(cron, Micros::now()).ok().flatten(),
    }
}

fn date_after(cron: &Cron, after: Micros) -> ApiResult<Option<Micros>> {
    let schedule = Schedule::read(&cron.schedule, cron.timezone.as_deref())?;
    let next = schedule.after(after)?;
    Ok(next.filter(|next| cron.end_time.is_none_or(|end| *next <= end)))
}
