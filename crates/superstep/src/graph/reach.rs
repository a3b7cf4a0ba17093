//! Which node may lead to which, as far as was declared.

use std::collections::{HashMap, HashSet, VecDeque};

use super::builder::StateGraph;
use super::join::Join;
use crate::engine::START;
use crate::state::State;

/// The targets of each node. `None`: possibly any node.
type Successors<'a> = HashMap<&'a str, Option<Vec<&'a str>>>;

impl<S: State, O> StateGraph<S, O> {
    fn successors(&self) -> Successors<'_> {
        let mut all: Successors<'_> = HashMap::new();
        let mut pairs: Vec<(&str, Option<&str>)> = Vec::new();
        pairs.extend(self.edges.iter().map(|(from, to)| (&**from, Some(&**to))));
        for (join, to) in &self.joins {
            pairs.extend(join.sources.iter().map(|from| (&**from, Some(&**to))));
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

    /// The nodes that the input may come to. `None`: possibly all.
    pub(super) fn reached(&self) -> Option<HashSet<&str>> {
        let successors = self.successors();
        let mut reached = HashSet::from([START]);
        let mut queue = VecDeque::from([START]);
        while let Some(node) = queue.pop_front() {
            match successors.get(node) {
                None if node == START => return None,
                None => {}
                Some(None) => return None,
                Some(Some(next)) => {
                    queue.extend(next.iter().filter(|name| reached.insert(**name)));
                }
            }
        }
        Some(reached)
    }

    /// For each source of a join, the nodes that may lead to it without going through the join's target.
    pub(super) fn feeders<'a>(&'a self, join: &'a Join, target: &str) -> Vec<HashSet<&'a str>> {
        let mut successors = self.successors();
        // The commands of an error handler may lead anywhere.
        for node in &self.nodes {
            if node.handler.is_some() || self.default_handler.is_some() {
                successors.insert(&node.name, None);
            }
        }
        let leading_to = |source| {
            let mut found = HashSet::from([source]);
            let mut queue = VecDeque::from([source]);
            while let Some(to) = queue.pop_front() {
                for (from, next) in &successors {
                    let leads = next.as_ref().is_none_or(|next| next.contains(&to));
                    if leads && *from != target && found.insert(from) {
                        queue.push_back(from);
                    }
                }
            }
            found
        };
        join.sources.iter().map(|source| leading_to(&**source)).collect()
    }
}
