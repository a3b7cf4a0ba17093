//! Pictures of graphs.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;

use super::builder::StateGraph;
use super::compiled::CompiledGraph;
use super::drawing::Drawing;
use crate::engine::Compiled;
use crate::engine::DrawnEdge;
use crate::engine::{END, START};
use crate::state::State;

impl<S: State, O> StateGraph<S, O> {
    pub(super) fn drawn_edges(&self) -> Vec<DrawnEdge> {
        let plain = |from: &Arc<str>, to: &Arc<str>, conditional| DrawnEdge {
            from: from.clone(),
            to: to.clone(),
            conditional,
            label: None,
            join: None,
        };
        let mut edges: Vec<DrawnEdge> =
            self.edges.iter().map(|(from, to)| plain(from, to, false)).collect();
        for (join, to) in &self.joins {
            let kind: Arc<str> = join.kind().into();
            edges.extend(
                join.sources
                    .iter()
                    .map(|from| DrawnEdge { join: Some(kind.clone()), ..plain(from, to, false) }),
            );
        }
        for branch in &self.branches {
            match &branch.targets.0 {
                Some(targets) => edges.extend(targets.iter().map(|(label, to)| DrawnEdge {
                    label: (label != to).then(|| label.clone()),
                    ..plain(&branch.from, to, true)
                })),
                None => {
                    let end: Arc<str> = END.into();
                    let all = self.nodes.iter().map(|node| &node.name).chain([&end]);
                    edges.extend(all.map(|to| plain(&branch.from, to, true)));
                }
            }
        }
        for node in &self.nodes {
            edges.extend(node.destinations.iter().map(|to| plain(&node.name, to, true)));
        }
        // A node from which nothing leads on ends the graph.
        let end: Arc<str> = END.into();
        for node in &self.nodes {
            if !edges.iter().any(|edge| edge.from == node.name) {
                edges.push(plain(&node.name, &end, false));
            }
        }
        edges
    }
}

impl<S: State, O> CompiledGraph<S, O> {
    /// The graph as a Mermaid flowchart: conditional edges dotted, subgraphs nested.
    #[doc(alias = "draw_mermaid")]
    pub fn to_mermaid(&self) -> String {
        let mut text = String::from("flowchart TD\n");
        mermaid(self.inner(), "", 1, &mut text);
        text
    }

    /// The graph as an SVG picture that needs nothing else; subgraphs are unfolded. [`Drawing::placed`] gives the positions.
    pub fn to_svg(&self) -> String {
        Drawing::of(self.inner(), usize::MAX).placed().to_svg()
    }

    /// The graph as text: each node with where it leads.
    #[doc(alias = "draw_ascii")]
    pub fn to_ascii(&self) -> String {
        let mut text = String::new();
        ascii(self.inner(), 0, &mut text);
        text
    }
}

/// Words that Mermaid rejects as node ids.
const RESERVED: [&str; 12] = [
    "call",
    "class",
    "classDef",
    "click",
    "default",
    "direction",
    "end",
    "flowchart",
    "graph",
    "href",
    "style",
    "subgraph",
];

/// The ids of the nodes of a graph in a drawing. A name that is an id keeps it; of others, what cannot stand in an id is
/// replaced, and a number tells apart what would be the same then.
fn node_ids<'a>(graph: &'a Compiled, prefix: &str) -> HashMap<&'a str, String> {
    let is_plain = |name: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !name.is_empty() && name.chars().all(plain) && !RESERVED.contains(&name)
    };
    let names = shown_nodes(graph).map(|node| &*node.name).chain([START, END]);
    let (plain, others): (Vec<_>, Vec<_>) = names.partition(|name| is_plain(name));
    let mut taken: HashSet<String> = plain.iter().map(|name| (*name).to_owned()).collect();
    let mut ids: HashMap<&str, String> =
        plain.into_iter().map(|name| (name, format!("{prefix}{name}"))).collect();
    for name in others {
        let letters = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
        let base: String = letters.collect();
        let numbered = (2..).map(|nth| format!("{base}_{nth}"));
        let first = (!RESERVED.contains(&&*base)).then(|| base.clone());
        let free = first.into_iter().chain(numbered).find(|id| !taken.contains(id));
        let id = free.unwrap_or(base);
        ids.insert(name, format!("{prefix}{id}"));
        taken.insert(id);
    }
    ids
}

fn shown_nodes(graph: &Compiled) -> impl Iterator<Item = &crate::engine::NodeDef> {
    graph.layout.nodes.iter().filter(|node| !node.name.starts_with("__"))
}

fn mermaid(graph: &Compiled, prefix: &str, depth: usize, text: &mut String) {
    let pad = "    ".repeat(depth);
    let ids = node_ids(graph, prefix);
    let ends = [(START, "start"), (END, "end")];
    for (name, label) in ends {
        let _ = writeln!(text, "{pad}{}([{label}])", ids[name]);
    }
    for node in shown_nodes(graph) {
        let id = &ids[&*node.name];
        match &node.inner {
            Some(inner) => {
                let _ = writeln!(text, "{pad}subgraph {id}[\"{}\"]", escaped(&node.name));
                mermaid(inner, &format!("{id}."), depth + 1, text);
                let _ = writeln!(text, "{pad}end");
            }
            None => {
                let _ = writeln!(text, "{pad}{id}[\"{}\"]", escaped(&node.name));
            }
        }
    }
    for edge in &graph.edges {
        let (Some(from), Some(to)) = (ids.get(&*edge.from), ids.get(&*edge.to)) else { continue };
        let arrow = if edge.conditional { "-.->" } else { "-->" };
        let label = edge.label.as_ref().or(edge.join.as_ref());
        let label = label.map(|label| format!("|\"{}\"|", escaped(label))).unwrap_or_default();
        let _ = writeln!(text, "{pad}{from} {arrow}{label} {to}");
    }
}

/// A text as a label. Mermaid takes HTML and Markdown in labels, and `#` for the beginning of a sign that is given by name.
fn escaped(text: &str) -> String {
    let mut label = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => label.push_str("#quot;"),
            '#' | '&' | '<' | '>' | '`' => {
                let _ = write!(label, "#{};", u32::from(c));
            }
            c if c.is_control() => label.push(' '),
            c => label.push(c),
        }
    }
    label
}

fn ascii(graph: &Compiled, depth: usize, text: &mut String) {
    let pad = "    ".repeat(depth);
    let mut from: BTreeMap<&str, Vec<&DrawnEdge>> = BTreeMap::new();
    for edge in &graph.edges {
        from.entry(&edge.from).or_default().push(edge);
    }
    let mut queue = VecDeque::from([START]);
    let mut seen = HashSet::from([START]);
    let mut order = Vec::new();
    while let Some(name) = queue.pop_front() {
        order.push(name);
        for edge in from.get(name).into_iter().flatten() {
            if seen.insert(&*edge.to) {
                queue.push_back(&edge.to);
            }
        }
    }
    let rest = shown_nodes(graph).map(|node| &*node.name).filter(|name| !seen.contains(name));
    let order: Vec<&str> = order.into_iter().chain(rest).filter(|name| *name != END).collect();
    for name in order {
        let _ = writeln!(text, "{pad}[{}]", plain_name(name));
        if let Some(inner) =
            shown_nodes(graph).find(|n| &*n.name == name).and_then(|n| n.inner.as_ref())
        {
            ascii(inner, depth + 1, text);
        }
        for edge in from.get(name).into_iter().flatten() {
            let arrow = if edge.conditional { "..>" } else { "-->" };
            let label = edge.label.as_ref().or(edge.join.as_ref());
            let label = label.map(|label| format!("  ({label})")).unwrap_or_default();
            let _ = writeln!(text, "{pad}  {arrow} {}{label}", plain_name(&edge.to));
        }
    }
}

/// Where a graph begins and ends has no quotes; a node of the same name does.
fn plain_name(name: &str) -> Cow<'_, str> {
    match name {
        START => "start".into(),
        END => "end".into(),
        "start" | "end" => format!("\"{name}\"").into(),
        other => other.into(),
    }
}
