//! A durable graph engine for agents and workflows.
//!
//! You describe a graph of async functions over a typed state. It runs in supersteps: plan, run in
//! parallel, apply at a barrier, checkpoint. It can stop anywhere for a human, a crash or a deploy,
//! and continues later from exactly where it was.
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
//! **State.** A struct whose fields are channels. `topic` keeps its last value, `notes` appends; [`state`] lists all kinds. Tasks of a superstep
//! share one `Arc` of it. What they return is applied at the barrier, in an order that does not depend on which task finished first.
//!
//! **Nodes** are functions, async or not. Arguments say what they need, results say what they write; [`node`] lists both.
//!
//! **Control flow.** Edges and joins ([`StateGraph::add_edge`]), routers ([`StateGraph::add_conditional_edges`]), commands of a node
//! ([`Command`]), and one task per item ([`Dispatch`]). `compile` reports everything that is wrong at once.
//!
//! **Threads.** With a checkpointer, a graph runs on threads, which outlive the process. A run ends with an [`Outcome`]: done,
//! interrupted, or drained. A thread that stopped, for whatever reason, continues with `()` as its input.
//!
//! **Interrupts.** A node asks a person, and continues with the answer, a second or a year later:
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
//! The node runs again from its first line when the answer arrives. Put what must not happen twice into a
//! [recorded call](Task::call), which returns its recorded result from then on; [`func`] has workflows made of such calls.
//!
//! **Timers.** A node [sleeps](Task::sleep) for a month, or gives a person [three days to answer](Asking::or_after). The run ends meanwhile;
//! [`CompiledGraph::run_due`] runs what is due.
//!
//! **Time travel.** [`Thread::get_state_history`] walks the checkpoints, [`Thread::at`] goes back to one, [`Thread::update_state`] begins a branch there.
//!
//! **Subgraphs.** A compiled graph is a node of another ([`CompiledGraph::as_node`]), with a state and a [`Memory`] of its own.
//!
//! **Streaming.** [`Run::stream`] yields [`Event`]s: updates, values, tasks, checkpoints, messages, and what nodes
//! [emit](Task::emit). A stream drives its run, so there is no background task to leak.
//!
//! **Shutdown.** [`RunControl`] asks runs to stop at the next boundary; the module `shutdown` (a default feature) does so on SIGTERM.
//!
//! **Testing.** The feature `testing` has virtual time, seeded orders, a crash at every storage operation, and scripted answers.
//!
//! # Where to look
//!
//! | | |
//! | --- | --- |
//! | [`state`] | the struct whose fields are channels, and how writes are applied |
//! | [`node`] | functions as nodes: the arguments they may take, the results they may return |
//! | [`StateGraph`], [`CompiledGraph`] | a graph as it is declared; a graph that is checked and can run |
//! | [`Thread`], [`Outcome`] | where a graph runs, and how a run ends |
//! | [`Run`], [`RunStream`], [`Event`] | a run as a future, or as a stream of events |
//! | [`Task`] | one execution of a node: emit, recorded calls, questions |
//! | [`answer()`] | answering a question without the graph that asked it |
//! | [`func`] | workflows that are plain functions |
//! | [`checkpoint`] | storage: checkpointers, stores, caches and their values |
//! | [`error`] | the errors of each boundary |
//!
//! `superstep-sqlite` and `superstep-postgres` keep threads in databases, in LangGraph's tables; `superstep-encryption` encrypts what they
//! store. The guide in the repository has a chapter for each of these concepts, and one for people who know LangGraph.
//!
//! # What it is not
//!
//! There is no scheduler: a run lives in the process that awaits it. `superstep-server` adds a queue of runs and an HTTP API.
//! There are no agents and no clients of language models; `superstep-agent` builds agents as graphs. A [`Message`](state::Message) is the
//! only part made for them.

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

/// Storage: checkpointers, stores, caches, and the values they hold.
pub mod checkpoint {
    pub use superstep_checkpoint::*;
}

pub use answer::{answer, check_answer, replace_answer};
pub use engine::{Asking, CheckpointIds, Sleep, Task};
pub use engine::{BreakAt, CachePolicy, Memory, RetryPolicy, TimeoutPolicy};
pub use engine::{
    CheckpointInfo, CheckpointRef, Data, DebugEvent, Durability, Event, Interrupted, MessageEvent,
    Mode, Outcome, RawSnapshot, RunControl, SubgraphState, TaskEnd, TaskSnapshot, TaskStart,
    UpdatesEvent, ValuesEvent,
};
pub use error::{CompileError, NodeError, RunError};
pub use graph::{
    Area, CompiledGraph, Drawing, Edge, Join, Placed, PlacedEdge, PlacedGroup, PlacedNode,
    StateGraph, Subgraph, Targets,
};
pub use node::{
    AnyNode, Arg, Command, Ctx, Dispatch, Failure, Goto, In, IntoNode, IntoOutput, Output,
    ParentCommand, View,
};
pub use run::{
    AnyEvent, AnyGraph, AnyRun, AnyThread, DueRun, DueRuns, GetState, History, Input, IntoInput,
    Request, Run, RunDue, RunEvents, RunStream, Schemas, SharedRun, Snapshot, StateUpdate, Thread,
    UpdateState,
};
pub use state::State;
#[cfg(feature = "derive")]
pub use superstep_macros::{State, View, entrypoint, task};

/// The virtual start node: an edge from here leads to the first node of a graph.
pub const START: &str = engine::START;
/// The virtual end node: a path that reaches it ends.
pub const END: &str = engine::END;

/// The names that nearly every program uses.
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
