//! The events of runs, on their way from the worker to any number of readers.

mod feed;
mod hub;
mod sse;

pub(crate) use feed::Feed;
pub(crate) use hub::{Active, Hub};
pub(crate) use sse::{Guard, HEARTBEAT, Sse};
