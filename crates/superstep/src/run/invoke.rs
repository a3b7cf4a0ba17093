use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;

use super::input::Input;
use super::options::{RunOptions, Target, run_options};
use super::outcome::Outcome;
use crate::error::RunError;
use crate::node::BoxFuture;
use crate::state::State;

/// A run to its end. Await it.
///
/// Dropping the future stops the run: what was stored stays, and the thread goes on from there with no input.
///
/// A thread has one run at a time in a process: while another one is alive, this one ends with
/// [`RunError::Busy`](crate::RunError::Busy).
#[must_use = "a run does nothing until it is awaited"]
pub struct Invoke<S: State, O = S> {
    target: Target<S, O>,
    input: Input,
    options: RunOptions,
}

impl<S: State, O> fmt::Debug for Invoke<S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invoke").field("target", &self.target).field("input", &self.input).finish()
    }
}

impl<S: State, O> Invoke<S, O> {
    pub(crate) fn new(target: Target<S, O>, input: Input) -> Self {
        Self { target, input, options: RunOptions::default() }
    }

    fn options_mut(&mut self) -> &mut RunOptions {
        &mut self.options
    }

    run_options!();
}

impl<S: State, O: Send + 'static> IntoFuture for Invoke<S, O> {
    type Output = Result<Outcome<O>, RunError>;
    type IntoFuture = BoxFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let keys: Arc<[usize]> = self.target.graph.inner().layout.output.clone().into();
        Box::pin(self.target.drive(self.input, self.options, None, keys))
    }
}
