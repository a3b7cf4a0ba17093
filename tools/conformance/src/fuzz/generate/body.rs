//! Bodies: what nodes, recorded calls and workflows do.

use serde_json::{Value as Json, json};

use super::Generator;
use super::graph::Draft;
use super::keys::{Kind, can_overwrite};

/// Where a body stands.
pub(super) struct Site<'a> {
    pub(super) draft: &'a Draft,
    pub(super) at: usize,
}

impl Generator {
    /// What a node does, and its policies.
    pub(super) fn body(&mut self, site: &Site<'_>, inner: Option<&str>, node: &mut Json) {
        let name = site.draft.nodes[site.at].clone();
        let dispatched = site.draft.dispatched[site.at];
        let mut ops = vec![json!({"count": name})];
        let mut shown = Vec::new();
        if self.rng.percent(15) {
            ops.push(json!({"emit": {"$fmt": [format!("{name} {{}}"), {"$": "state.n"}]}}));
        }
        let calls = self.has.calls && self.rng.percent(45);
        let asks = self.has.interrupts && self.rng.percent(40);
        self.failures(&name, calls || inner.is_some(), &mut ops, node);
        if asks {
            self.ask(&name, dispatched, &mut ops, &mut shown);
        }
        if calls {
            self.call(&mut ops, &mut shown);
        }
        if let Some(graph) = inner {
            self.invoke(graph, &mut ops, &mut shown);
        }
        self.rest(&name, dispatched, &mut ops, node, &mut shown);
        ops.push(json!({"return": self.answer(site, &shown)}));
        node["body"] = Json::Array(ops);
    }

    fn failures(&mut self, name: &str, nested: bool, ops: &mut Vec<Json>, node: &mut Json) {
        let wild = self.has.wild;
        if self.has.retries && self.rng.percent(30) && (wild || !nested) {
            let first = self.rng.within(1..3);
            ops.push(json!({"fail": "Flaky", "first": first, "id": format!("flaky {name}")}));
            node["retry"] = json!({"max_attempts": 3, "on": ["Flaky"]});
        } else if self.has.failures && self.rng.percent(30) {
            let kind = *self.rng.pick(&["Fatal", "ValueError", "ConnectionError"]);
            ops.push(json!({"fail": kind, "first": 1, "id": format!("fatal {name}")}));
        }
        if self.has.handlers && self.rng.percent(35) {
            ops.push(json!({"fail": "Fatal", "first": self.rng.within(1..4), "id": format!("handled {name}")}));
            let text = json!({"$fmt": [format!("h {name} {{}}"), {"$": "error.kind"}]});
            let log = if name.contains('s') { "slog" } else { "log" };
            node["on_error"] =
                json!([{"count": format!("h {name}")}, {"return": {log: [text], "n": 1}}]);
        }
        if self.has.timeouts && self.rng.percent(30) && node.get("retry").is_none() {
            let slow = json!({"$eq": [{"$": "runtime.attempt"}, 1]});
            ops.push(json!({"if": slow, "then": [{"sleep": 300}]}));
            node["timeout"] = json!({"run": 0.03});
            node["retry"] = json!({"max_attempts": 2});
        }
    }

    fn ask(&mut self, name: &str, dispatched: bool, ops: &mut Vec<Json>, shown: &mut Vec<Json>) {
        let count = if self.rng.percent(25) { 2 } else { 1 };
        for nth in 0..count {
            let variable = format!("q{nth}");
            if dispatched {
                let question = json!({"$fmt": [format!("q.{name}.{nth}.{{}}"), {"$": "state.i"}]});
                ops.push(json!({"interrupt": question, "as": variable}));
                self.questions.extend((0..2).map(|at| format!("q.{name}.{nth}.{at}")));
            } else {
                let question = format!("q.{name}.{nth}");
                ops.push(json!({"interrupt": question, "as": variable}));
                self.questions.push(question);
            }
            shown.push(json!({"$": variable}));
        }
    }

    /// Calls of recorded tasks.
    fn call(&mut self, ops: &mut Vec<Json>, shown: &mut Vec<Json>) {
        let names: Vec<String> = self.tasks.keys().cloned().collect();
        // The last one may ask; side by side that is a construct in which we differ (F7).
        let quiet = &names[..names.len() - 1];
        let arg = self.rng.below(3);
        // Which of the calls that stand side by side have begun when one fails is a matter of timing.
        let may_fail = self.has.failures || self.has.catches;
        match if may_fail { 0 } else { self.rng.below(4) } {
            0 | 1 => {
                let task = if self.rng.percent(30) {
                    &names[names.len() - 1]
                } else {
                    self.rng.pick(quiet)
                };
                let call = json!({"call": task, "args": [arg, {"$": "state.n"}], "as": "c"});
                if self.has.catches && self.rng.percent(60) {
                    ops.push(
                        json!({"try": [call], "catch": [{"let": {"c": "caught"}}], "as": "err"}),
                    );
                } else {
                    ops.push(call);
                }
                shown.push(json!({"$": "c"}));
            }
            2 => {
                let pool = if self.has.wild { &names[..] } else { quiet };
                let (one, two) = (self.rng.pick(pool).clone(), self.rng.pick(pool).clone());
                ops.push(json!({"spawn": one, "args": [arg], "as": "f1"}));
                ops.push(json!({"spawn": two, "args": [arg + 1], "as": "f2"}));
                ops.push(json!({"wait": "f2", "as": "c2"}));
                ops.push(json!({"wait": "f1", "as": "c1"}));
                shown.extend([json!({"$": "c1"}), json!({"$": "c2"})]);
            }
            _ => {
                let pool = if self.has.wild { &names[..] } else { quiet };
                let task = self.rng.pick(pool).clone();
                let items = self.rng.within(1..4);
                ops.push(json!({"call_each": task, "in": {"$range": items}, "var": "k", "args": [{"$": "k"}], "as": "cs"}));
                shown.push(json!({"$": "cs"}));
            }
        }
    }

    fn invoke(&mut self, graph: &str, ops: &mut Vec<Json>, shown: &mut Vec<Json>) {
        let functional = self.graphs[graph]["kind"] == "func";
        let input =
            if functional { json!(self.rng.below(4)) } else { json!({"n": self.rng.below(3)}) };
        ops.push(json!({"invoke": graph, "input": input, "as": "r"}));
        shown.push(if functional { json!({"$": "r"}) } else { json!({"$": "r.slog"}) });
        let own = self.graphs[graph]["checkpointer"] == "own";
        // Under `exit`, the reference asks the question of the first call again when the second one asks.
        let asks_again = self.has.exit && self.has.interrupts && !self.has.wild;
        if !own && !asks_again && self.rng.percent(15) {
            ops.push(json!({"invoke": graph, "input": input, "as": "r2"}));
            shown.push(json!({"$": "r2"}));
        }
    }

    fn rest(
        &mut self,
        name: &str,
        dispatched: bool,
        ops: &mut Vec<Json>,
        node: &mut Json,
        shown: &mut Vec<Json>,
    ) {
        if self.has.store && self.rng.percent(40) {
            ops.push(json!({"store_put": [["ns", name], "k", {"n": {"$": "state.n"}}]}));
            ops.push(json!({"store_search": ["ns"], "as": "found"}));
            if !self.has.parallel {
                shown.push(json!({"$": "found"}));
            }
        }
        if self.has.drains && self.rng.percent(12) {
            ops.push(json!({"drain": "enough"}));
        }
        let equal_keys = dispatched && !self.has.wild;
        if self.has.caches && self.rng.percent(50) && !equal_keys {
            // Without a key of its own, that of the reference depends on which objects of the state are the same.
            node["cache"] = match self.rng.percent(50) && self.has.wild {
                true => json!({}),
                false => json!({"key": {"$": "state.n"}}),
            };
        }
    }

    /// What a node returns.
    fn answer(&mut self, site: &Site<'_>, shown: &[Json]) -> Json {
        let draft = site.draft;
        let name = &draft.nodes[site.at];
        let dispatched = draft.dispatched[site.at];
        let mut parts = vec![json!(name)];
        if self.rng.percent(60) {
            parts.push(json!({"$": "state.n"}));
        }
        if dispatched {
            parts.push(json!({"$": "state.i"}));
        } else if self.rng.percent(30) {
            let key = self.rng.pick(&draft.keys).name;
            if key != "slog" && key != "log" {
                parts.push(json!({"$": format!("state.{key}")}));
            }
        }
        parts.extend(shown.iter().cloned());
        let pattern = vec!["{}"; parts.len()].join(" ");
        parts.insert(0, json!(pattern));
        let mark = json!({"$fmt": parts});
        let mut update = json!({});
        for key in draft.keys.clone() {
            let mine = key.writer.is_none_or(|writer| writer == site.at && !dispatched);
            let often = match key.kind {
                Kind::Managed => 0,
                Kind::Number if draft.depth > 0 || self.has.loops => 100,
                Kind::Number => 85,
                Kind::Log if draft.depth > 0 && key.name == "slog" => 100,
                Kind::Log if key.name == "slog" && draft.depth == 0 => 0,
                Kind::Log if key.name != "w" => 90,
                _ => 35,
            };
            if !mine || !self.rng.percent(often) {
                continue;
            }
            let mut value = self.value_for(&key, &mark);
            let single = !self.has.parallel && !dispatched;
            let allowed = can_overwrite(&key) && single || self.has.wild;
            let takes = !matches!(key.kind, Kind::Number | Kind::Topic);
            if allowed && takes && self.rng.percent(4) {
                value = json!({"$overwrite": value});
            }
            update[key.name] = value;
        }
        // A task that writes nothing but untracked values looks as if it had not finished (F19).
        let only_untracked =
            update.as_object().is_some_and(|map| map.len() == 1) && update.get("u").is_some();
        if only_untracked && !self.has.wild {
            update["n"] = json!(1);
        }
        // A graph with a memory that is called again in a run that continues takes its input.
        let to_parent = self.has.commands && (self.has.wild || !self.has.own);
        let gotos = self.gotos(draft, site.at);
        if draft.depth > 0 && to_parent && self.rng.percent(10) && !draft.around.is_empty() {
            return self.for_parent(draft, &mark);
        }
        if gotos.is_empty() {
            let plain = self.rng.percent(93) || !self.has.commands;
            return match plain {
                true if self.rng.percent(4) && draft.depth == 0 && !self.has.loops => Json::Null,
                true => update,
                false => json!({"$command": {"update": update}}),
            };
        }
        let goto = match &gotos[..] {
            [one] if self.rng.percent(50) => json!(one),
            all => json!(all),
        };
        if self.rng.percent(15) {
            return json!([{"$command": {"update": update}}, {"$command": {"goto": goto}}]);
        }
        json!({"$command": {"update": update, "goto": goto}})
    }

    fn for_parent(&mut self, draft: &Draft, mark: &Json) -> Json {
        let log = if draft.depth == 1 { "log" } else { "slog" };
        let to = self.rng.pick(&draft.around).clone();
        let limit = self.rng.within(2..9);
        // It may lead back, and must come to an end.
        let goto = json!({"$if": [{"$lt": [{"$": "state.n"}, limit]}, to, "__end__"]});
        json!({"$command": {"graph": "__parent__", "update": {log: [mark], "n": 1}, "goto": goto}})
    }

    /// Tasks that bodies call; the last of them may ask.
    pub(super) fn make_tasks(&mut self) {
        for nth in 1..4 {
            let name = format!("t{nth}");
            let mut ops = vec![json!({"count": name})];
            let mut task = json!({});
            if self.rng.percent(20) {
                ops.push(json!({"emit": {"$fmt": [format!("{name} {{}}"), {"$": "args.0"}]}}));
            }
            if self.has.retries && self.rng.percent(30) {
                ops.push(json!({"fail": "Flaky", "first": 1, "id": format!("flaky {name}")}));
                task["retry"] = json!({"max_attempts": 3, "on": ["Flaky"]});
            }
            if (self.has.failures || self.has.catches) && self.rng.percent(40) {
                ops.push(json!({"fail": "Fatal", "first": 1, "id": format!("fatal {name}")}));
            }
            if nth > 1 && self.rng.percent(20) {
                ops.push(
                    json!({"call": format!("t{}", nth - 1), "args": [{"$": "args.0"}], "as": "i"}),
                );
            }
            if nth == 3 && self.has.interrupts && self.has.asking_calls {
                let question = format!("q.{name}");
                ops.push(json!({"interrupt": question, "as": "q"}));
                self.questions.push(question);
            }
            if self.has.caches && self.rng.percent(30) {
                task["cache"] = json!({});
            }
            let text = json!({"$fmt": [format!("{name}({{}} {{}} {{}})"), {"$": "args"}, {"$": "q"}, {"$": "i"}]});
            ops.push(json!({"return": text}));
            task["body"] = Json::Array(ops);
            self.tasks.insert(name, task);
        }
    }

    /// A workflow that is a function.
    pub(super) fn functional(&mut self, name: &str) {
        let mut ops = vec![json!({"count": name})];
        let mut shown = vec![json!({"$": "input"})];
        let main = name == "main";
        if main && self.rng.percent(50) {
            shown.push(json!({"$": "runtime.previous"}));
        }
        for round in 0..self.rng.within(1..4) {
            let from = shown.len();
            if self.has.interrupts && self.rng.percent(35) {
                self.ask(&format!("{name}{round}"), false, &mut ops, &mut shown);
            }
            self.call(&mut ops, &mut shown);
            // Later rounds use the same variables: what is shown is kept.
            let kept: Vec<Json> = shown.drain(from..).collect();
            let variable = format!("round{round}");
            ops.push(json!({"let": {variable.clone(): kept}}));
            shown.push(json!({"$": variable}));
        }
        if main && self.has.depth > 0 && self.rng.percent(50) {
            let inner = "s1";
            self.graphs.insert(inner.to_owned(), Json::Null);
            self.state_graph(inner, 1, Vec::new());
            self.invoke(inner, &mut ops, &mut shown);
        }
        let pattern = vec!["{}"; shown.len()].join(" ");
        shown.insert(0, json!(pattern));
        let result = json!({"$fmt": shown});
        ops.push(match main && self.rng.percent(30) {
            true => json!({"return": {"$final": {"value": result, "save": {"$": "input"}}}}),
            false => json!({"return": result}),
        });
        let mut spec = json!({"kind": "func", "body": ops});
        if !main {
            self.draw_memory(&mut spec);
        } else if self.has.retries && self.has.wild {
            spec["retry"] = json!({"max_attempts": 3, "on": ["Flaky"]});
        }
        self.graphs.insert(name.to_owned(), spec);
    }
}
