//! The checks of a graph before it runs.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use superstep_names::refusal;

use super::builder::StateGraph;
use super::join::Join;
use crate::engine::{END, START};
use crate::error::nearest;
use crate::state::{Kind, State};

/// The names of all nodes.
type Known<'a> = HashSet<&'a str>;

impl<S: State, O> StateGraph<S, O> {
    /// The errors and the warnings of the graph.
    pub(super) fn check(&self) -> (Vec<String>, Vec<String>) {
        let mut problems = self.problems.clone();
        self.check_channels(&mut problems);
        self.check_nodes(&mut problems);
        let known: Known<'_> = self.nodes.iter().map(|node| &*node.name).collect();
        self.check_edges(&known, &mut problems);
        self.check_breakpoints(&known, &mut problems);
        if !self.lenient {
            self.check_reach(&known, &mut problems);
        }
        let warnings = if problems.is_empty() { self.concurrent_writes() } else { Vec::new() };
        (problems, warnings)
    }

    fn check_channels(&self, problems: &mut Vec<String>) {
        let mut seen = HashSet::new();
        let managed = self.schema.managed.iter().map(|(name, _)| name);
        for name in self.schema.names().chain(managed) {
            if let Some(refusal) = refusal(name) {
                problems.push(format!("the channel name `{name}` {refusal}"));
            }
            if !seen.insert(name) {
                problems.push(format!("the channel `{name}` is declared twice"));
            }
        }
        let known = || self.schema.names().map(|name| &**name);
        let mut check = |what: &str, names: &[Arc<str>]| {
            for name in names {
                if !known().any(|known| known == &**name) {
                    let near = nearest(name, known());
                    problems.push(format!("{what} names the unknown channel `{name}`{near}"));
                }
            }
        };
        check("the input", self.input.as_deref().unwrap_or_default());
        check("the output", self.output.as_deref().unwrap_or_default());
        for node in &self.nodes {
            let what = format!("node `{}`", node.name);
            let managed =
                |name: &Arc<str>| self.schema.managed.iter().any(|(known, _)| known == name);
            let reads: Vec<_> =
                node.reads.iter().flatten().filter(|name| !managed(name)).cloned().collect();
            check(&what, &reads);
            check(&what, node.writes.as_deref().unwrap_or_default());
        }
    }

    fn check_nodes(&self, problems: &mut Vec<String>) {
        let mut seen = HashSet::new();
        for node in &self.nodes {
            let name = &node.name;
            if let Some(refusal) = refusal(name) {
                problems.push(format!("the node name `{name}` {refusal}"));
            }
            if !seen.insert(name) {
                problems.push(format!("there are two nodes named `{name}`"));
            }
            if node.handler.is_some() && node.collector.is_some() {
                problems.push(format!(
                    "node `{name}` has an error handler and collects its failures; use `on_error` or `collect_failures`"
                ));
            }
        }
    }

    /// Returns a hint at a similar name if no node has this name.
    fn unknown(&self, known: &Known<'_>, name: &str) -> Option<String> {
        let names = || self.nodes.iter().map(|node| &*node.name);
        (!known.contains(name)).then(|| nearest(name, names()))
    }

    fn check_edges(&self, known: &Known<'_>, problems: &mut Vec<String>) {
        for (from, to) in &self.edges {
            if &**from == END {
                problems.push(format!("an edge leads from the end of the graph to `{to}`"));
            } else if let Some(near) = self.unknown(known, from).filter(|_| &**from != START) {
                problems.push(format!("edge from unknown node `{from}` to `{to}`{near}"));
            }
            self.check_target(known, problems, "edge", from, to);
        }
        for (join, to) in &self.joins {
            self.check_join(known, problems, join, to);
        }
        let mut begins = self.edges.iter().any(|(from, _)| &**from == START);
        for branch in &self.branches {
            let from = &branch.from;
            begins |= &**from == START;
            if &**from == END {
                problems.push("a router follows the end of the graph".to_owned());
            } else if let Some(near) = self.unknown(known, from).filter(|_| &**from != START) {
                problems.push(format!("a router follows the unknown node `{from}`{near}"));
            }
            for (_, to) in branch.targets.0.iter().flatten() {
                self.check_target(known, problems, "router", from, to);
            }
        }
        for node in &self.nodes {
            for to in &node.destinations {
                self.check_target(known, problems, "command", &node.name, to);
            }
        }
        if !begins {
            problems.push(format!(
                "the graph has no beginning; lead an edge from `{START}` to its first node"
            ));
        }
    }

    fn check_join(&self, known: &Known<'_>, problems: &mut Vec<String>, join: &Join, to: &str) {
        let sources = &join.sources;
        let names: Vec<_> = sources.iter().map(|name| format!("`{name}`")).collect();
        let names = names.join(", ");
        if sources.is_empty() {
            problems.push(format!("the join before `{to}` waits for no node"));
        } else if join.count() == 0 {
            problems.push(format!(
                "the join of {names} before `{to}` needs none of them; lead an edge to `{to}` instead"
            ));
        } else if join.count() > sources.len() {
            problems.push(format!(
                "the join before `{to}` needs {} nodes, but waits for {} only: {names}",
                join.count(),
                sources.len()
            ));
        }
        for (at, name) in sources.iter().enumerate() {
            if let Some(near) = self.unknown(known, name) {
                problems.push(format!(
                    "the join of {names} before `{to}` waits for the unknown node `{name}`{near}"
                ));
            }
            if sources[..at].contains(name) {
                problems.push(format!("the join before `{to}` names `{name}` twice"));
            }
        }
        let same = |(other, target): &&(Join, Arc<str>)| {
            other.sources == *sources && other.count() == join.count() && **target == *to
        };
        if let Some((first, _)) = self.joins.iter().find(same)
            && first.across_runs != join.across_runs
        {
            problems.push(format!(
                "the join of {names} before `{to}` is declared twice, once across runs and once not"
            ));
        }
        self.check_target(known, problems, "join", &names, to);
    }

    fn check_target(
        &self,
        known: &Known<'_>,
        problems: &mut Vec<String>,
        what: &str,
        from: &str,
        to: &str,
    ) {
        if to == START {
            problems.push(format!("{what} from `{from}` leads to the beginning of the graph"));
        } else if let Some(near) = self.unknown(known, to).filter(|_| to != END) {
            problems.push(format!("{what} from `{from}` to unknown node `{to}`{near}"));
        }
    }

    fn check_breakpoints(&self, known: &Known<'_>, problems: &mut Vec<String>) {
        if self.has_breakpoints() {
            for name in self.break_names() {
                if let Some(near) = self.unknown(known, name) {
                    problems.push(format!("a breakpoint names the unknown node `{name}`{near}"));
                }
            }
        }
    }

    fn check_reach(&self, known: &Known<'_>, problems: &mut Vec<String>) {
        let Some(reached) = self.reached() else { return };
        for (join, to) in &self.joins {
            let unreached =
                |name: &&Arc<str>| known.contains(&***name) && !reached.contains(&***name);
            for name in join.sources.iter().filter(unreached) {
                let way_out = match join.count() == join.sources.len() {
                    true => "it would wait for ever",
                    false => "lead an edge to it, or leave it out",
                };
                problems.push(format!(
                    "the join before `{to}` waits for `{name}`, which nothing leads to; {way_out}"
                ));
            }
        }
        for node in self.nodes.iter().filter(|node| !reached.contains(&*node.name)) {
            problems.push(format!(
                "nothing leads to node `{}`; lead an edge to it, or name it in the `destinations` of the node whose command goes there",
                node.name
            ));
        }
    }

    /// Pairs of nodes that declare a write to the same last-value channel and may run in one superstep.
    fn concurrent_writes(&self) -> Vec<String> {
        let mut suspects = Vec::new();
        let writers: Vec<_> = self.nodes.iter().filter(|node| node.writes.is_some()).collect();
        for (at, a) in writers.iter().enumerate() {
            for b in &writers[at + 1..] {
                for channel in a.writes.iter().flatten() {
                    let last =
                        self.schema.entries.iter().any(|entry| {
                            entry.spec.name == *channel && entry.spec.kind == Kind::Last
                        });
                    if last && b.writes.iter().flatten().any(|other| other == channel) {
                        suspects.push((&*a.name, &*b.name, channel));
                    }
                }
            }
        }
        if suspects.is_empty() {
            return Vec::new();
        }
        let together = self.together();
        suspects
            .into_iter()
            .filter(|(a, b, _)| together.contains(&(*a, *b)) || together.contains(&(*b, *a)))
            .map(|(a, b, channel)| {
                format!("nodes `{a}` and `{b}` may both write channel `{channel}`, which keeps one value, in the same superstep; give it a reducer or let one of them write")
            })
            .collect()
    }

    /// Pairs of nodes that may run in the same superstep. The targets of one router are taken as
    /// alternatives.
    fn together(&self) -> HashSet<(&str, &str)> {
        let mut ways: HashMap<&str, Vec<Vec<&str>>> = HashMap::new();
        for (from, to) in &self.edges {
            ways.entry(from).or_default().push(vec![to]);
        }
        for (join, to) in &self.joins {
            for from in &join.sources {
                ways.entry(from).or_default().push(vec![to]);
            }
        }
        for branch in &self.branches {
            let targets = branch.targets.0.iter().flatten().map(|(_, to)| &**to);
            ways.entry(&branch.from).or_default().push(targets.collect());
        }
        for node in &self.nodes {
            let targets = node.destinations.iter().map(|to| &**to).collect();
            ways.entry(&node.name).or_default().push(targets);
        }
        let next = |node: &str| ways.get(node).into_iter().flatten().flatten().copied();
        let mut pairs: HashSet<(&str, &str)> = HashSet::new();
        let mut queue = VecDeque::new();
        let push = |pairs: &mut HashSet<_>, queue: &mut VecDeque<_>, a, b| {
            if a != b && a != END && b != END && pairs.insert((a, b)) {
                queue.push_back((a, b));
            }
        };
        for ways in ways.values() {
            for (at, one) in ways.iter().enumerate() {
                for other in &ways[at + 1..] {
                    for a in one {
                        for b in other {
                            push(&mut pairs, &mut queue, *a, *b);
                        }
                    }
                }
            }
        }
        while let Some((a, b)) = queue.pop_front() {
            for x in next(a) {
                for y in next(b) {
                    push(&mut pairs, &mut queue, x, y);
                }
            }
        }
        pairs
    }
}
