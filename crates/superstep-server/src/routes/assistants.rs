use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::operation::{Action, Operation, Resource, delete, get, patch, post};
use super::{Answer, State, json, no_content, page};
use crate::app::{App, default_assistant};
use crate::error::{ApiError, ApiResult};
use crate::store::{Assistant, ListQuery};
use crate::time::Micros;
use crate::wire::{
    AssistantObject, AssistantVersionObject, Body, Drawing, LayoutObject, Object, Path, Query,
    Selected, assistant_json, assistant_version_json, id_in_path, limit, offset, or_default,
    select,
};

type Many = Vec<Selected<AssistantObject<'static>>>;
type One = AssistantObject<'static>;
type Versions = Vec<AssistantVersionObject<'static>>;
type Subgraphs = BTreeMap<String, Schemas>;

pub(super) fn operations() -> Vec<Operation> {
    let kind = Resource::Assistants;
    vec![
        post("/assistants", kind, Action::Create, create)
            .summary("Create an assistant")
            .json::<One>()
            .refuses([400, 404, 409]),
        post("/assistants/search", kind, Action::Search, search)
            .summary("List assistants")
            .json::<Many>(),
        post("/assistants/count", kind, Action::Search, count)
            .summary("Count assistants")
            .json::<u64>(),
        get("/assistants/{assistant_id}", kind, Action::Read, find)
            .summary("Get an assistant")
            .json::<One>()
            .refuses([404]),
        patch("/assistants/{assistant_id}", kind, Action::Write, update)
            .summary("Change an assistant, as a new version")
            .json::<One>()
            .refuses([400, 404]),
        delete("/assistants/{assistant_id}", kind, Action::Delete, remove)
            .summary("Delete an assistant")
            .query::<bool>("delete_threads", "Delete its threads, too")
            .no_content()
            .refuses([400, 404, 501]),
        post("/assistants/{assistant_id}/versions", kind, Action::Search, versions)
            .summary("List the versions of an assistant, newest first")
            .json::<Versions>()
            .refuses([404]),
        post("/assistants/{assistant_id}/latest", kind, Action::Write, latest)
            .summary("Go back to a version of an assistant")
            .json::<One>()
            .refuses([404]),
        get("/assistants/{assistant_id}/graph", kind, Action::Read, graph)
            .summary("Draw the graph of an assistant, or a graph by its name")
            .query::<Json>("xray", "Draw subgraphs, too: true, false, or how deep")
            .json::<Drawing>()
            .refuses([404]),
        get("/assistants/{assistant_id}/layout", kind, Action::Read, layout)
            .summary("Draw the graph of an assistant, or a graph by its name, with positions")
            .query::<Json>("xray", "Unfold subgraphs: true, false, or how deep")
            .json::<LayoutObject>()
            .refuses([404]),
        get("/assistants/{assistant_id}/schemas", kind, Action::Read, schemas)
            .summary("Get the JSON Schemas of a graph")
            .json::<Schemas>()
            .refuses([404]),
        get("/assistants/{assistant_id}/subgraphs", kind, Action::Read, subgraphs)
            .summary("Get the JSON Schemas of subgraphs")
            .query::<bool>("recurse", "Those of subgraphs of subgraphs, too")
            .json::<Subgraphs>()
            .refuses([404]),
        get("/assistants/{assistant_id}/subgraphs/{namespace}", kind, Action::Read, subgraphs_in)
            .summary("Get the JSON Schemas of one subgraph")
            .query::<bool>("recurse", "Those of subgraphs of subgraphs, too")
            .json::<Subgraphs>()
            .refuses([404]),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "AssistantCreate")]
pub(super) struct Create {
    graph_id: String,
    assistant_id: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Object>")]
    config: Object,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Object>")]
    context: Object,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Object>")]
    metadata: Object,
    if_exists: Option<IfExists>,
    name: Option<String>,
    description: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum IfExists {
    Raise,
    DoNothing,
}

/// The context and `config.configurable` are two names for one thing: what one says, the other says too.
fn mirror(config: Object, context: Object) -> ApiResult<(Json, Json)> {
    let mut config = config;
    let configurable = match config.get("configurable") {
        None | Some(Json::Null) => Object::new(),
        Some(Json::Object(configurable)) => configurable.clone(),
        Some(_) => return Err(ApiError::invalid("`config.configurable` is not an object")),
    };
    let context = match (context.is_empty(), configurable.is_empty()) {
        (false, false) => {
            return Err(ApiError::bad_request(
                "`context` and `config.configurable` cannot both be given; use `context`",
            ));
        }
        (true, _) => configurable,
        (false, true) => context,
    };
    if !context.is_empty() {
        config.insert("configurable".to_owned(), context.clone().into());
    }
    Ok((config.into(), context.into()))
}

fn known_graph(app: &App, graph: &str) -> ApiResult<()> {
    match app.graph(graph) {
        Some(_) => Ok(()),
        None => Err(ApiError::not_found(format!("there is no graph `{graph}`"))),
    }
}

pub(super) async fn create(state: State, Body(body): Body<Create>) -> Answer {
    known_graph(&state, &body.graph_id)?;
    let (config, context) = mirror(body.config, body.context)?;
    let now = Micros::now();
    let assistant = Assistant {
        assistant_id: match body.assistant_id {
            Some(id) => id_in_path("assistant", &id)?,
            None => Uuid::now_v7().to_string(),
        },
        graph_id: body.graph_id,
        name: body.name.unwrap_or_else(|| "Untitled".to_owned()),
        description: body.description,
        config,
        context,
        metadata: body.metadata,
        version: 1,
        created_at: now,
        updated_at: now,
    };
    match state.store.create_assistant(assistant).await? {
        Ok(made) => Ok(json(assistant_json(&made))),
        Err(known) if body.if_exists == Some(IfExists::DoNothing) => {
            Ok(json(assistant_json(&known)))
        }
        Err(known) => {
            let id = &known.assistant_id;
            Err(ApiError::conflict(format!("there is an assistant `{id}` already")))
        }
    }
}

#[derive(Default, Deserialize, JsonSchema)]
#[schemars(rename = "AssistantSearch")]
pub(super) struct Search {
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Object>")]
    metadata: Object,
    graph_id: Option<String>,
    name: Option<String>,
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<i64>,
    #[schemars(range(min = 0))]
    offset: Option<i64>,
    sort_by: Option<String>,
    sort_order: Option<Order>,
    select: Option<Vec<String>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Order {
    Asc,
    Desc,
}

/// The column to sort by: one of these.
pub(super) fn column(
    given: Option<&str>,
    known: &[&'static str],
    default: &'static str,
) -> ApiResult<&'static str> {
    let Some(given) = given else { return Ok(default) };
    let found = known.iter().find(|column| **column == given);
    found.copied().ok_or_else(|| {
        ApiError::invalid(format!("`sort_by` is `{given}`; it can be {}", known.join(", ")))
    })
}

impl Search {
    fn to_query(&self) -> ApiResult<ListQuery> {
        let mut equal = Vec::new();
        equal.extend(self.graph_id.clone().map(|graph| ("graph_id", vec![graph])));
        equal.extend(self.name.clone().map(|name| ("name", vec![name])));
        let known = ["assistant_id", "created_at", "updated_at", "name", "graph_id"];
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

pub(super) async fn search(state: State, Body(body): Body<Search>) -> Answer {
    let query = body.to_query()?;
    let offset = query.offset;
    let found = state.store.assistants(query).await?;
    page(&found, offset, |assistant| select(assistant_json(assistant), body.select.as_deref()))
}

pub(super) async fn count(state: State, Body(body): Body<Search>) -> Answer {
    Ok(json(state.store.count_assistants(body.to_query()?).await?.into()))
}

fn unknown(id: &str) -> ApiError {
    ApiError::not_found(format!("there is no assistant `{id}`"))
}

async fn by_id(state: &App, id: &str) -> ApiResult<Assistant> {
    let id = id_in_path("assistant", id)?;
    state.store.assistant(&id).await?.ok_or_else(|| unknown(&id))
}

pub(super) async fn find(state: State, Path(id): Path<String>) -> Answer {
    Ok(json(assistant_json(&by_id(&state, &id).await?)))
}

#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "AssistantPatch")]
pub(super) struct Patch {
    graph_id: Option<String>,
    config: Option<Object>,
    context: Option<Object>,
    metadata: Option<Object>,
    name: Option<String>,
    description: Option<String>,
}

pub(super) async fn update(
    state: State,
    Path(id): Path<String>,
    Body(body): Body<Patch>,
) -> Answer {
    let id = id_in_path("assistant", &id)?;
    if let Some(graph) = &body.graph_id {
        known_graph(&state, graph)?;
    }
    let settings = match (body.config, body.context) {
        (None, None) => None,
        (config, context) => Some(mirror(config.unwrap_or_default(), context.unwrap_or_default())?),
    };
    let (graph, metadata, name, description) =
        (body.graph_id, body.metadata, body.name, body.description);
    let change = Box::new(move |assistant: &mut Assistant| {
        if let Some((config, context)) = settings {
            (assistant.config, assistant.context) = (config, context);
        }
        assistant.graph_id = graph.unwrap_or_else(|| std::mem::take(&mut assistant.graph_id));
        assistant.metadata.extend(metadata.unwrap_or_default());
        assistant.name = name.unwrap_or_else(|| std::mem::take(&mut assistant.name));
        assistant.description = description.or_else(|| assistant.description.take());
    });
    let changed = state.store.update_assistant(&id, change).await?;
    Ok(json(assistant_json(&changed.ok_or_else(|| unknown(&id))?)))
}

pub(super) async fn remove(state: State, Path(id): Path<String>, query: Query) -> Answer {
    let id = id_in_path("assistant", &id)?;
    if query.flag("delete_threads")? {
        return Err(ApiError::not_implemented("`delete_threads`"));
    }
    if state.graphs.keys().any(|graph| default_assistant(graph) == id) {
        return Err(ApiError::bad_request(format!(
            "the assistant `{id}` belongs to its graph and cannot be deleted"
        )));
    }
    match state.store.delete_assistant(&id).await? {
        true => Ok(no_content()),
        false => Err(unknown(&id)),
    }
}

pub(super) async fn versions(
    state: State,
    Path(id): Path<String>,
    Body(body): Body<Search>,
) -> Answer {
    let query = body.to_query()?;
    let id = by_id(&state, &id).await?.assistant_id;
    let mut versions = state.store.versions(&id).await?;
    versions.retain(|version| {
        crate::store::contains_all(&Json::Object(version.metadata.clone()), &query.metadata)
    });
    let rows = versions.iter().skip(query.offset).take(query.limit);
    Ok(json(rows.map(assistant_version_json).collect()))
}

#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "AssistantLatest")]
pub(super) struct Latest {
    version: u64,
}

pub(super) async fn latest(
    state: State,
    Path(id): Path<String>,
    Body(body): Body<Latest>,
) -> Answer {
    let id = id_in_path("assistant", &id)?;
    let used = state.store.use_version(&id, body.version).await?;
    let missing =
        || ApiError::not_found(format!("the assistant `{id}` has no version {}", body.version));
    Ok(json(assistant_json(&used.ok_or_else(missing)?)))
}

/// How deep subgraphs are unfolded.
fn depth(query: &Query) -> ApiResult<usize> {
    Ok(match query.get("xray").map(str::to_ascii_lowercase).as_deref() {
        None | Some("" | "false" | "0") => 0,
        Some("true") => usize::MAX,
        Some(depth) => match depth.parse() {
            Ok(depth) if depth > 0_usize => depth,
            _ => {
                return Err(ApiError::invalid(format!(
                    "`xray` is `{depth}`; it can be true, false, or a depth of at least 1"
                )));
            }
        },
    })
}

async fn drawing(state: &App, id: &str, query: &Query) -> ApiResult<superstep::Drawing> {
    let depth = depth(query)?;
    let assistant = state.assistant(id).await?;
    Ok(registered(state, &assistant)?.drawing(depth))
}

pub(super) async fn graph(state: State, Path(id): Path<String>, query: Query) -> Answer {
    Ok(json(drawing(&state, &id, &query).await?.to_json()))
}

pub(super) async fn layout(state: State, Path(id): Path<String>, query: Query) -> Answer {
    Ok(json(drawing(&state, &id, &query).await?.placed().to_json()))
}

fn registered<'a>(state: &'a App, assistant: &Assistant) -> ApiResult<&'a superstep::AnyGraph> {
    let graph = &assistant.graph_id;
    let missing = || ApiError::not_found(format!("the server no longer has the graph `{graph}`"));
    state.graph(graph).ok_or_else(missing)
}

/// JSON Schemas of what goes into a graph and what comes out.
#[derive(Serialize, JsonSchema)]
struct Schemas {
    #[serde(skip_serializing_if = "Option::is_none")]
    graph_id: Option<String>,
    input_schema: Json,
    output_schema: Json,
    state_schema: Json,
    config_schema: Json,
    context_schema: Json,
}

impl Schemas {
    fn of(graph_id: Option<String>, schemas: superstep::Schemas) -> Self {
        let superstep::Schemas { input, output, state, context, .. } = schemas;
        Self {
            graph_id,
            input_schema: input,
            output_schema: output,
            state_schema: state,
            config_schema: json!(context),
            context_schema: json!(context),
        }
    }
}

pub(super) async fn schemas(state: State, Path(id): Path<String>) -> Answer {
    let assistant = by_id(&state, &id).await?;
    let schemas = registered(&state, &assistant)?.schemas();
    Ok(json(json!(Schemas::of(Some(assistant.graph_id), schemas))))
}

async fn list_subgraphs(state: &App, id: &str, under: Option<&str>, query: &Query) -> Answer {
    let recurse = query.flag("recurse")?;
    let assistant = by_id(state, id).await?;
    let all = registered(state, &assistant)?.subgraphs(recurse || under.is_some());
    let wanted = |name: &String| under.is_none_or(|under| name == under);
    let found = all.into_iter().filter(|(name, _)| wanted(name));
    let found: Subgraphs =
        found.map(|(name, schemas)| (name, Schemas::of(None, schemas))).collect();
    Ok(json(json!(found)))
}

pub(super) async fn subgraphs(state: State, Path(id): Path<String>, query: Query) -> Answer {
    list_subgraphs(&state, &id, None, &query).await
}

pub(super) async fn subgraphs_in(
    state: State,
    Path((id, namespace)): Path<(String, String)>,
    query: Query,
) -> Answer {
    list_subgraphs(&state, &id, Some(&namespace), &query).await
}
