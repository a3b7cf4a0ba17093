use std::ops::Deref;
use std::sync::Arc;

use superstep_checkpoint::Interrupt;

/// How a run ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Outcome<O> {
    /// Nothing is left to run.
    Done(O),
    /// The run stopped to ask, or at a breakpoint.
    Interrupted(Interrupted<O>),
    /// The run was asked to stop, for this reason; it goes on with no input.
    Drained(Arc<str>),
}

impl<O> Outcome<O> {
    /// The result of a run that is done.
    pub fn done(self) -> Option<O> {
        match self {
            Self::Done(output) => Some(output),
            Self::Interrupted(_) | Self::Drained(_) => None,
        }
    }

    /// What was asked, if the run stopped to ask.
    pub fn interrupted(self) -> Option<Interrupted<O>> {
        match self {
            Self::Interrupted(asked) => Some(asked),
            Self::Done(_) | Self::Drained(_) => None,
        }
    }
}

/// The questions of a run that stopped to ask, in the order of their tasks. None at a breakpoint.
#[derive(Clone, Debug)]
pub struct Interrupted<O> {
    pub(crate) questions: Vec<Interrupt>,
    pub(crate) state: O,
}

impl<O> Interrupted<O> {
    /// The state so far, with what tasks of the open superstep have finished.
    pub fn state(&self) -> &O {
        &self.state
    }

    /// The state so far.
    pub fn into_state(self) -> O {
        self.state
    }
}

impl<O> Deref for Interrupted<O> {
    type Target = [Interrupt];

    fn deref(&self) -> &[Interrupt] {
        &self.questions
    }
}
