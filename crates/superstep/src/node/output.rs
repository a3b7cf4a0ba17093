use super::command::{Command, Dispatch, Goto, ParentCommand};
use crate::error::NodeError;
use superstep_checkpoint::Value;

use crate::state::{State, Table, Writes};

/// Which graph an output is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Target {
    #[default]
    Here,
    Parent,
}

/// The result of a node: writes and targets.
#[derive(Clone, Debug, Default)]
pub struct Output {
    pub(crate) writes: Writes,
    pub(crate) goto: Vec<Goto>,
    pub(crate) target: Target,
}

impl Output {
    /// An output that only writes.
    pub fn writes(writes: Writes) -> Self {
        Self { writes, ..Self::default() }
    }

    pub(crate) fn for_parent(command: ParentCommand) -> Self {
        Self { writes: command.update, goto: command.goto, target: Target::Parent }
    }

    fn add(&mut self, other: Self) {
        if other.target != self.target && other.target == Target::Parent {
            *self = other;
            return;
        }
        if self.target == Target::Parent && other.target == Target::Here {
            return;
        }
        self.writes.extend(other.writes);
        self.goto.extend(other.goto);
    }
}

/// A return type of nodes over the state `S`.
#[diagnostic::on_unimplemented(
    message = "a node over `{S}` cannot return `{Self}`",
    label = "this node returns `{Self}`",
    note = "a node returns `()`, an update, a `Command`, `Dispatch`es, or a `Result` of these"
)]
pub trait IntoOutput<S: State> {
    /// The writes, or why the node failed.
    ///
    /// # Errors
    /// The node's own error.
    fn into_output(self) -> Result<Output, NodeError>;
}

impl<S: State> IntoOutput<S> for () {
    fn into_output(self) -> Result<Output, NodeError> {
        Ok(Output::default())
    }
}

impl<S: State> IntoOutput<S> for Output {
    fn into_output(self) -> Result<Output, NodeError> {
        Ok(self)
    }
}

impl<S: State> IntoOutput<S> for Writes {
    fn into_output(self) -> Result<Output, NodeError> {
        Ok(Output::writes(self))
    }
}

impl IntoOutput<Table> for Value {
    fn into_output(self) -> Result<Output, NodeError> {
        Ok(Output::writes(Writes::data(self)))
    }
}

impl<S: State> IntoOutput<S> for Command<S> {
    fn into_output(self) -> Result<Output, NodeError> {
        Ok(Output { writes: self.update, goto: self.goto, target: self.target })
    }
}

impl<S: State> IntoOutput<S> for ParentCommand {
    fn into_output(self) -> Result<Output, NodeError> {
        Ok(Output::for_parent(self))
    }
}

impl<S: State> IntoOutput<S> for Dispatch {
    fn into_output(self) -> Result<Output, NodeError> {
        Ok(Output { goto: vec![Goto::Dispatch(self)], ..Output::default() })
    }
}

impl<S: State, T: IntoOutput<S>> IntoOutput<S> for Vec<T> {
    fn into_output(self) -> Result<Output, NodeError> {
        let mut all = Output::default();
        for item in self {
            all.add(item.into_output()?);
        }
        Ok(all)
    }
}

impl<S: State, T: IntoOutput<S>> IntoOutput<S> for Option<T> {
    fn into_output(self) -> Result<Output, NodeError> {
        self.map_or_else(|| Ok(Output::default()), IntoOutput::into_output)
    }
}

impl<S: State, T: IntoOutput<S>, E: Into<NodeError>> IntoOutput<S> for Result<T, E> {
    fn into_output(self) -> Result<Output, NodeError> {
        self.map_err(Into::into)?.into_output()
    }
}
