//! Building the graphs of a case with the public API.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;
use superstep::checkpoint::{Ext, Map, Packet, Value};
use superstep::func::{Entrypoint, Final};
use superstep::state::{Deltas, Fold, Kind, Managed, Schema, Table, TableChannel};
use superstep::{
    Arg, BreakAt, CachePolicy, Command, Dispatch, Failure, Goto, IntoOutput, Memory, NodeError,
    Output, RetryPolicy, RunError, StateGraph, Targets, Task, TimeoutPolicy,
};

use crate::body::Body;
use crate::expr::{COMMAND, Env, FINAL, evaluate, plain, type_error};
use crate::world::{Graph, World};

/// The graph with this name, built if it has to be.
pub(crate) fn graph(world: &Arc<World>, name: &str) -> Result<Graph, RunError> {
    if let Some(graph) = world.built(name) {
        return Ok(graph);
    }
    let spec = world.case["graphs"][name].clone();
    let built = if spec["kind"] == "func" {
        function(world, name, &spec)?
    } else {
        state_graph(world, name, &spec)?
    };
    world.keep(name, built.clone());
    Ok(built)
}

fn memory(name: &str, spec: &Json) -> (bool, Memory) {
    match spec["checkpointer"].as_str() {
        Some("checkpointer") => (true, Memory::PerCall),
        Some("own") => (false, Memory::PerThread),
        Some("none") => (false, Memory::Nothing),
        None if name == "main" => (true, Memory::PerCall),
        _ => (false, Memory::PerCall),
    }
}

/// Names of the graphs that a body calls, in the order they are written.
fn invoked(body: &Json) -> Vec<String> {
    match body {
        Json::Array(parts) => parts.iter().flat_map(invoked).collect(),
        Json::Object(map) => {
            let own = map.get("invoke").and_then(Json::as_str).map(str::to_owned);
            own.into_iter().chain(map.values().flat_map(invoked)).collect()
        }
        _ => Vec::new(),
    }
}

fn subgraphs(world: &Arc<World>, body: &Json) -> Result<Option<Graph>, RunError> {
    let names = invoked(body);
    for name in &names {
        graph(world, name)?;
    }
    Ok(names.first().and_then(|name| world.built(name)))
}

fn function(world: &Arc<World>, name: &str, spec: &Json) -> Result<Graph, RunError> {
    if let Some(tasks) = world.case["tasks"].as_object() {
        for task in tasks.clone().values() {
            subgraphs(world, &task["body"])?;
        }
    }
    let inner = subgraphs(world, &spec["body"])?;
    let (body, retry, running) = (spec["body"].clone(), spec["retry"].clone(), world.clone());
    let mut entry = Entrypoint::new(name.to_owned(), move |input: Value, task: Task| {
        let env = Env::from([("input".to_owned(), input)]);
        let running = Body::new(&running, Some(task), env).with_retry(&retry);
        let body = body.clone();
        async move { running.run(&body).await.map(finished) }
    });
    for policy in retry_policies(&spec["retry"]) {
        entry = entry.retry(policy);
    }
    if let Some(timeout) = timeout_policy(&spec["timeout"]) {
        entry = entry.timeout(timeout);
    }
    match inner {
        Some(Graph::State { graph, .. }) => entry = entry.calls(&graph),
        Some(Graph::Function(graph)) => entry = entry.calls(&graph),
        None => {}
    }
    let (saved, memory) = memory(name, spec);
    let mut graph = entry.memory(memory).compile().with_checkpoint_ids(world.ids.clone());
    if saved {
        graph = graph.with_any_checkpointer(world.checkpointer.clone());
    }
    if saved || name == "main" {
        graph = graph.with_any_store(world.store.clone()).with_any_cache(world.cache.clone());
    }
    Ok(Graph::Function(graph))
}

fn finished(value: Value) -> Final<Value, Value> {
    match value.get(FINAL) {
        Some(fields) => Final {
            value: fields.get("value").cloned().unwrap_or_default(),
            save: fields.get("save").cloned().unwrap_or_default(),
        },
        None => Final { value: value.clone(), save: value },
    }
}

fn state_graph(world: &Arc<World>, name: &str, spec: &Json) -> Result<Graph, RunError> {
    let keys: Vec<String> = object_keys(&spec["state"]);
    let hidden = names(&spec["hidden"]).unwrap_or_default();
    let visible: Vec<String> = keys.iter().filter(|key| !hidden.contains(key)).cloned().collect();
    let channels = |list: Vec<String>| -> Vec<String> {
        list.into_iter().filter(|key| spec["state"][key]["managed"].is_null()).collect()
    };
    let mut builder = StateGraph::with_schema(schema(&spec["state"], &hidden)).lenient().name(name);
    if let Some(input) = names(&spec["input"]) {
        builder = builder.input_channels(input);
    }
    let output = channels(names(&spec["output"]).unwrap_or_else(|| visible.clone()));
    builder = builder.output_channels(output.clone());
    let defaults = &spec["defaults"];
    for policy in retry_policies(&defaults["retry"]) {
        builder = builder.default_retry(policy);
    }
    if let Some(timeout) = timeout_policy(&defaults["timeout"]) {
        builder = builder.default_timeout(timeout);
    }
    if defaults["cache"].is_object() {
        builder = builder.default_cache(cache_policy(&defaults["cache"], "state"));
    }
    if defaults["on_error"].is_array() {
        builder = builder.default_on_error(handler(world, &defaults["on_error"], spec, &visible));
    }
    for node in spec["nodes"].as_array().into_iter().flatten() {
        builder = add_node(world, builder, node, spec, &visible)?;
    }
    for edge in spec["edges"].as_array().into_iter().flatten() {
        let to = edge[1].as_str().unwrap_or_default().to_owned();
        builder = match &edge[0] {
            Json::Array(_) => builder.add_edge(names(&edge[0]).unwrap_or_default(), to),
            from => builder.add_edge(from.as_str().unwrap_or_default().to_owned(), to),
        };
    }
    for branch in spec["branches"].as_array().into_iter().flatten() {
        let from = branch["from"].as_str().unwrap_or_default().to_owned();
        builder = builder.add_conditional_edges(
            from,
            targets(&branch["map"]),
            router(world, branch, spec),
        );
    }
    for (key, before) in [("interrupt_before", true), ("interrupt_after", false)] {
        if let Some(at) = break_at(&spec[key]) {
            builder =
                if before { builder.interrupt_before(at) } else { builder.interrupt_after(at) };
        }
    }
    let (saved, memory) = memory(name, spec);
    let compiled = builder.memory(memory).compile();
    let mut graph = compiled
        .map_err(|error| RunError::Invalid(error.to_string()))?
        .with_checkpoint_ids(world.ids.clone());
    if saved {
        graph = graph.with_any_checkpointer(world.checkpointer.clone());
    }
    if saved || name == "main" {
        graph = graph.with_any_store(world.store.clone()).with_any_cache(world.cache.clone());
    }
    Ok(Graph::State { graph, output })
}

fn add_node(
    world: &Arc<World>,
    builder: StateGraph<Table>,
    node: &Json,
    graph_spec: &Json,
    visible: &[String],
) -> Result<StateGraph<Table>, RunError> {
    let name = node["name"].as_str().unwrap_or_default().to_owned();
    let own = names(&node["input"]);
    let reads = own.clone().unwrap_or_else(|| visible.to_vec());
    let mut builder = match node["graph"].as_str() {
        Some(inner) => match graph(world, inner)? {
            Graph::State { graph, .. } => builder.add_node(name, graph),
            Graph::Function(graph) => {
                builder.add_node(name, move |table: Arc<Table>, task: Task| {
                    let graph = graph.clone();
                    async move { task.invoke(&graph, Value::Map(table.to_map())).await }
                })
            }
        },
        None => {
            let inner = subgraphs(world, &node["body"])?;
            let builder =
                builder.add_node(name, body_node(world, &node["body"], graph_spec, &reads));
            match inner {
                Some(Graph::State { graph, .. }) => builder.calls(&graph),
                Some(Graph::Function(graph)) => builder.calls(&graph),
                None => builder,
            }
        }
    };
    let channels = reads.iter().filter(|key| graph_spec["state"][&**key]["managed"].is_null());
    builder = builder.reads(channels.cloned());
    for policy in retry_policies(&node["retry"]) {
        builder = builder.retry(policy);
    }
    if let Some(timeout) = timeout_policy(&node["timeout"]) {
        builder = builder.timeout(timeout);
    }
    if node["cache"].is_object() {
        builder = builder.cache(cache_policy(&node["cache"], "state"));
    }
    if node["defer"] == true {
        builder = builder.defer();
    }
    if node["on_error"].is_array() {
        builder = builder.on_error(handler(world, &node["on_error"], graph_spec, &reads));
    }
    Ok(builder)
}

/// What a node sees as `state`: what was sent to it, or the channels it reads.
fn node_state(
    table: &Table,
    arg: Option<Arg<Value>>,
    task: &Task,
    graph: &Json,
    reads: &[String],
) -> Value {
    if let Some(Arg(arg)) = arg {
        return arg;
    }
    let mut map = table.to_map();
    map.retain(|key, _| reads.contains(key));
    add_managed(&mut map, task, graph, reads);
    Value::Map(map)
}

/// Adds what the engine computes when it is read.
fn add_managed(map: &mut Map, task: &Task, graph: &Json, keys: &[String]) {
    for key in keys {
        match graph["state"][key]["managed"].as_str() {
            Some("remaining_steps") => {
                map.insert(key.clone(), Value::from(task.remaining_steps()));
            }
            Some("is_last_step") => {
                map.insert(key.clone(), Value::Bool(task.is_last_step()));
            }
            _ => {}
        }
    }
}

type NodeFuture = std::pin::Pin<Box<dyn Future<Output = Result<Output, NodeError>> + Send>>;

fn body_node(
    world: &Arc<World>,
    body: &Json,
    graph: &Json,
    reads: &[String],
) -> impl Fn(Arc<Table>, Option<Arg<Value>>, Task) -> NodeFuture + Send + Sync + 'static {
    let (world, body, graph, reads) = (world.clone(), body.clone(), graph.clone(), reads.to_vec());
    move |table, arg, task| {
        let state = node_state(&table, arg, &task, &graph, &reads);
        let running = Body::new(&world, Some(task), Env::from([("state".to_owned(), state)]));
        let body = body.clone();
        Box::pin(async move { output(running.run(&body).await?) })
    }
}

fn handler(
    world: &Arc<World>,
    body: &Json,
    graph: &Json,
    reads: &[String],
) -> impl Fn(Arc<Table>, Option<Arg<Value>>, Failure, Task) -> NodeFuture + Send + Sync + 'static {
    let (world, body, graph, reads) = (world.clone(), body.clone(), graph.clone(), reads.to_vec());
    move |table, arg, failure, task| {
        let state = node_state(&table, arg, &task, &graph, &reads);
        let error = Value::from_iter([
            ("node".to_owned(), Value::from(&*failure.node)),
            ("kind".to_owned(), Value::from(failure.error.kind())),
        ]);
        let env = Env::from([("state".to_owned(), state), ("error".to_owned(), error)]);
        let (running, body) = (Body::new(&world, Some(task), env), body.clone());
        Box::pin(async move { output(running.run(&body).await?) })
    }
}

/// Whether a value is a command, or a list with one in it.
pub(crate) fn has_command(value: &Value) -> bool {
    let is_command = |value: &Value| value.get(COMMAND).is_some();
    is_command(value) || value.as_list().unwrap_or_default().iter().any(is_command)
}

/// What a body returned, as the output of a node.
pub(crate) fn output(value: Value) -> Result<Output, NodeError> {
    if let Some(fields) = value.get(COMMAND) {
        return command_output(fields);
    }
    match value {
        Value::Ext(ext) => match *ext {
            Ext::Send(packet) => IntoOutput::<Table>::into_output(dispatch(packet)),
            other => IntoOutput::<Table>::into_output(Value::Ext(Box::new(other))),
        },
        Value::List(_) if !has_command(&value) => {
            Err(NodeError::from(no_update(format!("expected a map, found {value}"))))
        }
        Value::List(items) => {
            let outputs: Vec<Output> = items.into_iter().map(output).collect::<Result<_, _>>()?;
            IntoOutput::<Table>::into_output(outputs)
        }
        other => IntoOutput::<Table>::into_output(other),
    }
}

/// A list without a command is not an update, whatever is in it.
fn no_update(message: String) -> RunError {
    let code = Some(superstep::error::Code::InvalidGraphNodeReturnValue);
    RunError::InvalidUpdate { message, code }
}

fn command_output(fields: &Value) -> Result<Output, NodeError> {
    let command = command(fields)?;
    if fields.get("graph").and_then(Value::as_str) == Some("__parent__") {
        return IntoOutput::<Table>::into_output(command.to_parent());
    }
    command.into_output()
}

/// A command from its fields; `resume` is not one of them here.
pub(crate) fn command(fields: &Value) -> Result<Command<Table>, NodeError> {
    let mut command = match fields.get("update") {
        Some(update) => Command::<Table>::update(update.clone()),
        None => Command::new(),
    };
    let goto = fields.get("goto").cloned().unwrap_or_default();
    for goto in places(goto)?.into_iter().flatten() {
        command = command.goto(goto);
    }
    Ok(command)
}

fn dispatch(packet: Packet) -> Dispatch {
    let Packet { node, arg, timeout } = packet;
    let mut dispatch = Dispatch::new(node, arg);
    if let Some(limits) = timeout {
        let duration = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let mut policy = TimeoutPolicy::default();
        if let Some(run) = limits.run {
            policy = TimeoutPolicy::run(duration(run));
        }
        if let Some(idle) = limits.idle {
            policy = policy.and_idle(duration(idle));
        }
        dispatch = dispatch.timeout(policy);
    }
    dispatch
}

/// Names and sends, one or a list; null stands for no answer.
fn places(value: Value) -> Result<Vec<Option<Goto>>, NodeError> {
    Ok(match value {
        Value::Null => vec![None],
        Value::Str(name) => vec![Some(Goto::Node(name.into()))],
        Value::List(items) => {
            let places = items.into_iter().map(places).collect::<Result<Vec<_>, _>>()?;
            places.into_iter().flatten().collect()
        }
        Value::Ext(ext) => match *ext {
            Ext::Send(packet) => vec![Some(Goto::Dispatch(dispatch(packet)))],
            other => return Err(type_error(format!("{other:?} is no place to go to"))),
        },
        other => return Err(type_error(format!("{other} is no place to go to"))),
    })
}

type RouteFuture =
    std::pin::Pin<Box<dyn Future<Output = Result<Vec<Option<Goto>>, NodeError>> + Send>>;

fn router(
    world: &Arc<World>,
    branch: &Json,
    graph: &Json,
) -> impl Fn(Arc<Table>, Task) -> RouteFuture + Send + Sync + 'static {
    let (world, body, graph) = (world.clone(), branch["body"].clone(), graph.clone());
    move |table: Arc<Table>, task: Task| {
        let mut map = table.to_map();
        add_managed(&mut map, &task, &graph, &object_keys(&graph["state"]));
        let env = Env::from([("state".to_owned(), Value::Map(map))]);
        let (running, body) = (Body::new(&world, Some(task), env), body.clone());
        Box::pin(async move { places(running.run(&body).await?) })
    }
}

fn targets(map: &Json) -> Targets {
    match map {
        Json::Array(_) => Targets::from(names(map).unwrap_or_default()),
        Json::Object(pairs) => Targets::map(
            pairs
                .iter()
                .map(|(answer, to)| (answer.clone(), to.as_str().unwrap_or_default().to_owned())),
        ),
        _ => Targets::any(),
    }
}

pub(crate) fn break_at(spec: &Json) -> Option<BreakAt> {
    match spec {
        Json::String(all) if all == "*" => Some(BreakAt::all()),
        Json::Array(_) => Some(BreakAt::from(names(spec).unwrap_or_default())),
        _ => None,
    }
}

pub(crate) fn names(json: &Json) -> Option<Vec<String>> {
    let list = json.as_array()?;
    Some(list.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
}

fn object_keys(json: &Json) -> Vec<String> {
    json.as_object().into_iter().flat_map(|map| map.keys().cloned()).collect()
}

fn schema(state: &Json, hidden: &[String]) -> Schema<Table> {
    let mut schema = Schema::<Table>::default();
    for (name, spec) in state.as_object().into_iter().flatten() {
        match spec["managed"].as_str() {
            Some("remaining_steps") => {
                schema.managed(name.clone(), Managed::RemainingSteps);
            }
            Some(_) => {
                schema.managed(name.clone(), Managed::IsLastStep);
            }
            None => {
                schema.table(name.clone(), channel(spec));
                if hidden.contains(name) {
                    schema.private();
                }
            }
        }
    }
    schema
}

fn channel(spec: &Json) -> TableChannel {
    let fold = match spec["reducer"].as_str() {
        Some("append") => Some(Fold::Append),
        Some("sum") => Some(Fold::Sum),
        Some("max") => Some(Fold::Max),
        Some("merge") => Some(Fold::Merge),
        Some("union") => Some(Fold::Union),
        Some("by_id") => Some(Fold::ById),
        _ => None,
    };
    let start = match spec["type"].as_str() {
        Some("int") => Some(Value::from(0)),
        Some("str") => Some(Value::from("")),
        Some("bool") => Some(Value::Bool(false)),
        Some("list") => Some(Value::List(Vec::new())),
        Some("dict") => Some(Value::Map(Map::new())),
        Some("set") => Some(Value::Set(superstep::checkpoint::Set::new())),
        _ => None,
    };
    let guard = spec["guard"].as_bool().unwrap_or(true);
    match (spec["channel"].as_str(), fold) {
        (Some("any_value"), _) => TableChannel::of_kind(Kind::Any),
        (Some("ephemeral"), _) => TableChannel::of_kind(Kind::Ephemeral { guard }),
        (Some("untracked"), _) => TableChannel::of_kind(Kind::Untracked { guard }),
        (Some("topic"), _) => {
            let accumulate = spec["accumulate"].as_bool().unwrap_or(false);
            TableChannel::of_kind(Kind::Topic { accumulate })
        }
        (Some("delta"), Some(fold)) => {
            let every = spec["snapshot_frequency"].as_u64().unwrap_or(100);
            TableChannel::delta(fold, start, Deltas::Every(every))
        }
        (_, Some(fold)) => TableChannel::folded(fold, start),
        (_, None) => TableChannel::last(),
    }
}

pub(crate) fn retry_policies(spec: &Json) -> Vec<RetryPolicy> {
    let list = match spec {
        Json::Null => return Vec::new(),
        Json::Array(list) => list.clone(),
        one => vec![one.clone()],
    };
    let seconds = |value: &Json| Duration::try_from_secs_f64(value.as_f64()?).ok();
    let policies = list.iter().map(|one| {
        let attempts = one["max_attempts"].as_u64().unwrap_or(3);
        let mut policy = RetryPolicy::attempts(u32::try_from(attempts).unwrap_or(u32::MAX))
            .initial_interval(seconds(&one["initial_interval"]).unwrap_or(Duration::from_millis(1)))
            .jitter(one["jitter"].as_bool().unwrap_or(false));
        if let Some(factor) = one["backoff_factor"].as_f64() {
            policy = policy.backoff_factor(factor);
        }
        if let Some(longest) = seconds(&one["max_interval"]) {
            policy = policy.interval_max(longest);
        }
        match names(&one["on"]) {
            None => policy,
            Some(kinds) => {
                policy.retry_on(move |error| kinds.iter().any(|kind| kind == error.kind()))
            }
        }
    });
    policies.collect()
}

pub(crate) fn timeout_policy(spec: &Json) -> Option<TimeoutPolicy> {
    let seconds = |key: &str| Duration::try_from_secs_f64(spec[key].as_f64()?).ok();
    match (seconds("run"), seconds("idle")) {
        (Some(run), Some(idle)) => Some(TimeoutPolicy::run(run).and_idle(idle)),
        (Some(run), None) => Some(TimeoutPolicy::run(run)),
        (None, Some(idle)) => Some(TimeoutPolicy::idle(idle)),
        (None, None) => None,
    }
}

pub(crate) fn cache_policy(spec: &Json, variable: &'static str) -> CachePolicy {
    let mut policy = CachePolicy::new();
    if let Some(key) = spec.get("key").cloned() {
        policy = policy.key(move |input| {
            let env = Env::from([(variable.to_owned(), input.clone())]);
            evaluate(&key, &env).map(|value| plain(&value)).unwrap_or_default()
        });
    }
    if let Some(ttl) = spec["ttl"].as_f64().and_then(|ttl| Duration::try_from_secs_f64(ttl).ok()) {
        policy = policy.ttl(ttl);
    }
    policy
}
