use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use super::assistants::{Order, column};
use super::operation::{Action, Operation, Resource, delete, get, patch, post};
use super::{Answer, State, json, no_content, page};
use crate::access::Caller;
use crate::crons::{Schedule, name_in, next_date, parse_time, request, shown_date};
use crate::error::{ApiError, ApiResult};
use crate::store::{Asked, Assistant, Create, Cron, ListQuery, Made, OnCompletion, Page};
use crate::tenant::id_of;
use crate::time::Micros;
use crate::wire::{
    Body, CronObject, Keyed, Object, Path, Selected, cron_json, limit, offset, or_default, select,
};

type One = CronObject<'static>;

pub(super) fn operations() -> Vec<Operation> {
    let kind = Resource::Crons;
    vec![
        post("/runs/crons", kind, Action::Create, create)
            .summary("Create a cron whose runs have a new thread each")
            .json::<One>()
            .refuses([400, 404]),
        post("/threads/{thread_id}/runs/crons", kind, Action::Create, create_on_thread)
            .summary("Create a cron whose runs are on a thread")
            .json::<One>()
            .refuses([400, 404]),
        post("/runs/crons/search", kind, Action::Search, search)
            .summary("List crons")
            .json::<Vec<Selected<One>>>(),
        post("/runs/crons/count", kind, Action::Search, count).summary("Count crons").json::<u64>(),
        get("/runs/crons/{cron_id}", kind, Action::Read, find)
            .summary("Get a cron")
            .json::<One>()
            .refuses([404]),
        patch("/runs/crons/{cron_id}", kind, Action::Write, update)
            .summary("Change a cron")
            .json::<One>()
            .refuses([400, 404, 409]),
        delete("/runs/crons/{cron_id}", kind, Action::Delete, remove)
            .summary("Delete a cron")
            .no_content()
            .refuses([404]),
    ]
}

/// A cron as clients ask for it. Further fields are those of a run.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "CronRequest")]
pub(super) struct Fields {
    assistant_id: Option<String>,
    /// Minute, hour, day, month, day of the week.
    schedule: Option<String>,
    /// The IANA name of a time zone; UTC if there is none.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<String>")]
    timezone: Option<Option<String>>,
    /// It is not due after this time; null for always.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<String>")]
    end_time: Option<Option<String>>,
    enabled: Option<bool>,
    /// What becomes of the thread of a run, if each run has its own.
    on_run_completed: Option<OnCompletion>,
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<Object>")]
    metadata: Option<Option<Object>>,
    #[serde(flatten)]
    run: Object,
}

/// Tells null from nothing.
fn given<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

impl Fields {
    fn is_empty(&self) -> bool {
        self.assistant_id.is_none()
            && self.schedule.is_none()
            && self.timezone.is_none()
            && self.end_time.is_none()
            && self.enabled.is_none()
            && self.on_run_completed.is_none()
            && self.metadata.is_none()
            && self.run.is_empty()
    }

    /// Changes a cron as the fields say, and finds what makes no sense. The assistant has been looked up.
    fn apply(self, state: &State, cron: &mut Cron, now: Micros) -> ApiResult<()> {
        if let Some(schedule) = self.schedule {
            cron.payload.insert("schedule".to_owned(), schedule.as_str().into());
            cron.schedule = schedule;
        }
        if let Some(timezone) = self.timezone {
            cron.timezone = timezone;
        }
        if let Some(end) = self.end_time {
            cron.end_time = end.map(|end| parse_time("end_time", &end)).transpose()?;
        }
        cron.enabled = self.enabled.unwrap_or(cron.enabled);
        cron.on_run_completed = self.on_run_completed.unwrap_or(cron.on_run_completed);
        let given = self.metadata.is_some();
        if let Some(metadata) = self.metadata {
            cron.metadata.extend(metadata.unwrap_or_default());
        }
        if given || !cron.stamp.is_empty() {
            cron.metadata.extend(cron.stamp.clone());
            cron.payload.insert("metadata".to_owned(), Json::Object(cron.metadata.clone()));
        }
        let run = self.run.into_iter().filter(|(name, _)| name != "thread_id");
        cron.payload.extend(run.filter(|(_, value)| !value.is_null()));
        name_in(&mut cron.payload, id_of(&cron.cron_id));
        request(cron)?.check_webhook(state.webhooks.allows_private())?;
        Schedule::read(&cron.schedule, cron.timezone.as_deref())?;
        cron.next_run_date = next_date(cron, now)?;
        cron.updated_at = now;
        Ok(())
    }
}

/// The assistant of a cron, by id or by graph. One that is not there is not found, whatever it was named by.
async fn known_assistant(state: &State, caller: &Caller, name: &str) -> ApiResult<Assistant> {
    state.assistant(caller, name).await.map_err(|error| match error.status {
        StatusCode::UNPROCESSABLE_ENTITY => ApiError::not_found(error.detail),
        _ => error,
    })
}

async fn make(
    state: &State,
    caller: &Caller,
    thread: Option<String>,
    fields: Fields,
    asked: Option<Asked>,
) -> Answer {
    let missing = |name: &str| ApiError::invalid(format!("`{name}` is missing"));
    let assistant = fields.assistant_id.as_deref().ok_or_else(|| missing("assistant_id"))?;
    fields.schedule.as_deref().ok_or_else(|| missing("schedule"))?;
    let assistant = known_assistant(state, caller, assistant).await?;
    let now = Micros::now();
    let mut cron = Cron {
        cron_id: caller.new_key(),
        assistant_id: assistant.assistant_id.clone(),
        thread_id: thread,
        schedule: String::new(),
        timezone: None,
        end_time: None,
        next_run_date: None,
        enabled: true,
        on_run_completed: OnCompletion::Delete,
        metadata: Object::new(),
        payload: Map::from_iter([(
            "assistant_id".to_owned(),
            id_of(&assistant.assistant_id).into(),
        )]),
        created_at: now,
        updated_at: now,
        by: caller.id().map(str::to_owned),
        stamp: caller.filter().clone(),
    };
    fields.apply(state, &mut cron, now)?;
    let cron = match state.create(asked, Create::Cron(cron)).await? {
        Ok(Made::Cron(made)) => made,
        Ok(_) => return Err(Made::unexpected().into()),
        Err(kept) => kept.row()?,
    };
    state.cron_wake.notify_one();
    Ok(json(shown(&cron)))
}

fn shown(cron: &Cron) -> Json {
    cron_json(cron, shown_date(cron))
}

pub(super) async fn create(
    state: State,
    caller: Caller,
    Keyed(fields, asked): Keyed<Fields>,
) -> Answer {
    make(&state, &caller, None, fields, asked).await
}

pub(super) async fn create_on_thread(
    state: State,
    caller: Caller,
    Path(thread): Path<String>,
    Keyed(fields, asked): Keyed<Fields>,
) -> Answer {
    let thread = caller.thread(&thread)?;
    state.thread(&caller, &thread).await?;
    make(&state, &caller, Some(thread), fields, asked).await
}

#[derive(Default, Deserialize, JsonSchema)]
#[schemars(rename = "CronSearch")]
pub(super) struct Search {
    assistant_id: Option<String>,
    thread_id: Option<String>,
    enabled: Option<bool>,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Object>")]
    metadata: Object,
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<i64>,
    #[schemars(range(min = 0))]
    offset: Option<i64>,
    sort_by: Option<String>,
    sort_order: Option<Order>,
    select: Option<Vec<String>>,
}

impl Search {
    async fn to_query(&self, state: &State, caller: &Caller) -> ApiResult<ListQuery> {
        let mut equal = Vec::new();
        if let Some(assistant) = &self.assistant_id {
            let assistant = state.assistant(caller, assistant).await?.assistant_id;
            equal.push(("assistant_id", vec![assistant]));
        }
        if let Some(thread) = &self.thread_id {
            equal.push(("thread_id", vec![caller.thread(thread)?]));
        }
        equal.extend(self.enabled.map(|enabled| ("enabled", vec![enabled.to_string()])));
        let known = [
            "cron_id",
            "assistant_id",
            "thread_id",
            "next_run_date",
            "end_time",
            "created_at",
            "updated_at",
        ];
        Ok(ListQuery {
            metadata: self.metadata.clone(),
            equal,
            sort_by: column(self.sort_by.as_deref(), &known, "created_at")?,
            descending: self.sort_order != Some(Order::Asc),
            limit: limit(self.limit, 10)?,
            offset: offset(self.offset)?,
            ..ListQuery::default()
        })
    }
}

pub(super) async fn search(state: State, caller: Caller, Body(body): Body<Search>) -> Answer {
    let query = body.to_query(&state, &caller).await?;
    let offset = query.offset;
    let found = match caller.narrow(query) {
        Some(query) => state.store.crons(query).await?,
        None => Page::empty(),
    };
    page(&found, offset, |cron| select(shown(cron), body.select.as_deref()))
}

pub(super) async fn count(state: State, caller: Caller, Body(body): Body<Search>) -> Answer {
    Ok(json(match caller.narrow(body.to_query(&state, &caller).await?) {
        Some(query) => state.store.count_crons(query).await?.into(),
        None => 0.into(),
    }))
}

fn missing(key: &str) -> ApiError {
    ApiError::not_found(format!("there is no cron `{}`", id_of(key)))
}

async fn known(state: &State, caller: &Caller, key: &str) -> ApiResult<Cron> {
    let found = state.store.cron(key).await?;
    found.filter(|cron| caller.sees(&cron.metadata)).ok_or_else(|| missing(key))
}

pub(super) async fn find(state: State, caller: Caller, Path(id): Path<String>) -> Answer {
    let id = caller.key("cron", &id)?;
    Ok(json(shown(&known(&state, &caller, &id).await?)))
}

pub(super) async fn update(
    state: State,
    caller: Caller,
    Path(id): Path<String>,
    Body(mut fields): Body<Fields>,
) -> Answer {
    let id = caller.key("cron", &id)?;
    if fields.is_empty() {
        return Err(ApiError::bad_request("nothing is to be changed; give at least one field"));
    }
    let mut known = known(&state, &caller, &id).await?;
    if let Some(assistant) = fields.assistant_id.take() {
        let assistant = known_assistant(&state, &caller, &assistant).await?.assistant_id;
        known.payload.insert("assistant_id".to_owned(), id_of(&assistant).into());
        known.assistant_id = assistant;
    }
    let seen = known.updated_at;
    fields.apply(&state, &mut known, Micros::now())?;
    let change = Box::new(move |cron: &mut Cron| {
        if cron.updated_at == seen {
            *cron = known;
        }
    });
    let changed = state.store.update_cron(&id, change).await?.ok_or_else(|| missing(&id))?;
    if changed.updated_at == seen {
        return Err(ApiError::conflict("the cron was changed by another request; try again"));
    }
    state.cron_wake.notify_one();
    Ok(json(shown(&changed)))
}

pub(super) async fn remove(state: State, caller: Caller, Path(id): Path<String>) -> Answer {
    let id = caller.key("cron", &id)?;
    known(&state, &caller, &id).await?;
    match state.store.delete_cron(&id).await? {
        true => Ok(no_content()),
        false => Err(missing(&id)),
    }
}
