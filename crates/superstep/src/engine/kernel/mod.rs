//! The state of a thread in memory, and the two pure functions on it: which tasks are due, and what their writes make of it.
//!
//! Knows no other room of the engine. Nothing here awaits, allocates ids or looks at a clock.

pub(in crate::engine) mod apply;
pub(in crate::engine) mod breakpoint;
pub(in crate::engine) mod compiled;
pub(in crate::engine) mod fold;
pub(in crate::engine) mod head;
pub(in crate::engine) mod join;
pub(in crate::engine) mod layout;
pub(in crate::engine) mod plan;
pub(in crate::engine) mod policy;
