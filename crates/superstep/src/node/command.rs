use std::sync::Arc;

use serde::Serialize;
use superstep_checkpoint::TimeLimits;

use super::output::Target;
use crate::state::{Payload, State, Update, Writes};

/// Requests a task of a node, with its own argument, in the next superstep.
#[doc(alias = "Send")]
#[derive(Clone, Debug)]
pub struct Dispatch {
    pub(crate) node: Arc<str>,
    pub(crate) arg: Payload,
    pub(crate) timeout: Option<Box<TimeLimits>>,
}

impl Dispatch {
    /// Dispatches `arg` to `node`, which takes it as [`Arg`](super::Arg).
    ///
    /// The types need not be equal: serde converts `3` for an `Arg<u64>`, a `&'static str` for an
    /// `Arg<String>` and JSON for an `Arg` of a struct. A value of the same type is passed as it
    /// is.
    pub fn new<T>(node: impl Into<Arc<str>>, arg: T) -> Self
    where
        T: Serialize + Clone + Send + Sync + 'static,
    {
        Self { node: node.into(), arg: Payload::new(arg), timeout: None }
    }

    /// Time limits of this task, in place of the node's own.
    #[must_use]
    pub fn timeout(self, timeout: crate::TimeoutPolicy) -> Self {
        Self { timeout: Some(Box::new(timeout.stored())), ..self }
    }
}

/// A target of a command: a node by name, or a dispatch.
#[derive(Clone, Debug)]
pub enum Goto {
    /// The node with this name; `END` leads nowhere.
    Node(Arc<str>),
    /// A node with an argument.
    Dispatch(Dispatch),
}

/// One or several places to go to.
pub trait IntoGoto {
    /// The places, in order.
    fn into_goto(self) -> Vec<Goto>;
}

impl IntoGoto for Goto {
    fn into_goto(self) -> Vec<Goto> {
        vec![self]
    }
}

impl IntoGoto for &str {
    fn into_goto(self) -> Vec<Goto> {
        vec![Goto::Node(self.into())]
    }
}

impl IntoGoto for String {
    fn into_goto(self) -> Vec<Goto> {
        vec![Goto::Node(self.into())]
    }
}

impl IntoGoto for Arc<str> {
    fn into_goto(self) -> Vec<Goto> {
        vec![Goto::Node(self)]
    }
}

impl IntoGoto for Dispatch {
    fn into_goto(self) -> Vec<Goto> {
        vec![Goto::Dispatch(self)]
    }
}

impl<T: IntoGoto> IntoGoto for Vec<T> {
    fn into_goto(self) -> Vec<Goto> {
        self.into_iter().flat_map(IntoGoto::into_goto).collect()
    }
}

impl<T: IntoGoto, const N: usize> IntoGoto for [T; N] {
    fn into_goto(self) -> Vec<Goto> {
        self.into_iter().flat_map(IntoGoto::into_goto).collect()
    }
}

/// An update together with where to go next.
///
/// The node's edges are followed too; a command adds to them. A node declares the targets of its
/// commands with [`destinations`](crate::StateGraph::destinations), so that the drawing shows it.
#[derive(Clone, Debug)]
pub struct Command<S: State> {
    pub(crate) update: Writes,
    pub(crate) goto: Vec<Goto>,
    pub(crate) target: Target,
    state: std::marker::PhantomData<fn() -> S>,
}

impl<S: State> Default for Command<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: State> Command<S> {
    /// A command that does nothing yet.
    pub fn new() -> Self {
        Self {
            update: Writes::new(),
            goto: Vec::new(),
            target: Target::Here,
            state: std::marker::PhantomData,
        }
    }

    /// A command that writes an update.
    pub fn update(update: impl Update<S>) -> Self {
        Self { update: update.into_writes(), ..Self::new() }
    }

    /// Goes to these nodes or dispatches as well.
    #[must_use]
    pub fn goto(mut self, goto: impl IntoGoto) -> Self {
        self.goto.extend(goto.into_goto());
        self
    }
}

impl<P: State> Command<P> {
    /// Addresses the graph that runs this one as a subgraph; `P` is the state of that graph.
    ///
    /// The subgraph ends there, and everything else its nodes wrote in this call is dropped.
    #[doc(alias = "Command.PARENT")]
    #[must_use]
    pub fn to_parent(self) -> ParentCommand {
        ParentCommand { update: self.update, goto: self.goto }
    }
}

/// A [`Command`] for the parent graph. Returned by a node of a subgraph.
#[derive(Clone, Debug)]
pub struct ParentCommand {
    pub(crate) update: Writes,
    pub(crate) goto: Vec<Goto>,
}
