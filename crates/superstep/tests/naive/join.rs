//! The joins of the naive engine: names in sets, and ways that are walked each time they are asked for.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::{Graph, Place, PlannedJoin};

#[derive(Clone, Debug)]
pub(crate) struct Join {
    pub(crate) target: String,
    pub(crate) across: bool,
    needed: usize,
    seen: BTreeSet<String>,
    /// For each member, the nodes that may lead to it without going through the target.
    feeders: BTreeMap<String, BTreeSet<String>>,
    deferred: bool,
    finished: bool,
    fired: bool,
}

/// Where a node may lead, as far as was declared: a list of names, or anywhere.
fn leads_to(graph: &Graph, node: usize, to: &str) -> bool {
    let name = graph.name(node);
    let edges = graph.nodes[node].edges.iter().flatten().any(|edge| graph.name(*edge) == to);
    let joined = |join: &PlannedJoin| join.members.contains(&name) && join.target == Some(to);
    let routed = graph.nodes[node].routers.iter().any(|router| {
        let named = |place: &Place| matches!(place, Place::Node(node) if graph.name(*node) == to);
        !router.declared || router.ways.iter().flatten().any(named)
    });
    edges || routed || graph.joins().iter().any(joined)
}

impl Join {
    pub(crate) fn new(
        graph: &Graph,
        planned: &PlannedJoin,
        target: &str,
        deferred: bool,
        lenient: bool,
    ) -> Self {
        let mut feeders = BTreeMap::new();
        for member in &planned.members {
            let mut found = BTreeSet::from([(*member).to_owned()]);
            loop {
                let more: Vec<String> = (0..graph.nodes.len())
                    .filter(|node| graph.name(*node) != target)
                    .filter(|node| !found.contains(graph.name(*node)))
                    .filter(|node| found.iter().any(|to| leads_to(graph, *node, to)))
                    .map(|node| graph.name(node).to_owned())
                    .collect();
                if more.is_empty() {
                    break;
                }
                found.extend(more);
            }
            feeders.insert((*member).to_owned(), found);
        }
        Self {
            target: target.to_owned(),
            across: planned.across || lenient,
            needed: planned.needed,
            seen: BTreeSet::new(),
            feeders,
            deferred,
            finished: false,
            fired: false,
        }
    }

    fn has_enough(&self) -> bool {
        !self.fired && self.seen.len() >= self.needed
    }

    fn has_all(&self) -> bool {
        self.seen.len() == self.feeders.len()
    }

    pub(crate) fn is_available(&self) -> bool {
        self.has_enough() && (self.finished || !self.deferred)
    }

    /// Enough have arrived, but the target waits for the end of everything else.
    pub(crate) fn is_put_off(&self) -> bool {
        self.has_enough() && self.deferred && !self.finished
    }

    pub(crate) fn arrive(&mut self, name: &str) -> bool {
        if self.fired && self.seen.contains(name) {
            self.clear();
        }
        let new = self.seen.insert(name.to_owned());
        if self.fired && self.has_all() {
            self.clear();
        }
        new
    }

    pub(crate) fn consume(&mut self) -> bool {
        let fires = self.is_available();
        if fires {
            self.fired = true;
            if self.has_all() {
                self.clear();
            }
        }
        fires
    }

    pub(crate) fn finish(&mut self) -> bool {
        let finishes = self.is_put_off();
        self.finished |= finishes;
        finishes
    }

    pub(crate) fn clear(&mut self) -> bool {
        let held = !self.seen.is_empty();
        self.seen.clear();
        self.fired = false;
        self.finished = false;
        held
    }

    /// Ends the round of a join that has fired, unless a missing member may come from one of the nodes under way.
    pub(crate) fn end_round(&mut self, under_way: impl Fn(&String) -> bool) -> bool {
        let missing = self.feeders.iter().filter(|(name, _)| !self.seen.contains(*name));
        let may_come = missing.flat_map(|(_, feeders)| feeders).any(under_way);
        self.fired && !may_come && self.clear()
    }

    /// The target, who has arrived and who has not, if the target has not run and the round ends with the run.
    pub(crate) fn unfilled(&self) -> Option<(String, Vec<String>, Vec<String>)> {
        if self.across || self.fired || self.seen.is_empty() {
            return None;
        }
        let (arrived, missing) =
            self.feeders.keys().cloned().partition(|name| self.seen.contains(name));
        Some((self.target.clone(), arrived, missing))
    }
}
