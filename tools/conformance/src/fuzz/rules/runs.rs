//! What runs do.

use serde_json::Value as Json;

use super::{Seen, Verdict, blurred};

fn whole(holds: bool) -> Verdict {
    if holds { Verdict::Whole } else { Verdict::Other }
}

/// F9: durability without a checkpointer is nothing to crash on.
pub(super) fn sync_without_checkpointer(seen: &Seen<'_>) -> Verdict {
    let crashed = seen.want.to_string().contains("AttributeError");
    whole(crashed && seen.has("\"none\"") && !seen.got.to_string().contains("AttributeError"))
}

/// A question beside a graph that was drained is shown.
pub(super) fn question_beside_drain(seen: &Seen<'_>) -> Verdict {
    let drained = seen.want["error"]["kind"] == "GraphDrained" && seen.got.get("error").is_none();
    whole(seen.runs() && drained && seen.has("\"drain\"") && seen.asks())
}

/// A workflow that is drained stops before its next call.
pub(super) fn drain_stops_workflow(seen: &Seen<'_>) -> Verdict {
    let drained = |entry: &Json| entry["error"]["kind"] == "GraphDrained";
    let sooner = drained(seen.got) && (!drained(seen.want) || seen.ran_less());
    whole(seen.runs() && sooner && seen.has("\"func\"") && seen.has("\"drain\""))
}

/// F36: a write conflict fails its superstep at its end, and the thread continues.
pub(super) fn write_conflict(seen: &Seen<'_>) -> Verdict {
    let conflict = |entry: &Json| {
        let error = &entry["error"];
        error["code"] == "INVALID_CONCURRENT_GRAPH_UPDATE"
            || error["kind"] == "InvalidUpdateError" && error.get("code").is_none()
    };
    let keys = seen.has("{\"type\":\"int\"}") || seen.has("\"guard\":true");
    if !keys && !seen.has("$overwrite") {
        return Verdict::Other;
    }
    let poisoned = conflict(seen.want) && !conflict(seen.got);
    let again = seen.runs() && conflict(seen.want) && conflict(seen.got);
    let later = seen.entries.iter().any(conflict) && seen.runs() && seen.ran_more();
    let got = seen.got.to_string();
    let failed = "\"error\":\"InvalidUpdateError\"";
    let shown = seen.looks() && got.contains(failed);
    // After one, the reference continues with writes that we have dropped.
    let before = seen.entries.iter().any(|entry| entry.to_string().contains(failed));
    // An update that conflicts with what a sibling has finished is refused, so that neither is lost (F14).
    let refused = conflict(seen.got) && !seen.runs() && !seen.looks();
    whole(poisoned || again || later || shown || before || refused)
}

/// F11: naming the head is not going back in time: nothing is forked, and what has finished does not run again.
pub(super) fn head_is_no_travel(seen: &Seen<'_>) -> Verdict {
    let forked = |entry: &Json| {
        let mut count = 0;
        super::each(&mut entry.clone(), &mut |part| {
            count += usize::from(part["source"] == "fork");
        });
        count
    };
    let names = |call: &Json| call.get("at").is_some();
    let less_forked = forked(seen.got) < forked(seen.want);
    if seen.runs() {
        let same = blurred(seen.want) == blurred(seen.got);
        // A run that continues has two supersteps more (F21).
        let longer = seen.got["error"]["kind"] == "GraphRecursionError" && seen.ran_more();
        // An answer that was given at the head still counts.
        let head = seen.call["at"]["history"] == 0 && seen.before.iter().any(Seen::answers);
        let answered = head && seen.asks() && seen.ran_more();
        let fewer = seen.ran_less() || less_forked;
        return whole(names(seen.call) && (fewer || same || longer || answered));
    }
    let travelled = seen.before.iter().any(names);
    let (want, got) = (&seen.want["state"], &seen.got["state"]);
    let shorter = got["metadata"]["step"].as_i64() < want["metadata"]["step"].as_i64()
        && want["values"] == got["values"]
        && want["next"] == got["next"];
    // Questions of the task that continued keep their ids.
    let same = want["values"] == got["values"]
        && want["next"] == got["next"]
        && want["metadata"] == got["metadata"]
        && seen.place.ends_with(".id");
    let same = same || blurred(seen.want) == blurred(seen.got);
    whole(seen.looks() && travelled && (less_forked || shorter || same))
}

/// F29: the ids of questions in a graph without a memory stay the same.
pub(super) fn ids_without_memory(seen: &Seen<'_>) -> Verdict {
    // So an answer by id finds its question, where the reference asks again.
    let found = seen.call["command"].get("resume_map").is_some() && seen.ran_more();
    let same = blurred(seen.want) == blurred(seen.got);
    whole(seen.has("\"checkpointer\":\"none\"") && (same || found))
}

/// A graph with a memory of its own that has ended takes the input of the next call, in a run that
/// continues too.
pub(super) fn memory_takes_input(seen: &Seen<'_>) -> Verdict {
    let own = seen.has("\"checkpointer\":\"own\"");
    let continues = seen.call["input"].is_null();
    whole(own && continues && seen.runs() && more_inside(seen))
}

/// Whether nodes of graphs with a memory of their own, or inside them, have run more often.
fn more_inside(seen: &Seen<'_>) -> bool {
    let inside = |name: &str| name.contains('s') && !name.starts_with('t');
    seen.counts().iter().any(|(name, want, got)| inside(name) && got > want)
}

/// F5: a further attempt counts its calls from the beginning, so it finds what is recorded.
pub(super) fn attempt_finds_calls(seen: &Seen<'_>) -> Verdict {
    let calls = ["\"call\"", "\"spawn\"", "\"call_each\""].iter().any(|op| seen.has(op));
    whole(seen.runs() && calls && seen.has("\"retry\"") && seen.ran_less())
}

/// F6: a further attempt finds the subgraph where it was.
pub(super) fn attempt_finds_subgraph(seen: &Seen<'_>) -> Verdict {
    let graphs = seen.has("\"invoke\"") || seen.has("\"graph\"");
    whole(seen.runs() && graphs && seen.has("\"retry\"") && seen.ran_less())
}

/// F31: a failure that was caught is recorded, and is the same again: the call does not run again, where in the reference it
/// does, and may take another way.
pub(super) fn caught_failure_recorded(seen: &Seen<'_>) -> Verdict {
    let mut tried = Vec::new();
    super::each(&mut seen.case.clone(), &mut |part| {
        let mut inside = part.get("try").cloned().unwrap_or_default();
        super::each(&mut inside, &mut |step| {
            tried.extend(step.get("call").and_then(Json::as_str).map(str::to_owned));
        });
    });
    let before = seen.last_run().map(|(_, entry)| entry["counts"].clone()).unwrap_or_default();
    let recorded = seen.counts().iter().any(|(name, want, got)| {
        tried.contains(name) && got < want && before[name].as_i64() == Some(*got)
    });
    whole(seen.runs() && recorded)
}

/// F16: an error handler that has finished does not run again.
pub(super) fn finished_handler_stays(seen: &Seen<'_>) -> Verdict {
    whole(seen.runs() && seen.has("\"on_error\"") && seen.ran_less())
}

/// Under `exit`, a subgraph that was drained or out of steps continues where it was.
pub(super) fn exit_keeps_progress(seen: &Seen<'_>) -> Verdict {
    let exit = seen.before.iter().any(|call| call["durability"] == "exit");
    let stopped = seen.entries.iter().any(|entry| {
        matches!(entry["error"]["kind"].as_str(), Some("GraphDrained" | "GraphRecursionError"))
    });
    let inside = "\"state\":{\"config\":{\"id\":null";
    let shown = seen.looks()
        && seen.want.to_string().matches(inside).count()
            > seen.got.to_string().matches(inside).count();
    let repeats = seen.runs() && seen.counts().iter().any(|(_, want, got)| got < want);
    // A graph that continues has two supersteps more (F21), where one that starts over comes to its
    // limit earlier.
    let limit = |entry: &Json| entry["error"]["kind"] == "GraphRecursionError";
    let longer = seen.runs() && limit(seen.want) && limit(seen.got) && seen.ran_more();
    // A call that was answered has ended: the question of a later one stays open, where the reference asks the first one again.
    let answered = seen.before.iter().any(Seen::answers);
    let same = answered && seen.runs() && seen.asks() && blurred(seen.want) == blurred(seen.got);
    whole(exit && (stopped && (repeats || shown || longer) || same && seen.asks_what_is_open()))
}

/// F13, F14: what was still to run when an update was made runs, and what a command had left is kept.
pub(super) fn update_keeps_tasks(seen: &Seen<'_>) -> Verdict {
    let updated = seen.last_change().is_some_and(|call| {
        matches!(call["op"].as_str(), Some("update_state" | "bulk_update_state"))
    });
    let mut shown = vec![(&seen.got["result"], &seen.want["result"])];
    if let (Some(got), Some(want)) = (seen.got["events"].as_array(), seen.want["events"].as_array())
    {
        shown.extend(got.iter().zip(want).flat_map(|(got, want)| {
            [(&got["data"], &want["data"]), (&got["data"]["values"], &want["data"]["values"])]
        }));
    }
    let kept = shown.iter().any(|(got, want)| super::states::more_values(got, want));
    let ran = seen.counts().iter().any(|(_, want, got)| got > want);
    // Only a run with something left to do is drained.
    let drained = |entry: &Json| entry["error"]["kind"] == "GraphDrained";
    let left = drained(seen.got) && !drained(seen.want);
    whole(seen.runs() && updated && (ran || kept || left))
}

/// F17b: of tasks with equal cache keys in one superstep none runs again.
pub(super) fn equal_cache_keys(seen: &Seen<'_>) -> Verdict {
    whole(seen.runs() && seen.has("\"cache\"") && seen.ran_less())
}

/// F1: a task whose router failed runs again, with its router.
pub(super) fn failed_router_runs_again(seen: &Seen<'_>) -> Verdict {
    let routed = seen.case["graphs"].to_string().contains("router of")
        || super::states::null_answers(seen.case);
    let streamed = seen.call["op"] == "stream" && seen.want["counts"] == seen.got["counts"];
    let handled = seen.has("\"on_error\"") && seen.want["counts"] == seen.got["counts"];
    // It may fail again, where the reference continues without it.
    let kind = |entry: &Json| entry["error"]["kind"].as_str().map(str::to_owned);
    let before = seen.last_run().and_then(|(_, entry)| kind(entry));
    let ran = seen.counts().iter().any(|(_, want, got)| got > want);
    let fails_again = before.is_some() && before == kind(seen.got) && ran;
    whole(seen.runs() && routed && (seen.ran_more() || streamed || handled || fails_again))
}

/// A command stands beside what is to run already: what it dispatches runs too, and a deferred node is not put off.
pub(super) fn command_keeps_tasks(seen: &Seen<'_>) -> Verdict {
    let looked = seen.entries.iter().rev().find_map(|entry| entry["state"]["tasks"].as_array());
    let open = |name: &str| looked.is_some_and(|tasks| tasks.iter().any(|t| t["name"] == name));
    let (mut dispatched, mut deferred) = (Vec::new(), false);
    for call in seen.before.iter().chain([seen.call]) {
        super::each(&mut call["command"]["goto"].clone(), &mut |part| {
            let to = part.get("$send").and_then(|send| send["to"].as_str());
            dispatched.extend(to.map(str::to_owned));
            deferred |=
                part.as_str().is_some_and(|name| is_deferred(seen.case, name) && open(name));
        });
    }
    let kept = super::states::more_values(&seen.got["result"], &seen.want["result"]);
    let more = !dispatched.is_empty() && (seen.ran_more_of(&dispatched) || kept);
    whole(seen.runs() && looked.is_some_and(|tasks| !tasks.is_empty()) && (more || deferred))
}

fn is_deferred(case: &Json, name: &str) -> bool {
    let mut nodes = case["graphs"]["main"]["nodes"].as_array().into_iter().flatten();
    nodes.any(|node| node["name"] == name && node["defer"] == true)
}
