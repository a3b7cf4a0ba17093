//! Recorded calls, and workflows that are plain functions.

mod call;
mod entrypoint;

pub use call::{Call, Spawned};
pub use entrypoint::{Entrypoint, Final, Previous};
