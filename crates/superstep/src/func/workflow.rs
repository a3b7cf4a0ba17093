use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::Serialize;
use superstep_checkpoint::Value;

use crate::engine::END;
use crate::graph::CompiledGraph;
use crate::run::{Input, Run, Thread};
use crate::state::{Schema, State, Writes};

pub(super) const PREVIOUS: &str = "__previous__";

/// The state of a workflow that takes an `I`: what it has returned.
pub struct Workflow<I> {
    pub(super) result: Value,
    pub(super) previous: Value,
    input: PhantomData<fn(I)>,
}

impl<I> Workflow<I> {
    /// The result of the workflow's last complete run on this thread; null before.
    pub fn result(&self) -> &Value {
        &self.result
    }
}

impl<I> Clone for Workflow<I> {
    fn clone(&self) -> Self {
        Self { result: self.result.clone(), previous: self.previous.clone(), input: PhantomData }
    }
}

impl<I> fmt::Debug for Workflow<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workflow").field("result", &self.result).finish_non_exhaustive()
    }
}

impl<I: 'static> State for Workflow<I> {
    type Update = Writes;

    fn channels(schema: &mut Schema<Self>) {
        schema.last(END, |flow| &flow.result, |flow| &mut flow.result);
        schema.last(PREVIOUS, |flow| &flow.previous, |flow| &mut flow.previous);
    }

    fn empty(_: &Arc<Schema<Self>>) -> Self {
        Self { result: Value::Null, previous: Value::Null, input: PhantomData }
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }
}

impl<I: Serialize + 'static, O> Thread<Workflow<I>, O> {
    /// Runs the workflow on this thread with an input. `invoke(())` continues one that has stopped.
    #[doc(alias = "invoke")]
    pub fn start(&self, input: I) -> Run<Workflow<I>, O> {
        self.invoke(Input::serialized(input))
    }
}

impl<I: Serialize + 'static, O> CompiledGraph<Workflow<I>, O> {
    /// Runs the workflow without a thread. Only for workflows without a checkpointer.
    #[doc(alias = "invoke")]
    pub fn start(&self, input: I) -> Run<Workflow<I>, O> {
        self.invoke(self.input(input))
    }

    /// An input of the type that the workflow takes, for [`Task::invoke`](crate::Task::invoke).
    pub fn input(&self, input: I) -> Input {
        Input::serialized(input)
    }
}
