//! Threads and runs: run a graph, stream its events, read and change the state of a thread.

mod any;
mod chains;
mod driven;
mod due;
mod history;
mod input;
mod options;
mod request;
mod snapshot;
mod stream;
mod thread;

pub use any::{AnyEvent, AnyGraph, AnyRun, AnyThread, Request, RunEvents, Schemas, SharedRun};
pub use due::{DueRun, DueRuns, RunDue};
pub use history::History;
pub(crate) use input::InputKind;
pub use input::{Input, IntoInput};
pub(crate) use options::{Target, refused_input, run_beside};
pub use request::Run;
pub use snapshot::Snapshot;
pub use stream::RunStream;
pub use thread::{GetState, StateUpdate, Thread, UpdateState};
