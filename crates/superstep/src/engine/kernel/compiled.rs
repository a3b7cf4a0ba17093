//! A graph that was checked: its layout, and what it was given.

use std::sync::Arc;
use std::time::Duration;

use superstep_checkpoint::{AnyCache, AnyCheckpointer, AnyStore};

use crate::engine::kernel::breakpoint::Breakpoints;
use crate::engine::kernel::layout::Layout;

/// The memory of a subgraph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Memory {
    /// Each call starts over; an interrupted call continues where it was.
    #[default]
    PerCall,
    /// All calls on a thread continue one history.
    PerThread,
    /// Nothing is stored, for its own subgraphs neither; an interrupted call starts over.
    Nothing,
}

/// A graph that was checked, without the type of its state.
pub(crate) struct Compiled {
    pub(crate) layout: Arc<Layout>,
    pub(crate) breakpoints: Breakpoints,
    pub(crate) step_timeout: Option<Duration>,
    pub(crate) memory: Memory,
    pub(crate) warnings: Vec<String>,
    pub(crate) edges: Vec<DrawnEdge>,
    pub(crate) checkpointer: Option<AnyCheckpointer>,
    pub(crate) store: Option<AnyStore>,
    pub(crate) cache: Option<AnyCache>,
}

impl Compiled {
    pub(crate) fn with(&self, change: impl FnOnce(&mut Self)) -> Arc<Self> {
        let mut copy = Self {
            layout: self.layout.clone(),
            breakpoints: self.breakpoints.clone(),
            step_timeout: self.step_timeout,
            memory: self.memory,
            warnings: self.warnings.clone(),
            edges: self.edges.clone(),
            checkpointer: self.checkpointer.clone(),
            store: self.store.clone(),
            cache: self.cache.clone(),
        };
        change(&mut copy);
        Arc::new(copy)
    }

    pub(crate) fn with_memory(&self, memory: Memory) -> Arc<Self> {
        self.with(|graph| graph.memory = memory)
    }
}

/// An edge as it is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DrawnEdge {
    pub(crate) from: Arc<str>,
    pub(crate) to: Arc<str>,
    /// Only sometimes followed.
    pub(crate) conditional: bool,
    /// What the router answers, if that is not the name of the node.
    pub(crate) label: Option<Arc<str>>,
    /// The kind of join that it is part of.
    pub(crate) join: Option<Arc<str>>,
}
