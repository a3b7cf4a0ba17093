//! Telling readers of streams and operators what happens: events, their queue, spans.
//!
//! Changes nothing it tells of. Of `outside` it knows the types that a look returns, which events carry, too.

pub(in crate::engine) mod emit;
pub(in crate::engine) mod event;
pub(in crate::engine) mod outcome;
pub(in crate::engine) mod queue;
pub(in crate::engine) mod sink;
pub(in crate::engine) mod span;
