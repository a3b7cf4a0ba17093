//! The state of a thread in memory, between two barriers.

use std::collections::BTreeSet;
use std::sync::Arc;

use smallvec::SmallVec;
use superstep_checkpoint::{Blob, TimeLimits, Value};

use crate::engine::kernel::join::Arrivals;
use crate::engine::kernel::layout::{ControlKind, Layout, Place, Slot};
use crate::state::{Payload, Row, WriteValue, Writes};

/// What a write of a task does.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    /// Writes to a channel of the state.
    State(usize, WriteValue),
    /// Triggers a node.
    Branch(usize, Mark),
    /// Tells a join that one of its members has run.
    Join(usize, usize),
    /// Asks for a node to run with its own argument.
    Send(Packet),
    /// Gives the first node its input.
    Start(usize, Arc<StartValue>),
    /// Was a write to a channel of the state, and has been folded in.
    Taken,
    /// The result of a recorded call. Not applied to anything.
    Return(Payload),
    /// A name that is no channel, kept because another engine may have written it.
    Unknown(Arc<str>, Blob),
}

/// The value of a trigger. It has no meaning but is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Null,
    /// The trigger was set by a command given as input.
    Start,
}

/// A dispatch that waits for the next superstep.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) node: Arc<str>,
    pub(crate) arg: Payload,
    pub(crate) timeout: Option<Box<TimeLimits>>,
}

/// The input of a run, before the first node has taken it.
#[derive(Clone, Debug)]
pub(crate) enum StartValue {
    /// Typed writes to the state.
    Writes(Writes),
    /// Data that has still to be checked, or the argument of a functional graph.
    Arg(Payload),
}

impl StartValue {
    /// Whether both are the same data. What cannot be serialized is not the same as anything.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let same = |a: Result<Value, _>, b: Result<Value, superstep_checkpoint::Error>| matches!((a, b), (Ok(a), Ok(b)) if a == b);
        match (self, other) {
            (Self::Arg(a), Self::Arg(b)) => same(a.to_value(), b.to_value()),
            (Self::Writes(a), Self::Writes(b)) => {
                let both = a.list.iter().zip(&b.list);
                a.list.len() == b.list.len()
                    && a.unknown() == b.unknown()
                    && both.into_iter().all(|((at, a), (other, b))| {
                        at == other && same(a.to_value(), b.to_value())
                    })
            }
            (Self::Arg(_), Self::Writes(_)) | (Self::Writes(_), Self::Arg(_)) => false,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Control {
    Start(Option<Arc<StartValue>>),
    Branch(Option<Mark>),
    DeferredBranch { mark: Option<Mark>, finished: bool },
    Join(Arrivals),
}

impl Control {
    pub(crate) fn new(kind: &ControlKind) -> Self {
        match kind {
            ControlKind::Start => Self::Start(None),
            ControlKind::Branch { deferred: false } => Self::Branch(None),
            ControlKind::Branch { deferred: true } => {
                Self::DeferredBranch { mark: None, finished: false }
            }
            ControlKind::Join(spec) => Self::Join(Arrivals::new(spec)),
        }
    }

    pub(crate) fn is_available(&self) -> bool {
        match self {
            Self::Start(value) => value.is_some(),
            Self::Branch(mark) => mark.is_some(),
            Self::DeferredBranch { mark, finished } => mark.is_some() && *finished,
            Self::Join(arrivals) => arrivals.is_available(),
        }
    }

    /// A task that this channel triggered has run. Returns whether anything changed.
    pub(crate) fn consume(&mut self) -> bool {
        match self {
            Self::Start(_) | Self::Branch(_) => false,
            Self::DeferredBranch { mark, finished } if *finished => {
                *mark = None;
                *finished = false;
                true
            }
            Self::DeferredBranch { .. } => false,
            Self::Join(arrivals) => arrivals.consume(),
        }
    }

    /// Nothing else is left to run. Returns whether anything changed.
    pub(crate) fn finish(&mut self) -> bool {
        match self {
            Self::DeferredBranch { mark: Some(_), finished } if !*finished => {
                *finished = true;
                true
            }
            Self::Join(arrivals) => arrivals.finish(),
            Self::Start(_) | Self::Branch(_) | Self::DeferredBranch { .. } => false,
        }
    }

    pub(crate) fn mark(&mut self, new: Mark) {
        match self {
            Self::Branch(mark) => *mark = Some(new),
            Self::DeferredBranch { mark, finished } => {
                *mark = Some(new);
                *finished = false;
            }
            Self::Start(_) | Self::Join(_) => {}
        }
    }

    /// A member of a join has run. Returns whether that changes anything.
    pub(crate) fn arrive(&mut self, member: usize) -> bool {
        match self {
            Self::Join(arrivals) => arrivals.arrive(member),
            Self::Start(_) | Self::Branch(_) | Self::DeferredBranch { .. } => false,
        }
    }

    pub(crate) fn clear(&mut self) {
        match self {
            Self::Start(value) => *value = None,
            Self::Branch(mark) => *mark = None,
            Self::DeferredBranch { .. } | Self::Join(_) => {}
        }
    }
}

/// What changed since the last checkpoint, so that the next one need not look at what did not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    /// Slots that got a new version.
    pub(crate) slots: Vec<Slot>,
    /// Nodes that ran.
    pub(crate) nodes: Vec<usize>,
    /// Recorded calls that ran.
    pub(crate) calls: BTreeSet<Arc<str>>,
    /// Input was applied.
    pub(crate) input: bool,
    /// A run was resumed.
    pub(crate) interrupt: bool,
}

impl Changes {
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        self.nodes.clear();
        if !self.calls.is_empty() {
            self.calls.clear();
        }
        self.input = false;
        self.interrupt = false;
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) row: Row,
    /// Whether each state channel has a value.
    pub(crate) filled: Vec<bool>,
    pub(crate) controls: Vec<Control>,
    pub(crate) sends: Vec<Packet>,
    /// The version of each slot; 0: never written.
    pub(crate) versions: Vec<u64>,
    /// The greatest of them.
    pub(crate) newest: u64,
    /// For each node that ever ran, the versions of its triggers when it last did.
    pub(crate) seen: Vec<Option<Box<[u64]>>>,
    /// All versions when a run was last resumed: what lets it pass a breakpoint.
    pub(crate) seen_interrupt: Option<Box<[u64]>>,
    /// The slots that the last superstep changed. `None`: not known, so every node has to be looked at.
    pub(crate) updated: Option<Vec<Slot>>,
    /// Slots that hold something which an idle superstep empties.
    pub(crate) volatile: Vec<Slot>,
    /// What changed since the last checkpoint.
    pub(crate) news: Changes,
    /// The channels that the last superstep wrote, each with the position of a task that did.
    pub(crate) wrote: SmallVec<[(usize, usize); 2]>,
}

impl Head {
    /// A thread that nobody has written to.
    pub(crate) fn new(layout: &Layout) -> Self {
        Self {
            row: (layout.empty)(),
            filled: layout.channels.iter().map(|spec| spec.starts_filled).collect(),
            controls: layout.controls.iter().map(|spec| Control::new(&spec.kind)).collect(),
            sends: Vec::new(),
            versions: vec![0; layout.slots()],
            newest: 0,
            seen: vec![None; layout.nodes.len()],
            seen_interrupt: None,
            updated: None,
            volatile: Vec::new(),
            news: Changes::default(),
            wrote: SmallVec::new(),
        }
    }

    /// Gives a slot that changed its new version.
    pub(crate) fn touch(&mut self, slot: Slot, next: u64) {
        self.versions[slot] = next;
        self.newest = next;
        self.news.slots.push(slot);
    }

    pub(crate) fn is_available(&self, layout: &Layout, slot: Slot) -> bool {
        match layout.place(slot) {
            Place::State(at) => self.filled[at],
            Place::Control(at) => self.controls[at].is_available(),
            Place::Tasks => !self.sends.is_empty(),
        }
    }

    /// The channels in `keys` that have a value, as data.
    pub(crate) fn values(
        &self,
        layout: &Layout,
        keys: &[usize],
    ) -> Result<superstep_checkpoint::Map, superstep_checkpoint::Error> {
        let filled = keys.iter().filter(|at| self.filled[**at]);
        filled.map(|at| Ok((layout.channels[*at].name.to_string(), self.row.value(*at)?))).collect()
    }

    /// The values a graph shows: a map, or the one value of a functional graph.
    pub(crate) fn shown(
        &self,
        layout: &Layout,
        keys: &[usize],
    ) -> Result<Value, superstep_checkpoint::Error> {
        if layout.single {
            let filled = keys.iter().find(|at| self.filled[**at]);
            return filled.map_or(Ok(Value::Null), |at| self.row.value(*at));
        }
        self.values(layout, keys).map(Value::Map)
    }
}
