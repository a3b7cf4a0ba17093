//! The compiled form of a graph, as the kernel sees it: channels, and nodes with their triggers.

use std::any::TypeId;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::engine::kernel::compiled::Compiled;
use crate::engine::kernel::join::JoinSpec;
use crate::engine::kernel::policy::NodeOptions;
use crate::node::{Node, Router};
use crate::state::{ErasedSchema, Kind, Managed, Spec};

pub(crate) const START: &str = "__start__";
pub(crate) const END: &str = "__end__";
pub(crate) const TASKS: &str = "__pregel_tasks";

/// The position of a channel: state channels first, then control channels, then the pending dispatches.
pub(crate) type Slot = usize;

/// What a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    State(usize),
    Control(usize),
    Tasks,
}

/// A channel that carries control rather than state. Users neither declare nor see these.
#[derive(Debug)]
pub(crate) struct ControlSpec {
    pub(crate) name: Arc<str>,
    pub(crate) kind: ControlKind,
}

#[derive(Debug)]
pub(crate) enum ControlKind {
    /// Holds the input until the first node takes it.
    Start,
    /// Triggers one node. A deferred one becomes available only when nothing else is left to run.
    Branch { deferred: bool },
    /// Triggers one node when enough members have written.
    Join(JoinSpec),
}

/// What a triggered node reads of the state.
#[derive(Clone, Debug)]
pub(crate) enum Reads {
    /// These channels.
    Channels(Vec<usize>),
    /// The input itself, not the state.
    Start,
}

pub(crate) struct NodeDef {
    pub(crate) name: Arc<str>,
    pub(crate) node: Arc<dyn Node>,
    /// Control channels that trigger it.
    pub(crate) triggers: Vec<usize>,
    /// Their names, sorted.
    pub(crate) trigger_names: Vec<Arc<str>>,
    /// The end of the text that is hashed into the id of a triggered task.
    pub(crate) id_tail: String,
    pub(crate) reads: Reads,
    /// Control channels its edges write to.
    pub(crate) edges: Vec<usize>,
    /// Joins it is a member of, with its position among the members.
    pub(crate) joins: Vec<(usize, usize)>,
    pub(crate) routers: Vec<Arc<dyn Router>>,
    pub(crate) options: NodeOptions,
    /// The node that runs when this one has finally failed.
    pub(crate) handler: Option<usize>,
    /// Makes the output of a task that has finally failed, if the superstep is to continue.
    pub(crate) collector: Option<Arc<dyn Node>>,
    /// Not shown in streams.
    pub(crate) hidden: bool,
    /// The graph that it runs, as far as is known.
    pub(crate) inner: Option<Arc<Compiled>>,
}

impl NodeDef {
    /// Types of the context that the node and its collector ask for, with their names.
    pub(crate) fn needs(&self) -> Vec<(TypeId, &'static str)> {
        let mut needs = self.node.needs();
        needs.extend(self.collector.iter().flat_map(|collector| collector.needs()));
        needs
    }
}

/// Everything the kernel knows about a graph.
pub(crate) struct Layout {
    pub(crate) name: Arc<str>,
    pub(crate) schema: Arc<dyn ErasedSchema>,
    /// Makes a row that nobody has written to.
    pub(crate) empty: Arc<dyn Fn() -> crate::state::Row + Send + Sync>,
    pub(crate) channels: Vec<Spec>,
    pub(crate) managed: Vec<(Arc<str>, Managed)>,
    pub(crate) controls: Vec<ControlSpec>,
    pub(crate) nodes: Vec<NodeDef>,
    /// Where each node stands when nodes are sorted by name.
    pub(crate) rank: Vec<u32>,
    /// For each control channel, the nodes it triggers.
    pub(crate) triggered: Vec<Vec<usize>>,
    /// Control channels that become available only when a run is about to end.
    pub(crate) deferred: Vec<usize>,
    /// Control channels that are joins.
    pub(crate) joins: Vec<usize>,
    /// Those that may fire before all their members have run.
    pub(crate) partial_joins: Vec<usize>,
    pub(crate) node_by_name: HashMap<Arc<str>, usize>,
    pub(crate) slot_by_name: HashMap<Arc<str>, Slot>,
    /// The control channel that triggers a node by name, for nodes that have one.
    pub(crate) branch_of: Vec<Option<usize>>,
    /// Channels that make up the result.
    pub(crate) output: Vec<usize>,
    /// Channels that are shown in streams and snapshots.
    pub(crate) shown: Vec<usize>,
    /// The graph shows one channel, and its value stands for the whole state (functional graphs).
    pub(crate) single: bool,
    /// Some node is a graph, or calls one.
    pub(crate) nests: bool,
    /// The types of context that nodes ask for, also those of graphs inside.
    pub(crate) needs: Vec<TypeId>,
    /// Unknown names are logged and ignored instead of refused.
    pub(crate) lenient: bool,
}

/// The types of context that nodes ask for, also those of graphs inside, each once.
pub(crate) fn needed_context(nodes: &[NodeDef]) -> Vec<TypeId> {
    let mut all = BTreeSet::new();
    for def in nodes {
        all.extend(def.needs().into_iter().map(|(id, _)| id));
        all.extend(def.inner.iter().flat_map(|inner| inner.layout.needs.iter().copied()));
    }
    all.into_iter().collect()
}

impl Layout {
    pub(crate) fn slots(&self) -> usize {
        self.channels.len() + self.controls.len() + 1
    }

    pub(crate) fn tasks_slot(&self) -> Slot {
        self.channels.len() + self.controls.len()
    }

    pub(crate) fn control_slot(&self, control: usize) -> Slot {
        self.channels.len() + control
    }

    pub(crate) fn place(&self, slot: Slot) -> Place {
        if slot < self.channels.len() {
            Place::State(slot)
        } else if slot < self.tasks_slot() {
            Place::Control(slot - self.channels.len())
        } else {
            Place::Tasks
        }
    }

    pub(crate) fn slot_name(&self, slot: Slot) -> Arc<str> {
        match self.place(slot) {
            Place::State(at) => self.channels[at].name.clone(),
            Place::Control(at) => self.controls[at].name.clone(),
            Place::Tasks => TASKS.into(),
        }
    }

    /// Whether an idle superstep empties the channel.
    pub(crate) fn is_volatile(&self, slot: Slot) -> bool {
        match self.place(slot) {
            Place::State(at) => matches!(
                self.channels[at].kind,
                Kind::Any | Kind::Ephemeral { .. } | Kind::Topic { accumulate: false }
            ),
            Place::Control(at) => matches!(
                self.controls[at].kind,
                ControlKind::Start | ControlKind::Branch { deferred: false }
            ),
            Place::Tasks => true,
        }
    }

    pub(crate) fn node(&self, name: &str) -> Option<usize> {
        // A few names are compared sooner than one is hashed.
        if self.nodes.len() <= 8 {
            return self.nodes.iter().position(|node| *node.name == *name);
        }
        self.node_by_name.get(name).copied()
    }
}
