use std::ops::Deref;
use std::sync::Arc;
use std::time::SystemTime;

use serde::ser::{Serialize, SerializeStruct, Serializer};
use superstep_checkpoint::{Interrupt, Value};

use crate::engine::watch::event::interrupt_value;

/// How a run ended.
///
/// It is serialized with a `status`: `{"status": "done", "output": …}`,
/// `{"status": "interrupted", "interrupts": [{"id": …, "value": …}], "state": …}` or
/// `{"status": "drained", "reason": …}`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Outcome<O> {
    /// Nothing is left to run.
    Done(O),
    /// The run was interrupted by a question, or stopped at a breakpoint.
    #[doc(alias = "GraphInterrupt")]
    Interrupted(Interrupted<O>),
    /// The run was drained, for this reason; the thread continues with no input.
    Drained(Arc<str>),
}

impl<O> Outcome<O> {
    /// The result, if the run is done.
    pub fn done(self) -> Option<O> {
        match self {
            Self::Done(output) => Some(output),
            Self::Interrupted(_) | Self::Drained(_) => None,
        }
    }

    /// The same outcome with another output.
    pub fn map<P>(self, change: impl FnOnce(O) -> P) -> Outcome<P> {
        match self {
            Self::Done(output) => Outcome::Done(change(output)),
            Self::Interrupted(Interrupted { questions, state }) => {
                Outcome::Interrupted(Interrupted { questions, state: state.map(change) })
            }
            Self::Drained(reason) => Outcome::Drained(reason),
        }
    }

    /// The questions, if the run was interrupted.
    pub fn interrupted(self) -> Option<Interrupted<O>> {
        match self {
            Self::Interrupted(asked) => Some(asked),
            Self::Done(_) | Self::Drained(_) => None,
        }
    }
}

impl<O: Serialize> Serialize for Outcome<O> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Done(output) => {
                let mut outcome = serializer.serialize_struct("Outcome", 2)?;
                outcome.serialize_field("status", "done")?;
                outcome.serialize_field("output", output)?;
                outcome.end()
            }
            Self::Interrupted(asked) => {
                let questions: Vec<Value> = asked.iter().map(interrupt_value).collect();
                let mut outcome = serializer.serialize_struct("Outcome", 3)?;
                outcome.serialize_field("status", "interrupted")?;
                outcome.serialize_field("interrupts", &questions)?;
                outcome.serialize_field("state", &asked.state)?;
                outcome.end()
            }
            Self::Drained(reason) => {
                let mut outcome = serializer.serialize_struct("Outcome", 2)?;
                outcome.serialize_field("status", "drained")?;
                outcome.serialize_field("reason", &**reason)?;
                outcome.end()
            }
        }
    }
}

/// The questions of an interrupted run, in the order of their tasks. Empty at a breakpoint.
#[derive(Clone, Debug)]
pub struct Interrupted<O> {
    pub(crate) questions: Vec<Interrupt>,
    pub(crate) state: Option<O>,
}

impl<O> Interrupted<O> {
    /// The state so far, including finished tasks of the open superstep.
    ///
    /// A graph always has one. A [workflow](crate::func) has the result of its last complete run on
    /// this thread, if there is one.
    pub fn state(&self) -> Option<&O> {
        self.state.as_ref()
    }

    /// When the clock answers the first of the questions, if it answers any; see
    /// [`Interrupt::due`](superstep_checkpoint::Interrupt::due).
    pub fn due(&self) -> Option<SystemTime> {
        self.questions.iter().filter_map(Interrupt::due).min()
    }

    /// Whether nobody is asked: the run only [sleeps](crate::Task::sleep).
    pub fn is_sleeping(&self) -> bool {
        !self.questions.is_empty() && self.questions.iter().all(Interrupt::is_sleep)
    }

    /// The state so far.
    pub fn into_state(self) -> Option<O> {
        self.state
    }
}

impl<O> Deref for Interrupted<O> {
    type Target = [Interrupt];

    fn deref(&self) -> &[Interrupt] {
        &self.questions
    }
}

impl<O> IntoIterator for Interrupted<O> {
    type Item = Interrupt;
    type IntoIter = std::vec::IntoIter<Interrupt>;

    fn into_iter(self) -> Self::IntoIter {
        self.questions.into_iter()
    }
}

impl<'a, O> IntoIterator for &'a Interrupted<O> {
    type Item = &'a Interrupt;
    type IntoIter = std::slice::Iter<'a, Interrupt>;

    fn into_iter(self) -> Self::IntoIter {
        self.questions.iter()
    }
}
