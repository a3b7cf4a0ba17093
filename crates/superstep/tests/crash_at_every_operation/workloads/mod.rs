//! What processes do when they are ended.

mod calls;
mod failures;
mod flow;
mod nested;
mod outside;
mod questions;
mod workflows;

use superstep::CompiledGraph;
use superstep::prelude::*;

use crate::workload::Play;

/// All workloads.
pub(crate) fn all() -> Vec<Box<dyn Play>> {
    let mut all = flow::all();
    all.extend(calls::all());
    all.extend(workflows::all());
    all.extend(questions::all());
    all.extend(nested::all());
    all.extend(failures::all());
    all.extend(outside::all());
    all
}

/// A state with a channel of each kind that is stored.
#[derive(State, Clone, Debug, Default, PartialEq)]
pub(crate) struct Book {
    /// Stores what was added, and all of it occasionally.
    #[channel(reduce = Append)]
    pub(crate) lines: Vec<String>,
    /// The same, with all of it every other time.
    #[channel(reduce = Append, delta = 2)]
    pub(crate) often: Vec<String>,
    /// Stores all of it each time.
    #[channel(reduce = Append, delta = false)]
    pub(crate) whole: Vec<String>,
    #[channel(reduce = Sum)]
    pub(crate) total: i64,
    pub(crate) round: i64,
}

pub(crate) fn line(text: impl Into<String>) -> BookUpdate {
    let text = text.into();
    Book::update().lines([text.clone()]).often([text.clone()]).whole([text]).total(1)
}

/// A node that writes its name.
pub(crate) fn note(name: &'static str) -> impl Fn() -> BookUpdate + Clone + Send + Sync + 'static {
    move || line(name)
}

pub(crate) type Graph = StateGraph<Book>;
pub(crate) type App = CompiledGraph<Book>;

pub(crate) fn compiled(graph: Graph) -> App {
    graph.compile().expect("a graph")
}

/// Nodes one after the other.
pub(crate) fn chain(names: &[&'static str]) -> Graph {
    let mut graph = Graph::new().add_edge(START, names[0]);
    for name in names {
        graph = graph.add_node(*name, note(name));
    }
    names.windows(2).fold(graph, |graph, pair| graph.add_edge(pair[0], pair[1]))
}

/// Nodes side by side, and one after all of them.
pub(crate) fn fan(names: &[&'static str], after: &'static str) -> Graph {
    let mut graph = Graph::new().add_node(after, note(after));
    for name in names {
        graph = graph.add_node(*name, note(name)).add_edge(START, *name);
    }
    graph.add_edge(names.to_vec(), after)
}
