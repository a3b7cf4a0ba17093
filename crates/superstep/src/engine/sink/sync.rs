//! What the queue needs of the standard library. The tests put a model checker in its place.

pub(super) use std::sync::Mutex;

pub(super) use crate::engine::superstep::lock;
