//! Recorded calls, and workflows that are plain functions.
//!
//! A workflow is an async function; put what must not happen twice into recorded calls. `#[task]`
//! makes a function a recorded call, `#[entrypoint]` makes it a workflow:
//!
//! ```
//! use superstep::prelude::*;
//! use superstep::{entrypoint, task};
//!
//! #[task]
//! async fn charge(cents: u64) -> Result<String, NodeError> {
//!     Ok(format!("charged {cents}"))
//! }
//!
//! #[entrypoint]
//! async fn order(cents: u64, task: Task) -> Result<String, NodeError> {
//!     let receipt = charge(&task, cents).retry(3).await?;
//!     let ship: bool = task.interrupt("ship it?").await;
//!     Ok(format!("{receipt}, shipped: {ship}"))
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let app = order().compile().with_checkpointer(MemorySaver::new());
//! let thread = app.thread("order-1");
//! let asked = thread.start(4200).await?.interrupted().expect("a question");
//! assert_eq!(asked[0].value, Value::from("ship it?"));
//! let said = thread.resume(true).await?.done();
//! assert_eq!(said.as_deref(), Some("charged 4200, shipped: true"));
//! # Ok::<_, RunError>(()) }).unwrap();
//! ```
//!
//! The workflow takes and returns types of your own, which have to implement `Serialize` and `Deserialize`. `start` runs it with an
//! input, `resume` answers, and `invoke(())` continues a workflow that has stopped.
//!
//! Without macros, use [`Task::call`](crate::Task::call) and [`Entrypoint::new`].

mod call;
mod entrypoint;
mod workflow;

pub use call::{Call, Fallible, Recordable, Spawned, arguments};
pub use entrypoint::{Entrypoint, Final, IntoFinal};
pub use workflow::Workflow;
