//! A look at a thread, typed.

use std::ops::Deref;
use std::sync::Arc;

use crate::engine::{CheckpointInfo, ThreadView};
use crate::error::RunError;

/// The typed state of a thread at a checkpoint.
///
/// It dereferences to [`CheckpointInfo`]. For the values as data, use
/// [`GetState::raw`](super::GetState::raw).
#[derive(Clone, Debug)]
pub struct Snapshot<S> {
    pub(crate) state: Arc<S>,
    pub(crate) info: CheckpointInfo,
}

impl<S: Send + Sync + 'static> Snapshot<S> {
    /// The typed snapshot, if the state of the graph is an `S`.
    pub(crate) fn of(seen: ThreadView) -> Result<Self, RunError> {
        let (cells, info) = seen.into_parts();
        let state = cells.downcast().map_err(|_| {
            RunError::Invalid(
                "the checkpoint belongs to a subgraph with another state; look at it with `raw()`"
                    .to_owned(),
            )
        })?;
        Ok(Self { state, info })
    }
}

impl<S> Snapshot<S> {
    /// The state. Channels that were never written have their default value.
    pub fn state(&self) -> &Arc<S> {
        &self.state
    }
}

impl<S> Deref for Snapshot<S> {
    type Target = CheckpointInfo;

    fn deref(&self) -> &CheckpointInfo {
        &self.info
    }
}
