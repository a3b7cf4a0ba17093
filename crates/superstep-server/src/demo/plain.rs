//! Graphs that compute, stream, fail, wait and remember.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep::checkpoint::Search;
use superstep::prelude::*;
use superstep::{AnyGraph, CompileError};

#[derive(State, Clone, Default)]
struct Counter {
    #[channel(reduce = Sum)]
    count: i64,
    #[channel(reduce = Append)]
    log: Vec<String>,
}

pub(super) fn counter() -> Result<AnyGraph, CompileError> {
    let mut graph = StateGraph::<Counter>::new();
    for name in ["a", "b", "c"] {
        graph = graph.add_node(name, move || async move {
            Counter::update().count(1).log([name.to_owned()])
        });
    }
    let graph = graph.add_edge(START, "a").add_edge("a", "b").add_edge("b", "c");
    Ok(graph.compile()?.into())
}

#[derive(State, Clone, Default)]
struct Fanout {
    items: Option<Vec<String>>,
    #[channel(reduce = Append)]
    results: Vec<String>,
    summary: Option<String>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Work {
    item: String,
}

fn dispatch(state: &Fanout) -> Vec<Dispatch> {
    let items = state.items.iter().flatten();
    items.map(|item| Dispatch::new("work", Work { item: item.clone() })).collect()
}

pub(super) fn fanout() -> Result<AnyGraph, CompileError> {
    let graph = StateGraph::<Fanout>::new()
        .add_node("plan", || async { Fanout::update().results(Vec::new()) })
        .add_node("work", |Arg(work): Arg<Work>| async move {
            Fanout::update().results([work.item.to_uppercase()])
        })
        .add_node("collect", |state: Arc<Fanout>| async move {
            Fanout::update().summary(state.results.join(","))
        })
        .add_edge(START, "plan")
        .add_conditional_edges("plan", ["work"], dispatch)
        .add_edge("work", "collect");
    Ok(graph.compile()?.into())
}

#[derive(State, Clone, Default)]
struct Slow {
    ticks: Option<i64>,
    delay: Option<f64>,
    #[channel(reduce = Sum)]
    done: i64,
}

async fn tick(state: Arc<Slow>) -> Result<SlowUpdate, NodeError> {
    let delay = Duration::try_from_secs_f64(state.delay.unwrap_or(0.2))?;
    tokio::time::sleep(delay).await;
    Ok(Slow::update().done(1))
}

fn again(state: &Slow) -> &'static str {
    if state.done < state.ticks.unwrap_or(1) { "tick" } else { END }
}

pub(super) fn slow() -> Result<AnyGraph, CompileError> {
    let graph = StateGraph::<Slow>::new()
        .add_node("tick", tick)
        .add_edge(START, "tick")
        .add_conditional_edges("tick", ["tick", END], again);
    Ok(graph.compile()?.into())
}

#[derive(State, Clone, Default)]
struct Failing {
    mode: Option<String>,
    #[channel(reduce = Append)]
    log: Vec<String>,
}

async fn boom(state: Arc<Failing>) -> Result<FailingUpdate, NodeError> {
    if state.mode.as_deref() == Some("pass") {
        return Ok(Failing::update().log(["boom:passed".to_owned()]));
    }
    Err(NodeError::permanent("boom happened").named("ValueError"))
}

pub(super) fn failing() -> Result<AnyGraph, CompileError> {
    let graph = StateGraph::<Failing>::new()
        .add_node("ok_step", || async { Failing::update().log(["ok_step".to_owned()]) })
        .add_node("boom", boom)
        .add_edge(START, "ok_step")
        .add_edge("ok_step", "boom");
    Ok(graph.compile()?.into())
}

#[derive(State, Clone, Default)]
struct Progress {
    n: Option<i64>,
    total: Option<i64>,
}

async fn report(state: Arc<Progress>, task: Task) -> ProgressUpdate {
    let n = state.n.unwrap_or(3);
    for i in 1..=n {
        task.emit(json!({ "progress": i, "of": n }));
        tokio::task::yield_now().await;
    }
    Progress::update().total(n)
}

pub(super) fn progress() -> Result<AnyGraph, CompileError> {
    let graph = StateGraph::<Progress>::new().add_node("report", report).add_edge(START, "report");
    Ok(graph.compile()?.into())
}

#[derive(State, Clone, Default)]
struct Memory {
    note: Option<String>,
    seen: Option<Vec<String>>,
}

/// How many items are read at a time.
const PAGE: usize = 1_000;

async fn remember(state: Arc<Memory>, task: Task) -> Result<MemoryUpdate, NodeError> {
    let store = task.store().ok_or("the graph has no long-term memory")?;
    let namespace = ["notes".to_owned(), "demo".to_owned()];
    if let Some(note) = &state.note {
        store.put(&namespace, note, json!({ "text": note }).into()).await?;
    }
    let mut seen = Vec::new();
    loop {
        let page = Search::below(namespace.clone()).limit(PAGE).offset(seen.len());
        let found = store.search(page).await?;
        let last = found.len() < PAGE;
        seen.extend(found.into_iter().map(|item| item.key));
        if last {
            break;
        }
    }
    seen.sort();
    Ok(Memory::update().seen(seen))
}

pub(super) fn memory() -> Result<AnyGraph, CompileError> {
    let graph =
        StateGraph::<Memory>::new().add_node("remember", remember).add_edge(START, "remember");
    Ok(graph.compile()?.into())
}

#[derive(State, Clone, Default)]
struct Configured {
    question: Option<String>,
    answer: Option<String>,
}

#[derive(Clone, Serialize, Deserialize)]
struct ConfiguredContext {
    #[serde(default = "default_model")]
    model_name: String,
    #[serde(default)]
    temperature: f64,
}

fn default_model() -> String {
    "default-model".to_owned()
}

async fn show(Ctx(model): Ctx<ConfiguredContext>) -> ConfiguredUpdate {
    Configured::update().answer(format!("{}/{:?}", model.model_name, model.temperature))
}

pub(super) fn configured() -> Result<AnyGraph, CompileError> {
    let graph = StateGraph::<Configured>::new().add_node("show", show).add_edge(START, "show");
    Ok(graph.compile()?.with_json_context::<ConfiguredContext>().into())
}

#[derive(State, Clone, Default)]
struct Routed {
    route: Option<String>,
    #[channel(reduce = Append)]
    log: Vec<String>,
}

async fn router(state: Arc<Routed>) -> Command<Routed> {
    let route = state.route.clone().unwrap_or_else(|| "left".to_owned());
    Command::update(Routed::update().log(["router".to_owned()])).goto(route)
}

pub(super) fn goto() -> Result<AnyGraph, CompileError> {
    let graph = StateGraph::<Routed>::new()
        .add_node("router", router)
        .destinations(["left", "right"])
        .add_node("left", || async { Routed::update().log(["left".to_owned()]) })
        .add_node("right", || async { Routed::update().log(["right".to_owned()]) })
        .add_edge(START, "router");
    Ok(graph.compile()?.into())
}
