//! What a run of a graph begins with: its input, and everything else that is needed to drive it.

use std::collections::BTreeMap;
use std::sync::Arc;

use superstep_checkpoint::{AnyCheckpointer, CheckpointId, Error, InterruptId, Value};

use crate::engine::drive::run::Run;
use crate::engine::kernel::breakpoint::Breakpoints;
use crate::engine::kernel::compiled::Compiled;
use crate::engine::kernel::head::StartValue;
use crate::engine::step::superstep::Superstep;
use crate::node::Goto;
use crate::state::{Payload, Writes};

/// What a run begins with.
pub(crate) enum Input {
    /// Go on from where the thread is.
    Nothing,
    /// As `Nothing`, if a question is due, and else nothing at all.
    Wake,
    Value(StartValue),
    Command(CommandInput),
}

#[derive(Default)]
pub(crate) struct CommandInput {
    pub(crate) resume: Resume,
    pub(crate) update: Writes,
    pub(crate) goto: Vec<Goto>,
    pub(crate) to_parent: bool,
}

#[derive(Default)]
pub(crate) enum Resume {
    #[default]
    Nothing,
    One(Value),
    ById(Vec<(InterruptId, Value)>),
    /// An answer that cannot be serialized, and the question it was given for, if it was named.
    Invalid(Option<InterruptId>, Error),
}

impl Resume {
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }
}

/// Everything needed to drive a graph.
pub(crate) struct Opening {
    pub(crate) run: Arc<Run>,
    pub(crate) graph: Arc<Compiled>,
    pub(crate) checkpointer: Option<AnyCheckpointer>,
    pub(crate) ns: Arc<str>,
    /// The namespace that streams show, if it is another one.
    pub(crate) shown: Option<Arc<str>>,
    /// The checkpoints of the graphs around this one.
    pub(crate) parents: Arc<BTreeMap<String, CheckpointId>>,
    pub(crate) at: Option<CheckpointId>,
    pub(crate) input: Input,
    pub(crate) breakpoints: Breakpoints,
    pub(crate) caller: Option<Caller>,
    /// The channels whose values are shown and returned.
    pub(crate) keys: Arc<[usize]>,
}

/// What a nested graph knows of the task it runs in.
pub(crate) struct Caller {
    pub(crate) resuming: Option<bool>,
    /// Nobody can have called the graph here before, so nothing is stored for it.
    pub(crate) first: bool,
    /// The checkpoint that the task began from was made from outside, and not by a run.
    pub(crate) touched: bool,
    /// The superstep of the task, whose checkpoint may still be on its way to storage.
    pub(crate) superstep: Arc<Superstep>,
}

/// A run's input as a value that is checked when the first node takes it.
pub(crate) fn value_input(value: Value) -> StartValue {
    StartValue::Arg(Payload::new(value))
}
