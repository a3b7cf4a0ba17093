//! Objects as clients see them. Each type is both what is written and what the OpenAPI document says of it.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json, json};
use superstep::checkpoint::Interrupt;

use super::Object;
use crate::error::{ApiError, ApiResult};
use crate::store::{self, Multitask, OnCompletion, RunStatus, ThreadStatus};
use crate::tenant::id_of;
use crate::time::Micros;

/// A time in RFC 3339.
pub(crate) struct Time(pub(crate) Micros);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.rfc3339())
    }
}

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

/// An id, which is a UUID.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct Id<'a>(&'a str);

impl JsonSchema for Id<'_> {
    fn schema_name() -> Cow<'static, str> {
        "Id".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "uuid" })
    }
}

/// Why a request was refused.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Detail<'a> {
    /// What is wrong, and what to do about it.
    pub(crate) detail: &'a str,
}

/// A graph with settings.
#[derive(Serialize, JsonSchema)]
#[serde(rename = "Assistant")]
pub(crate) struct AssistantObject<'a> {
    assistant_id: Id<'a>,
    graph_id: &'a str,
    name: &'a str,
    description: Option<&'a str>,
    config: &'a Json,
    context: &'a Json,
    metadata: &'a Object,
    version: u64,
    created_at: Time,
    updated_at: Time,
}

/// Settings that an assistant has or had.
#[derive(JsonSchema)]
#[schemars(rename = "AssistantVersion")]
#[expect(dead_code, reason = "it is written as an assistant without `updated_at`")]
pub(crate) struct AssistantVersionObject<'a> {
    assistant_id: Id<'a>,
    graph_id: &'a str,
    name: &'a str,
    description: Option<&'a str>,
    config: &'a Json,
    context: &'a Json,
    metadata: &'a Object,
    version: u64,
    created_at: Time,
}

/// A line of checkpoints under one id.
#[derive(Serialize, JsonSchema)]
#[serde(rename = "Thread")]
pub(crate) struct ThreadObject<'a> {
    thread_id: Id<'a>,
    created_at: Time,
    updated_at: Time,
    state_updated_at: Time,
    metadata: &'a Object,
    status: ThreadStatus,
    config: &'a Json,
    /// Null until the first run ends.
    values: &'a Json,
    /// Open questions by the task that asked them.
    interrupts: Object,
    /// Null, or how the last run failed.
    error: &'a Json,
}

/// One drive of a thread until it is done, interrupted or failed.
#[derive(Serialize, JsonSchema)]
#[serde(rename = "Run")]
pub(crate) struct RunObject<'a> {
    run_id: Id<'a>,
    thread_id: Id<'a>,
    assistant_id: Id<'a>,
    created_at: Time,
    updated_at: Time,
    status: RunStatus,
    metadata: &'a Object,
    /// What was asked for.
    kwargs: &'a Object,
    multitask_strategy: Multitask,
}

/// A run that a schedule starts.
#[derive(Serialize, JsonSchema)]
#[serde(rename = "Cron")]
pub(crate) struct CronObject<'a> {
    cron_id: Id<'a>,
    assistant_id: Id<'a>,
    /// Null if each run has a thread of its own.
    thread_id: Option<Id<'a>>,
    schedule: &'a str,
    /// Null for UTC.
    timezone: Option<&'a str>,
    end_time: Option<Time>,
    /// Null if it is never due. A cron that is disabled shows when it would be.
    next_run_date: Option<Time>,
    enabled: bool,
    /// Null if its runs are on a thread, which stays.
    on_run_completed: Option<OnCompletion>,
    metadata: &'a Object,
    /// What its runs are asked for.
    payload: &'a Object,
    user_id: &'a str,
    created_at: Time,
    updated_at: Time,
}

/// Objects of which only some fields were asked for.
pub(crate) struct Selected<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for Selected<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Selected{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        schema.remove("required");
        schema
    }
}

/// Serializing these types cannot fail: their maps have text as keys.
fn written(object: impl Serialize) -> Json {
    serde_json::to_value(object).expect("keys are text")
}

pub(crate) fn assistant_json(assistant: &store::Assistant) -> Json {
    written(AssistantObject {
        assistant_id: Id(id_of(&assistant.assistant_id)),
        graph_id: &assistant.graph_id,
        name: &assistant.name,
        description: assistant.description.as_deref(),
        config: &assistant.config,
        context: &assistant.context,
        metadata: &assistant.metadata,
        version: assistant.version,
        created_at: Time(assistant.created_at),
        updated_at: Time(assistant.updated_at),
    })
}

pub(crate) fn assistant_version_json(assistant: &store::Assistant) -> Json {
    let mut json = assistant_json(assistant);
    if let Some(json) = json.as_object_mut() {
        json.remove("updated_at");
    }
    json
}

pub(crate) fn thread_json(thread: &store::Thread) -> Json {
    written(ThreadObject {
        thread_id: Id(thread.id()),
        created_at: Time(thread.created_at),
        updated_at: Time(thread.updated_at),
        state_updated_at: Time(thread.state_updated_at),
        metadata: &thread.metadata,
        status: thread.status,
        config: &thread.config,
        values: &thread.values,
        interrupts: without_schemas(&thread.interrupts),
        error: &thread.error,
    })
}

/// Questions as threads show them: without the schema of the answer, and when they are due.
fn without_schemas(interrupts: &Object) -> Object {
    let mut shown = interrupts.clone();
    for question in shown.values_mut().filter_map(Json::as_array_mut).flatten() {
        if let Some(question) = question.as_object_mut() {
            question.retain(|name, _| name == "id" || name == "value");
        }
    }
    shown
}

/// Who answered a question.
#[derive(Serialize, JsonSchema)]
#[serde(rename = "Answer")]
pub(crate) struct AnswerObject<'a> {
    interrupt_id: &'a str,
    /// The run that took the answer.
    run_id: Id<'a>,
    question: &'a Json,
    answer: &'a Json,
    /// Null if the server does not ask who somebody is.
    answered_by: Option<&'a str>,
    comment: Option<&'a str>,
    answered_at: Time,
}

pub(crate) fn answer_json(answered: &store::Answered) -> Json {
    written(AnswerObject {
        interrupt_id: &answered.interrupt_id,
        run_id: Id(&answered.run_id),
        question: &answered.question,
        answer: &answered.answer,
        answered_by: answered.by.as_deref(),
        comment: answered.comment.as_deref(),
        answered_at: Time(answered.at),
    })
}

/// An open question of a thread.
#[derive(Serialize, JsonSchema)]
#[serde(rename = "Question")]
pub(crate) struct QuestionObject<'a> {
    thread_id: Id<'a>,
    interrupt_id: &'a str,
    /// The task that asked.
    task_id: &'a str,
    value: &'a Json,
    /// The JSON Schema of the answer, or null.
    response_schema: &'a Json,
    /// When the clock answers, or null.
    due: &'a Json,
    /// Since when the thread waits.
    asked_at: Time,
    graph_id: &'a Json,
    assistant_id: &'a Json,
    /// That of the thread.
    metadata: &'a Object,
    /// How often a question of the thread was answered since it was last given input.
    answered: usize,
}

pub(crate) fn question_json(thread: &store::Thread, task: &str, asked: &Json) -> Json {
    let of_thread = |name: &str| thread.metadata.get(name).unwrap_or(&Json::Null);
    written(QuestionObject {
        thread_id: Id(thread.id()),
        interrupt_id: asked["id"].as_str().unwrap_or_default(),
        task_id: task,
        value: &asked["value"],
        response_schema: &asked["response_schema"],
        due: &asked["due"],
        asked_at: Time(thread.state_updated_at),
        graph_id: of_thread("graph_id"),
        assistant_id: of_thread("assistant_id"),
        metadata: &thread.metadata,
        answered: thread.answered.len(),
    })
}

/// A cron with the date at which it is due next.
pub(crate) fn cron_json(cron: &store::Cron, due: Option<Micros>) -> Json {
    written(CronObject {
        cron_id: Id(id_of(&cron.cron_id)),
        assistant_id: Id(id_of(&cron.assistant_id)),
        thread_id: cron.thread_id.as_deref().map(|key| Id(id_of(key))),
        schedule: &cron.schedule,
        timezone: cron.timezone.as_deref(),
        end_time: cron.end_time.map(Time),
        next_run_date: due.map(Time),
        enabled: cron.enabled,
        on_run_completed: cron.thread_id.is_none().then_some(cron.on_run_completed),
        metadata: &cron.metadata,
        payload: &cron.payload,
        user_id: cron.by.as_deref().unwrap_or(""),
        created_at: Time(cron.created_at),
        updated_at: Time(cron.updated_at),
    })
}

pub(crate) fn run_json(run: &store::Run) -> Json {
    written(RunObject {
        run_id: Id(&run.run_id),
        thread_id: Id(run.thread()),
        assistant_id: Id(id_of(&run.assistant_id)),
        created_at: Time(run.created_at),
        updated_at: Time(run.updated_at),
        status: run.status,
        metadata: &run.metadata,
        kwargs: &run.kwargs,
        multitask_strategy: run.multitask,
    })
}

/// What a webhook says: the run as it ended, and with which state.
pub(crate) fn webhook_json(webhook: &store::Webhook, now: Micros) -> Json {
    let mut json = run_json(&webhook.run);
    json["run_started_at"] = webhook.started_at.rfc3339().into();
    json["run_ended_at"] = webhook.ended_at.rfc3339().into();
    json["webhook_sent_at"] = now.rfc3339().into();
    json["values"] = webhook.values.clone();
    let error = webhook.run.result.as_ref().and_then(|result| result.get("__error__"));
    if let Some(error) = error {
        json["error"] = error.clone();
    }
    json
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
    let Some(fields) = fields.filter(|fields| !fields.is_empty()) else { return Ok(object) };
    let mut chosen = Map::new();
    for field in fields {
        let value = object.get(field).ok_or_else(|| {
            ApiError::invalid(format!("`select` names the unknown field `{field}`"))
        })?;
        chosen.insert(field.clone(), value.clone());
    }
    Ok(Json::Object(chosen))
}
