//! Nodes: named functions of a graph.
//!
//! Any function or closure is a node, async or not. Its arguments say what it needs, in any order:
//!
//! | argument | what it gets |
//! | --- | --- |
//! | `Arc<S>` | the snapshot of the state that all tasks of the superstep share |
//! | [`Task`] | this execution: emit, recorded calls, attempt, ids |
//! | [`Ctx<T>`] | what the run was given besides state, such as clients |
//! | [`Arg<T>`] | what a [`Dispatch`] carried |
//! | [`In<V>`] | a part of the state, as a struct of its own |
//! | [`Failure`] | in an error handler: which node failed, and how |
//!
//! The return value says what it writes: `()`, an update, a [`Command`], [`Dispatch`]es, or a `Result` of these with any
//! error type. An `Option` of an update writes nothing when it is `None`.

mod command;
mod extract;
mod function;
mod output;
mod router;

use std::any::{Any, TypeId};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use command::{Command, Dispatch, Goto, IntoGoto, ParentCommand};
pub use extract::{Arg, Ctx, Failure, FromTask, In, View};
pub use function::IntoNode;
pub(crate) use output::Target;
pub use output::{IntoOutput, Output};
pub(crate) use router::{AnyRouter, RouteContext, Router};
pub use router::{IntoRouter, IntoRoutes, Routes};

use crate::engine::{StartValue, Task};
use crate::error::NodeError;
use crate::state::Payload;

pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + 'static>>;

/// What the kernel runs: a node with the types of its arguments erased.
pub(crate) trait Node: Send + Sync {
    fn run(&self, call: Invocation<'_>) -> BoxFuture<Result<Output, NodeError>>;

    /// Types of the context it asks for, with their names.
    fn needs(&self) -> Vec<(TypeId, &'static str)> {
        Vec::new()
    }

    /// The channels it reads, if not all.
    fn reads(&self) -> Option<&'static [&'static str]> {
        None
    }

    /// The graph it runs, if it is one.
    fn subgraph(&self) -> Option<Arc<crate::graph::Compiled>> {
        None
    }
}

/// A node, ready to be added to a graph.
#[derive(Clone)]
pub struct AnyNode(pub(crate) Arc<dyn Node>);

impl fmt::Debug for AnyNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyNode")
    }
}

/// One execution of a node: where its arguments come from.
pub struct Invocation<'a> {
    pub(crate) task: &'a Task,
    pub(crate) cells: &'a Arc<dyn Any + Send + Sync>,
    pub(crate) arg: Option<&'a Payload>,
    /// The input of the run, for the node that takes it.
    pub(crate) start: Option<&'a StartValue>,
    pub(crate) failure: Option<&'a Failure>,
}

impl fmt::Debug for Invocation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invocation").field("task", &self.task).finish_non_exhaustive()
    }
}
