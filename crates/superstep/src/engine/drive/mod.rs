//! The loop of a run: opening a thread, taking answers, superstep after superstep, storing.
//!
//! Knows nothing of looks from outside.

pub(in crate::engine) mod answer;
pub(in crate::engine) mod asked;
pub(in crate::engine) mod at_exit;
pub(in crate::engine) mod barrier;
pub(in crate::engine) mod claim;
pub(in crate::engine) mod clock;
pub(in crate::engine) mod control;
pub(in crate::engine) mod driver;
pub(in crate::engine) mod live;
pub(in crate::engine) mod open;
pub(in crate::engine) mod opening;
pub(in crate::engine) mod outbox;
pub(in crate::engine) mod position;
pub(in crate::engine) mod run;
pub(in crate::engine) mod stale;
pub(in crate::engine) mod store;
