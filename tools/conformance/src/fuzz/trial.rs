//! One case: recorded, run everywhere, handed over, minimised.

use std::path::Path;

use serde_json::Value as Json;

use super::compare::{self, Difference};
use super::generate::Profile;
use super::minimise::minimised;
use super::options::Options;
use super::reference::{Recorded, Reference};
use super::rng::Rng;
use super::rules::{RULES, Seen, Verdict, blurred};
use crate::db::Db;
use crate::handoff::can_hand_off;
use crate::normalise::{comparable, first_difference};

/// How a case went.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    Agrees {
        handed: bool,
    },
    /// Set aside: what it does depends on timing.
    Unstable,
    /// It differs where these rules say so.
    Excused {
        rules: Vec<&'static str>,
        handed: bool,
    },
    Differs {
        place: String,
        how: String,
        smaller: Option<Json>,
    },
}

/// What a thread needs to try cases.
pub(super) struct Worker {
    reference: Reference,
    dbs: Vec<(String, Db)>,
    options: Options,
}

/// What a comparison comes to.
enum Judged {
    /// It agrees, but for what these rules say.
    Agrees(Vec<&'static str>),
    Differs(String),
    Unstable,
}

impl Worker {
    pub(super) fn start(python: &str, options: &Options) -> Result<Self, String> {
        let reference = Reference::start(python, Path::new("target/fuzz/recorded"))?;
        Ok(Self { reference, dbs: options.open()?, options: options.clone() })
    }

    pub(super) fn trial(&mut self, case: &Json, index: usize) -> Result<Outcome, String> {
        let outcome = self.examine(case, index, true)?;
        let Outcome::Differs { place, how, .. } = outcome else { return Ok(outcome) };
        let mut smaller = None;
        if self.options.minimise {
            let kind = kind_of(&how);
            let found = minimised(case, &mut |smaller| match self.examine(smaller, index, false) {
                Ok(Outcome::Differs { how, .. }) => kind_of(&how) == kind,
                _ => false,
            });
            smaller = Some(found);
        }
        Ok(Outcome::Differs { place, how, smaller })
    }

    /// Two orders may not show all that can happen: when it differs, more of them say whether it does.
    fn examine(&mut self, case: &Json, index: usize, sure: bool) -> Result<Outcome, String> {
        let Recorded::Trace(trace) = self.reference.record(case, false)? else {
            return Ok(Outcome::Unstable);
        };
        let quick = self.compare(case, &trace, index)?;
        if !sure || !matches!(quick, Outcome::Differs { .. }) {
            return Ok(quick);
        }
        match self.reference.record(case, true)? {
            Recorded::Trace(trace) => self.compare(case, &trace, index),
            Recorded::Unstable => Ok(Outcome::Unstable),
        }
    }

    fn compare(&mut self, case: &Json, trace: &Json, index: usize) -> Result<Outcome, String> {
        let differs = |place: &str, how: String| {
            Ok(Outcome::Differs { place: place.to_owned(), how, smaller: None })
        };
        let Some(((name, db), others)) = self.dbs.split_first() else {
            return Err("there is no database".to_owned());
        };
        let (name, others) = (name.clone(), others.to_vec());
        let entries = match compare::run(db, case) {
            Ok(entries) => entries,
            Err(problem) => return differs(&name, problem),
        };
        let rules = match self.judge(case, trace, &entries, true)? {
            Judged::Agrees(rules) => rules,
            Judged::Differs(how) => return differs(&name, how),
            Judged::Unstable => return Ok(Outcome::Unstable),
        };
        // Wherever we store, we do the same.
        let ours = Json::Array(compare::as_trace(entries, &Json::Null));
        for (name, db) in &others {
            match compare::run(db, case) {
                Ok(entries) => {
                    let entries = compare::as_trace(entries, &ours);
                    let ours = ours.as_array().map(Vec::as_slice).unwrap_or_default();
                    if let Some(found) = compare::first(ours, &entries, 0) {
                        return differs(name, found.how);
                    }
                }
                Err(problem) => return differs(name, problem),
            }
        }
        if !rules.is_empty() {
            return Ok(Outcome::Excused { rules, handed: goes_on(case) });
        }
        if !self.options.handoff || !goes_on(case) {
            return Ok(Outcome::Agrees { handed: false });
        }
        let (place, entries) = self.hand_over(case, index)?;
        let entries = match entries {
            Ok(entries) => entries,
            Err(problem) => return differs(&place, problem),
        };
        Ok(match self.judge(case, trace, &entries, false)? {
            Judged::Agrees(rules) if rules.is_empty() => Outcome::Agrees { handed: true },
            Judged::Agrees(rules) => Outcome::Excused { rules, handed: true },
            Judged::Differs(how) => return differs(&place, how),
            Judged::Unstable => Outcome::Unstable,
        })
    }

    /// Compares our entries with a trace. Where they differ as a rule says, what comes behind is
    /// compared with what the reference does when it continues from our state, if it can.
    fn judge(
        &mut self,
        case: &Json,
        trace: &Json,
        entries: &[Json],
        continued: bool,
    ) -> Result<Judged, String> {
        let calls = case["script"].as_array().cloned().unwrap_or_default();
        let mut want = comparable(trace).as_array().cloned().unwrap_or_default();
        let mut got = compare::as_trace(entries.to_vec(), trace);
        // In which order calls and dispatches that stand side by side begin and end, and graphs in tasks that do, is not fixed.
        let loose = |trace: &[Json]| -> Vec<Json> {
            compare::in_order(compare::flat(trace).iter().map(blurred).collect())
        };
        let text = case["graphs"].to_string() + &case["tasks"].to_string();
        let beside = ["\"spawn\"", "\"call_each\"", "\"invoke\"", "\"graph\"", "\"$send\""];
        let only_order =
            compare::first(&want, &got, 0).is_some_and(|found| found.how.contains(".events["));
        if only_order && beside.iter().any(|word| text.contains(word)) {
            (want, got) = (loose(&want), loose(&got));
        }
        let mut rules = Vec::new();
        let mut from = 0;
        loop {
            let Some(Difference { call, how }) = compare::first(&want, &got, from) else {
                return Ok(Judged::Agrees(rules));
            };
            if is_cut_short(&want[call], &got[call]) {
                return Ok(Judged::Unstable);
            }
            let excused = match self.options.profile {
                Profile::Plain => Err(how),
                Profile::Wild => explained(case, &calls, &want, &got, call)
                    .map_err(|left| format!("trace[{call}]{left}")),
            };
            let found = match excused {
                Ok(found) => found,
                Err(_) if from > 0 && self.is_unstable(case, from, calls.len())? => {
                    return Ok(Judged::Unstable);
                }
                Err(how) => return Ok(Judged::Differs(how)),
            };
            for rule in found {
                if !rules.contains(&rule) {
                    rules.push(rule);
                }
            }
            from = call + 1;
            if from >= calls.len() || !goes_on(case) || !continued {
                return Ok(Judged::Agrees(rules));
            }
            let behind = self.behind(case, from, calls.len(), "natural")?;
            want = compare::as_trace(compare::in_order(behind), &Json::Null);
            got = compare::as_trace(compare::in_order(entries.to_vec()), &Json::Null);
        }
    }

    /// What the reference does from this call on, after we have made those before it.
    fn behind(
        &mut self,
        case: &Json,
        from: usize,
        calls: usize,
        order: &str,
    ) -> Result<Vec<Json>, String> {
        let scratch = Db::Sqlite.scratch()?;
        let url = scratch.url();
        let carry = compare::run_part(case, &url, [0, from], &Json::Null)?;
        let carry = self.reference.run(case, &url, [from, calls], &carry, order)?;
        Ok(compare::entries(&carry))
    }

    /// Whether what the reference does behind a call depends on timing.
    fn is_unstable(&mut self, case: &Json, from: usize, calls: usize) -> Result<bool, String> {
        let mut traces = Vec::new();
        for order in ["natural", "reversed", "spaced"] {
            let behind = compare::in_order(self.behind(case, from, calls, order)?);
            traces.push(compare::as_trace(behind, &Json::Null));
        }
        Ok(traces.iter().any(|trace| compare::first(&traces[0], trace, 0).is_some()))
    }

    /// Hands a case over at a random call, in a random direction.
    fn hand_over(
        &mut self,
        case: &Json,
        index: usize,
    ) -> Result<(String, Result<Vec<Json>, String>), String> {
        let mut rng = Rng::of_case(self.options.seed ^ 0x5eed, index);
        let calls = case["script"].as_array().map_or(0, Vec::len);
        let split = rng.within(1..calls);
        let ours_first = rng.percent(50);
        let kept: Vec<&(String, Db)> =
            self.dbs.iter().filter(|(name, _)| name != "memory").collect();
        let sqlite = ("sqlite".to_owned(), Db::Sqlite);
        let (name, db) = if kept.is_empty() { &sqlite } else { *rng.pick(&kept) };
        let scratch = db.scratch()?;
        let url = scratch.url();
        let (first, second) = ([0, split], [split, calls]);
        let none = Json::Null;
        let carry = match ours_first {
            true => compare::run_part(case, &url, first, &none)
                .and_then(|carry| self.reference.run(case, &url, second, &carry, "natural")),
            false => self
                .reference
                .run(case, &url, first, &none, "natural")
                .and_then(|carry| compare::run_part(case, &url, second, &carry)),
        };
        let first = if ours_first { "superstep" } else { "langgraph" };
        let place = format!("{name}, {first} makes the first {split} of {calls} calls");
        Ok((place, carry.map(|carry| compare::entries(&carry))))
    }
}

/// Whether LangGraph can continue with a case: all that it relies on is stored, and it does not
/// look at what each engine notes for itself.
fn goes_on(case: &Json) -> bool {
    let mut calls = case["script"].as_array().into_iter().flatten();
    can_hand_off(case) && !calls.any(|call| call["op"] == "tuples")
}

/// The rules that say why two entries differ, if they say so together. Otherwise what is left to explain.
fn explained(
    case: &Json,
    calls: &[Json],
    want: &[Json],
    got: &[Json],
    call: usize,
) -> Result<Vec<&'static str>, String> {
    let nothing = Json::Null;
    let mut entry = want.get(call).unwrap_or(&nothing).clone();
    let got_entry = got.get(call).unwrap_or(&nothing);
    let ordered = compare::in_order(vec![got_entry.clone()])[0] == *got_entry;
    let mut found = Vec::new();
    loop {
        let Some(how) = first_difference(&entry, got_entry, "") else { return Ok(found) };
        let seen = Seen {
            case,
            call: &calls[call],
            before: &calls[..call],
            entries: &got[..call.min(got.len())],
            want: &entry,
            got: got_entry,
            place: how.split(": ").next().unwrap_or_default(),
        };
        let verdicts = RULES.iter().filter(|rule| !found.contains(&rule.id));
        let mut verdicts = verdicts.map(|rule| (rule.id, (rule.judge)(&seen)));
        match verdicts.find(|(_, verdict)| !matches!(verdict, Verdict::Other)) {
            Some((id, Verdict::Mended(better))) => {
                found.push(id);
                entry = better;
                // What is mended may have another place among events that have no order of their own.
                if ordered {
                    entry = compare::in_order(vec![entry]).remove(0);
                }
            }
            Some((id, _)) => {
                found.push(id);
                return Ok(found);
            }
            None if found.is_empty() => return Err(how),
            None => return Err(format!("{how} (and {})", found.join(", "))),
        }
    }
}

/// Whether both runs failed alike, and less had begun in ours: how much of a superstep has begun when one of its tasks fails
/// is a matter of timing.
fn is_cut_short(want: &Json, got: &Json) -> bool {
    let failed = got["error"]["kind"].is_string() && want["error"]["kind"] == got["error"]["kind"];
    let counts = want["counts"].as_object().into_iter().flatten();
    let mut less = false;
    let none_more = counts.into_iter().all(|(name, count)| {
        let ours = got["counts"][name].as_i64().unwrap_or(0);
        less |= Some(ours) < count.as_i64();
        Some(ours) <= count.as_i64()
    });
    failed && none_more && less
}

/// What kind of difference it is: the place without its numbers. A smaller case must have one of the same kind, or another
/// mistake takes the place of the one that was found.
fn kind_of(how: &str) -> String {
    let place = how.split(": ").next().unwrap_or(how);
    place.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}
