//! The events of runs, on their way from the worker to any number of readers.
//!
//! Knows the store, and of the protocol only the type of its sessions. Knows nothing of requests, and of who drives the run.

mod feed;
mod hub;
mod log;
mod sse;

pub(crate) use feed::{BARRIER, Feed, FeedReader};
pub(crate) use hub::{Active, Hub, Started};
pub(crate) use sse::{
    Guard, HEARTBEAT, HEARTBEAT_COMMENT, Sse, frame_text, response as sse_response,
};
