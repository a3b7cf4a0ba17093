//! Looking at a thread, and changing it, without running it.

pub(in crate::engine) mod snapshot;
pub(in crate::engine) mod update;
pub(in crate::engine) mod view;
