//! A random graph on the real engine, and what its stream shows, in the words of the naive one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value as Json;
use superstep::node::{FromTask, Invocation};
use superstep::prelude::*;
use superstep::state::{Deltas, Fold, Kind, Schema, Table, TableChannel, Writes};
use superstep::{CompiledGraph, Data, Goto, Join, Run, Targets, UpdatesEvent};

use super::behave::{Done, View, Written, behave, route, takes};
use super::graph::{Graph, NAMES, Node, Place, PlannedJoin, Router};
use super::trace::{Group, STATE, executed, text};

/// What a dispatch carried, if a dispatch was it.
struct MaybeArg(Option<i64>);

impl FromTask<Table> for MaybeArg {
    fn from_task(call: &Invocation<'_>) -> Result<Self, NodeError> {
        Ok(Self(<Arg<i64> as FromTask<Table>>::from_task(call).ok().map(|arg| arg.0)))
    }
}

#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) run: AtomicU32,
    pub(crate) executed: Mutex<Vec<String>>,
}

pub(crate) fn json(value: &Value) -> Json {
    value.clone().into()
}

pub(crate) fn view(map: impl IntoIterator<Item = (String, Value)>) -> View {
    map.into_iter().map(|(name, value)| (name, value.into())).collect()
}

fn schema(graph: &Graph) -> Schema<Table> {
    let kinds = &graph.kinds;
    let empty = Some(Value::List(Vec::new()));
    let mut schema = Schema::<Table>::default();
    schema.table(
        "log",
        match kinds.delta {
            None => TableChannel::folded(Fold::Append, empty),
            Some(every) => TableChannel::delta(Fold::Append, empty, Deltas::Every(every)),
        },
    );
    schema.table("sum", TableChannel::folded(Fold::Sum, Some(0.into())));
    schema.table("max", TableChannel::folded(Fold::Max, None));
    schema.table("last", TableChannel::last());
    schema.table("once", TableChannel::of_kind(Kind::Ephemeral { guard: kinds.guard }));
    schema.table("topic", TableChannel::of_kind(Kind::Topic { accumulate: kinds.accumulate }));
    schema.table("any", TableChannel::of_kind(Kind::Any));
    schema
}

fn goto(graph: &Graph, place: Place) -> Goto {
    match place {
        Place::End => Goto::Node(END.into()),
        Place::Node(node) => Goto::Node(graph.name(node).into()),
        Place::Dispatch(node, arg) => Goto::Dispatch(Dispatch::new(graph.name(node), arg)),
    }
}

fn targets(graph: &Graph, router: &Router) -> Targets {
    if !router.declared {
        return Targets::any();
    }
    let mut names: Vec<&str> = Vec::new();
    for place in router.ways.iter().flatten() {
        match place {
            Place::End => names.push(END),
            Place::Node(node) => names.push(graph.name(*node)),
            Place::Dispatch(..) => {}
        }
    }
    names.sort_unstable();
    names.dedup();
    Targets::from(names)
}

fn add_router(
    builder: StateGraph<Table>,
    graph: &Arc<Graph>,
    from: &'static str,
    silent: bool,
    router: &Router,
) -> StateGraph<Table> {
    let targets = targets(graph, router);
    let (router, graph) = (router.clone(), graph.clone());
    let awaited = router.awaited;
    let decide = Arc::new(move |table: &Table| -> Vec<Goto> {
        let places = route(&router, silent, &view(table.to_map()));
        places.into_iter().map(|place| goto(&graph, place)).collect()
    });
    if awaited {
        builder.add_conditional_edges(from, targets, move |table: Arc<Table>| {
            let decide = decide.clone();
            async move {
                tokio::task::yield_now().await;
                decide(&table)
            }
        })
    } else {
        builder.add_conditional_edges(from, targets, move |table: &Table| decide(table))
    }
}

fn add_node(
    builder: StateGraph<Table>,
    graph: &Arc<Graph>,
    shared: &Arc<Shared>,
    index: usize,
    node: &Node,
) -> StateGraph<Table> {
    let (plan, shared) = (graph.clone(), shared.clone());
    let function = move |table: Arc<Table>, MaybeArg(arg): MaybeArg, task: Task| {
        let (plan, shared) = (plan.clone(), shared.clone());
        async move {
            let seen = view(table.to_map());
            drop(table);
            let run = shared.run.load(Ordering::Relaxed);
            let done = behave(&plan, index, &seen, arg, run);
            let ran = executed(task.step(), NAMES[index], arg);
            shared.executed.lock().expect("no panic").push(ran);
            if plan.sleeps {
                let ms = takes(&plan, run, task.step(), index, arg);
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
            match done {
                Done::Failed(text) => Err(NodeError::permanent(text)),
                Done::Wrote(writes, places) => {
                    let mut update = Writes::new();
                    for (name, write) in writes {
                        let at = STATE.iter().position(|known| *known == name).expect("a channel");
                        match write {
                            Written::Update(value) => update.push(at, Value::from(value)),
                            Written::Overwrite(value) => update.overwrite(at, Value::from(value)),
                        }
                    }
                    let goto: Vec<_> = places.into_iter().map(|place| goto(&plan, place)).collect();
                    Ok(Command::<Table>::update(update).goto(goto))
                }
            }
        }
    };
    let name = NAMES[index];
    let mut builder = builder.add_node(name, function);
    if node.defer {
        builder = builder.defer();
    }
    for to in &node.edges {
        builder = builder.add_edge(name, to.map_or(END, |to| graph.name(to)));
    }
    for router in &node.routers {
        builder = add_router(builder, graph, name, node.silent, router);
    }
    builder
}

/// The compiled graph, and whether it is lenient.
pub(crate) fn build(graph: &Arc<Graph>, shared: &Arc<Shared>) -> (CompiledGraph<Table>, bool) {
    let declare = || {
        let mut builder = StateGraph::with_schema(schema(graph));
        for (index, node) in graph.nodes.iter().enumerate() {
            builder = add_node(builder, graph, shared, index, node);
        }
        for to in &graph.start {
            builder = builder.add_edge(START, graph.name(*to));
        }
        if let Some(router) = &graph.start_router {
            builder = add_router(builder, graph, START, false, router);
        }
        for PlannedJoin { members, target, needed, across } in graph.joins() {
            let all = needed == members.len();
            let join = if all { Join::all(members) } else { Join::at_least(needed, members) };
            let join = if across { join.across_runs() } else { join };
            builder = builder.add_edge(join, target.unwrap_or(END));
        }
        builder
    };
    // Random graphs have nodes that nothing leads to, which only a lenient graph may have.
    match declare().compile() {
        Ok(strict) => (strict, false),
        Err(_) => (declare().lenient().compile().expect("a graph that compiles"), true),
    }
}

/// What a stream showed, and how the run ended.
pub(crate) struct Ran {
    pub(crate) groups: Vec<Group>,
    pub(crate) executed: Vec<String>,
    pub(crate) end: Result<View, RunError>,
}

fn text_of(value: &Value) -> String {
    match json(value) {
        Json::Object(map) => text(&map.into_iter().collect::<BTreeMap<_, _>>()),
        other => text(&other),
    }
}

/// Takes all events of a run. A superstep begins with a start after an end, and ends with the values.
pub(crate) async fn take(run: Run<Table>, shared: &Shared) -> Ran {
    let mut stream = run.stream([Mode::Values, Mode::Updates, Mode::Tasks]);
    let mut groups = Vec::new();
    let mut group = Group::default();
    let ended = loop {
        let event = match stream.next().await.expect("an outcome or an error comes last") {
            Ok(event) => event,
            Err(error) => break Err(error),
        };
        match event.data {
            Data::Outcome(outcome) => break Ok(outcome),
            Data::Values(values) => {
                group.values = Some(text_of(&values.to_value().expect("data")));
                groups.push(std::mem::take(&mut group));
            }
            Data::TaskStart(start) => {
                if !group.ends.is_empty() {
                    groups.push(std::mem::take(&mut group));
                }
                group.starts.push(format!("{} {}", start.name, text_of(&start.input)));
            }
            Data::TaskEnd(end) => match &end.error {
                Some(error) if error.kind() == "CancelledError" => {}
                Some(_) => group.ends.push(format!("failed {}", end.name)),
                None => group.ends.push(format!("{} {}", end.name, text_of(&end.result))),
            },
            Data::Updates(UpdatesEvent::Task { node, update, cached, .. }) => {
                let cached = if cached { "cached " } else { "" };
                group.updates.push(format!("{cached}{node} {}", text_of(&update)));
            }
            other => panic!("an event nobody asked for: {other:?}"),
        }
    };
    assert!(stream.next().await.is_none(), "an outcome or an error comes last");
    if group != Group::default() {
        groups.push(group);
    }
    for group in &mut groups {
        group.sort();
    }
    shared.run.fetch_add(1, Ordering::Relaxed);
    let mut executed = std::mem::take(&mut *shared.executed.lock().expect("no panic"));
    executed.sort();
    let end = ended.map(|outcome| match outcome {
        Outcome::Done(table) => view(table.to_map()),
        other => panic!("the run neither failed nor is it done: {other:?}"),
    });
    Ran { groups, executed, end }
}
