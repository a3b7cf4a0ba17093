//! A durable graph engine for agents and workflows.
//!
//! You describe a graph of async functions over a typed state. It runs in supersteps: plan, run in parallel, apply at a
//! barrier, checkpoint. It can stop anywhere for a human, a crash or a deploy, and goes on later from exactly where it was.
//!
//! ```
//! use superstep::prelude::*;
//!
//! #[derive(State, Clone, Default)]
//! struct Essay {
//!     topic: String,
//!     #[channel(reduce = Append)]
//!     notes: Vec<String>,
//!     draft: Option<String>,
//! }
//!
//! async fn research(essay: Arc<Essay>) -> EssayUpdate {
//!     Essay::update().notes([format!("{} is older than it looks", essay.topic)])
//! }
//!
//! async fn write(essay: Arc<Essay>) -> Result<EssayUpdate, NodeError> {
//!     let note = essay.notes.first().ok_or("nothing to write about")?;
//!     Ok(Essay::update().draft(format!("Did you know? {note}.")))
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let app = StateGraph::<Essay>::new()
//!     .add_node("research", research)
//!     .add_node("write", write)
//!     .add_edge(START, "research")
//!     .add_edge("research", "write")
//!     .compile()?
//!     .with_checkpointer(MemorySaver::new());
//!
//! let outcome = app.thread("essay-1").invoke(Essay::update().topic("Pregel")).await?;
//! let essay = outcome.done().expect("nothing stops this graph");
//! assert_eq!(essay.draft.as_deref(), Some("Did you know? Pregel is older than it looks."));
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! # Concepts, in the order you meet them
//!
//! | | |
//! | --- | --- |
//! | [`state`] | the struct whose fields are channels, and how writes are folded in |
//! | [`node`] | functions as nodes: what they may ask for, what they may return |
//! | [`StateGraph`], [`CompiledGraph`] | what is declared, and what was checked and can run |
//! | [`Thread`], [`Outcome`] | where a graph runs, and how a run ends |
//! | [`RunStream`], [`Event`] | a run as it happens |
//! | [`Task`] | one execution of a node: emit, recorded calls, questions |
//! | [`answer()`] | answering a question without the graph that asked it |
//! | [`func`] | workflows that are plain functions |
//! | [`checkpoint`] | where threads are kept |
//! | [`error`] | what can go wrong |

pub mod error;
pub mod func;
pub mod node;
#[cfg(feature = "shutdown")]
pub mod shutdown;
pub mod state;
#[cfg(feature = "testing")]
pub mod testing;

mod answer;
mod engine;
mod graph;
mod run;

/// Where threads are kept: savers, stores, caches, and the values they hold.
pub mod checkpoint {
    pub use superstep_checkpoint::*;
}

pub use answer::answer;
pub use engine::{Asking, CheckpointIds, Task};
pub use error::{CompileError, NodeError, RunError};
pub use graph::{
    BreakAt, CachePolicy, CompiledGraph, Memory, RetryPolicy, StateGraph, Subgraph, Targets,
    TimeoutPolicy,
};
pub use node::{
    AnyNode, Arg, Command, Ctx, Dispatch, Failure, Goto, In, IntoNode, IntoOutput, Output,
    ParentCommand, View,
};
pub use run::{
    CheckpointRef, Data, DebugEvent, Durability, Event, GetState, History, Inner, Input,
    Interrupted, IntoInput, Invoke, MessageEvent, Mode, Outcome, RawSnapshot, RunControl,
    RunOptions, RunStream, Snapshot, StateUpdate, TaskEnd, TaskSnapshot, TaskStart, Thread,
    UpdateState, UpdatesEvent, ValuesEvent,
};
pub use state::State;
#[cfg(feature = "derive")]
pub use superstep_macros::{State, View, entrypoint, task};

/// The beginning of a graph: an edge from here leads to its first node.
pub const START: &str = engine::START;
/// The end of a graph: what leads here leads nowhere further.
pub const END: &str = engine::END;

/// What nearly every program that uses superstep needs.
pub mod prelude {
    pub use std::sync::Arc;

    pub use crate::checkpoint::{MemorySaver, Value};
    pub use crate::node::View;
    pub use crate::state::{Append, Max, Merge, Message, Messages, Reducer, State, Sum, Union};
    pub use crate::{
        Arg, Command, CompileError, Ctx, Dispatch, END, Failure, In, Mode, NodeError, Outcome,
        RetryPolicy, RunError, START, StateGraph, Task, TimeoutPolicy,
    };
    #[cfg(feature = "derive")]
    pub use superstep_macros::{State, View, entrypoint, task};
}

/// The programs in the README compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ReadmeDoctests;
