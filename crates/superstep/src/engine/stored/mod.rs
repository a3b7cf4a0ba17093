//! Between the head and the bytes: ids, the recorder of checkpoints, writes and their encoding, what was left beside a
//! checkpoint, and the formats of older versions.
//!
//! Calls no checkpointer. Knows nothing of the loop, of streams, or of looks from outside.

pub(in crate::engine) mod fits;
pub(in crate::engine) mod ids;
pub(in crate::engine) mod old;
pub(in crate::engine) mod pending;
pub(in crate::engine) mod record;
pub(in crate::engine) mod slots;
