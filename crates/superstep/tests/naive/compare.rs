//! Runs both engines and says where they differ.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use superstep::Durability;
use superstep::checkpoint::Source;
use superstep::error::Code;
use superstep::prelude::*;
use superstep::state::Table;

use super::behave::input;
use super::channel::Fault;
use super::graph::Graph;
use super::model::Model;
use super::real::{Ran, Shared, build, json, take, view};
use super::trace::{End, Snapshot, Trace};

macro_rules! same {
    ($what:expr, $expected:expr, $found:expr) => {{
        let (expected, found) = (&$expected, &$found);
        if expected != found {
            return Err(format!("{}\nexpected {expected:#?}\nfound {found:#?}", $what));
        }
    }};
}

/// How the two runs ended. Takes what clashed back in the model, if the real engine reported it rightly.
fn same_end(model: &mut Model<'_>, trace: &Trace, ran: &Ran) -> Result<(), String> {
    let wrong = || Err(format!("how the run ends\nexpected {:?}\nfound {:?}", trace.end, ran.end));
    match (&trace.end, &ran.end) {
        (End::Done(values), Ok(found)) => same!("the result", *values, *found),
        (End::RecursionLimit(limit), Err(RunError::RecursionLimit { limit: found })) => {
            same!("the limit", limit, found);
        }
        (End::Unfilled(expected), Err(RunError::UnfilledJoin { joins })) => {
            let names = |names: &[Arc<str>]| {
                let mut names: Vec<_> = names.iter().map(ToString::to_string).collect();
                names.sort();
                names
            };
            let found = joins
                .iter()
                .map(|join| (join.node.to_string(), names(&join.arrived), names(&join.missing)));
            let mut found: Vec<_> = found.collect();
            let mut expected = expected.clone();
            found.sort();
            expected.sort();
            same!("the joins that are not filled", expected, found);
        }
        (End::Failed { node, text }, Err(RunError::Node { node: found, error, .. })) => {
            same!("the failed node", **node, **found);
            if let Some(text) = text {
                same!("the node's error", *text, error.to_string());
            }
        }
        (End::Clashed { step, clashes }, Err(error)) => {
            let shown = error.to_string();
            let named = |channel: &str| shown.contains(&format!("channel `{channel}`"));
            let Some(clash) = clashes.iter().find(|clash| named(&clash.channel)) else {
                return wrong();
            };
            if let Some(node) = clash.writers.iter().find(|n| !shown.contains(&format!("`{n}`"))) {
                return Err(format!("the error does not name `{node}`: {shown}"));
            }
            match (clash.fault, error) {
                (Fault::Refused, RunError::Reducer { .. }) => {}
                (Fault::Guarded, RunError::InvalidUpdate { code: None, .. }) => {}
                (
                    Fault::Concurrent | Fault::Overwrites,
                    RunError::InvalidUpdate {
                        code: Some(Code::InvalidConcurrentGraphUpdate), ..
                    },
                ) => {}
                _ => return wrong(),
            }
            if clash.fault != Fault::Refused && !shown.contains(&format!("superstep {step}")) {
                return Err(format!("the error does not name superstep {step}: {shown}"));
            }
            model.take_back(clash);
        }
        _ => return wrong(),
    }
    Ok(())
}

fn same_run(model: &mut Model<'_>, number: Option<i64>, ran: &Ran) -> Result<(), String> {
    let trace = model.run(number);
    let expected_end = format!("{:?}", trace.end);
    for (at, (expected, found)) in trace.groups.iter().zip(&ran.groups).enumerate() {
        same!(format!("superstep {at} of the run (it ends with {expected_end})"), expected, found);
    }
    same!("the supersteps of the run", trace.groups, ran.groups);
    same!("which tasks ran", trace.executed, ran.executed);
    same_end(model, &trace, ran)
}

/// Without a checkpointer: one run.
pub(crate) async fn without_a_checkpointer(graph: &Arc<Graph>) -> Result<(), String> {
    let shared = Arc::new(Shared::default());
    let (app, lenient) = build(graph, &shared);
    let mut model = Model::new(graph, lenient);
    let number = graph.inputs[0];
    let run = app.invoke(Value::from(input(number))).recursion_limit(graph.limit);
    let run = match graph.concurrency {
        Some(tasks) => run.max_concurrency(tasks),
        None => run,
    };
    let ran = take(run, &shared).await;
    same_run(&mut model, Some(number), &ran)
}

/// On a thread: each input in turn, and on with no input, whether it failed or nothing is left to do.
pub(crate) async fn on_a_thread(graph: &Arc<Graph>) -> Result<(), String> {
    let shared = Arc::new(Shared::default());
    let (app, lenient) = build(graph, &shared);
    let app = app.with_checkpointer(MemorySaver::new());
    let thread = app.thread("t");
    let mut model = Model::new(graph, lenient);
    for number in &graph.inputs {
        let mut given = Some(*number);
        for _ in 0..graph.tries {
            let run = shared.run.load(Ordering::Relaxed);
            let said = |error: String| format!("run {run} with input {given:?}: {error}");
            let run = match given {
                Some(number) => thread.invoke(Value::from(input(number))),
                None => thread.invoke(()),
            };
            let durability = if graph.exit { Durability::Exit } else { Durability::Sync };
            let run = run.recursion_limit(graph.limit).durability(durability);
            let run = match graph.concurrency {
                Some(tasks) => run.max_concurrency(tasks),
                None => run,
            };
            let ran = take(run, &shared).await;
            same_run(&mut model, given, &ran).map_err(said)?;
            same_look(&model, &thread).await.map_err(said)?;
            given = None;
        }
    }
    let history = history(&thread).await?;
    let expected: Vec<_> = model.history.into_iter().rev().collect();
    for (expected, found) in expected.iter().zip(&history) {
        same!(format!("the checkpoint of step {}", expected.step), expected, found);
    }
    same!("the number of checkpoints", expected.len(), history.len());
    Ok(())
}

async fn same_look(model: &Model<'_>, thread: &superstep::Thread<Table>) -> Result<(), String> {
    let (step, values, next) = model.look();
    let snapshot =
        thread.get_state().raw().await.map_err(|error| format!("get_state: {error:?}"))?;
    let found = snapshot.values.as_map().cloned().unwrap_or_default();
    same!("the values that get_state shows", values, view(found));
    let mut names: Vec<_> = snapshot.next.iter().map(ToString::to_string).collect();
    names.sort();
    same!("what get_state shows as next", next, names);
    let found = snapshot.metadata.as_ref().map(|metadata| metadata.step);
    same!("the step of the head", Some(step), found);
    Ok(())
}

async fn history(thread: &superstep::Thread<Table>) -> Result<Vec<Snapshot>, String> {
    let mut all = Vec::new();
    let history = thread.get_state_history().raw().await;
    for snapshot in history.map_err(|error| format!("get_state_history: {error:?}"))? {
        let metadata = snapshot.metadata.as_ref().ok_or("a checkpoint without metadata")?;
        let mut next: Vec<_> = snapshot.next.iter().map(ToString::to_string).collect();
        next.sort();
        all.push(Snapshot {
            step: metadata.step,
            source: match metadata.source {
                Source::Input => "input",
                Source::Loop => "loop",
                _ => "other",
            },
            values: match json(&snapshot.values) {
                serde_json::Value::Object(map) => map.into_iter().collect(),
                other => return Err(format!("the values are no map: {other}")),
            },
            next,
        });
    }
    Ok(all)
}
