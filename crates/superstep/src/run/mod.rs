//! Runs: driving a thread until it is done, interrupted or failed, and looking at it.

mod any;
mod control;
mod event;
mod input;
mod options;
mod outcome;
mod request;
mod snapshot;
mod stream;
mod thread;

pub use any::{AnyEvent, AnyGraph, AnyRun, AnyThread, Request, RunEvents, Schemas, SharedRun};
pub use control::{Durability, RunControl};
pub use event::{
    Data, DebugEvent, Event, MessageEvent, Mode, TaskEnd, TaskStart, UpdatesEvent, ValuesEvent,
};
pub(crate) use input::InputKind;
pub use input::{Input, IntoInput};
pub(crate) use options::{Target, refused_input, run_beside};
pub use outcome::{Interrupted, Outcome};
pub use request::Run;
pub use snapshot::{CheckpointRef, Inner, RawSnapshot, Snapshot, Standing, TaskSnapshot};
pub use stream::RunStream;
pub use thread::{GetState, History, StateUpdate, Thread, UpdateState};
