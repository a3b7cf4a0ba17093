//! The runs that this process has something to do with.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use superstep::RunControl;

use super::feed::Feed;

/// A run that was admitted here or is running here.
#[derive(Clone)]
pub(crate) struct Active {
    pub(crate) feed: Arc<Feed>,
    pub(crate) control: RunControl,
}

#[derive(Default)]
pub(crate) struct Hub {
    runs: Mutex<HashMap<String, Active>>,
}

impl Hub {
    fn runs(&self) -> MutexGuard<'_, HashMap<String, Active>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, run: &str) -> Option<Active> {
        self.runs().get(run).cloned()
    }

    /// The run under this id; it is added if it is not there.
    pub(crate) fn get_or_add(&self, run: &str, new: impl FnOnce() -> Active) -> Active {
        self.runs().entry(run.to_owned()).or_insert_with(new).clone()
    }

    pub(crate) fn remove(&self, run: &str) -> Option<Active> {
        self.runs().remove(run)
    }

    /// Asks all runs to stop at the next boundary.
    pub(crate) fn drain_all(&self, reason: &str) {
        for active in self.runs().values() {
            active.control.request_drain(reason);
        }
    }
}
