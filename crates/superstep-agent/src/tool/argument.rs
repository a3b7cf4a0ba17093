use std::sync::Arc;

use superstep::checkpoint::AnyStore;
use superstep::state::State;
use superstep::{Ctx, NodeError, Task};

use super::{Call, Invocation};
use crate::state::AgentState;

/// An argument of a tool that does not come from the model.
///
/// `#[tool]` takes arguments for such that are written as `Call`, `Task`, `Ctx<...>`, `AnyStore` or `Arc<...>`.
pub trait FromInvocation: Sized {
    /// Extracts the argument.
    ///
    /// # Errors
    /// It is missing, or of another type.
    fn from_invocation(invocation: &Invocation) -> Result<Self, NodeError>;
}

impl FromInvocation for Call {
    fn from_invocation(invocation: &Invocation) -> Result<Self, NodeError> {
        Ok(invocation.call().clone())
    }
}

impl FromInvocation for Task {
    fn from_invocation(invocation: &Invocation) -> Result<Self, NodeError> {
        Ok(invocation.task().clone())
    }
}

impl<X: State> FromInvocation for Arc<AgentState<X>> {
    fn from_invocation(invocation: &Invocation) -> Result<Self, NodeError> {
        invocation.state()
    }
}

impl<T: Clone + Send + Sync + 'static> FromInvocation for Ctx<T> {
    fn from_invocation(invocation: &Invocation) -> Result<Self, NodeError> {
        invocation.task().context().map(Ctx).ok_or_else(|| {
            let (tool, name) = (&invocation.call().name, std::any::type_name::<T>());
            NodeError::permanent(format!(
                "tool `{tool}` needs a context of type `{name}`; give the agent one with `with_context`"
            ))
        })
    }
}

impl FromInvocation for AnyStore {
    fn from_invocation(invocation: &Invocation) -> Result<Self, NodeError> {
        invocation.task().store().cloned().ok_or_else(|| {
            let tool = &invocation.call().name;
            NodeError::permanent(format!(
                "tool `{tool}` needs long-term memory; give the agent some with `with_store`"
            ))
        })
    }
}

impl FromInvocation for Invocation {
    fn from_invocation(invocation: &Invocation) -> Result<Self, NodeError> {
        Ok(invocation.clone())
    }
}
