//! What a node may do while it runs: emit, ask, call, and run other graphs.
//!
//! A task changes no head: what it does is in its superstep until the barrier. Knows nothing of looks from outside.

pub(in crate::engine) mod calls;
pub(in crate::engine) mod emit;
pub(in crate::engine) mod handle;
pub(in crate::engine) mod handover;
pub(in crate::engine) mod interrupt;
pub(in crate::engine) mod nest;
pub(in crate::engine) mod probe;
pub(in crate::engine) mod timer;
