use std::sync::{Arc, Mutex};

use crate::engine::lock;

/// Asks runs to stop at the next boundary between supersteps.
///
/// A clone asks the same runs. One control may serve many runs; once asked, every run with this control stops, also one
/// that begins later.
#[derive(Clone, Debug, Default)]
pub struct RunControl {
    reason: Arc<Mutex<Option<Arc<str>>>>,
}

impl RunControl {
    /// A control that has not asked for anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the superstep that is running complete, stores its checkpoint, and ends the run with
    /// [`Outcome::Drained`](crate::Outcome::Drained). The first reason that was given stays.
    pub fn request_drain(&self, reason: impl Into<Arc<str>>) {
        lock(&self.reason).get_or_insert_with(|| reason.into());
    }

    /// Why the run is to stop, if it is.
    pub fn drain_reason(&self) -> Option<Arc<str>> {
        lock(&self.reason).clone()
    }

    /// Whether the run is to stop.
    pub fn drain_requested(&self) -> bool {
        lock(&self.reason).is_some()
    }
}

/// When what a run does is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// Each superstep, with the writes of its tasks, before the next one starts.
    #[default]
    Sync,
    /// Only when the run ends: at its end, on an error, a question or a drain.
    Exit,
}
