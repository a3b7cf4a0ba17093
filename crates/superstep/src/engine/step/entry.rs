//! A task of a superstep, from the plan to its writes.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use superstep_checkpoint::{Error, Value};

use crate::engine::kernel::apply::{Actor, Applied};
use crate::engine::kernel::head::{Control, Head, Packet, StartValue, Write};
use crate::engine::kernel::layout::{Layout, NodeDef, Reads};
use crate::engine::kernel::plan::{Cause, Planned};
use crate::engine::kernel::policy::TimeoutPolicy;
use crate::engine::step::attempt::{Held, Job};
use crate::engine::step::superstep::Superstep;
use crate::engine::stored::pending::{Pending, TaskRecord};
use crate::engine::stored::slots;
use crate::engine::task::handle::{Identity, Task};
use crate::engine::watch::emit;
use crate::error::{NodeError, RunError};
use crate::node::Failure;
use crate::state::{Payload, Row};

/// What a finished task has written, by the path that orders it among the others.
pub(crate) type FinishedWrites = SmallVec<[(String, Applied); 1]>;

/// A task of the superstep that is running.
pub(crate) struct Entry {
    pub(crate) task: Task,
    pub(crate) node: usize,
    kind: EntryKind,
    arg: Option<Payload>,
    timeout: Option<Box<TimeoutPolicy>>,
    failure: Option<Arc<Failure>>,
    /// What it wrote, if it has finished.
    pub(crate) writes: Option<Vec<Write>>,
    /// The writes come from storage.
    pub(crate) kept: bool,
    /// It failed, and its error handler runs in its place.
    pub(crate) handled: bool,
    /// It has ended, one way or another.
    pub(in crate::engine) ended: bool,
    pub(crate) is_handler: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryKind {
    Triggered,
    Dispatched(usize),
}

impl Entry {
    pub(crate) fn new(superstep: &Arc<Superstep>, planned: Planned) -> Self {
        let Planned { node, cause } = planned;
        let name = superstep.setting.layout.nodes[node].name.clone();
        let (kind, identity, arg, timeout) = match cause {
            Cause::Triggered => (EntryKind::Triggered, Identity::Triggered(node), None, None),
            Cause::Dispatched(index, arg, timeout) => (
                EntryKind::Dispatched(index),
                Identity::Dispatched(index),
                Some(arg),
                timeout.map(|timeout| Box::new(TimeoutPolicy::from_stored(*timeout))),
            ),
        };
        Self {
            task: Task::new(superstep.clone(), name, identity, None),
            node,
            kind,
            arg,
            timeout,
            failure: None,
            writes: None,
            kept: false,
            handled: false,
            ended: false,
            is_handler: false,
        }
    }

    /// What the task was dispatched with.
    pub(crate) fn arg(&self) -> Option<&Payload> {
        self.arg.as_ref()
    }

    /// The beginning of what the task was dispatched with, for people who have to tell tasks apart.
    pub(crate) fn brief_arg(&self) -> Option<Arc<str>> {
        self.arg.as_ref().map(Payload::brief)
    }

    /// The task of the error handler that runs in place of this one, if this one has failed into it.
    pub(crate) fn handler_of_failed(&self, pending: &Pending) -> Option<Self> {
        let superstep = &self.task.inner.superstep;
        let handler = superstep.setting.layout.nodes[self.node].handler?;
        let error = pending.handled_error(self.task.id())?;
        Some(Self::handler(superstep, self, handler, error))
    }

    /// Whether the task has finished, or the error handler that ran in its place.
    pub(crate) fn has_finished(&self, pending: &Pending) -> bool {
        let is_finished = |id| pending.task(id).is_some_and(TaskRecord::is_finished);
        is_finished(self.task.id())
            || self.handler_of_failed(pending).is_some_and(|handler| is_finished(handler.task.id()))
    }

    /// What is to be applied of the task in place of running it, if it has finished: its writes, or those of the error
    /// handler that ran in its place.
    pub(crate) fn finished(&self, pending: &Pending) -> Result<Option<FinishedWrites>, Error> {
        let layout = &self.task.inner.superstep.setting.layout;
        if let Some(output) = pending.output(self.task.id()) {
            let writes = slots::decode_writes(layout, &output)?;
            return Ok(Some(SmallVec::from_buf([(
                self.task.path(),
                Applied { actor: self.actor(), writes },
            )])));
        }
        let Some(handler) = self.handler_of_failed(pending) else { return Ok(None) };
        let Some(output) = pending.output(handler.task.id()) else { return Ok(None) };
        let writes = slots::decode_writes(layout, &output)?;
        let failed = Applied { actor: self.actor(), writes: Vec::new() };
        let handled = Applied { actor: handler.actor(), writes };
        Ok(Some(smallvec![(self.task.path(), failed), (handler.task.path(), handled)]))
    }

    /// The task of the error handler of a failed task.
    pub(crate) fn handler(
        superstep: &Superstep,
        failed: &Self,
        handler: usize,
        error: impl Into<HandledError>,
    ) -> Self {
        let name = superstep.setting.layout.nodes[handler].name.clone();
        let error = error.into().0;
        Self {
            task: failed.task.handled_by(name),
            node: handler,
            kind: failed.kind,
            arg: failed.arg.clone(),
            timeout: None,
            failure: Some(Arc::new(Failure { node: failed.task.inner.name.clone(), error })),
            writes: None,
            kept: false,
            handled: false,
            ended: false,
            is_handler: true,
        }
    }

    /// The order in which writes are folded: that of the text of the path, without making the text.
    pub(crate) fn order(&self) -> (u8, OrderName<'_>, usize, bool) {
        match (self.kind, &self.failure) {
            (EntryKind::Dispatched(index), _) => (1, OrderName(""), index, self.is_handler),
            (EntryKind::Triggered, Some(failure)) => (0, OrderName(&failure.node), 0, true),
            (EntryKind::Triggered, None) => {
                (0, OrderName(&self.task.inner.name), 0, self.is_handler)
            }
        }
    }

    pub(crate) fn actor(&self) -> Actor {
        let triggered = self.kind == EntryKind::Triggered && !self.is_handler;
        if triggered { Actor::Triggered(self.node) } else { Actor::Ran(self.node) }
    }

    /// Its writes, to be applied.
    pub(crate) fn applied(&mut self) -> Applied {
        Applied { actor: self.actor(), writes: self.writes.take().unwrap_or_default() }
    }

    /// The dispatch that asked for this task, if one did.
    pub(crate) fn packet(&self) -> Option<Packet> {
        let arg = self.arg.clone()?;
        let timeout = self.timeout.as_deref().map(|timeout| Box::new(timeout.stored()));
        Some(Packet { node: self.task.inner.name.clone(), arg, timeout })
    }

    /// What the node gets, as data.
    ///
    /// # Errors
    /// It cannot be serialized.
    pub(crate) fn input_value(
        &self,
        layout: &Layout,
        head: &Head,
        step: i64,
        stop: i64,
    ) -> Result<Value, RunError> {
        let reads = &layout.nodes[self.node].reads;
        let input = match &self.arg {
            Some(arg) => arg.to_value(),
            None => emit::input_value(layout, head, reads, step, stop),
        };
        input.map_err(|error| {
            let name = &self.task.inner.name;
            let message = format!("the input of node `{name}` cannot be serialized: {error}");
            RunError::InvalidUpdate { message, code: None }
        })
    }

    pub(crate) fn is_dispatched(&self) -> bool {
        matches!(self.kind, EntryKind::Dispatched(_))
    }

    pub(crate) fn triggers(&self, def: &NodeDef) -> Vec<Arc<str>> {
        match self.kind {
            EntryKind::Triggered if !self.is_handler => def.trigger_names.clone(),
            _ => vec![crate::engine::stored::ids::PUSH.into()],
        }
    }

    /// What it takes to run it; it stands at this position in its superstep.
    pub(in crate::engine) fn job(
        &self,
        at: usize,
        layout: &Layout,
        controls: &[Control],
        row: Row,
    ) -> Job {
        let start = match &layout.nodes[self.node].reads {
            Reads::Start => controls.iter().find_map(|control| match control {
                Control::Start(value) => value.clone(),
                _ => None,
            }),
            Reads::Channels(_) => None,
        };
        let arg = match start.as_deref() {
            Some(StartValue::Arg(payload)) => Some(payload.clone()),
            _ => self.arg.clone(),
        };
        Job {
            at,
            node: self.node,
            held: Held { task: self.task.clone(), row, lent: false },
            arg,
            start,
            failure: self.failure.clone(),
            timeout: self.timeout.as_deref().copied(),
            write_buffer: Vec::new(),
        }
    }
}

/// Names compare by their bytes, as the stored paths do.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OrderName<'a>(&'a str);

/// An error on its way to a handler: as it happened, or as it was stored.
pub(crate) struct HandledError(NodeError);

impl From<NodeError> for HandledError {
    fn from(error: NodeError) -> Self {
        Self(error)
    }
}

impl From<String> for HandledError {
    fn from(stored: String) -> Self {
        Self(NodeError::from_stored(stored))
    }
}
