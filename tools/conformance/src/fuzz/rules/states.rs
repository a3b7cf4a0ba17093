//! What looks at threads show.

use serde_json::{Value as Json, json};

use super::{Seen, Verdict, blurred, each, is_more, mended, states};

/// F24: an overwrite of a key that takes the last value, or of one without a starting value, is the value in it.
pub(super) fn overwrite_unwrapped(seen: &Seen<'_>) -> Verdict {
    if !seen.has("$overwrite") {
        return Verdict::Other;
    }
    let mut entry = seen.want.clone();
    unwrap(&mut entry, seen.got);
    // In texts that nodes made of it.
    let text = unwrapped(&entry.to_string());
    let entry = serde_json::from_str(&text).unwrap_or(entry);
    mended(seen, entry)
}

/// Takes the value out of an overwrite where we have the value.
fn unwrap(want: &mut Json, got: &Json) {
    let wrapped = match want {
        Json::Object(map) if map.len() == 1 => map.get("$overwrite").cloned(),
        _ => None,
    };
    if let Some(value) = wrapped
        && value == *got
    {
        *want = value;
        return;
    }
    match (want, got) {
        (Json::Array(want), Json::Array(got)) => {
            want.iter_mut().zip(got).for_each(|(want, got)| unwrap(want, got));
        }
        (Json::Object(want), Json::Object(got)) => {
            for (key, part) in want {
                if let Some(mine) = got.get(key) {
                    unwrap(part, mine);
                }
            }
        }
        _ => {}
    }
}

/// The same text without overwrites of numbers in texts: `{"$overwrite":3}` written in a text.
fn unwrapped(text: &str) -> String {
    let open = "{\\\"$overwrite\\\":";
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(open) {
        result.push_str(before);
        match after.split_once('}') {
            Some((value, behind)) => {
                result.push_str(value);
                rest = behind;
            }
            None => return text.to_owned(),
        }
    }
    result.push_str(rest);
    result
}

/// F19: the value of an untracked key is never stored, so what a task has done is shown without it.
pub(super) fn untracked_not_stored(seen: &Seen<'_>) -> Verdict {
    if !seen.has("\"untracked\"") {
        return Verdict::Other;
    }
    let mut entry = seen.want.clone();
    without_untracked(&mut entry, seen.got);
    // What nodes make of a value of the input that was not stored is another thing.
    let given = seen.before.iter().any(|call| call["input"].get("u").is_some());
    // So is what a cache finds, whose key is all that a node gets.
    let missed = seen.ran_more() && seen.ran_more_of(&cached(seen.case));
    let same = seen.want["counts"] == seen.got["counts"] || missed;
    if given && seen.runs() && same && seen.call["input"].is_null() && entry != *seen.want {
        return Verdict::Whole;
    }
    mended(seen, entry)
}

/// The names of nodes and calls with a cache.
fn cached(case: &Json) -> Vec<String> {
    let graphs = case["graphs"].as_object().into_iter().flat_map(|graphs| graphs.values());
    let nodes = graphs.flat_map(|graph| graph["nodes"].as_array().into_iter().flatten());
    let nodes = nodes.filter(|node| node.get("cache").is_some());
    let mut names: Vec<_> =
        nodes.filter_map(|node| Some(node["name"].as_str()?.to_owned())).collect();
    let tasks = case["tasks"].as_object().into_iter().flatten();
    names.extend(
        tasks.filter(|(_, task)| task.get("cache").is_some()).map(|(name, _)| name.clone()),
    );
    names
}

fn without_untracked(want: &mut Json, got: &Json) {
    match (want, got) {
        (Json::Array(want), Json::Array(got)) => {
            want.iter_mut().zip(got).for_each(|(want, got)| without_untracked(want, got));
        }
        (Json::Object(want), Json::Object(got)) => {
            if !got.contains_key("u") {
                want.shift_remove("u");
            }
            // A task that wrote nothing else has finished all the same.
            let empty =
                got.get("result").and_then(Json::as_object).is_some_and(serde_json::Map::is_empty);
            if empty && want.get("result").is_some_and(Json::is_null) {
                want.insert("result".to_owned(), got["result"].clone());
            }
            for (key, part) in want {
                if let Some(mine) = got.get(key) {
                    without_untracked(part, mine);
                }
            }
        }
        _ => {}
    }
}

/// F7: every open question is listed, each once.
pub(super) fn question_listed_once(seen: &Seen<'_>) -> Verdict {
    if !seen.place.contains("interrupt") {
        return Verdict::Other;
    }
    let of_calls = seen.case["tasks"].to_string().contains("\"interrupt\"");
    let listed = asked(seen.got);
    let mut entry = seen.want.clone();
    each(&mut entry, &mut |part| {
        for key in ["interrupts", "__interrupt__"] {
            if let Some(Json::Array(asked)) = part.get_mut(key) {
                let mut known: Vec<Json> = Vec::new();
                asked.retain(|one| {
                    // The copy that a graph around a call shows has an id of its own.
                    let copy = |other: &Json| {
                        of_calls && other["value"] == one["value"] && !listed.contains(one)
                    };
                    let new = !known.iter().any(|other| other == one || copy(other));
                    known.push(one.clone());
                    new
                });
            }
        }
    });
    // Questions of calls that stand side by side: the reference shows one.
    let (ours, theirs) = (questions(seen.got), questions(&entry));
    let more = of_calls && is_more(&json!(ours), &json!(theirs));
    if more { Verdict::Whole } else { mended(seen, entry) }
}

/// The questions that are shown anywhere in an entry, as texts.
pub(super) fn questions(entry: &Json) -> Vec<String> {
    let asked = asked(entry);
    let mut found: Vec<_> =
        asked.iter().filter_map(|one| Some(one["value"].as_str()?.to_owned())).collect();
    found.sort();
    found
}

/// The questions that are shown anywhere in an entry.
fn asked(entry: &Json) -> Vec<Json> {
    let mut found = Vec::new();
    each(&mut entry.clone(), &mut |part| {
        if part.get("id").is_some() && part["value"].is_string() {
            found.push(part.clone());
        }
    });
    found
}

/// A run that stores at its end stores one checkpoint with whole values; the reference adds an empty one to hang deltas on.
pub(super) fn exit_stores_the_end(seen: &Seen<'_>) -> Verdict {
    let mut calls = seen.before.iter().chain([seen.call]);
    let exit = calls.any(|call| call["durability"] == "exit");
    if !exit || !seen.has("\"delta\"") {
        return Verdict::Other;
    }
    let mut entry = blurred(seen.want);
    let got = blurred(seen.got);
    if let Some(Json::Array(states)) = entry.get_mut("states") {
        states.retain(|state| state["metadata"].get("source").is_some());
    }
    let plain = |entry: &mut Json| {
        each(entry, &mut |part| {
            if part.get("parent").is_some() {
                part["parent"] = Json::Null;
            }
        });
    };
    let mut mine = got;
    plain(&mut entry);
    plain(&mut mine);
    if entry == mine { Verdict::Whole } else { Verdict::Other }
}

/// F1: a task whose router failed has not finished.
pub(super) fn failed_router(seen: &Seen<'_>) -> Verdict {
    if !seen.looks() {
        return Verdict::Other;
    }
    let failed = |entry: &Json, done: bool| {
        states(entry).iter().any(|state| {
            let mut tasks = state["tasks"].as_array().into_iter().flatten();
            tasks.any(|task| !task["error"].is_null() && task["result"].is_null() != done)
        })
    };
    let routed = seen.case["graphs"].to_string().contains("router of") || null_answers(seen.case);
    if routed && failed(seen.want, true) && failed(seen.got, false) {
        Verdict::Whole
    } else {
        Verdict::Other
    }
}

/// Whether a router may answer null.
pub(super) fn null_answers(case: &Json) -> bool {
    case["graphs"].as_object().into_iter().flat_map(|graphs| graphs.values()).any(|graph| {
        let branches = graph["branches"].as_array().into_iter().flatten();
        branches.into_iter().any(|branch| branch["body"].to_string().contains("null"))
    })
}

/// F16: an error handler that has finished is shown.
pub(super) fn finished_handler(seen: &Seen<'_>) -> Verdict {
    if !seen.has("\"on_error\"") || !seen.looks() {
        return Verdict::Other;
    }
    let handled = states(seen.got).iter().any(|state| {
        let mut tasks = state["tasks"].as_array().into_iter().flatten();
        tasks.any(|task| !task["error"].is_null() && !task["result"].is_null())
    });
    if handled { Verdict::Whole } else { Verdict::Other }
}

/// F14: a look at an open superstep shows everything that its finished tasks wrote.
pub(super) fn siblings_shown(seen: &Seen<'_>) -> Verdict {
    if !seen.looks() {
        return Verdict::Other;
    }
    let fleeting = ["e", "t", "v"];
    let mut entry = seen.want.clone();
    if let Some(state) = entry.get_mut("state") {
        mend_values(state, &seen.got["state"], &fleeting);
    }
    mended(seen, entry)
}

/// Gives a state the fleeting values that our tasks have written.
fn mend_values(want: &mut Json, got: &Json, keys: &[&str]) {
    let tasks = || got["tasks"].as_array().into_iter().flatten();
    for key in keys {
        let written = tasks().any(|task| task["result"].get(*key).is_some());
        if let (true, Some(value), Some(Json::Object(values))) =
            (written, got["values"].get(*key), want.get_mut("values"))
        {
            values.insert((*key).to_owned(), value.clone());
        }
    }
    let mut inner = tasks();
    let tasks = want.get_mut("tasks").and_then(Json::as_array_mut);
    for task in tasks.into_iter().flatten() {
        if let (Some(mine), Some(state)) = (inner.next(), task.get_mut("state"))
            && state.is_object()
        {
            mend_values(state, &mine["state"], keys);
        }
    }
}

/// F13, F14: an update takes the place of one task; what others have done, and have still to do, stays.
pub(super) fn update_keeps_siblings(seen: &Seen<'_>) -> Verdict {
    let updates =
        |call: &Json| matches!(call["op"].as_str(), Some("update_state" | "bulk_update_state"));
    let updated = seen.before.iter().any(updates);
    if !updated || !seen.looks() {
        return Verdict::Other;
    }
    let keeps = |want: &Json, got: &Json| {
        let more_next = is_more(&got["next"], &want["next"]);
        more_next || got["values"] != want["values"] && more_values(&got["values"], &want["values"])
    };
    let list = |entry: &Json| entry["states"].as_array().cloned().unwrap_or_default();
    let (theirs, ours) = (list(seen.want), list(seen.got));
    let kept = match seen.call["op"].as_str() {
        Some("get_history") => {
            let same = theirs.len() == ours.len();
            same && theirs.iter().zip(&ours).any(|(want, got)| keeps(want, got))
        }
        _ => {
            let from_update = |call: &Json| updates(call) || call["at"].get("call").is_some();
            let last = seen.last_change().is_some_and(from_update);
            last && keeps(&seen.want["state"], &seen.got["state"])
        }
    };
    if kept { Verdict::Whole } else { Verdict::Other }
}

/// Whether a value of ours has more in it than theirs.
pub(super) fn more_values(got: &Json, want: &Json) -> bool {
    let mut keys = got.as_object().into_iter().flatten();
    keys.any(|(key, value)| {
        let larger = value.as_i64().zip(want[key].as_i64()).is_some_and(|(got, want)| got > want);
        larger || is_more(value, &want[key]) || want.get(key).is_none()
    })
}

/// F15, F22: what a command leads to is shown at once.
pub(super) fn command_shown(seen: &Seen<'_>) -> Verdict {
    let commanded = |call: &Json| {
        call["command"].get("goto").is_some() || call["command"].get("update").is_some()
    };
    if !seen.before.iter().any(commanded) || !seen.looks() {
        return Verdict::Other;
    }
    let (want, got) = (&seen.want["state"], &seen.got["state"]);
    let names = |state: &Json| -> Json {
        let tasks = state["tasks"].as_array().into_iter().flatten();
        tasks.map(|task| task["name"].clone()).collect()
    };
    let more = is_more(&got["next"], &want["next"]) || is_more(&names(got), &names(want));
    if more { Verdict::Whole } else { Verdict::Other }
}

/// An update takes the place of its node's task, also if that is deferred or was led to by a join.
pub(super) fn update_replaces_task(seen: &Seen<'_>) -> Verdict {
    let updated = seen.last_change().is_some_and(|call| {
        matches!(call["op"].as_str(), Some("update_state" | "bulk_update_state"))
    });
    if !updated || !seen.has("\"defer\"") && !seen.has("[[\"") {
        return Verdict::Other;
    }
    let theirs = states(seen.want);
    let mut pairs = theirs.iter().zip(states(seen.got));
    let dropped = pairs.any(|(want, got)| {
        let ours = got["next"].as_array();
        let mut theirs = want["next"].as_array().into_iter().flatten();
        theirs.any(|node| ours.is_some_and(|ours| !ours.contains(node)))
    });
    if dropped || seen.runs() && seen.ran_less() { Verdict::Whole } else { Verdict::Other }
}

/// A task that was answered and then failed has updated nothing; the reference shows an empty update of it.
pub(super) fn failed_is_no_update(seen: &Seen<'_>) -> Verdict {
    let answered = Seen::answers(seen.call) || seen.before.iter().any(Seen::answers);
    if !seen.runs() || !answered {
        return Verdict::Other;
    }
    let mut entry = seen.want.clone();
    if let Some(Json::Array(events)) = entry.get_mut("events") {
        events.retain(|event| {
            let mut parts = event["data"].as_object().into_iter().flatten();
            let empty = event["mode"] == "updates" && parts.all(|(_, update)| update.is_null());
            let shown = seen.got["events"].as_array().is_some_and(|ours| ours.contains(event));
            !empty || shown
        });
    }
    mended(seen, entry)
}

/// An event about a checkpoint shows of its tasks what a look shows: the questions of one that has failed too.
pub(super) fn events_show_questions(seen: &Seen<'_>) -> Verdict {
    let mut entry = seen.want.clone();
    show_questions(&mut entry, seen.got);
    if seen.runs() { mended(seen, entry) } else { Verdict::Other }
}

fn show_questions(want: &mut Json, got: &Json) {
    if let (Some(error), Some(Json::Array(asked))) = (want.get("error"), want.get("interrupts"))
        && !error.is_null()
        && asked.is_empty()
        && want["id"] == got["id"]
    {
        want["interrupts"] = got["interrupts"].clone();
        return;
    }
    match (want, got) {
        (Json::Array(want), Json::Array(got)) => {
            want.iter_mut().zip(got).for_each(|(want, got)| show_questions(want, got));
        }
        (Json::Object(want), Json::Object(got)) => {
            for (key, part) in want {
                if let Some(mine) = got.get(key) {
                    show_questions(part, mine);
                }
            }
        }
        _ => {}
    }
}
