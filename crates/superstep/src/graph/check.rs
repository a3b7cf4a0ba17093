//! What can be known to be wrong with a graph before it runs.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::builder::StateGraph;
use crate::engine::{END, START};
use crate::error::nearest;
use crate::state::{Kind, State};

/// Names that have a meaning in the stored format.
const RESERVED: &[&str] = &[
    "__input__",
    "__interrupt__",
    "__resume__",
    "__error__",
    "__error_source_node__",
    "__no_writes__",
    "__snapshot_bumps__",
    "__pregel_send",
    "__pregel_read",
    "__pregel_checkpointer",
    "__pregel_stream",
    "__pregel_resuming",
    "__pregel_replay_state",
    "__pregel_task_id",
    "__pregel_timed_attempt_observer",
    "__pregel_resume_map",
    "__pregel_strict_resume",
    "__pregel_stream_messages_v2",
    "__pregel_push",
    "__pregel_pull",
    "__pregel_tasks",
    "__return__",
    "__previous__",
    "checkpoint_map",
    "checkpoint_id",
    "checkpoint_ns",
    "configurable",
    "langsmith:hidden",
];

fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// The names of all nodes.
type Known<'a> = HashSet<&'a str>;

impl<S: State, O> StateGraph<S, O> {
    /// Everything that is wrong with the graph, and everything that is only suspicious.
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
            if is_reserved(name) || matches!(&**name, START | END) {
                problems.push(format!("the channel name `{name}` is reserved"));
            }
            if name.contains(':') || name.contains('|') {
                problems.push(format!(
                    "the channel name `{name}` contains `:` or `|`, which are reserved"
                ));
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
            if name.is_empty() {
                problems.push("a node has an empty name".to_owned());
            }
            if matches!(&**name, START | END) || is_reserved(name) {
                problems.push(format!("the node name `{name}` is reserved"));
            }
            if name.contains(':') || name.contains('|') {
                problems.push(format!(
                    "the node name `{name}` contains `:` or `|`, which are reserved"
                ));
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

    /// If no node has this name: a hint at one that may have been meant.
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
        for (from, to) in &self.joins {
            let names: Vec<_> = from.iter().map(|name| format!("`{name}`")).collect();
            let names = names.join(", ");
            if from.is_empty() {
                problems.push(format!("the join before `{to}` waits for no node"));
            }
            for (at, name) in from.iter().enumerate() {
                if let Some(near) = self.unknown(known, name) {
                    problems.push(format!("the join of {names} before `{to}` waits for the unknown node `{name}`{near}"));
                }
                if from[..at].contains(name) {
                    problems.push(format!("the join before `{to}` names `{name}` twice"));
                }
            }
            self.check_target(known, problems, "join", &names, to);
        }
        let mut begins = self.edges.iter().any(|(from, _)| &**from == START);
        for branch in &self.branches {
            let from = &branch.from;
            begins |= &**from == START;
            if &**from == END {
                problems.push("a router stands after the end of the graph".to_owned());
            } else if let Some(near) = self.unknown(known, from).filter(|_| &**from != START) {
                problems.push(format!("a router stands after the unknown node `{from}`{near}"));
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

    /// Where each node leads, as far as was declared. `None`: possibly anywhere.
    fn successors(&self) -> HashMap<&str, Option<Vec<&str>>> {
        let mut all: HashMap<&str, Option<Vec<&str>>> = HashMap::new();
        let mut pairs: Vec<(&str, Option<&str>)> = Vec::new();
        pairs.extend(self.edges.iter().map(|(from, to)| (&**from, Some(&**to))));
        for (from, to) in &self.joins {
            pairs.extend(from.iter().map(|from| (&**from, Some(&**to))));
        }
        for branch in &self.branches {
            match &branch.targets.0 {
                Some(targets) => {
                    pairs.extend(targets.iter().map(|(_, to)| (&*branch.from, Some(&**to))));
                }
                None => pairs.push((&branch.from, None)),
            }
        }
        for node in &self.nodes {
            pairs.extend(node.destinations.iter().map(|to| (&*node.name, Some(&**to))));
        }
        for (from, to) in pairs {
            let entry = all.entry(from).or_insert_with(|| Some(Vec::new()));
            match (to, &mut *entry) {
                (Some(to), Some(list)) => list.push(to),
                (Some(_), None) => {}
                (None, _) => *entry = None,
            }
        }
        all
    }

    fn check_reach(&self, known: &Known<'_>, problems: &mut Vec<String>) {
        let successors = self.successors();
        if !successors.contains_key(START) {
            return;
        }
        let mut reached = HashSet::from([START]);
        let mut queue = VecDeque::from([START]);
        while let Some(node) = queue.pop_front() {
            match successors.get(node) {
                None => {}
                Some(None) => return,
                Some(Some(next)) => {
                    queue.extend(next.iter().filter(|name| reached.insert(**name)));
                }
            }
        }
        for (from, to) in &self.joins {
            let unreached =
                |name: &&Arc<str>| known.contains(&***name) && !reached.contains(&***name);
            for name in from.iter().filter(unreached) {
                problems.push(format!(
                    "the join before `{to}` waits for `{name}`, which nothing leads to; it would wait for ever"
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

    /// Pairs of nodes that may run in the same superstep. What one router leads to counts as either-or.
    fn together(&self) -> HashSet<(&str, &str)> {
        let mut ways: HashMap<&str, Vec<Vec<&str>>> = HashMap::new();
        for (from, to) in &self.edges {
            ways.entry(from).or_default().push(vec![to]);
        }
        for (from, to) in &self.joins {
            for from in from {
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
