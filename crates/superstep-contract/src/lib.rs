//! The contract of checkpointers and stores, as test cases.
//!
//! To test a [`Checkpointer`](superstep_checkpoint::Checkpointer), make this crate a dev-dependency
//! and run [`checkpointers::run`]; for a [`Store`](superstep_checkpoint::Store), run
//! [`stores::run`]. Each case gets its own empty storage, and two handles to it.
//!
//! ```
//! use superstep_checkpoint::{AnyCheckpointer, MemorySaver};
//! use superstep_contract::checkpointers::{self, Subject};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let report = checkpointers::run(|| async {
//!     let checkpointer = MemorySaver::new();
//!     Subject { checkpointer: AnyCheckpointer::new(checkpointer.clone()), other: AnyCheckpointer::new(checkpointer) }
//! })
//! .await;
//! report.assert_passed();
//! # });
//! ```
//!
//! [`listing`] tests checkpointers that maintain a list of threads next to the checkpoints.
//!
//! The feature `graphs` adds tests that run a graph on a checkpointer: the cost of a long thread,
//! and many processes that answer one question.

mod cases;
pub mod checkpointers;
#[cfg(feature = "graphs")]
pub mod graphs;
pub mod listing;
mod report;
pub mod stores;

pub use report::{Outcome, Report};
