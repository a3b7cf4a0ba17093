//! Looking at a thread, and changing it, without running it.
//!
//! May know every other room; of those, only `watch` knows this one.

pub(in crate::engine) mod snapshot;
pub(in crate::engine) mod update;
pub(in crate::engine) mod view;
