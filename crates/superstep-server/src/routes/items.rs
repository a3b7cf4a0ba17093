//! The long-term memory that graphs share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use superstep::checkpoint::{
    Comparison, Error, Indexing, Item, NamespaceQuery, PutItem, Search as ItemSearch, Value,
};

use super::operation::{Action, Operation, Resource, delete, get, post, put};
use super::{Answer, State, json, no_content};
use crate::access::Caller;
use crate::error::{ApiError, ApiResult};
use crate::wire::{Body, Object, Query, Time, limit, offset, or_default};

pub(super) fn operations() -> Vec<Operation> {
    let kind = Resource::Store;
    vec![
        put("/store/items", kind, Action::Write, store)
            .summary("Put an item")
            .no_content()
            .refuses([400]),
        get("/store/items", kind, Action::Read, find)
            .summary("Get an item; null if it is not there")
            .query::<String>("namespace", "The namespace, joined with dots")
            .required()
            .query::<String>("key", "The key in the namespace")
            .required()
            .query::<bool>("refresh_ttl", "Let the item live longer")
            .json::<Option<ItemObject>>()
            .refuses([400]),
        delete("/store/items", kind, Action::Delete, remove)
            .summary("Delete an item; also answered so if it is not there")
            .no_content()
            .refuses([400]),
        post("/store/items/search", kind, Action::Search, search)
            .summary("Search items below a namespace")
            .json::<Found>()
            .refuses([400]),
        post("/store/namespaces", kind, Action::Search, namespaces)
            .summary("List namespaces")
            .json::<NamespacesFound>()
            .refuses([400]),
    ]
}

fn failed(error: Error) -> ApiError {
    match error {
        Error::Invalid { .. } => ApiError::bad_request(error.to_string()),
        error => {
            tracing::error!(%error, "a request failed");
            let detail = "the long-term memory does not answer; try again";
            ApiError::new(axum::http::StatusCode::SERVICE_UNAVAILABLE, detail)
        }
    }
}

/// A value in the long-term memory.
#[derive(Serialize, JsonSchema)]
#[serde(rename = "Item")]
struct ItemObject {
    namespace: Vec<String>,
    key: String,
    value: Json,
    created_at: Time,
    updated_at: Time,
}

impl From<&Item> for ItemObject {
    fn from(item: &Item) -> Self {
        Self {
            namespace: item.namespace.clone(),
            key: item.key.clone(),
            value: item.value.clone().into(),
            created_at: Time(item.created_at.into()),
            updated_at: Time(item.updated_at.into()),
        }
    }
}

/// What a search found.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ItemsFound")]
struct Found {
    items: Vec<FoundItem>,
}

/// A value in the long-term memory, and how well it fits.
#[derive(Serialize, JsonSchema)]
struct FoundItem {
    #[serde(flatten)]
    item: ItemObject,
    /// Null unless the search was by meaning.
    score: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct NamespacesFound {
    namespaces: Vec<Vec<String>>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ItemPut")]
pub(super) struct Put {
    #[schemars(length(min = 1))]
    namespace: Vec<String>,
    key: String,
    value: Object,
    index: Option<Json>,
    ttl: Option<f64>,
}

pub(super) async fn store(state: State, caller: Caller, Body(body): Body<Put>) -> Answer {
    let value = Value::from(Json::Object(body.value));
    let mut item = PutItem::new(&body.namespace, body.key, value);
    item = match body.index {
        None | Some(Json::Null) => item,
        Some(Json::Bool(false)) => item.index(Indexing::Off),
        // There is no index, so it is as good as any list of paths.
        Some(Json::Array(paths)) if paths.iter().all(Json::is_string) => item,
        Some(_) => return Err(ApiError::invalid("`index` is false or a list of paths")),
    };
    if let Some(minutes) = body.ttl {
        let ttl = std::time::Duration::try_from_secs_f64(minutes * 60.0);
        item = item.ttl(ttl.map_err(|_| ApiError::invalid("`ttl` is a number of minutes"))?);
    }
    state.items(caller.tenant()).put_item(item).await.map_err(failed)?;
    Ok(no_content())
}

pub(super) async fn find(state: State, caller: Caller, query: Query) -> Answer {
    let namespace = query.get("namespace").filter(|namespace| !namespace.is_empty());
    let namespace = namespace.ok_or_else(|| ApiError::invalid("`namespace` is missing"))?;
    let key = query.get("key").filter(|key| !key.is_empty());
    let key = key.ok_or_else(|| ApiError::bad_request("`key` is missing"))?;
    query.flag("refresh_ttl")?;
    let namespace: Vec<String> = namespace.split('.').map(str::to_owned).collect();
    let found = state.items(caller.tenant()).get(&namespace, key).await.map_err(failed)?;
    Ok(json(json!(found.as_ref().map(ItemObject::from))))
}

#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ItemDelete")]
pub(super) struct Delete {
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Vec<String>>")]
    namespace: Vec<String>,
    key: String,
}

pub(super) async fn remove(state: State, caller: Caller, Body(body): Body<Delete>) -> Answer {
    if !body.namespace.is_empty() {
        state.items(caller.tenant()).delete(&body.namespace, &body.key).await.map_err(failed)?;
    }
    Ok(no_content())
}

#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ItemSearch")]
pub(super) struct Search {
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Vec<String>>")]
    namespace_prefix: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Object>")]
    filter: Object,
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<i64>,
    #[schemars(range(min = 0))]
    offset: Option<i64>,
    query: Option<String>,
    refresh_ttl: Option<bool>,
}

/// A value to compare with: equal to it, or as its operators say.
fn with_condition(search: ItemSearch, key: &str, wanted: Json) -> ApiResult<ItemSearch> {
    let operators = match wanted {
        Json::Object(operators) if operators.keys().any(|key| key.starts_with('$')) => operators,
        value => return Ok(search.filter(key, value)),
    };
    operators.into_iter().try_fold(search, |search, (word, value)| {
        let comparison = match &*word {
            "$eq" => return Ok(search.filter(key, value)),
            "$ne" => Comparison::NotEqual,
            "$gt" => Comparison::Greater,
            "$gte" => Comparison::AtLeast,
            "$lt" => Comparison::Less,
            "$lte" => Comparison::AtMost,
            _ => {
                return Err(ApiError::invalid(format!(
                    "`filter` has the unknown operator `{word}`"
                )));
            }
        };
        Ok(search.compare(key, comparison, value))
    })
}

pub(super) async fn search(state: State, caller: Caller, Body(body): Body<Search>) -> Answer {
    let mut search = ItemSearch::below(body.namespace_prefix)
        .limit(limit(body.limit, 10)?)
        .offset(offset(body.offset)?);
    for (key, wanted) in body.filter {
        search = with_condition(search, &key, wanted)?;
    }
    // Without an index everything fits a query as well.
    drop(body.query);
    if let Some(refresh) = body.refresh_ttl {
        search = search.refresh(refresh);
    }
    let found = state.items(caller.tenant()).search(search).await.map_err(failed)?;
    let with_score = |item: &Item| FoundItem { item: item.into(), score: item.score };
    Ok(json(json!(Found { items: found.iter().map(with_score).collect() })))
}

#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "NamespaceSearch")]
pub(super) struct Namespaces {
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Vec<String>>")]
    prefix: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Vec<String>>")]
    suffix: Vec<String>,
    max_depth: Option<usize>,
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<i64>,
    #[schemars(range(min = 0))]
    offset: Option<i64>,
}

pub(super) async fn namespaces(
    state: State,
    caller: Caller,
    Body(body): Body<Namespaces>,
) -> Answer {
    let mut query = NamespaceQuery::below(body.prefix).ending(body.suffix);
    query = query.page(offset(body.offset)?, limit(body.limit, 100)?);
    if let Some(depth) = body.max_depth {
        query = query.max_depth(depth);
    }
    let found = state.items(caller.tenant()).namespaces(query).await.map_err(failed)?;
    Ok(json(json!(NamespacesFound { namespaces: found })))
}
