//! Nodes: named functions of a graph.
//!
//! Any function or closure is a node, async or not. It takes any of these arguments, in any order:
//!
//! | Argument | Value |
//! | --- | --- |
//! | `Arc<S>` | the snapshot of the state that all tasks of the superstep share |
//! | [`Task`] | this execution: emit, recorded calls, attempt, ids |
//! | [`Ctx<T>`] | a value of the run's context, such as a client |
//! | [`Arg<T>`] | the argument of the [`Dispatch`] |
//! | [`In<V>`] | a part of the state, as a struct of its own |
//! | [`Failure`] | in an error handler: the failed node and its error |
//!
//! The return value says what it writes: `()`, an update, a [`Command`], [`Dispatch`]es, or a `Result` of these with any
//! error type. An `Option` of an update writes nothing when it is `None`.
//!
//! An argument type of your own implements [`FromTask`].

mod command;
mod extract;
mod function;
mod output;
mod router;

use std::any::{Any, TypeId};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use serde::de::DeserializeOwned;

pub use command::{Command, Dispatch, Goto, IntoGoto, ParentCommand};
pub use extract::{Arg, Ctx, Failure, FromTask, In, View};
pub use function::IntoNode;
pub(crate) use output::Target;
pub use output::{IntoOutput, Output};
pub(crate) use router::{AnyRouter, RouteContext, Router};
pub use router::{IntoRouter, IntoRoutes, Routes};

use crate::engine::{StartValue, Task};
use crate::error::NodeError;
use crate::state::{Payload, State};

pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + 'static>>;

/// A node with the types of its arguments erased, as the kernel runs it.
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
    fn subgraph(&self) -> Option<Arc<crate::engine::Compiled>> {
        None
    }
}

/// A node over the state `S` whose own type is erased, so that different nodes fit into one list.
///
/// ```
/// # use superstep::prelude::*;
/// # #[derive(State, Clone, Default)]
/// # struct Essay { topic: String, draft: Option<String> }
/// async fn write(essay: Arc<Essay>) -> EssayUpdate {
///     Essay::update().draft(format!("About {}", essay.topic))
/// }
///
/// let steps = [
///     ("clear", AnyNode::new(|| Essay::update().draft(None))),
///     ("write", AnyNode::new(write)),
/// ];
/// let graph = StateGraph::<Essay>::new().add_sequence(steps).add_edge(START, "clear").compile()?;
/// # Ok::<_, CompileError>(())
/// ```
pub struct AnyNode<S> {
    node: Arc<dyn Node>,
    state: PhantomData<fn(S)>,
}

impl<S: State> AnyNode<S> {
    /// Erases the type of a node.
    pub fn new<M>(node: impl IntoNode<S, M>) -> Self {
        node.into_node()
    }

    pub(crate) fn from_node(node: impl Node + 'static) -> Self {
        Self { node: Arc::new(node), state: PhantomData }
    }

    pub(crate) fn into_inner(self) -> Arc<dyn Node> {
        self.node
    }
}

impl<S> Clone for AnyNode<S> {
    fn clone(&self) -> Self {
        Self { node: self.node.clone(), state: PhantomData }
    }
}

impl<S> fmt::Debug for AnyNode<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyNode")
    }
}

/// One execution of a node, from which its arguments are extracted. See [`FromTask`].
pub struct Invocation<'a> {
    pub(crate) task: &'a Task,
    pub(crate) cells: &'a Arc<dyn Any + Send + Sync>,
    pub(crate) arg: Option<&'a Payload>,
    /// The input of the run, for the node that takes it.
    pub(crate) start: Option<&'a StartValue>,
    pub(crate) failure: Option<&'a Failure>,
}

impl<'a> Invocation<'a> {
    /// The task: its name and ids, the context of the run, the store.
    pub fn task(&self) -> &'a Task {
        self.task
    }

    /// The state that the tasks of the superstep share.
    ///
    /// # Errors
    /// The graph is over another state than `S`.
    pub fn state<S: State>(&self) -> Result<Arc<S>, NodeError> {
        self.cells.clone().downcast().map_err(|_| {
            let (node, name) = (self.task.name(), std::any::type_name::<S>());
            NodeError::permanent(format!("node `{node}` is not in a graph over `{name}`"))
        })
    }

    /// The argument of the [`Dispatch`]; `None` if an edge triggered the node.
    ///
    /// # Errors
    /// It is not a `T`.
    pub fn arg<T>(&self) -> Result<Option<T>, NodeError>
    where
        T: DeserializeOwned + Clone + Send + Sync + 'static,
    {
        let Some(arg) = self.arg else { return Ok(None) };
        arg.clone().take().map(Some).map_err(|error| {
            NodeError::permanent(format!(
                "node `{}` cannot take what was dispatched to it: {error}",
                self.task.name()
            ))
        })
    }

    /// The failure, if this node is an error handler.
    pub fn failure(&self) -> Option<&'a Failure> {
        self.failure
    }
}

impl fmt::Debug for Invocation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invocation").field("task", &self.task).finish_non_exhaustive()
    }
}
