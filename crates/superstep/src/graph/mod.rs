//! Graphs: what is declared, and what has been checked and can run.

mod builder;
mod check;
mod compile;
mod compiled;
mod draw;
mod drawing;
mod subgraph;

pub use builder::{StateGraph, Targets};
pub(crate) use compile::id_tail;
pub use compiled::CompiledGraph;
pub(crate) use compiled::{Shape, returned};
pub use drawing::{Drawing, Edge};
pub use subgraph::Subgraph;
