//! Recorded calls, and workflows that are plain functions.

mod call;
mod entrypoint;

pub use call::{Call, Recordable, Spawned};
pub use entrypoint::{Entrypoint, Final, IntoFinal};
