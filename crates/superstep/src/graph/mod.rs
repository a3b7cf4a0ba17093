//! Graphs: the builder, and the compiled form that can run.

mod builder;
mod check;
mod compile;
mod compiled;
mod draw;
mod drawing;
mod hidden;
mod join;
mod place;
mod reach;
mod subgraph;

pub use builder::{StateGraph, Targets};
pub(crate) use compile::id_tail;
pub use compiled::CompiledGraph;
pub(crate) use compiled::{Shape, returned};
pub use drawing::{Drawing, Edge};
pub use join::Join;
pub use place::{Area, Placed, PlacedEdge, PlacedGroup, PlacedNode};
pub use subgraph::Subgraph;
