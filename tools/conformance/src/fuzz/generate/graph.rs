//! Graphs: nodes and what leads from one to the next.

use serde_json::{Value as Json, json};

use super::Generator;
use super::body::Site;
use super::keys::{Key, specs};

/// How one node leads to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Edge,
    Router,
    Dispatch,
    Command,
}

/// A graph that is being made.
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) depth: usize,
    pub(super) nodes: Vec<String>,
    pub(super) keys: Vec<Key>,
    /// Nodes that are dispatched to: they see an argument, and several may run side by side.
    pub(super) dispatched: Vec<bool>,
    /// From, to, how.
    links: Vec<(usize, usize, Link)>,
    /// Nodes of its parent graph.
    pub(super) around: Vec<String>,
    /// From which node to which there is a way back.
    back: Option<(usize, usize)>,
}

impl Generator {
    pub(super) fn main_graph(&mut self) {
        let draft = self.state_graph("main", 0, Vec::new());
        self.nodes = draft.nodes;
        self.keys = draft.keys;
    }

    pub(super) fn state_graph(&mut self, name: &str, depth: usize, around: Vec<String>) -> Draft {
        let count = if depth == 0 { self.rng.within(2..6) } else { self.rng.within(1..4) };
        let mut letters = ["a", "b", "c", "d", "e"];
        self.rng.shuffle(&mut letters);
        let suffix = name.strip_prefix("main").unwrap_or(name);
        let nodes: Vec<String> =
            letters.iter().take(count).map(|letter| format!("{letter}{suffix}")).collect();
        let keys = self.draw_keys(if depth == 0 { "log" } else { "slog" }, count);
        let name = name.to_owned();
        let dispatched = vec![false; count];
        let mut draft =
            Draft { name, depth, nodes, keys, dispatched, links: Vec::new(), around, back: None };
        if depth == 0 {
            // Subgraphs hand their log over under a name of its own, so that it is added once.
            self.add_inner_log(&mut draft);
        }
        let joins = self.link(&mut draft);
        let mut spec = json!({ "state": specs(&draft.keys) });
        if depth > 0 {
            spec["input"] = json!(["n"]);
            // A graph that writes nothing of its output has no result in the reference, and loops count on `n`.
            spec["output"] = json!(["n", "slog"]);
            self.draw_memory(&mut spec);
        } else if self.rng.percent(10) {
            spec["output"] = json!(["log", "n"]);
        }
        let mut order: Vec<usize> = (0..count).collect();
        self.rng.shuffle(&mut order);
        let mut nodes = Vec::new();
        for at in order {
            nodes.push(self.node(&draft, at));
        }
        spec["nodes"] = Json::Array(nodes);
        let inside = spec["nodes"].to_string();
        if spec["checkpointer"] == "none"
            && ["\"graph\":", "\"invoke\":"].iter().any(|word| inside.contains(word))
        {
            // What the reference stores of subgraphs one without a memory is numbered with
            // everything else, so no rule could leave it out. The case `subgraph_inside_no_memory`
            // shows it.
            spec.as_object_mut().map(|spec| spec.remove("checkpointer"));
        }
        self.add_links(&draft, &joins, &mut spec);
        if depth == 0 && self.has.breaks && self.rng.percent(35) {
            let key = *self.rng.pick(&["interrupt_before", "interrupt_after"]);
            spec[key] = json!([self.rng.pick(&draft.nodes)]);
        }
        self.graphs.insert(draft.name.clone(), spec);
        draft
    }

    fn add_inner_log(&mut self, draft: &mut Draft) {
        if self.has.depth > 0 {
            let mut key = draft.keys[0].clone();
            key.name = "slog";
            draft.keys.push(key);
        }
    }

    pub(super) fn draw_memory(&mut self, spec: &mut Json) {
        if self.has.own && self.rng.percent(50) {
            spec["checkpointer"] = json!("own");
        } else if self.has.forgetful && self.rng.percent(40) {
            spec["checkpointer"] = json!("none");
        }
    }

    /// Leads to every node; returns joins as the nodes that are waited for and the one that waits.
    fn link(&mut self, draft: &mut Draft) -> Vec<(Vec<usize>, usize)> {
        let count = draft.nodes.len();
        let mut joins = Vec::new();
        for to in 1..count {
            let from = if self.has.parallel { self.rng.below(to) } else { to - 1 };
            if self.has.parallel && self.has.joins && to >= 2 && self.rng.percent(35) {
                let mut sources: Vec<usize> = (0..to).filter(|_| self.rng.percent(60)).collect();
                if sources.len() < 2 {
                    sources = vec![to - 2, to - 1];
                }
                joins.push((sources, to));
                continue;
            }
            let link = self.draw_link();
            draft.dispatched[to] |= link == Link::Dispatch;
            draft.links.push((from, to, link));
        }
        if self.has.parallel && count > 2 {
            for _ in 0..self.rng.below(3) {
                let to = self.rng.within(1..count);
                let from = self.rng.below(to);
                if !draft.links.iter().any(|(a, b, _)| (*a, *b) == (from, to)) {
                    let link = self.draw_link();
                    draft.dispatched[to] |= link == Link::Dispatch;
                    draft.links.push((from, to, link));
                }
            }
        }
        if self.has.loops && self.rng.percent(70) {
            let from = self.rng.below(count);
            draft.back = Some((from, self.rng.below(from + 1)));
        }
        joins
    }

    fn draw_link(&mut self) -> Link {
        let weights = [
            50,
            25,
            if self.has.dispatches { 30 } else { 0 },
            if self.has.commands { 30 } else { 0 },
        ];
        [Link::Edge, Link::Router, Link::Dispatch, Link::Command][self.rng.weighted(&weights)]
    }

    /// Where a node sends commands.
    pub(super) fn gotos(&self, draft: &Draft, from: usize) -> Vec<String> {
        let commands =
            draft.links.iter().filter(|(a, _, link)| (*a, *link) == (from, Link::Command));
        commands.map(|(_, to, _)| draft.nodes[*to].clone()).collect()
    }

    fn add_links(&mut self, draft: &Draft, joins: &[(Vec<usize>, usize)], spec: &mut Json) {
        let name = |at: &usize| draft.nodes[*at].clone();
        let mut edges = Vec::new();
        let mut branches = Vec::new();
        let mut firsts = vec![0];
        if self.has.parallel && draft.nodes.len() > 2 && self.rng.percent(35) {
            firsts.push(1);
        }
        for first in firsts {
            if self.rng.percent(12) {
                branches.push(json!({"from": "__start__", "body": [{"return": name(&first)}]}));
            } else {
                edges.push(json!(["__start__", name(&first)]));
            }
        }
        for (from, to, link) in &draft.links {
            let (from, to) = (name(from), name(to));
            match link {
                Link::Edge => edges.push(json!([from, to])),
                Link::Router => branches.push(self.router(draft, &from, &to)),
                Link::Dispatch => {
                    let sends = self.sends(&to);
                    branches.push(json!({"from": from, "body": [{"return": sends}]}));
                }
                Link::Command => {}
            }
        }
        for (sources, to) in joins {
            edges.push(json!([sources.iter().map(name).collect::<Vec<_>>(), name(to)]));
        }
        if let Some((from, back)) = draft.back {
            let limit = self.rng.within(2..9);
            let round =
                json!({"$if": [{"$lt": [{"$": "state.n"}, limit]}, name(&back), "__end__"]});
            branches.push(json!({"from": name(&from), "body": [{"return": round}]}));
        }
        self.rng.shuffle(&mut edges);
        spec["edges"] = Json::Array(edges);
        if !branches.is_empty() {
            spec["branches"] = Json::Array(branches);
        }
    }

    fn router(&mut self, draft: &Draft, from: &str, to: &str) -> Json {
        let other = if self.rng.percent(60) { "__end__".to_owned() } else { to.to_owned() };
        let other = match self.rng.percent(20) && self.has.parallel {
            true => self.rng.pick(&draft.nodes).clone(),
            false => other,
        };
        // A way back must come to an end.
        let at = |name: &str| draft.nodes.iter().position(|node| node == name);
        let other = if at(&other).is_some_and(|other| Some(other) <= at(from)) {
            to.to_owned()
        } else {
            other
        };
        let limit = self.rng.within(1..8);
        let answers = [json!(to), json!(other)];
        let (mut yes, mut no) = (answers[0].clone(), answers[1].clone());
        if self.rng.percent(50) {
            std::mem::swap(&mut yes, &mut no);
        }
        let mut branch = json!({"from": from});
        if self.rng.percent(30) {
            branch["map"] = json!({"yes": yes, "no": no});
            (yes, no) = (json!("yes"), json!("no"));
        } else if self.rng.percent(20) {
            yes = json!([yes]);
        }
        let mut body = Vec::new();
        if self.has.wild && self.rng.percent(6) {
            body.push(json!({"fail": "Fatal", "first": 1, "id": format!("router of {from}")}));
        }
        if self.has.wild && self.rng.percent(3) {
            no = Json::Null;
        }
        let asked = json!({"$lt": [{"$": "state.n"}, limit]});
        body.push(json!({"return": {"$if": [asked, yes, no]}}));
        branch["body"] = Json::Array(body);
        branch
    }

    pub(super) fn sends(&mut self, to: &str) -> Json {
        let count = self.rng.below(4);
        if self.rng.percent(40) {
            let send = json!({"$send": {"to": to, "arg": {"i": {"$": "k"}, "n": 1}}});
            return json!({"$map": [{"$range": count}, "k", send]});
        }
        let sends = (0..count.max(1))
            .map(|at| json!({"$send": {"to": to, "arg": {"i": at, "n": {"$": "state.n"}}}}));
        Json::Array(sends.collect())
    }

    fn node(&mut self, draft: &Draft, at: usize) -> Json {
        let name = draft.nodes[at].clone();
        let mut node = json!({"name": name});
        let inside = draft.depth < self.has.depth && self.rng.percent(45) && self.graphs.len() < 5;
        // What two calls of one memory at the same time find there is a matter of timing (F34).
        let inside = inside && (!self.has.own || !draft.dispatched[at]);
        let whole = !draft.dispatched[at] && self.rng.percent(50);
        let inner = inside.then(|| self.subgraph(draft, at, whole));
        if inner.is_some() && draft.depth == 0 {
            self.holders.push(name);
        }
        // What a function returns is not an update.
        let graph = inner.clone().filter(|inner| self.graphs[inner]["kind"] != "func");
        match graph {
            Some(inner) if whole => node["graph"] = json!(inner),
            _ => self.body(&Site { draft, at }, inner.as_deref(), &mut node),
        }
        if self.has.defer && self.rng.percent(25) {
            node["defer"] = json!(true);
        }
        node
    }

    /// A new subgraph for a node of this graph, which is the node or is invoked by it.
    fn subgraph(&mut self, draft: &Draft, at: usize, whole: bool) -> String {
        let name = format!("s{}", self.graphs.len() + draft.depth * 10 + self.holders.len() * 100);
        // The name is taken now, so that subgraphs get another one.
        self.graphs.insert(name.clone(), Json::Null);
        // A workflow stops before its next call when a node next to it has the run drained.
        let may_drain = self.has.drains && !self.has.wild;
        if self.rng.percent(12) && !self.tasks.is_empty() && !may_drain {
            self.functional(&name);
        } else {
            // The reference cannot route after a command for the parent when routers are async.
            let routed = draft.links.iter().any(|(from, _, link)| {
                *from == at && matches!(link, Link::Router | Link::Dispatch)
            });
            let looped = draft.back.is_some_and(|(from, _)| from == at);
            // One that is invoked counts from its own input, so a way back would have no end: a run that is out of steps
            // inside keeps its progress under `exit`, and its answers (F10).
            let first = if whole || self.has.wild { 0 } else { at + 1 };
            let around = if routed || looped { Vec::new() } else { draft.nodes[first..].to_vec() };
            self.state_graph(&name, draft.depth + 1, around);
        }
        name
    }
}
