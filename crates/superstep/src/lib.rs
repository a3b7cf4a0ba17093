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
//! # A tour
//!
//! **State.** A struct whose fields are channels. `topic` keeps its last value, `notes` appends; [`state`] has all kinds. Tasks of a superstep
//! share one `Arc` of it; what they return is folded in at the barrier, in an order that does not depend on who finished first.
//!
//! **Nodes** are functions, async or not. Arguments say what they need, results say what they write; [`node`] lists both.
//!
//! **Ways.** Edges and joins ([`StateGraph::add_edge`]), routers ([`StateGraph::add_conditional_edges`]), commands of a node
//! ([`Command`]), and as many tasks as there is work ([`Dispatch`]). `compile` reports everything that is wrong at once.
//!
//! **Threads.** With a checkpointer, a graph runs on threads, which outlive the process. A run ends with an [`Outcome`]: done,
//! interrupted, or drained. A thread that stopped for whatever reason goes on with `()` as its input.
//!
//! **Questions.** A node asks a person, and goes on with the answer, a second or a year later:
//!
//! ```
//! # use superstep::prelude::*;
//! # #[derive(State, Clone, Default)]
//! # struct Payment { amount: i64, status: String }
//! async fn pay(payment: Arc<Payment>, task: Task) -> PaymentUpdate {
//!     let approved: bool = task.interrupt(format!("Pay {} euros?", payment.amount)).await;
//!     Payment::update().status(if approved { "paid" } else { "declined" })
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! # let app = StateGraph::new().add_node("pay", pay).add_edge(START, "pay").compile()?;
//! # let thread = app.with_checkpointer(MemorySaver::new()).thread("invoice-7");
//! let asked = thread.invoke(Payment::update().amount(250)).await?.interrupted();
//! assert_eq!(asked.expect("a question")[0].value, "Pay 250 euros?".into());
//! let payment = thread.resume(true).await?.done().expect("no other question");
//! assert_eq!(payment.status, "paid");
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! The node runs again from its first line when it is answered. What must not happen twice stands in a
//! [recorded call](Task::call), which returns its record from then on; [`func`] has workflows that are nothing but such calls.
//!
//! **The past.** [`Thread::get_state_history`] walks the checkpoints, [`Thread::at`] goes back to one, [`Thread::update_state`] begins a branch there.
//!
//! **Inside each other.** A compiled graph is a node of another ([`CompiledGraph::as_node`]), with a state and a [`Memory`] of its own.
//!
//! **As it happens.** [`Run::stream`] yields [`Event`]s: updates, values, tasks, checkpoints, messages, and what nodes
//! [emit](Task::emit). A stream drives its run, so there is no background task to leak.
//!
//! **Ending well.** [`RunControl`] asks runs to stop at the next boundary, the module `shutdown` (a default feature) does so when the
//! process is told to end.
//!
//! **In a test.** The feature `testing` has virtual time, seeded orders, a crash at every moment, and scripted answers.
//!
//! # Where to look
//!
//! | | |
//! | --- | --- |
//! | [`state`] | the struct whose fields are channels, and how writes are folded in |
//! | [`node`] | functions as nodes: what they may ask for, what they may return |
//! | [`StateGraph`], [`CompiledGraph`] | what is declared, and what was checked and can run |
//! | [`Thread`], [`Outcome`] | where a graph runs, and how a run ends |
//! | [`Run`], [`RunStream`], [`Event`] | a run to its end, or as it happens |
//! | [`Task`] | one execution of a node: emit, recorded calls, questions |
//! | [`answer()`] | answering a question without the graph that asked it |
//! | [`func`] | workflows that are plain functions |
//! | [`checkpoint`] | where threads are kept |
//! | [`error`] | what can go wrong |
//!
//! `superstep-sqlite` and `superstep-postgres` keep threads in databases, in LangGraph's tables; `superstep-encryption` stands in front of
//! them. The guide in the repository has a chapter for each of these concepts, and one for those who come from LangGraph.
//!
//! # What it is not
//!
//! There is no server, queue or scheduler: a run lives in the process that awaits it. There are no clients of language models; a
//! [`Message`](state::Message) is as far as it goes.

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

pub use answer::{answer, replace_answer};
pub use engine::{Asking, CheckpointIds, Task};
pub use engine::{BreakAt, CachePolicy, Memory, RetryPolicy, TimeoutPolicy};
pub use engine::{
    CheckpointInfo, CheckpointRef, Data, DebugEvent, Durability, Event, Interrupted, MessageEvent,
    Mode, Outcome, RawSnapshot, RunControl, SubgraphState, TaskEnd, TaskSnapshot, TaskStart,
    UpdatesEvent, ValuesEvent,
};
pub use error::{CompileError, NodeError, RunError};
pub use graph::{CompiledGraph, Drawing, Edge, StateGraph, Subgraph, Targets};
pub use node::{
    AnyNode, Arg, Command, Ctx, Dispatch, Failure, Goto, In, IntoNode, IntoOutput, Output,
    ParentCommand, View,
};
pub use run::{
    AnyEvent, AnyGraph, AnyRun, AnyThread, GetState, History, Input, IntoInput, Request, Run,
    RunEvents, RunStream, Schemas, SharedRun, Snapshot, StateUpdate, Thread, UpdateState,
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
        AnyNode, Arg, Command, CompileError, Ctx, Dispatch, END, Failure, In, Mode, NodeError,
        Outcome, RetryPolicy, RunError, START, StateGraph, Task, TimeoutPolicy,
    };
    #[cfg(feature = "derive")]
    pub use superstep_macros::{State, View, entrypoint, task};
}
