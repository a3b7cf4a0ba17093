//! The promises every saver and every store keeps, as cases to run against one.
//!
//! Whoever writes a [`Checkpointer`](superstep_checkpoint::Checkpointer) depends on this crate in its tests and runs
//! [`savers::run`]; whoever writes a [`Store`](superstep_checkpoint::Store) runs [`stores::run`]. Each case gets storage of its own, empty, and two handles to it.
//!
//! ```
//! use superstep_checkpoint::{AnyCheckpointer, MemorySaver};
//! use superstep_conformance::savers::{self, Subject};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let report = savers::run(|| async {
//!     let saver = MemorySaver::new();
//!     Subject { saver: AnyCheckpointer::new(saver.clone()), other: AnyCheckpointer::new(saver) }
//! })
//! .await;
//! report.assert_passed();
//! # });
//! ```
//!
//! [`listing`] is for savers that keep a list of threads beside the checkpoints.
//!
//! With the feature `graphs`, the module of that name has what shows only when a graph runs on a saver: what a long thread
//! costs, and that one of many processes that answer a question goes on.

#[cfg(feature = "graphs")]
pub mod graphs;
pub mod listing;
mod report;
pub mod savers;
pub mod stores;

pub use report::{Outcome, Report};
