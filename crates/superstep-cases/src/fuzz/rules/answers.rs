//! Answers to questions.

use serde_json::Value as Json;

use super::{Seen, Verdict, each, mended};

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
    let answered = seen.before.iter().any(Seen::answers);
    if !answered || !seen.looks() {
        return Verdict::Other;
    }
    let shown = seen.got.to_string();
    let mut entry = seen.want.clone();
    each(&mut entry, &mut |part| {
        if let Some(Json::Array(asked)) = part.get_mut("interrupts") {
            asked.retain(|one| {
                let id = one["id"].as_str().unwrap_or_default();
                shown.contains(&format!("\"{id}\""))
            });
        }
    });
    mended(seen, entry)
}

/// F3, F4: an answer is taken by the question it was given for; later ones are asked.
pub(super) fn for_its_question(seen: &Seen<'_>) -> Verdict {
    let by_value =
        |call: &Json| call["command"].get("resume").is_some_and(|answer| !answer.is_null());
    let earlier = seen.before.iter().any(by_value) || by_value(seen.call);
    let continued = seen.last_run().is_some_and(|(call, _)| !Seen::answers(call));
    if earlier && continued && seen.looks() && seen.place.contains("interrupts") && seen.asks() {
        return Verdict::Whole;
    }
    let looked = seen.entries.iter().rev().find_map(|entry| entry.get("state"));
    let open =
        looked.and_then(|state| state["interrupts"].as_array()).is_some_and(|q| !q.is_empty());
    let stopped = seen.runs() && earlier && (seen.asks() || open);
    let less = seen.ran_less() || seen.want["counts"] == seen.got["counts"];
    if stopped && less { Verdict::Whole } else { Verdict::Other }
}
