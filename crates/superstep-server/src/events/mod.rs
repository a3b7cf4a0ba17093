//! The events of runs, on their way from the worker to any number of readers.

mod feed;
mod hub;
mod log;
mod sse;

pub(crate) use feed::{BARRIER, Feed, FeedReader};
pub(crate) use hub::{Active, Hub, Started};
pub(crate) use sse::{
    Guard, HEARTBEAT, HEARTBEAT_COMMENT, Sse, frame_text, response as sse_response,
};
