//! Scripts: what is asked of the graphs.

use serde_json::{Value as Json, json};

use super::Generator;
use super::keys::{Kind, is_delta};

impl Generator {
    pub(super) fn script(&mut self) -> Vec<Json> {
        let mut calls = Vec::new();
        if self.has.wild && self.rng.percent(3) {
            calls.push(json!({"op": "get_state"}));
        }
        if self.has.updates && self.rng.percent(5) && !self.has.functional {
            let values = self.values(0);
            let node = self.rng.pick(&self.nodes).clone();
            calls.push(json!({"op": "update_state", "values": values, "as_node": node}));
        }
        let first = self.input(0);
        let first = self.run(json!({"input": first}));
        calls.push(first);
        for turn in 1..self.rng.within(3..8) {
            self.turn(turn, &mut calls);
        }
        calls.push(json!({"op": "get_state", "subgraphs": true}));
        calls.push(json!({"op": "get_history"}));
        if self.has.store && self.rng.percent(50) {
            calls.push(json!({"op": "store_search", "namespace": ["ns"]}));
        }
        calls
    }

    /// A call, after a look at the state that says whether it can be made.
    fn turn(&mut self, turn: usize, calls: &mut Vec<Json>) {
        let answers = if self.questions.is_empty() { 0 } else { 45 };
        let updates = if self.has.updates && !self.has.functional { 20 } else { 0 };
        let travel = if self.has.travel { 20 } else { 0 };
        let commands = if self.has.command_input && !self.has.functional { 8 } else { 0 };
        let turns = if self.has.single_turn { 0 } else { 14 };
        let travel = if self.has.single_turn { 0 } else { travel };
        let kinds = [turns, 18, answers, updates, travel, commands, 6, 3];
        let kind = self.rng.weighted(&kinds);
        if kind < 6 {
            let subgraphs = self.rng.percent(30);
            calls.push(json!({"op": "get_state", "subgraphs": subgraphs}));
        }
        match kind {
            0 => {
                let input = self.input(turn);
                let mut run = self.run(json!({"input": input}));
                if !self.has.wild && !self.questions.is_empty() {
                    // New input may find the answer to an earlier question (F3).
                    run["when"] = json!({"interrupts": [0, 0]});
                }
                calls.push(run);
            }
            1 => {
                let mut run = self.run(json!({"input": null}));
                if !self.has.wild {
                    // A question that is asked again may find the answer to an earlier one (F3).
                    run["when"] = json!({"interrupts": [0, 0]});
                }
                calls.push(run);
            }
            2 => self.answer_question(turn, calls),
            3 => self.update(turn, calls),
            4 => self.travel(turn, calls),
            5 => self.command(turn, calls),
            6 => self.look(calls),
            _ => calls.push(json!({"op": "restart"})),
        }
    }

    fn input(&mut self, turn: usize) -> Json {
        if self.has.functional {
            return json!(format!("i{turn}"));
        }
        self.values(turn)
    }

    /// An update of the outermost graph.
    fn values(&mut self, turn: usize) -> Json {
        let mut values = json!({});
        let mark = json!(format!("i{turn}"));
        for key in self.keys.clone() {
            let often = match key.kind {
                Kind::Managed => 0,
                // The reference stores an untracked value that is given from outside (F19).
                Kind::Untracked if !self.has.wild => 0,
                // It stores an accumulating list only when it has grown already.
                Kind::Topic => 0,
                Kind::Log if key.name == "slog" => 0,
                Kind::Log => 85,
                Kind::Number => 30,
                _ => 20,
            };
            if self.rng.percent(often) {
                values[key.name] = self.value_for(&key, &mark);
            }
        }
        if values == json!({}) {
            values["log"] = json!([mark]);
        }
        values
    }

    /// Makes a call run the graph, with options.
    fn run(&mut self, mut call: Json) -> Json {
        let op = if self.rng.percent(60) { "invoke" } else { "stream" };
        call["op"] = json!(op);
        if op == "stream" {
            let modes = ["values", "updates", "custom", "tasks", "checkpoints", "debug"];
            let modes = self.rng.some(&modes);
            let modes = if self.rng.percent(50) { vec![*self.rng.pick(&modes)] } else { modes };
            call["modes"] = json!(modes);
            if self.rng.percent(40) {
                call["subgraphs"] = json!(true);
            }
        }
        if self.has.exit && self.rng.percent(50) {
            call["durability"] = json!("exit");
        } else if self.has.joins || self.has.topics {
            // In the background the reference stores lists and barriers that have changed meanwhile.
            call["durability"] = json!("sync");
        } else if self.rng.percent(40) && (self.has.wild || !self.has.forgetful) {
            call["durability"] = json!(*self.rng.pick(&["sync", "async"]));
        }
        // A question whose answer was accepted by a run that failed is not shown as open (F10).
        let answers = ["resume", "resume_map"].iter().any(|key| call["command"].get(key).is_some());
        let tight = self.rng.percent(5) && (self.has.wild || !self.has.exit && !answers);
        call["recursion_limit"] = json!(if tight { self.rng.within(2..6) } else { 25 });
        if self.has.breaks && self.rng.percent(30) && !self.nodes.is_empty() {
            let key = *self.rng.pick(&["interrupt_before", "interrupt_after"]);
            call[key] = match self.rng.percent(20) {
                true => json!("*"),
                false => json!([self.rng.pick(&self.nodes)]),
            };
        }
        if self.rng.percent(8) && !self.keys.is_empty() {
            let names: Vec<&str> = self
                .keys
                .iter()
                .filter(|key| key.kind != Kind::Managed)
                .map(|key| key.name)
                .collect();
            call["output_keys"] = json!(self.rng.some(&names));
        }
        let answers =
            call["command"].get("resume").is_some() || call["command"].get("resume_map").is_some();
        if self.has.drains && self.rng.percent(15) && (self.has.wild || !answers) {
            call["drain"] = json!("stop");
        }
        call
    }

    fn answer_question(&mut self, turn: usize, calls: &mut Vec<Json>) {
        let wild = self.has.wild;
        let answer = match self.rng.below(6) {
            0 => json!(turn),
            1 => json!({"of": turn}),
            2 if wild => Json::Null,
            _ => json!(format!("r{turn}")),
        };
        let by_id = if wild { self.rng.percent(50) } else { self.has.by_id };
        let (command, when) = if by_id {
            let count = if self.rng.percent(40) { 2 } else { 1 };
            let mut asked: Vec<String> =
                (0..count).map(|_| self.rng.pick(&self.questions).clone()).collect();
            asked.dedup();
            let map: Vec<Json> = asked
                .iter()
                .map(|question| json!({"interrupt": question, "answer": answer}))
                .collect();
            (json!({"resume_map": map}), json!({"open": asked}))
        } else {
            (json!({"resume": answer}), json!({"interrupts": [1, 1]}))
        };
        let mut call = self.run(json!({"command": command}));
        let careless = wild && self.rng.percent(10);
        if !careless {
            call["when"] = when;
        }
        if wild && self.rng.percent(8) {
            call["command"]["update"] = self.values(turn);
        }
        calls.push(call);
    }

    fn update(&mut self, turn: usize, calls: &mut Vec<Json>) {
        let wild = self.has.wild;
        let mut values = self.values(turn);
        let node = self.rng.pick(&self.nodes).clone();
        let mut call = json!({"op": "update_state"});
        match self.rng.weighted(&[60, 10, 10, 8, 6, 6]) {
            0 => {
                if self.has.commands && self.rng.percent(30) {
                    let to = self.rng.pick(&self.nodes).clone();
                    values = json!({"$command": {"update": values, "goto": to}});
                }
                call["values"] = values;
                if self.rng.percent(80) {
                    call["as_node"] = json!(node);
                }
            }
            1 => {
                call["values"] = Json::Null;
                call["as_node"] =
                    json!(if self.rng.percent(50) { node } else { "__end__".to_owned() });
            }
            2 => {
                let second = self.values(turn + 10);
                let other = self.rng.pick(&self.nodes).clone();
                let one = json!({"values": values, "as_node": node});
                let two = json!({"values": second, "as_node": other});
                let together = wild || self.may_write_together(&one["values"], &two["values"]);
                let steps = match self.rng.percent(50) && together {
                    true => json!([[one, two]]),
                    // The second would find several tasks that the first leads to (F13).
                    false if self.has.several() && !wild => json!([[one]]),
                    false => json!([[one], [two]]),
                };
                call = json!({"op": "bulk_update_state", "steps": steps});
            }
            3 => {
                call["values"] = values;
                call["as_node"] = json!("__start__");
            }
            4 => {
                call["values"] = values;
                call["as_node"] = json!("__input__");
            }
            _ => {
                call["values"] = Json::Null;
                call["as_node"] = json!("__copy__");
            }
        }
        if wild {
            if self.rng.percent(30) {
                call["at"] = self.reference(0);
            }
        } else {
            // What other tasks have done, and have still to do, stays (F13, F14).
            call["when"] = json!({"tasks": [0, 1], "finished": [0, 0]});
        }
        calls.push(call);
        let at = calls.len() - 1;
        let as_input = calls[at]["as_node"] == "__input__";
        // A checkpoint of input is not one of an update, though it is the head (F11).
        if self.rng.percent(15) && (wild || !as_input) {
            let run = self.run(json!({"input": null, "at": {"call": at}}));
            calls.push(run);
        }
    }

    /// Whether no key that takes one value is in both updates.
    fn may_write_together(&self, one: &Json, two: &Json) -> bool {
        ["x", "e", "u"].iter().all(|key| one.get(*key).is_none() || two.get(*key).is_none())
    }

    /// Whether no checkpoint can have tasks that an update of another one would leave alone (F13).
    fn may_update_the_past(&self) -> bool {
        !self.has.several() && !self.has.own && !self.has.updates
    }

    fn reference(&mut self, least: usize) -> Json {
        match self.rng.below(4) {
            0 | 1 => json!({"history": self.rng.within(least..5)}),
            2 => json!({"step": self.rng.below(4), "history": 0}),
            _ => json!({"history": self.rng.within(least..8)}),
        }
    }

    fn travel(&mut self, turn: usize, calls: &mut Vec<Json>) {
        let wild = self.has.wild;
        // Naming the head is not going back in time (F11).
        let at = if wild { self.reference(0) } else { json!({"history": self.rng.within(1..6)}) };
        match self.rng.below(if wild { 7 } else { 6 }) {
            0..=2 => {
                let run = self.run(json!({"input": null, "at": at}));
                calls.push(run);
            }
            3 => {
                let input = self.input(turn);
                let run = self.run(json!({"input": input, "at": at}));
                calls.push(run);
            }
            4 => calls.push(json!({"op": "get_state", "at": at, "subgraphs": true})),
            5 if !self.has.functional && (wild || self.may_update_the_past()) => {
                let values = self.values(turn);
                let node = self.rng.pick(&self.nodes).clone();
                calls.push(
                    json!({"op": "update_state", "values": values, "as_node": node, "at": at}),
                );
                let run = self.run(json!({"input": null, "at": {"call": calls.len() - 1}}));
                calls.push(run);
            }
            5 => calls.push(json!({"op": "get_history", "at": at})),
            _ => {
                let run = self.run(json!({"command": {"resume": "again"}, "at": at}));
                calls.push(run);
            }
        }
    }

    /// A command as input.
    fn command(&mut self, turn: usize, calls: &mut Vec<Json>) {
        let to = self.rng.pick(&self.nodes).clone();
        // Several tasks of one node would write a key that takes one value (F36).
        let alone = self.keys.iter().any(|key| key.writer.is_some());
        let dispatches = self.has.dispatches && (self.has.wild || !alone);
        let goto = match self.rng.percent(25) && dispatches {
            true => self.sends(&to),
            false => json!(to),
        };
        let mut command = json!({"goto": goto});
        if self.rng.percent(60) {
            let mark = format!("i{turn}");
            command["update"] =
                if self.has.wild { self.values(turn) } else { json!({"log": [mark]}) };
        }
        if self.has.wild && self.rng.percent(20) {
            command.as_object_mut().map(|fields| fields.shift_remove("goto"));
        }
        let mut call = self.run(json!({"command": command}));
        if !self.has.wild {
            call.as_object_mut().map(|fields| fields.shift_remove("drain"));
            // What a command leads to in an open superstep is shown at once (F15), also in one whose run is out of steps.
            call["recursion_limit"] = json!(25);
            call["when"] = json!({"next": [0, 0]});
        }
        calls.push(call);
    }

    fn look(&mut self, calls: &mut Vec<Json>) {
        let deltas = self.keys.iter().any(is_delta);
        // The reference stores input that is given as an update twice, once with the checkpoint
        // before it.
        let as_input = calls.iter().any(|call| call["as_node"] == "__input__");
        match self.rng.below(4) {
            0 => calls.push(json!({"op": "get_history", "limit": self.rng.within(1..4)})),
            1 => {
                let source = *self.rng.pick(&["loop", "input", "update", "fork"]);
                calls.push(json!({"op": "get_history", "filter": {"source": source}}));
            }
            2 if !self.holders.is_empty() => {
                let holder = self.rng.pick(&self.holders).clone();
                calls.push(json!({"op": "get_state", "at": {"ns": [holder]}}));
            }
            3 if !self.has.wild
                && !deltas
                && !self.has.exit
                && !self.has.interrupts
                && !as_input =>
            {
                calls.push(json!({"op": "tuples"}));
            }
            _ => calls.push(json!({"op": "get_state", "subgraphs": true})),
        }
    }
}
