//! Rules: where we differ from the reference on purpose, and what we do instead.
//!
//! A rule names a construct of the case and checks on our trace that we do there what it says. It
//! accepts one difference: either a part of an entry, which is then compared again with that part
//! as it should be, or a whole entry. What comes behind is compared with what the reference does
//! when it continues from our state, so another difference is seen. `docs/divergences.md` lists
//! them.

mod answers;
mod runs;
mod states;

use serde_json::{Map, Value as Json};

/// A difference, and what is known about it.
pub(super) struct Seen<'a> {
    pub(super) case: &'a Json,
    /// The call whose entries differ.
    pub(super) call: &'a Json,
    /// The calls before it.
    pub(super) before: &'a [Json],
    /// Our entries of the calls before it.
    pub(super) entries: &'a [Json],
    /// The entries of the reference and of ours.
    pub(super) want: &'a Json,
    pub(super) got: &'a Json,
    /// Where they differ first, such as `state.next`.
    pub(super) place: &'a str,
}

/// What a rule says about a difference.
pub(super) enum Verdict {
    /// It is not what the rule is about.
    Other,
    /// What the entry would be without what the rule is about.
    Mended(Json),
    /// The run went another way, and the rule has checked that it is the right one.
    Whole,
}

pub(super) struct Rule {
    /// As in `docs/divergences.md`.
    pub(super) id: &'static str,
    pub(super) judge: fn(&Seen<'_>) -> Verdict,
}

const fn rule(id: &'static str, judge: fn(&Seen<'_>) -> Verdict) -> Rule {
    Rule { id, judge }
}

/// All rules; the narrow ones first.
pub(super) const RULES: &[Rule] = &[
    rule("overwrite-unwrapped", states::overwrite_unwrapped),
    rule("untracked-not-stored", states::untracked_not_stored),
    rule("question-listed-once", states::question_listed_once),
    rule("events-show-questions", states::events_show_questions),
    rule("failed-is-no-update", states::failed_is_no_update),
    rule("exit-stores-the-end", states::exit_stores_the_end),
    rule("sync-without-checkpointer", runs::sync_without_checkpointer),
    rule("command-keeps-tasks", runs::command_keeps_tasks),
    rule("answer-refused", answers::refused),
    rule("answer-accepted", answers::accepted),
    rule("answer-on-its-branch", answers::counts_on_its_branch),
    rule("answer-for-its-question", answers::for_its_question),
    rule("failed-router", states::failed_router),
    rule("finished-handler", states::finished_handler),
    rule("siblings-shown", states::siblings_shown),
    rule("update-keeps-siblings", states::update_keeps_siblings),
    rule("update-replaces-task", states::update_replaces_task),
    rule("update-keeps-tasks", runs::update_keeps_tasks),
    rule("command-shown", states::command_shown),
    rule("write-conflict", runs::write_conflict),
    rule("head-is-no-travel", runs::head_is_no_travel),
    rule("ids-without-memory", runs::ids_without_memory),
    rule("question-beside-drain", runs::question_beside_drain),
    rule("drain-stops-workflow", runs::drain_stops_workflow),
    rule("memory-takes-input", runs::memory_takes_input),
    rule("attempt-finds-calls", runs::attempt_finds_calls),
    rule("attempt-finds-subgraph", runs::attempt_finds_subgraph),
    rule("caught-failure-recorded", runs::caught_failure_recorded),
    rule("finished-handler-stays", runs::finished_handler_stays),
    rule("exit-keeps-progress", runs::exit_keeps_progress),
    rule("equal-cache-keys", runs::equal_cache_keys),
    rule("failed-router-runs-again", runs::failed_router_runs_again),
];

impl Seen<'_> {
    pub(super) fn runs(&self) -> bool {
        matches!(self.call["op"].as_str(), Some("invoke" | "stream"))
    }

    /// Whether the call only looks.
    pub(super) fn looks(&self) -> bool {
        matches!(self.call["op"].as_str(), Some("get_state" | "get_history"))
    }

    /// Whether a call gives an answer.
    pub(super) fn answers(call: &Json) -> bool {
        let command = &call["command"];
        command.get("resume").is_some() || command.get("resume_map").is_some()
    }

    /// Whether the text of the graphs and tasks has this in it.
    pub(super) fn has(&self, text: &str) -> bool {
        self.case["graphs"].to_string().contains(text)
            || self.case["tasks"].to_string().contains(text)
    }

    /// The last call before that ran or changed something.
    pub(super) fn last_change(&self) -> Option<&Json> {
        let done = self.before.iter().zip(self.entries).rev();
        let mut done = done.filter(|(call, entry)| {
            let reads = matches!(
                call["op"].as_str(),
                Some("get_state" | "get_history" | "restart" | "tuples" | "store_search")
            );
            !reads && entry.get("skipped").is_none()
        });
        done.next().map(|(call, _)| call)
    }

    /// The last run before this call, and our entry of it.
    pub(super) fn last_run(&self) -> Option<(&Json, &Json)> {
        let done = self.before.iter().zip(self.entries).rev();
        let mut runs = done.filter(|(call, entry)| {
            matches!(call["op"].as_str(), Some("invoke" | "stream"))
                && entry.get("skipped").is_none()
        });
        runs.next()
    }

    /// Whether nothing ran in our run that had not run before.
    pub(super) fn ran_nothing(&self) -> bool {
        let before = self.last_run().map(|(_, entry)| entry["counts"].clone());
        self.got["counts"] == before.unwrap_or_else(|| Json::Object(Map::new()))
    }

    /// How often something was counted: by the reference, and by us.
    fn counts(&self) -> Vec<(String, i64, i64)> {
        let names = |entry: &Json| -> Vec<String> {
            entry["counts"].as_object().into_iter().flat_map(|map| map.keys().cloned()).collect()
        };
        let mut all = names(self.want);
        all.extend(names(self.got));
        all.sort();
        all.dedup();
        let count = |entry: &Json, name: &str| entry["counts"][name].as_i64().unwrap_or(0);
        all.into_iter()
            .map(|name| {
                let (want, got) = (count(self.want, &name), count(self.got, &name));
                (name, want, got)
            })
            .collect()
    }

    /// Whether we ran less than the reference, and nothing more often.
    pub(super) fn ran_less(&self) -> bool {
        let counts = self.counts();
        counts.iter().all(|(_, want, got)| got <= want)
            && counts.iter().any(|(_, want, got)| got < want)
    }

    /// Whether we ran more than the reference, and nothing less often.
    pub(super) fn ran_more(&self) -> bool {
        let counts = self.counts();
        counts.iter().all(|(_, want, got)| got >= want)
            && counts.iter().any(|(_, want, got)| got > want)
    }

    /// Whether we ran one of these more often than the reference.
    pub(super) fn ran_more_of(&self, names: &[String]) -> bool {
        self.counts().iter().any(|(name, want, got)| got > want && names.contains(name))
    }

    /// Whether our run asks what our last look showed as open, with the same ids.
    pub(super) fn asks_what_is_open(&self) -> bool {
        let looked = self.entries.iter().rev().find_map(|entry| entry.get("state"));
        let open = looked.and_then(|state| state["interrupts"].as_array());
        let asked = self.got["result"]["__interrupt__"].as_array();
        open.zip(asked).is_some_and(|(open, asked)| asked.iter().all(|one| open.contains(one)))
    }

    /// Whether our run ended with an open question.
    pub(super) fn asks(&self) -> bool {
        self.got.to_string().contains("\"q.")
    }
}

/// The same entry with all ids alike.
pub(super) fn blurred(entry: &Json) -> Json {
    match entry {
        Json::String(text) => Json::String(blur(text)),
        Json::Array(items) => Json::Array(items.iter().map(blurred).collect()),
        Json::Object(map) => {
            Json::Object(map.iter().map(|(key, part)| (blur(key), blurred(part))).collect())
        }
        other => other.clone(),
    }
}

/// The same text with all ids alike.
pub(super) fn blur(text: &str) -> String {
    let mut result = String::new();
    let mut after_sign = false;
    for letter in text.chars() {
        if after_sign && letter.is_ascii_digit() {
            continue;
        }
        after_sign = letter == '#' || letter == '!';
        result.push(letter);
    }
    result
}

/// Changes every part of a value.
pub(super) fn each(value: &mut Json, change: &mut dyn FnMut(&mut Json)) {
    change(value);
    match value {
        Json::Array(items) => items.iter_mut().for_each(|item| each(item, change)),
        Json::Object(map) => map.values_mut().for_each(|part| each(part, change)),
        _ => {}
    }
}

/// The mended entry, if something was mended.
pub(super) fn mended(seen: &Seen<'_>, entry: Json) -> Verdict {
    if entry == *seen.want { Verdict::Other } else { Verdict::Mended(entry) }
}

/// All states of an entry: the one, those of a history, and those of subgraphs inside.
pub(super) fn states(entry: &Json) -> Vec<&Json> {
    let mut found = Vec::new();
    fn collect<'a>(state: &'a Json, found: &mut Vec<&'a Json>) {
        if state.get("tasks").is_some() {
            found.push(state);
        }
        for task in state["tasks"].as_array().into_iter().flatten() {
            collect(&task["state"], found);
        }
    }
    collect(&entry["state"], &mut found);
    for state in entry["states"].as_array().into_iter().flatten() {
        collect(state, &mut found);
    }
    found
}

/// Whether the one list has everything of the other, and more.
pub(super) fn is_more(more: &Json, less: &Json) -> bool {
    let (Some(more), Some(less)) = (more.as_array(), less.as_array()) else { return false };
    let mut left = more.clone();
    for item in less {
        match left.iter().position(|other| other == item) {
            Some(at) => drop(left.remove(at)),
            None => return false,
        }
    }
    !left.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A rule that nobody can read about is no reason.
    #[test]
    fn every_rule_is_in_the_list_of_divergences() {
        let file =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/divergences.md");
        let text = std::fs::read_to_string(file).expect("the list of divergences");
        let listed: Vec<&str> = text
            .lines()
            .skip_while(|line| !line.starts_with("## Rules"))
            .take_while(|line| !line.starts_with("## Kept"))
            .filter_map(|line| line.strip_prefix("| ")?.split(" |").next())
            .filter(|cell| !matches!(*cell, "rule" | "---"))
            .collect();
        let mut known: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
        let mut sorted = listed.clone();
        sorted.sort_unstable();
        known.sort_unstable();
        assert_eq!(sorted, known);
    }

    fn judged(rule: &str, call: &Json, want: &Json, got: &Json) -> bool {
        let case = json!({"graphs": {}, "tasks": {}});
        let seen = Seen { case: &case, call, before: &[], entries: &[], want, got, place: "error" };
        let rule = RULES.iter().find(|known| known.id == rule).expect("a rule");
        !matches!((rule.judge)(&seen), Verdict::Other)
    }

    /// A rule looks at what we do, not only at what the case has.
    #[test]
    fn a_refused_answer_is_one_that_ran_nothing() {
        let call = json!({"op": "invoke", "command": {"resume": 1}});
        let want = json!({"counts": {"a": 1}, "result": {}});
        let refused = json!({"counts": {}, "error": {"kind": "RuntimeError"}});
        assert!(judged("answer-refused", &call, &want, &refused));
        let ran = json!({"counts": {"a": 1}, "error": {"kind": "RuntimeError"}});
        assert!(!judged("answer-refused", &call, &want, &ran));
        let input = json!({"op": "invoke", "input": {}});
        assert!(!judged("answer-refused", &input, &want, &refused));
    }

    #[test]
    fn ids_are_blurred_and_nothing_else() {
        assert_eq!(blurred(&json!({"a:#12|b": ["!3", 4, "x7"]})), json!({"a:#|b": ["!", 4, "x7"]}));
    }

    #[test]
    fn more_is_everything_and_something_else() {
        assert!(is_more(&json!(["a", "b"]), &json!(["b"])));
        assert!(!is_more(&json!(["a", "b"]), &json!(["c"])));
        assert!(!is_more(&json!(["a"]), &json!(["a"])));
    }
}
