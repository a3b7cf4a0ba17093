//! Between the head and the bytes: ids, the recorder of checkpoints, writes and their encoding, what was left beside a
//! checkpoint, and the formats of older versions.
//!
//! Calls no checkpointer. Knows nothing of the loop, of streams, or of looks from outside.

// Stored data is untrusted. What is indexed is the graph, by positions of the layout.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::disallowed_methods))]

pub(in crate::engine) mod fits;
pub(in crate::engine) mod ids;
pub(in crate::engine) mod old;
pub(in crate::engine) mod pending;
pub(in crate::engine) mod record;
pub(in crate::engine) mod slots;
