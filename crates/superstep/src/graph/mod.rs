//! Graphs: what is declared, and what has been checked and can run.

mod breakpoint;
mod builder;
mod check;
mod compile;
mod compiled;
mod draw;
mod drawing;
mod policy;
mod subgraph;

pub use breakpoint::BreakAt;
pub(crate) use breakpoint::{At, Breakpoints};
pub use builder::{StateGraph, Targets};
pub(crate) use compile::id_tail;
pub use compiled::CompiledGraph;
pub use compiled::Memory;
pub(crate) use compiled::{Compiled, Shape, returned};
pub use drawing::{Drawing, Edge};
pub(crate) use policy::NodeOptions;
pub use policy::{CachePolicy, RetryPolicy, TimeoutPolicy};
pub use subgraph::Subgraph;
