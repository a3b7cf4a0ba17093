//! Running a case with our engine, and finding where it differs from what was recorded.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use serde_json::Value as Json;

use super::rules::blur;
use crate::db::{self, Db};
use crate::normalise::{comparable, first_difference, normalise, sort_text};
use crate::runtime;
use crate::script::Script;
use superstep::checkpoint::AnyCheckpointer;

/// Where two traces differ first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// The call whose entries differ.
    pub(super) call: usize,
    pub(super) how: String,
}

/// Runs some of the calls of a case, continuing from what was carried over.
fn run_calls(
    case: &Json,
    checkpointer: AnyCheckpointer,
    [from, to]: [usize; 2],
    carry: &Json,
) -> Result<Json, String> {
    let mut script = Script::new(case, checkpointer);
    if !carry.is_null() {
        script.take_over(carry);
    }
    let run = || {
        runtime()?.block_on(async {
            // Time is virtual: it runs out when nothing else can happen any more.
            let limit = Duration::from_secs(1_000_000);
            match tokio::time::timeout(limit, script.run(from..to)).await {
                Ok(done) => done,
                Err(_) => Err("it hangs".to_owned()),
            }
        })
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(done) => done?,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            return Err(format!("it panics: {}", text.unwrap_or_default()));
        }
    }
    Ok(script.carry())
}

/// What all calls of a case give, on storage that is empty.
pub(super) fn run(db: &Db, case: &Json) -> Result<Vec<Json>, String> {
    let (checkpointer, _scratch) = db.fresh(case["name"].as_str().unwrap_or("case"))?;
    let carry = run_calls(case, checkpointer, [0, usize::MAX], &Json::Null)?;
    Ok(entries(&carry))
}

/// Runs some of the calls of a case on a database.
pub(super) fn run_part(
    case: &Json,
    url: &str,
    calls: [usize; 2],
    carry: &Json,
) -> Result<Json, String> {
    run_calls(case, db::open(url)?, calls, carry)
}

pub(super) fn entries(carry: &Json) -> Vec<Json> {
    carry["entries"].as_array().cloned().unwrap_or_default()
}

/// Our entries as they are compared with a trace, which is normalised already.
pub(super) fn as_trace(entries: Vec<Json>, want: &Json) -> Vec<Json> {
    match comparable(&normalise(entries, want, false)) {
        Json::Array(list) => list,
        other => vec![other],
    }
}

/// Entries with their events in an order of their own, for when it is not known which may come in any.
pub(super) fn in_order(mut entries: Vec<Json>) -> Vec<Json> {
    for entry in &mut entries {
        if let Some(Json::Array(events)) = entry.get_mut("events") {
            // Where an overwrite is unwrapped (F24) the order is the same.
            events.sort_by_key(|event| blur(&sort_text(event)).replace("{\"$overwrite\":", ""));
        }
    }
    entries
}

/// The first call from this one on whose entries differ.
pub(super) fn first(want: &[Json], got: &[Json], from: usize) -> Option<Difference> {
    let nothing = Json::Null;
    (from..want.len().max(got.len())).find_map(|call| {
        let (want, got) = (want.get(call).unwrap_or(&nothing), got.get(call).unwrap_or(&nothing));
        let how = first_difference(want, got, &format!("trace[{call}]"))?;
        Some(Difference { call, how })
    })
}

/// Entries without the groups of events that may come in any order.
pub(super) fn flat(trace: &[Json]) -> Vec<Json> {
    let flat = |entry: &Json| {
        let mut entry = entry.clone();
        if let Some(Json::Array(events)) = entry.get_mut("events") {
            let groups = std::mem::take(events).into_iter();
            *events = groups
                .flat_map(|event| match event["any_order"].as_array() {
                    Some(group) => group.clone(),
                    None => vec![event],
                })
                .collect();
        }
        entry
    };
    trace.iter().map(flat).collect()
}
