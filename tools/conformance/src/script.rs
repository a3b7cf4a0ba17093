//! Running the calls of a case, collecting one trace entry for each.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep::checkpoint::{AnyCheckpointer, CheckpointId, InterruptId, Query, Search, Value};
use superstep::state::{State, Table};
use superstep::{
    CheckpointRef, CompiledGraph, Data, Durability, Input, Mode, Outcome, RawSnapshot, Run,
    RunControl, RunError, RunStream, StateUpdate, Thread, UpdatesEvent,
};

use crate::build::{break_at, command, graph, has_command, names, output};
use crate::expr::{Env, evaluate};
use crate::normalise::sort_text;
use crate::trace::{config_entry, encode, error_entry, event_entry, snapshot_entry, tuple_entry};
use crate::world::{CaseContext, Graph, World};

pub(crate) struct Script {
    world: Arc<World>,
    trace: Vec<Json>,
    /// Questions that were seen: their value and id.
    questions: Vec<(Json, String)>,
}

/// Why a call could not be made: it failed, or the case is malformed.
enum Stop {
    Failed(RunError),
    /// The run was drained, which is an error in traces.
    Drained(String),
    Malformed(String),
    /// It refers to something that does not exist.
    NoReference(String),
}

impl From<RunError> for Stop {
    fn from(error: RunError) -> Self {
        Self::Failed(error)
    }
}

impl From<superstep::checkpoint::Error> for Stop {
    fn from(error: superstep::checkpoint::Error) -> Self {
        Self::Failed(error.into())
    }
}

fn no_reference<T>(text: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::NoReference(text.into()))
}

fn malformed<T>(text: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Malformed(text.into()))
}

/// What a graph of a case can be asked, whatever it returns.
macro_rules! with_thread {
    ($graph:expr, $thread:expr, $at:expr, |$found:ident| $then:expr) => {
        match $graph {
            Graph::State { graph, .. } => {
                let $found = thread_at(graph, $thread, $at);
                $then
            }
            Graph::Function(graph) => {
                let $found = thread_at(graph, $thread, $at);
                $then
            }
        }
    };
}

fn thread_at<S: State, O>(
    graph: &CompiledGraph<S, O>,
    thread: &str,
    at: Option<CheckpointRef>,
) -> Thread<S, O> {
    let thread = graph.thread(thread.to_owned());
    match at {
        Some(at) => thread.at(at),
        None => thread,
    }
}

impl Script {
    pub(crate) fn new(case: &Json, checkpointer: AnyCheckpointer) -> Self {
        Self { world: World::new(case, checkpointer), trace: Vec::new(), questions: Vec::new() }
    }

    /// Continues where LangGraph has stopped.
    pub(crate) fn take_over(&mut self, carry: &Json) {
        self.trace = carry["entries"].as_array().cloned().unwrap_or_default();
        for entry in self.trace.clone() {
            self.remember(&entry);
        }
        self.world.take_over(&carry["counts"], &carry["failures"]);
    }

    /// Everything LangGraph needs to continue. The entries are not normalised.
    pub(crate) fn carry(&self) -> Json {
        json!({
            "entries": self.trace,
            "counts": self.world.counts(),
            "failures": self.world.failures(),
        })
    }

    /// Makes the calls with these indexes.
    pub(crate) async fn run(&mut self, range: Range<usize>) -> Result<(), String> {
        let calls = self.world.case["script"].clone();
        for call in calls.as_array().into_iter().flatten().take(range.end).skip(range.start) {
            let mut entry = json!({});
            let made = match self.applies(&call["when"]) {
                true => self.call(call, &mut entry).await,
                false => no_reference("the state is not as it should be"),
            };
            match made {
                Ok(()) => {}
                Err(Stop::NoReference(_))
                    if self.world.case["loose"] == true || call.get("when").is_some() =>
                {
                    entry = json!({ "skipped": true });
                }
                Err(Stop::NoReference(text)) => return Err(format!("bad case: {text}")),
                Err(Stop::Failed(error)) => entry["error"] = error_entry(&error),
                Err(Stop::Drained(reason)) => entry["error"] = drained(&reason),
                Err(Stop::Malformed(text)) => return Err(format!("bad case: {text}")),
            }
            let runs = matches!(call["op"].as_str(), Some("invoke" | "stream"));
            if runs && entry.get("skipped").is_none() {
                entry["counts"] = self.world.counts();
            }
            self.remember(&entry);
            self.trace.push(entry);
        }
        Ok(())
    }

    /// The entries of all calls, not normalised.
    pub(crate) fn into_entries(self) -> Vec<Json> {
        self.trace
    }

    /// Whether the last state that was looked at is as a call wants it.
    fn applies(&self, when: &Json) -> bool {
        let Some(when) = when.as_object() else { return true };
        let Some(state) = self.trace.iter().rev().find_map(|entry| entry.get("state")) else {
            return false;
        };
        let list = |key: &str| state[key].as_array().map(Vec::as_slice).unwrap_or_default();
        let having =
            |key: &str| list("tasks").iter().filter(|task| !task[key].is_null()).count() as u64;
        when.iter().all(|(name, wanted)| match &**name {
            "open" => wanted
                .as_array()
                .into_iter()
                .flatten()
                .all(|value| list("interrupts").iter().any(|one| one["value"] == *value)),
            name => {
                let number = match name {
                    "errors" => having("error"),
                    "finished" => having("result"),
                    name => list(name).len() as u64,
                };
                let bound = |at: usize| wanted[at].as_u64().unwrap_or(u64::MAX);
                (bound(0)..=bound(1)).contains(&number)
            }
        })
    }

    fn remember(&mut self, value: &Json) {
        match value {
            Json::Array(list) => list.iter().for_each(|item| self.remember(item)),
            Json::Object(map) => {
                if let (2, Some(Json::String(id)), Some(asked)) =
                    (map.len(), map.get("id"), map.get("value"))
                {
                    self.questions.push((asked.clone(), id.clone()));
                }
                map.values().for_each(|part| self.remember(part));
            }
            _ => {}
        }
    }

    async fn call(&mut self, call: &Json, entry: &mut Json) -> Result<(), Stop> {
        match call["op"].as_str() {
            Some("invoke") => self.invoke(call, entry).await,
            Some("stream") => self.stream(call, entry).await,
            Some("get_state") => {
                let (graph, at) = self.target(call).await?;
                let subgraphs = call["subgraphs"] == true;
                let Some(thread) = thread_name(call) else { return Err(no_thread()) };
                let state = with_thread!(&graph, &thread, at, |thread| {
                    thread.get_state().subgraphs(subgraphs).raw().await
                })?;
                entry["state"] = snapshot_entry(&state);
                Ok(())
            }
            Some("get_history") => self.get_history(call, entry).await,
            Some("update_state") => {
                let steps = vec![vec![change(call)?]];
                self.update(call, steps, entry).await
            }
            Some("bulk_update_state") => {
                let mut steps = Vec::new();
                for step in call["steps"].as_array().into_iter().flatten() {
                    let mut updates = Vec::new();
                    for one in step.as_array().into_iter().flatten() {
                        updates.push(change(one)?);
                    }
                    steps.push(updates);
                }
                self.update(call, steps, entry).await
            }
            Some("restart") => {
                self.world.restart();
                Ok(())
            }
            Some("delete_thread") => {
                let thread = thread_name(call).unwrap_or_default();
                Ok(self.world.checkpointer.delete_thread(&thread).await?)
            }
            Some("clear_cache") => {
                let nodes = names(&call["nodes"]);
                let nodes: Option<Vec<&str>> =
                    nodes.as_ref().map(|nodes| nodes.iter().map(String::as_str).collect());
                match self.graph(call)? {
                    Graph::State { graph, .. } => graph.clear_cache(nodes.as_deref()).await?,
                    Graph::Function(graph) => graph.clear_cache(nodes.as_deref()).await?,
                }
                Ok(())
            }
            Some("store_search") => {
                let ns = names(&call["namespace"]).unwrap_or_default();
                let found = self.world.store.search(Search::below(ns)).await?;
                let mut items: Vec<Json> = found
                    .iter()
                    .map(|item| {
                        json!({ "ns": item.namespace, "key": item.key, "value": encode(&item.value) })
                    })
                    .collect();
                items.sort_by_key(sort_text);
                entry["items"] = Json::Array(items);
                Ok(())
            }
            Some("tuples") => {
                let query = Query {
                    thread: thread_name(call).map(Into::into),
                    ns: Some(call["ns"].as_str().unwrap_or_default().into()),
                    ..Query::default()
                };
                let stored = self.world.checkpointer.list(query).await?;
                let tuples: Result<Vec<Json>, String> = stored.iter().map(tuple_entry).collect();
                entry["tuples"] = Json::Array(tuples.map_err(Stop::Malformed)?);
                Ok(())
            }
            other => malformed(format!("unknown call {other:?}")),
        }
    }

    fn graph(&self, call: &Json) -> Result<Graph, Stop> {
        Ok(graph(&self.world, call["graph"].as_str().unwrap_or("main"))?)
    }

    async fn target(&self, call: &Json) -> Result<(Graph, Option<CheckpointRef>), Stop> {
        let graph = self.graph(call)?;
        let at = match call.get("at") {
            Some(at) => Some(self.resolve(&graph, call, at).await?),
            None => None,
        };
        Ok((graph, at))
    }

    /// The checkpoint or subgraph that a reference names.
    async fn resolve(&self, graph: &Graph, call: &Json, at: &Json) -> Result<CheckpointRef, Stop> {
        if let Some(index) = at["call"].as_u64() {
            return self.returned(usize::try_from(index).unwrap_or(usize::MAX), at);
        }
        let thread = thread_name(call).unwrap_or_default();
        let mut found = CheckpointRef::latest(thread.clone());
        if let Some(id) = at["id"].as_str() {
            return Ok(found.at(parse_id(id)?));
        }
        if let Some(ns) = at["ns"].as_str() {
            found = found.in_namespace(ns);
        }
        for name in names(&at["ns"]).unwrap_or_default() {
            let place = Some(found.clone());
            let state =
                with_thread!(graph, &thread, place, |thread| thread.get_state().raw().await)?;
            found = inner_of(&state, &name)?;
        }
        if ["history", "step", "next"].iter().all(|key| at.get(*key).is_none()) {
            return Ok(found);
        }
        let history =
            with_thread!(graph, &thread, Some(found), |t| t.get_state_history().raw().await)?;
        let matching = history.into_iter().filter(|state| {
            let step = state.metadata.as_ref().map(|metadata| metadata.step);
            let next = json!(state.next.iter().map(|name| &**name).collect::<Vec<_>>());
            at.get("step").is_none_or(|want| want.as_i64() == step)
                && at.get("next").is_none_or(|want| *want == next)
        });
        let nth = usize::try_from(at["history"].as_u64().unwrap_or(0)).unwrap_or(usize::MAX);
        match matching.map(|state| state.info.config).nth(nth) {
            Some(config) => Ok(config),
            None => no_reference(format!("no checkpoint matches {at}")),
        }
    }

    /// The config that an earlier call returned, read from its trace entry.
    fn returned(&self, index: usize, at: &Json) -> Result<CheckpointRef, Stop> {
        let Some(entry) = self.trace.get(index) else { return malformed("no such call") };
        let mut state = &entry["state"];
        for name in names(&at["task"]).unwrap_or_default() {
            let tasks = state["tasks"].as_array().into_iter().flatten();
            let mut inside = tasks.filter(|task| task["name"] == *name && !task["state"].is_null());
            let Some(task) = inside.next() else {
                return no_reference(format!("no task `{name}`"));
            };
            state = &task["state"];
        }
        let config = match state {
            Json::Null if entry["config"].is_null() => {
                return no_reference(format!("call {index} returned no checkpoint"));
            }
            Json::Null => &entry["config"],
            state if state.get("config").is_some() => &state["config"],
            state => state,
        };
        let text = |key: &str| config[key].as_str().unwrap_or_default().to_owned();
        let mut found = CheckpointRef::latest(text("thread")).in_namespace(text("ns"));
        if let Some(id) = config["id"].as_str() {
            found = found.at(parse_id(id)?);
        }
        let mut parents = BTreeMap::new();
        for (ns, id) in state["metadata"]["parents"].as_object().into_iter().flatten() {
            parents.insert(ns.clone(), parse_id(id.as_str().unwrap_or_default())?);
        }
        Ok(found.inside(parents))
    }

    fn input(&self, call: &Json) -> Result<Input, Stop> {
        let Some(fields) = call.get("command") else {
            return Ok(match constant(&call["input"])? {
                Value::Null => Input::nothing(),
                value => Input::value(value),
            });
        };
        let fields_value = constant(fields)?;
        let base = match (fields.get("resume_map"), fields_value.get("resume")) {
            (Some(map), _) => {
                let mut answers = Vec::new();
                for item in map.as_array().into_iter().flatten() {
                    answers.push((self.question_id(item)?, constant(&item["answer"])?));
                }
                Input::answers(answers)
            }
            (None, Some(answer)) if !answer.is_null() => Input::answer(answer.clone()),
            _ => Input::nothing(),
        };
        let command = command(&fields_value).map_err(|error| Stop::Malformed(error.to_string()))?;
        if fields["graph"] == "__parent__" {
            return Ok(superstep::IntoInput::<Table>::into_input(command.to_parent()));
        }
        Ok(base.with_command(command))
    }

    fn question_id(&self, item: &Json) -> Result<InterruptId, Stop> {
        if let Some(id) = item["id"].as_str() {
            return Ok(InterruptId::new(id));
        }
        let seen = self.questions.iter().rev().find(|(asked, _)| *asked == item["interrupt"]);
        match seen {
            Some((_, id)) => Ok(InterruptId::new(id.clone())),
            None => no_reference(format!("no interrupt {} was seen", item["interrupt"])),
        }
    }

    async fn invoke(&mut self, call: &Json, entry: &mut Json) -> Result<(), Stop> {
        let (graph, at) = self.target(call).await?;
        let input = self.input(call)?;
        let keys = names(&call["output_keys"]);
        let (modes, subgraphs) = ([Mode::Values, Mode::Updates], call["subgraphs"] == true);
        match &graph {
            Graph::State { graph, output } => {
                let stream = begin(graph, call, at, input).stream(modes).subgraphs(subgraphs);
                let stream = stream.output_keys(keys.unwrap_or_else(|| output.clone()));
                entry["result"] = last_values(stream, false).await?;
            }
            Graph::Function(graph) => {
                let stream = begin(graph, call, at, input).stream(modes).subgraphs(subgraphs);
                entry["result"] = last_values(stream, true).await?;
            }
        }
        Ok(())
    }

    async fn stream(&mut self, call: &Json, entry: &mut Json) -> Result<(), Stop> {
        let (graph, at) = self.target(call).await?;
        let input = self.input(call)?;
        entry["events"] = json!([]);
        let modes = names(&call["modes"]).map_or_else(
            || vec![Mode::Updates],
            |modes| modes.iter().filter_map(|mode| Mode::from_name(mode)).collect(),
        );
        match &graph {
            Graph::State { graph, .. } => {
                let mut stream = begin(graph, call, at, input).stream(modes);
                if let Some(keys) = names(&call["output_keys"]) {
                    stream = stream.output_keys(keys);
                }
                events(stream, call, entry).await
            }
            Graph::Function(graph) => {
                events(begin(graph, call, at, input).stream(modes), call, entry).await
            }
        }
    }

    async fn get_history(&mut self, call: &Json, entry: &mut Json) -> Result<(), Stop> {
        let (graph, at) = self.target(call).await?;
        let Some(thread) = thread_name(call) else { return Err(no_thread()) };
        let before = match call.get("before") {
            Some(before) => Some(self.resolve(&graph, call, before).await?),
            None => None,
        };
        let states = with_thread!(&graph, &thread, at, |thread| {
            let mut history = thread.get_state_history();
            if let Some(limit) = call["limit"].as_u64() {
                history = history.limit(usize::try_from(limit).unwrap_or(usize::MAX));
            }
            if let Some(before) = before {
                history = history.before(before);
            }
            for (key, value) in call["filter"].as_object().into_iter().flatten() {
                history = history.filter(key.clone(), Value::from(value.clone()));
            }
            history.raw().await
        })?;
        entry["states"] = Json::Array(states.iter().map(snapshot_entry).collect());
        Ok(())
    }

    async fn update(
        &mut self,
        call: &Json,
        steps: Vec<Vec<StateUpdate>>,
        entry: &mut Json,
    ) -> Result<(), Stop> {
        let (graph, at) = self.target(call).await?;
        let Some(thread) = thread_name(call) else { return Err(no_thread()) };
        let config = with_thread!(&graph, &thread, at, |t| t.bulk_update_state(steps).await)?;
        entry["config"] = config_entry(&config);
        Ok(())
    }
}

fn thread_name(call: &Json) -> Option<String> {
    match call.get("thread") {
        None => Some("1".to_owned()),
        Some(name) => name.as_str().map(str::to_owned),
    }
}

fn no_thread() -> Stop {
    Stop::Failed(RunError::Invalid("no thread was named".to_owned()))
}

fn parse_id(text: &str) -> Result<CheckpointId, Stop> {
    text.parse().map_err(|_| Stop::Malformed(format!("`{text}` is no checkpoint id")))
}

fn constant(expr: &Json) -> Result<Value, Stop> {
    evaluate(expr, &Env::new()).map_err(|error| Stop::Malformed(error.to_string()))
}

/// One update: nothing, data, or what a node returns with a command in it.
fn change(call: &Json) -> Result<StateUpdate, Stop> {
    let update = match constant(&call["values"])? {
        Value::Null => StateUpdate::nothing(),
        values if has_command(&values) => match output(values) {
            Ok(output) => StateUpdate::new::<Table>(output),
            Err(error) => return malformed(error.to_string()),
        },
        values => StateUpdate::data(values),
    };
    Ok(match call["as_node"].as_str() {
        Some(node) => update.as_node(node),
        None => update,
    })
}

fn inner_of(state: &RawSnapshot, name: &str) -> Result<CheckpointRef, Stop> {
    let found = state.tasks.iter().find(|task| &*task.name == name && task.state.is_some());
    match found.and_then(|task| task.state.as_ref()) {
        Some(superstep::SubgraphState::At(at)) => Ok(at.clone()),
        Some(superstep::SubgraphState::Snapshot(inner)) => Ok(inner.config.clone()),
        _ => no_reference(format!("no task `{name}` with a state")),
    }
}

fn begin<S: State, O: Send + 'static>(
    graph: &CompiledGraph<S, O>,
    call: &Json,
    at: Option<CheckpointRef>,
    input: Input,
) -> Run<S, O> {
    let mut run = match thread_name(call) {
        Some(thread) => thread_at(graph, &thread, at).invoke(input),
        None => graph.invoke(input),
    };
    if let Some(limit) = call["recursion_limit"].as_i64() {
        run = run.recursion_limit(u64::try_from(limit).unwrap_or(0));
    }
    match call["durability"].as_str() {
        Some("exit") => run = run.durability(Durability::Exit),
        Some("async") => run = run.durability(Durability::Async),
        _ => {}
    }
    if let Some(at) = break_at(&call["interrupt_before"]) {
        run = run.interrupt_before(at);
    }
    if let Some(at) = break_at(&call["interrupt_after"]) {
        run = run.interrupt_after(at);
    }
    if let Some(context) = call.get("context") {
        run = run.context(CaseContext(Value::from(context.clone())));
    }
    if let Some(reason) = call["drain"].as_str() {
        let control = RunControl::new();
        control.request_drain(reason);
        run = run.control(control);
    }
    run
}

fn drained(reason: &str) -> Json {
    json!({ "kind": "GraphDrained", "reason": reason, "message": "" })
}

async fn events<S: State, O: Send + 'static>(
    stream: RunStream<S, O>,
    call: &Json,
    entry: &mut Json,
) -> Result<(), Stop> {
    let subgraphs = call["subgraphs"] == true;
    let mut stream = stream.subgraphs(subgraphs);
    while let Some(event) = stream.next().await {
        let event = event?;
        if let Data::Outcome(outcome) = event.data {
            if let Outcome::Drained(reason) = outcome {
                entry["error"] = drained(&reason);
            }
            break;
        }
        let event = event_entry(&event, subgraphs);
        if let Some(events) = entry["events"].as_array_mut() {
            events.push(event);
        }
    }
    Ok(())
}

/// What `invoke` gives in the reference: the last values that were shown, with all that was asked.
async fn last_values<S: State, O: Send + 'static>(
    mut stream: RunStream<S, O>,
    single: bool,
) -> Result<Json, Stop> {
    let mut last = Json::Null;
    let mut asked = Vec::new();
    while let Some(event) = stream.next().await {
        match event?.data {
            Data::Values(mut values) if (!single || values.interrupts.is_empty()) => {
                values.interrupts.clear();
                last = encode(&values.to_value().map_err(RunError::from)?);
            }
            Data::Updates(UpdatesEvent::Interrupted(questions)) => {
                asked.extend(questions.iter().map(crate::trace::interrupt_entry));
            }
            Data::Outcome(Outcome::Drained(reason)) => {
                return Err(Stop::Drained(reason.to_string()));
            }
            _ => {}
        }
    }
    if asked.is_empty() {
        return Ok(last);
    }
    if single || !last.is_object() {
        last = json!({});
    }
    last["__interrupt__"] = Json::Array(asked);
    Ok(last)
}
