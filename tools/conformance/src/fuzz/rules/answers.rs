//! Answers to questions.

use serde_json::Value as Json;

use super::states::questions;
use super::{Seen, Verdict, mended};

/// F26, F40, F10: an answer that no open question waits for is refused, and nothing runs.
pub(super) fn refused(seen: &Seen<'_>) -> Verdict {
    let error = seen.got["error"]["kind"].as_str().unwrap_or_default();
    let refused = Seen::answers(seen.call)
        && matches!(error, "RuntimeError" | "KeyError" | "ValueError" | "EmptyInputError")
        && seen.want["error"]["kind"] != error
        && seen.ran_nothing();
    if refused { Verdict::Whole } else { Verdict::Other }
}

/// F10: a question whose answer was accepted is not shown as open any more.
pub(super) fn accepted(seen: &Seen<'_>) -> Verdict {
    let answered = Seen::answers(seen.call) || seen.before.iter().any(Seen::answers);
    if answered && seen.runs() {
        // It counts in the next run, where the reference asks again.
        let asked = questions(seen.want).iter().any(|one| !questions(seen.got).contains(one));
        // So an answer without an id is for the one that is left, where the reference does not know for which of them.
        let looked =
            seen.entries.iter().rev().find_map(|entry| entry["state"]["interrupts"].as_array());
        let left = looked.is_some_and(|open| open.len() == 1) && seen.ran_more();
        let ambiguous = seen.want["error"]["kind"] == "RuntimeError" && left;
        let by_value = seen.call["command"].get("resume").is_some();
        if by_value && ambiguous && seen.before.iter().any(Seen::answers) {
            return Verdict::Whole;
        }
        return if asked && !seen.ran_less() { Verdict::Whole } else { Verdict::Other };
    }
    if !answered || !seen.looks() {
        return Verdict::Other;
    }
    let mut entry = seen.want.clone();
    without_answered(&mut entry, seen.got);
    mended(seen, entry)
}

/// Drops questions that we do not show in the same place.
fn without_answered(want: &mut Json, got: &Json) {
    match (want, got) {
        (Json::Array(want), Json::Array(got)) => {
            want.iter_mut().zip(got).for_each(|(want, got)| without_answered(want, got));
        }
        (Json::Object(want), Json::Object(got)) => {
            let ours = got.get("interrupts").and_then(Json::as_array);
            if let (Some(ours), Some(Json::Array(asked))) = (ours, want.get_mut("interrupts"))
                && ours.len() < asked.len()
            {
                asked.retain(|one| ours.contains(one));
            }
            for (key, part) in want {
                if let Some(mine) = got.get(key) {
                    without_answered(part, mine);
                }
            }
        }
        _ => {}
    }
}

/// F3, F4: an answer is taken by the question it was given for; later ones are asked.
pub(super) fn for_its_question(seen: &Seen<'_>) -> Verdict {
    let by_value =
        |call: &Json| call["command"].get("resume").is_some_and(|answer| !answer.is_null());
    let given = seen.before.iter().zip(seen.entries);
    let mut given = given.filter(|(_, entry)| entry.get("skipped").is_none());
    let earlier = given.any(|(call, _)| by_value(call)) || by_value(seen.call);
    if earlier && seen.looks() && seen.place.contains("interrupts") && seen.asks() {
        return Verdict::Whole;
    }
    let looked = seen.entries.iter().rev().find_map(|entry| entry.get("state"));
    let open =
        looked.and_then(|state| state["interrupts"].as_array()).is_some_and(|q| !q.is_empty());
    let stopped = seen.runs() && earlier && (seen.asks() || open);
    let less = seen.ran_less() || seen.want["counts"] == seen.got["counts"];
    if stopped && less { Verdict::Whole } else { Verdict::Other }
}

/// F10: an answer given at an older checkpoint is the one that counts on the branch, which begins with a fork.
pub(super) fn counts_on_its_branch(seen: &Seen<'_>) -> Verdict {
    let branches = |call: &Json| Seen::answers(call) && call.get("at").is_some();
    let taken = seen.got.to_string().contains("again");
    if seen.runs() && branches(seen.call) && seen.got.get("error").is_none() {
        return if taken || !seen.ran_less() { Verdict::Whole } else { Verdict::Other };
    }
    let step = |entry: &Json| entry["state"]["metadata"]["step"].as_i64();
    let source = |entry: &Json| entry["state"]["metadata"]["source"] == "fork";
    let forked = step(seen.got) > step(seen.want) || source(seen.got) && !source(seen.want);
    let before = seen.last_run().is_some_and(|(call, _)| branches(call));
    if seen.looks() && before && (taken || forked) { Verdict::Whole } else { Verdict::Other }
}
