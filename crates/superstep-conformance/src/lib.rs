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

mod report;
pub mod savers;
pub mod stores;

pub use report::{Outcome, Report};
