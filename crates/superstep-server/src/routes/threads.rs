use std::collections::BTreeMap;

use axum::http::HeaderMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep::RunError;
use superstep::checkpoint::{Keep, Prune};

use super::assistants::{IfExists, Order, column};
use super::first_states::{Superstep, first_states, graph_in, read_steps};
use super::operation::{Action, Operation, Resource, delete, get, patch, post};
use super::{Answer, State, json, no_content, page};
use crate::access::Caller;
use crate::error::{ApiError, ApiResult};
use crate::store::{self, ListQuery, Made, Page, Thread, ThreadStatus};
use crate::tenant::id_of;
use crate::threads;
use crate::time::Micros;
use crate::wire::{
    Body, Extract, Keyed, Object, Path, Query, Selected, ThreadObject, TtlArg, limit, offset,
    or_default, select, thread_json, ttl_json,
};

type One = ThreadObject<'static>;

pub(super) fn operations() -> Vec<Operation> {
    let kind = Resource::Threads;
    vec![
        post("/threads", kind, Action::Create, create)
            .summary("Create a thread")
            .json::<One>()
            .refuses([400, 404, 409]),
        post("/threads/search", kind, Action::Search, search)
            .summary("List threads")
            .json::<Vec<Selected<One>>>(),
        post("/threads/count", kind, Action::Search, count).summary("Count threads").json::<u64>(),
        post("/threads/prune", kind, Action::Delete, prune)
            .summary("Delete threads, or their old checkpoints")
            .json::<Pruned>(),
        get("/threads/{thread_id}", kind, Action::Read, find)
            .summary("Get a thread")
            .query::<String>("include", "`ttl` shows when the thread expires")
            .json::<One>()
            .refuses([404]),
        patch("/threads/{thread_id}", kind, Action::Write, update)
            .summary("Change the metadata of a thread")
            .header::<String>("prefer", "`return=minimal` answers 204 without the thread")
            .json::<One>()
            .no_content()
            .refuses([404]),
        delete("/threads/{thread_id}", kind, Action::Delete, remove)
            .summary("Delete a thread with its runs and checkpoints")
            .no_content()
            .refuses([404]),
        post("/threads/{thread_id}/copy", kind, Action::Create, copy)
            .summary("Copy a thread with its checkpoints")
            .json::<One>()
            .refuses([404, 409]),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ThreadCreate")]
pub(super) struct Create {
    thread_id: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Object>")]
    metadata: Object,
    if_exists: Option<IfExists>,
    supersteps: Option<Vec<Superstep>>,
    ttl: Option<TtlArg>,
}

pub(super) async fn create(
    state: State,
    caller: Caller,
    Keyed(body, asked): Keyed<Create>,
) -> Answer {
    let steps = body.supersteps.unwrap_or_default();
    let graph = match steps.is_empty() {
        true => None,
        false => Some(graph_in(&state, &caller, &body.metadata)?),
    };
    let steps = read_steps(steps)?;
    let ttl = body.ttl.map(TtlArg::read).transpose()?;
    let id = match body.thread_id {
        Some(id) => caller.thread(&id)?,
        None => caller.new_key(),
    };
    let mut metadata = body.metadata;
    caller.stamp(&mut metadata);
    let thread = Thread { ttl, ..Thread::new(id, metadata, Micros::now()) };
    let made = match state.create(asked, store::Create::Thread(thread)).await? {
        Ok(Made::Thread(made)) => made,
        Ok(_) => return Err(Made::unexpected().into()),
        Err(kept) => return Ok(json(thread_json(&kept.row()?))),
    };
    match made {
        Ok(made) => {
            state.threads_expire(&made);
            let made = match graph {
                Some(graph) => first_states(&state, &caller, &graph, &made, steps).await?,
                None => made,
            };
            Ok(json(thread_json(&made)))
        }
        Err(known) if !caller.sees(&known.metadata) => Err(exists(&known)),
        Err(known) if body.if_exists == Some(IfExists::DoNothing) => Ok(json(thread_json(&known))),
        Err(known) => Err(exists(&known)),
    }
}

fn exists(known: &Thread) -> ApiError {
    ApiError::conflict(format!("there is a thread `{}` already", known.id()))
}

#[derive(Default, Deserialize, JsonSchema)]
#[schemars(rename = "ThreadSearch")]
pub(super) struct Search {
    ids: Option<Vec<String>>,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Object>")]
    metadata: Object,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Object>")]
    values: Object,
    status: Option<ThreadStatus>,
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<i64>,
    #[schemars(range(min = 0))]
    offset: Option<i64>,
    sort_by: Option<String>,
    sort_order: Option<Order>,
    select: Option<Vec<String>>,
    /// Further fields of each thread, by a name and a path such as `values.messages[-1].content`.
    extract: Option<BTreeMap<String, String>>,
}

impl Search {
    fn to_query(&self, caller: &Caller) -> ApiResult<ListQuery> {
        let mut equal = Vec::new();
        if let Some(ids) = self.ids.as_ref().filter(|ids| !ids.is_empty()) {
            let ids = ids.iter().map(|id| caller.thread(id)).collect::<ApiResult<_>>()?;
            equal.push(("thread_id", ids));
        }
        equal.extend(self.status.map(|status| ("status", vec![status.as_str().to_owned()])));
        let known = ["thread_id", "status", "created_at", "updated_at", "state_updated_at"];
        Ok(ListQuery {
            metadata: self.metadata.clone(),
            values: self.values.clone(),
            equal,
            sort_by: column(self.sort_by.as_deref(), &known, "updated_at")?,
            descending: self.sort_order != Some(Order::Asc),
            limit: limit(self.limit, 10)?,
            offset: offset(self.offset)?,
            ..ListQuery::default()
        })
    }
}

pub(super) async fn search(state: State, caller: Caller, Body(body): Body<Search>) -> Answer {
    let extract = Extract::read(body.extract.as_ref())?;
    let query = body.to_query(&caller)?;
    let offset = query.offset;
    let found = match caller.narrow(query) {
        Some(query) => state.store.threads(query).await?,
        None => Page::empty(),
    };
    page(&found, offset, |thread| {
        let whole = thread_json(thread);
        let extracted = extract.as_ref().map(|extract| extract.of(&whole));
        let mut row = select(whole, body.select.as_deref())?;
        if let Some(extracted) = extracted {
            row["extracted"] = extracted;
        }
        Ok(row)
    })
}

pub(super) async fn count(state: State, caller: Caller, Body(body): Body<Search>) -> Answer {
    Ok(json(match caller.narrow(body.to_query(&caller)?) {
        Some(query) => state.store.count_threads(query).await?.into(),
        None => 0.into(),
    }))
}

pub(super) async fn find(
    state: State,
    caller: Caller,
    Path(id): Path<String>,
    query: Query,
) -> Answer {
    let id = caller.thread(&id)?;
    let thread = state.thread(&caller, &id).await?;
    let mut shown = thread_json(&thread);
    if query.list("include").is_some_and(|included| included.iter().any(|one| one == "ttl")) {
        shown["ttl"] = json!(thread.ttl.map(|ttl| ttl_json(ttl, &thread)));
    }
    Ok(json(shown))
}

#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ThreadPatch")]
pub(super) struct Patch {
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Object>")]
    metadata: Object,
    ttl: Option<TtlArg>,
}

pub(super) async fn update(
    state: State,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(body): Body<Patch>,
) -> Answer {
    let id = caller.thread(&id)?;
    state.thread(&caller, &id).await?;
    let ttl = body.ttl.map(TtlArg::read).transpose()?;
    let change = Box::new(move |thread: &mut Thread| {
        thread.metadata.extend(body.metadata);
        caller.stamp(&mut thread.metadata);
        thread.ttl = ttl.or(thread.ttl);
        thread.updated_at = Micros::now();
    });
    let changed = state.store.update_thread(&id, change).await?;
    let changed = changed.ok_or_else(|| ApiError::no_thread(id_of(&id)))?;
    state.threads_expire(&changed);
    let minimal = headers.get("prefer").is_some_and(|prefer| prefer == "return=minimal");
    Ok(if minimal { no_content() } else { json(thread_json(&changed)) })
}

pub(super) async fn remove(state: State, caller: Caller, Path(id): Path<String>) -> Answer {
    let id = caller.thread(&id)?;
    state.thread(&caller, &id).await?;
    threads::remove(&state, &id).await?;
    Ok(no_content())
}

#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ThreadPrune")]
pub(super) struct PruneBody {
    thread_ids: Vec<String>,
    strategy: Option<Strategy>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "PruneStrategy")]
enum Strategy {
    Delete,
    KeepLatest,
}

/// How many threads were there.
#[derive(Serialize, JsonSchema)]
struct Pruned {
    pruned_count: u64,
}

pub(super) async fn prune(state: State, caller: Caller, Body(body): Body<PruneBody>) -> Answer {
    let ids = body.thread_ids.iter().map(|id| caller.thread(id));
    let ids = ids.collect::<ApiResult<Vec<_>>>()?;
    let mut pruned = 0;
    for id in ids {
        let known = state.store.thread(&id).await?;
        if !known.is_some_and(|known| caller.sees(&known.metadata)) {
            continue;
        }
        match body.strategy.unwrap_or(Strategy::Delete) {
            Strategy::Delete => threads::remove(&state, &id).await?,
            Strategy::KeepLatest => {
                let prune = Prune { threads: Some(vec![id]), keep: Keep::Latest };
                state.checkpointer.prune(prune).await.map_err(RunError::from)?;
            }
        }
        pruned += 1;
    }
    Ok(json(json!(Pruned { pruned_count: pruned })))
}

pub(super) async fn copy(state: State, caller: Caller, Path(id): Path<String>) -> Answer {
    let id = caller.thread(&id)?;
    let known = state.thread(&caller, &id).await?;
    let now = Micros::now();
    let copy = Thread {
        thread_id: caller.new_key(),
        created_at: now,
        updated_at: now,
        status: if known.status == ThreadStatus::Busy { ThreadStatus::Idle } else { known.status },
        ..known
    };
    state.checkpointer.copy_thread(&id, &copy.thread_id).await.map_err(RunError::from)?;
    match state.store.create_thread(copy).await? {
        Ok(made) => Ok(json(thread_json(&made))),
        Err(_) => Err(ApiError::conflict("the id of the copy is taken; try again")),
    }
}
