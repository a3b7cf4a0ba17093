//! A graph as data: its nodes, and the edges between them.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use crate::engine::Compiled;
use crate::engine::{END, START};

/// The nodes and edges of a graph.
#[doc(alias = "get_graph")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drawing {
    /// The ids of the nodes, from `__start__` to `__end__`. A node of an unfolded subgraph has the id `subgraph:node`.
    pub nodes: Vec<String>,
    /// The edges, sorted.
    pub edges: Vec<Edge>,
    /// Which of the nodes are subgraphs that are not unfolded.
    pub subgraphs: Vec<String>,
}

/// An edge of a [`Drawing`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Edge {
    /// Its source.
    pub source: String,
    /// Its target.
    pub target: String,
    /// Only sometimes followed.
    pub conditional: bool,
    /// The router's answer, if it differs from the name of the node.
    pub label: Option<Arc<str>>,
    /// The kind of [`Join`](crate::Join) that it is part of: `all`, `any`, or how many `of` how many.
    pub join: Option<Arc<str>>,
}

impl Edge {
    /// What is written at the edge, if anything. A join of all nodes is shown as plain edges.
    pub(super) fn shown_label(&self) -> Option<&str> {
        let kind = self.join.as_deref().filter(|kind| *kind != "all");
        self.label.as_deref().or(kind)
    }
}

impl Drawing {
    /// Unfolds subgraphs down to this depth.
    pub(crate) fn of(graph: &Compiled, depth: usize) -> Self {
        let mut drawing = Self::default();
        drawing.nodes.push(START.to_owned());
        drawing.add(graph, "", depth);
        drawing.nodes.push(END.to_owned());
        drawing.edges.sort();
        drawing.edges.dedup();
        drawing
    }

    fn add(&mut self, graph: &Compiled, prefix: &str, depth: usize) {
        let shown = || graph.layout.nodes.iter().filter(|node| !node.name.starts_with("__"));
        let unfolded = |name: &str| {
            let node = shown().find(|node| *node.name == *name)?;
            node.inner.as_ref().filter(|_| depth > 0)
        };
        for node in shown() {
            match unfolded(&node.name) {
                Some(inner) => self.add(inner, &format!("{prefix}{}:", node.name), depth - 1),
                None => {
                    let id = format!("{prefix}{}", node.name);
                    if node.inner.is_some() {
                        self.subgraphs.push(id.clone());
                    }
                    self.nodes.push(id);
                }
            }
        }
        for edge in &graph.edges {
            // What leads from the beginning of a subgraph, and to its end, is drawn by its
            // parent graph.
            let inside = !prefix.is_empty();
            if inside && (&*edge.from == START || &*edge.to == END) {
                continue;
            }
            let first = |name: &str| ends(unfolded(name), name, prefix, depth, true);
            let last = |name: &str| ends(unfolded(name), name, prefix, depth, false);
            for (source, _) in last(&edge.from) {
                for (target, conditional) in first(&edge.to) {
                    self.edges.push(Edge {
                        source: source.clone(),
                        target,
                        conditional: edge.conditional || conditional,
                        label: edge.label.clone(),
                        join: edge.join.clone(),
                    });
                }
            }
        }
    }

    /// The form in which LangGraph gives a graph to its clients.
    pub fn to_json(&self) -> Json {
        let node = |id: &String| match &**id {
            END => json!({ "id": id }),
            _ => json!({ "id": id, "type": "runnable", "data": { "name": id } }),
        };
        let edge = |edge: &Edge| {
            let mut json = json!({ "source": edge.source, "target": edge.target });
            if edge.conditional {
                json["conditional"] = true.into();
            }
            if let Some(label) = edge.shown_label() {
                json["data"] = label.into();
            }
            json
        };
        let nodes: Vec<_> = self.nodes.iter().map(node).collect();
        let edges: Vec<_> = self.edges.iter().map(edge).collect();
        json!({ "nodes": nodes, "edges": edges })
    }
}

/// The nodes with which a node begins or ends, and whether they do so only sometimes: itself, unless it is unfolded.
fn ends(
    inner: Option<&Arc<Compiled>>,
    name: &str,
    prefix: &str,
    depth: usize,
    first: bool,
) -> Vec<(String, bool)> {
    let Some(inner) = inner else { return vec![(format!("{prefix}{name}"), false)] };
    let prefix = format!("{prefix}{name}:");
    let edges = inner
        .edges
        .iter()
        .filter(|edge| if first { &*edge.from == START } else { &*edge.to == END });
    let found = edges.flat_map(|edge| {
        let name = if first { &edge.to } else { &edge.from };
        let node = inner.layout.nodes.iter().find(|node| node.name == *name);
        let below = node.and_then(|node| node.inner.as_ref()).filter(|_| depth > 1);
        let ends = ends(below, name, &prefix, depth - 1, first);
        ends.into_iter().map(|(id, sometimes)| (id, sometimes || edge.conditional))
    });
    found.collect()
}
