//! What a task starts and waits for: recorded calls, and the places of the graphs it calls.

use std::sync::Arc;

use crate::engine::kernel::head::StartValue;
use crate::engine::step::superstep::Record;
use crate::engine::stored::ids;
use crate::engine::task::handle::{Called, Identity, Task};
use crate::error::NodeError;

impl Task {
    /// The task of a recorded call made by this one.
    pub(crate) fn called(&self, name: Arc<str>, index: usize) -> Self {
        let called = Called { ns: self.namespace_shared(), caller: self.path(), index };
        let identity = Identity::Called(Box::new(called));
        Self::new(self.inner.superstep.clone(), name, identity, Some(self.clone()))
    }

    pub(crate) fn next_call(&self) -> usize {
        let mut scratch = self.scratch();
        scratch.calls += 1;
        scratch.calls - 1
    }

    /// The place for the next graph that this task calls with this input, and whether an earlier attempt has called it.
    ///
    /// A further attempt continues a graph that it calls with the same input; with another input it is another call.
    pub(crate) fn next_subgraph(&self, input: &StartValue) -> (Arc<str>, bool) {
        let mut scratch = self.scratch();
        let call = scratch.subgraphs;
        scratch.subgraphs += 1;
        let same = |(nth, before): &(usize, StartValue)| *nth == call && before.is_same(input);
        let known = scratch.called.iter().position(same);
        let number = known.unwrap_or(scratch.called.len());
        if known.is_none() {
            scratch.called.push((call, input.clone()));
        }
        let place = match number {
            0 => self.namespace_shared(),
            number => format!("{}{}{number}", self.namespace(), ids::LEVEL).into(),
        };
        (place, known.is_some())
    }

    /// Counts something the task has to wait for before it can be dropped.
    pub(crate) fn enter(&self) -> Inflight {
        self.inner.handover.enter();
        Inflight(self.clone())
    }

    /// Whether something the task has started still runs.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.inner.handover.is_waited_for()
    }

    pub(crate) fn stored(&self) -> Record {
        self.inner.superstep.record(self.id())
    }

    /// How this call failed when its caller ran before.
    ///
    /// Its failure may have led the caller elsewhere, so it is a result like any other. But if it led to the failure of the
    /// caller, to run the caller again is to try the call again.
    pub(crate) fn failed_before(&self) -> Option<NodeError> {
        let error = self.stored().error?;
        let mut caller = self.inner.caller.as_ref();
        while let Some(task) = caller {
            let failed = task.stored().error.filter(|error| !error.starts_with("CancelledError"));
            if failed.is_some() || task.attempt() > 1 {
                return None;
            }
            caller = task.inner.caller.as_ref();
        }
        Some(NodeError::from_stored(error))
    }

    /// Waits for a free call slot. A call that makes calls itself holds none.
    pub(crate) async fn take_call_slot(&self) {
        let Some(slots) = &self.inner.superstep.setting.call_slots else { return };
        if let Some(caller) = &self.inner.caller {
            caller.leave_call_slot();
        }
        if let Ok(permit) = slots.clone().acquire_owned().await {
            self.scratch().permit = Some(permit);
        }
    }

    pub(crate) fn leave_call_slot(&self) {
        if let Some(mut scratch) = self.noted() {
            scratch.permit = None;
        }
    }
}

/// Something a task has started that has not ended yet.
pub(crate) struct Inflight(Task);

impl Drop for Inflight {
    fn drop(&mut self) {
        self.0.inner.handover.leave();
    }
}
