//! What `queue` and `handover` need of the standard library. The tests put a model checker in its place.

pub(super) use std::sync::Mutex;
pub(super) use std::sync::atomic::{AtomicBool, Ordering};

pub(super) use super::step::superstep::lock;
