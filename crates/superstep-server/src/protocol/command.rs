//! Commands of the thread protocol.

use std::collections::HashSet;
use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::{Value as Json, json};
use superstep::{AnyThread, CheckpointRef, RawSnapshot};
use uuid::Uuid;

use super::session::Session;
use super::subscription::Filter;
use crate::app::App;
use crate::error::ApiError;
use crate::queue::{graph_of, open_questions, submit};
use crate::store::{ListQuery, RunStatus, Thread};
use crate::wire::{IfNotExists, Object, RunRequest};

/// Why a command was refused.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// The client is told with a word of the protocol.
    Refused { code: &'static str, message: String },
    /// The server cannot do it now; nothing was changed.
    Failed(ApiError),
}

fn refused<T>(code: &'static str, message: impl Into<String>) -> Result<T, CommandError> {
    Err(CommandError::Refused { code, message: message.into() })
}

fn invalid<T>(message: impl Into<String>) -> Result<T, CommandError> {
    refused("invalid_argument", message)
}

impl From<ApiError> for CommandError {
    fn from(error: ApiError) -> Self {
        let code = match error.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "permission_denied",
            StatusCode::BAD_REQUEST
            | StatusCode::NOT_FOUND
            | StatusCode::CONFLICT
            | StatusCode::UNPROCESSABLE_ENTITY => "invalid_argument",
            StatusCode::NOT_IMPLEMENTED => "not_supported",
            _ => return Self::Failed(error),
        };
        Self::Refused { code, message: error.detail }
    }
}

impl From<crate::store::StoreError> for CommandError {
    fn from(error: crate::store::StoreError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<superstep::RunError> for CommandError {
    fn from(error: superstep::RunError) -> Self {
        ApiError::from(error).into()
    }
}

type Done = Result<Json, CommandError>;

/// A command as it was sent.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub(crate) id: u64,
    pub(crate) method: String,
    pub(crate) params: Json,
}

impl Envelope {
    /// Reads a command. The error says what is wrong with it.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        let json: Json = serde_json::from_slice(bytes)
            .map_err(|error| format!("the command is not JSON: {error}"))?;
        let id = json["id"].as_u64().ok_or("a command has an `id`, which is a number from 0")?;
        let method = json["method"].as_str().ok_or("a command has a `method`, which is a text")?;
        let params = match json.get("params") {
            None | Some(Json::Null) => json!({}),
            Some(params @ Json::Object(_)) => params.clone(),
            Some(_) => return Err("`params` is an object".to_owned()),
        };
        Ok(Self { id, method: method.to_owned(), params })
    }

    /// The answer to a command that was carried out.
    pub(crate) fn success(&self, result: Json, applied: Option<u64>) -> Json {
        let applied = applied.unwrap_or(0);
        json!({
            "type": "success", "id": self.id, "result": result, "meta": { "applied_through_seq": applied },
        })
    }

    /// The answer to a command that was refused; without an id if it could not be read.
    pub(crate) fn error(id: Option<u64>, code: &str, message: &str) -> Json {
        json!({ "type": "error", "id": id, "error": code, "message": message })
    }
}

/// Carries out a command. Returns its result, and the number of the last event before a run that it started.
pub(crate) async fn run(
    app: &Arc<App>,
    thread: &str,
    command: &Envelope,
) -> Result<(Json, Option<u64>), CommandError> {
    let params = &command.params;
    let result = match &*command.method {
        "run.start" => return run_start(app, thread, params).await,
        "input.respond" => respond(app, thread, params).await?,
        "state.fork" => fork(app, thread, params).await?,
        "state.get" => state(app, thread, params).await?,
        "state.listCheckpoints" => checkpoints(app, thread, params).await?,
        "agent.getTree" => tree(app, thread, params).await?,
        "subscription.subscribe" => {
            // Over HTTP each stream is a subscription of its own. Only the form is checked.
            Filter::read(params).or_else(invalid)?;
            json!({ "subscription_id": Uuid::new_v4().to_string(), "replayed_events": 0 })
        }
        "subscription.unsubscribe" => json!({}),
        "subscription.reconnect" => json!({ "restored": false }),
        "input.inject" => {
            return refused(
                "not_supported",
                "a message cannot be given to a run in progress; start a run with it by `run.start`",
            );
        }
        other => return refused("unknown_command", format!("Unknown protocol command: {other}")),
    };
    Ok((result, None))
}

fn text<'a>(params: &'a Json, name: &str) -> Result<&'a str, CommandError> {
    match params[name].as_str().filter(|text| !text.is_empty()) {
        Some(text) => Ok(text),
        None => invalid(format!("`{name}` is missing, or is not a text")),
    }
}

/// A request for a run, from the parameters that it shares with commands.
fn request(assistant: &str, params: &Json) -> Result<RunRequest, CommandError> {
    let mut config = params["config"].clone();
    let mut checkpoint = None;
    if let Some(configurable) = config.get_mut("configurable").and_then(Json::as_object_mut) {
        // Clients name the thread again, and the place to begin at.
        configurable.remove("thread_id");
        configurable.remove("checkpoint_ns");
        checkpoint = configurable.remove("checkpoint_id").filter(|id| !id.is_null());
    }
    let mut body = Object::from_iter([
        ("assistant_id".to_owned(), assistant.into()),
        ("config".to_owned(), config),
        ("metadata".to_owned(), params["metadata"].clone()),
    ]);
    body.extend(checkpoint.map(|id| ("checkpoint_id".to_owned(), id)));
    let request: RunRequest = serde_json::from_value(Json::Object(body))
        .or_else(|error| invalid(format!("the parameters do not have the right form: {error}")))?;
    Ok(RunRequest { session: true, ..request })
}

/// From now on the runs of the thread tell its session what happens. Nothing if there is no such thread.
pub(crate) async fn follow(app: &App, thread: &str) -> Result<Option<Thread>, ApiError> {
    let known = match app.thread(thread).await {
        Ok(known) => known,
        Err(error) if error.status == StatusCode::NOT_FOUND => return Ok(None),
        Err(error) => return Err(error),
    };
    if known.session {
        return Ok(Some(known));
    }
    Ok(app.store.update_thread(thread, Box::new(|thread| thread.session = true)).await?)
}

async fn run_start(
    app: &Arc<App>,
    thread: &str,
    params: &Json,
) -> Result<(Json, Option<u64>), CommandError> {
    let request = request(text(params, "assistant_id")?, params)?;
    let input = Some(params["input"].clone()).filter(|input| !input.is_null());
    let request = RunRequest { input, if_not_exists: Some(IfNotExists::Create), ..request };
    follow(app, thread).await?;
    // What comes after this number is of the run that is started here, or of those it waits for.
    let applied = Session::open(app, thread).await?.last();
    let (run, _) = submit(app, Some(thread), request).await?;
    Ok((json!({ "run_id": run.run_id }), Some(applied)))
}

/// A thread that has had a run, with its graph and its assistant.
async fn known(app: &App, thread: &str) -> Result<(AnyThread, String), CommandError> {
    let Some(known) = follow(app, thread).await? else {
        return refused(
            "no_such_run",
            format!("there is no thread `{thread}`; start one with `run.start`"),
        );
    };
    let assistant = known.metadata.get("assistant_id").and_then(Json::as_str);
    match (graph_of(app, &known), assistant) {
        (Some(graph), Some(assistant)) => Ok((graph.thread(thread), assistant.to_owned())),
        (Some(graph), None) => {
            let graph_id = known.metadata.get("graph_id").and_then(Json::as_str);
            Ok((graph.thread(thread), graph_id.unwrap_or_default().to_owned()))
        }
        (None, _) => refused("no_such_run", format!("the thread `{thread}` has had no run yet")),
    }
}

/// The answers that a command gives, by the ids of the questions.
fn answers(params: &Json) -> Result<Object, CommandError> {
    let one = std::slice::from_ref(params);
    let each = match params.get("responses") {
        None => one,
        Some(Json::Array(several)) if !several.is_empty() => several,
        Some(_) => return invalid("`responses` is a list of at least one answer"),
    };
    let mut answers = Object::new();
    for answer in each {
        let id = text(answer, "interrupt_id")?.to_owned();
        let Some(response) = answer.get("response") else {
            return invalid(format!("the answer to `{id}` has no `response`"));
        };
        if answers.insert(id.clone(), response.clone()).is_some() {
            return invalid(format!("`{id}` is answered twice"));
        }
    }
    Ok(answers)
}

/// The open questions of a thread.
async fn unanswered(app: &App, thread: &AnyThread) -> Result<HashSet<String>, CommandError> {
    let mut open = Object::new();
    open_questions(&thread.state(true).await?, &mut open);
    let asked = open.values().filter_map(Json::as_array).flatten();
    let mut open: HashSet<String> =
        asked.filter_map(|asked| asked["id"].as_str()).map(str::to_owned).collect();
    let query = ListQuery {
        equal: vec![
            ("thread_id", vec![thread.id().to_owned()]),
            (
                "status",
                [RunStatus::Pending, RunStatus::Running].map(|of| of.as_str().to_owned()).into(),
            ),
        ],
        limit: 100,
        ..ListQuery::default()
    };
    for run in app.store.runs(query).await?.rows {
        let given = run.asked("command")["resume"].as_object().into_iter().flatten();
        open.retain(|id| !given.clone().any(|(given, _)| given == id));
    }
    Ok(open)
}

async fn respond(app: &Arc<App>, thread: &str, params: &Json) -> Done {
    let answers = answers(params)?;
    let (opened, assistant) = known(app, thread).await?;
    let open = unanswered(app, &opened).await?;
    if let Some(id) = answers.keys().find(|id| !open.contains(*id)) {
        return refused(
            "no_such_interrupt",
            format!(
                "no open question of the thread has the id `{id}`; it was answered already, or never asked"
            ),
        );
    }
    let request = request(&assistant, params)?;
    let part = |name: &str| Some(params[name].clone()).filter(|part| !part.is_null());
    let command = crate::wire::Command {
        resume: Some(Json::Object(answers)),
        update: part("update"),
        goto: part("goto"),
    };
    submit(app, Some(thread), RunRequest { command: Some(command), ..request }).await?;
    Ok(json!({}))
}

async fn fork(app: &Arc<App>, thread: &str, params: &Json) -> Done {
    let id = text(params, "checkpoint_id")?;
    let (opened, assistant) = known(app, thread).await?;
    let at = CheckpointRef::latest(thread).at(crate::wire::parse_checkpoint(id)?);
    match opened.at(at).state(false).await {
        Ok(state) if state.metadata.is_some() => {}
        Ok(_) | Err(superstep::RunError::UnknownCheckpoint { .. }) => {
            return refused("no_such_checkpoint", format!("the thread has no checkpoint `{id}`"));
        }
        Err(error) => return Err(error.into()),
    }
    let input = Some(params["input"].clone()).filter(|input| !input.is_null());
    let checkpoint_id = Some(id.to_owned());
    let request = RunRequest { input, checkpoint_id, ..request(&assistant, params)? };
    let (run, _) = submit(app, Some(thread), request).await?;
    Ok(json!({ "run_id": run.run_id, "thread_id": thread }))
}

/// The thread in the namespace that the parameters name.
fn inside(thread: &AnyThread, params: &Json) -> Result<AnyThread, CommandError> {
    let levels = match &params["namespace"] {
        Json::Null => Vec::new(),
        Json::Array(levels) => levels.iter().map(Json::as_str).collect(),
        _ => return invalid("`namespace` is a list of texts"),
    };
    let Some(levels) = levels.into_iter().collect::<Option<Vec<_>>>() else {
        return invalid("`namespace` is a list of texts");
    };
    let ns = levels.join("|");
    Ok(match ns.is_empty() {
        true => thread.clone(),
        false => thread.at(CheckpointRef::latest(thread.id()).in_namespace(ns.as_str())),
    })
}

async fn state(app: &App, thread: &str, params: &Json) -> Done {
    let (opened, _) = known(app, thread).await?;
    let state = inside(&opened, params)?.state(false).await?;
    if state.metadata.is_none() && params["namespace"].as_array().is_some_and(|ns| !ns.is_empty()) {
        return refused(
            "no_such_namespace",
            format!("nothing is stored in {}", params["namespace"]),
        );
    }
    let json = state.to_json();
    let mut values = json["values"].clone();
    if let (Some(keys), Some(values)) = (params["keys"].as_array(), values.as_object_mut()) {
        values.retain(|name, _| keys.iter().any(|key| key == name.as_str()));
    }
    let mut result = json!({ "values": values });
    if !json["checkpoint_id"].is_null() {
        result["checkpoint"] =
            json!({ "id": json["checkpoint_id"], "ns": json["checkpoint"]["checkpoint_ns"] });
    }
    Ok(result)
}

async fn checkpoints(app: &App, thread: &str, params: &Json) -> Done {
    let (opened, _) = known(app, thread).await?;
    let limit = match &params["limit"] {
        Json::Null => 10,
        given => match given.as_i64().map(|given| crate::wire::limit(Some(given), 10)) {
            Some(limit) => limit?,
            None => return invalid(format!("`limit` is {given}, not a number")),
        },
    };
    let before = match &params["before"] {
        Json::Null => None,
        Json::String(id) => Some(crate::wire::parse_checkpoint(id)?),
        _ => return invalid("`before` is the id of a checkpoint"),
    };
    let found = inside(&opened, params)?.history(limit, before, Object::new()).await?;
    let one = |state: &RawSnapshot| {
        let json = state.to_json();
        json!({
            "id": json["checkpoint_id"], "timestamp": json["created_at"],
            "step": json["metadata"]["step"], "metadata": json["metadata"],
        })
    };
    Ok(json!({ "checkpoints": found.iter().map(one).collect::<Vec<_>>() }))
}

async fn tree(app: &App, thread: &str, params: &Json) -> Done {
    let wanted = params["run_id"].as_str();
    let query = ListQuery {
        equal: vec![
            ("thread_id", vec![thread.to_owned()]),
            ("status", vec![RunStatus::Running.as_str().to_owned()]),
        ],
        limit: 1,
        ..ListQuery::default()
    };
    let running = app.store.runs(query).await?.rows.into_iter().next();
    let running = running.filter(|run| wanted.is_none_or(|wanted| wanted == run.run_id));
    let tree = match running {
        Some(_) => Session::open(app, thread).await?.tree(),
        None => None,
    };
    match tree {
        Some(tree) => Ok(json!({ "tree": tree })),
        None => refused("no_such_run", "the thread has no run in progress that tells its session"),
    }
}
