//! Graphs without their state type: JSON in, JSON out.
//!
//! Programs that hold graphs of several types by name, such as a server, use an [`AnyGraph`]. It
//! runs on the same engine as the typed API; only the conversions are here.

mod request;
mod run;
mod schemas;
mod shape;
mod shared;

use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;
use superstep_checkpoint::{AnyCheckpointer, AnyStore, CheckpointId};

pub use request::Request;
pub(crate) use request::update_and_goto;
pub use run::{AnyEvent, AnyRun};
pub use schemas::Schemas;
pub use shared::{RunEvents, SharedRun};

use super::due::{Due, DueOptions, DueRuns};
use super::options::Target;
use super::thread::{StateUpdate, Thread};
use crate::engine::{CheckpointRef, RawSnapshot};
use crate::error::RunError;
use crate::graph::{CompiledGraph, Drawing};
use crate::node::BoxFuture;
use crate::state::{Schema, State, Writes};

/// A placeholder for the unknown state type. The state of such a graph is never accessed.
struct Unknown;

impl State for Unknown {
    type Update = Writes;

    fn channels(_: &mut Schema<Self>) {}

    fn empty(_: &Arc<Schema<Self>>) -> Self {
        Self
    }

    fn duplicate(&self) -> Self {
        Self
    }
}

/// A compiled graph without its state type. Cheap to clone.
///
/// ```
/// use serde_json::json;
/// use superstep::{AnyEvent, AnyGraph, Request};
/// use superstep::prelude::*;
///
/// #[derive(State, Clone, Default)]
/// struct Counter {
///     #[channel(reduce = Sum)]
///     count: i64,
/// }
///
/// async fn add() -> CounterUpdate {
///     Counter::update().count(1)
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let graph = StateGraph::<Counter>::new().add_node("add", add).add_edge(START, "add").compile()?;
/// let graph = AnyGraph::from(graph.with_checkpointer(MemorySaver::new()));
///
/// let thread = graph.thread("t-1");
/// let mut run = thread.run(Request { input: Some(json!({ "count": 10 })), ..Request::default() });
/// while let Some(event) = run.next().await {
///     match event? {
///         AnyEvent::Data { mode, data, .. } => println!("{}: {data}", mode.as_str()),
///         AnyEvent::Outcome(outcome) => assert_eq!(outcome.done(), Some(json!({ "count": 11 }))),
///         _ => {}
///     }
/// }
/// assert_eq!(thread.state(false).await?.to_json()["values"], json!({ "count": 11 }));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct AnyGraph {
    graph: CompiledGraph<Unknown, ()>,
}

impl<S: State, O> From<CompiledGraph<S, O>> for AnyGraph {
    fn from(graph: CompiledGraph<S, O>) -> Self {
        Self { graph: graph.retyped(|_| Ok(Some(()))) }
    }
}

impl fmt::Debug for AnyGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.graph.fmt(f)
    }
}

impl AnyGraph {
    /// Checks that every node gets the context it needs: from the graph, or from JSON
    /// ([`with_json_context`](CompiledGraph::with_json_context)). Call it before you serve a graph.
    ///
    /// # Errors
    /// Something is missing; the text names each node and type.
    pub fn check(&self) -> Result<(), RunError> {
        self.graph.context.check_with_json(&self.graph.inner().layout).map_err(|error| {
            RunError::Invalid(format!("{error}, or read it from JSON with `with_json_context`"))
        })
    }

    /// Stores threads with this checkpointer.
    #[must_use]
    pub fn with_checkpointer(self, checkpointer: AnyCheckpointer) -> Self {
        Self { graph: self.graph.with_any_checkpointer(checkpointer) }
    }

    /// Gives nodes this long-term memory.
    #[must_use]
    pub fn with_store(self, store: AnyStore) -> Self {
        Self { graph: self.graph.with_any_store(store) }
    }

    /// The checkpointer, if there is one.
    pub fn checkpointer(&self) -> Option<&AnyCheckpointer> {
        self.graph.inner().checkpointer.as_ref()
    }

    /// The names of the nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        let nodes = self.graph.inner().layout.nodes.iter();
        nodes.map(|node| &*node.name).filter(|name| !name.starts_with("__"))
    }

    /// The nodes and edges; subgraphs are unfolded down to this depth.
    pub fn drawing(&self, depth: usize) -> Drawing {
        Drawing::of(self.graph.inner(), depth)
    }

    /// The JSON Schemas of input, output, state and context.
    pub fn schemas(&self) -> Schemas {
        let contexts = self.graph.context.json_schemas();
        Schemas::of(&self.graph.inner().layout, contexts)
    }

    /// The schemas of the subgraphs, by the name of the node, level by level with `|` between them.
    pub fn subgraphs(&self, recurse: bool) -> Vec<(String, Schemas)> {
        schemas::inside(self.graph.inner(), "", recurse)
    }

    /// Runs the threads on which a question is due; see [`CompiledGraph::run_due`].
    ///
    /// # Errors
    /// The graph has no checkpointer, or it failed.
    pub async fn run_due(&self) -> Result<DueRuns<Json>, RunError> {
        let due = Due::of(&self.graph, &DueOptions::default())?;
        let graph = self.clone();
        let run = move |thread: Arc<str>| -> BoxFuture<_> {
            let request = Request { wake: true, modes: Vec::new(), ..Request::default() };
            Box::pin(graph.thread(thread).run(request).outcome())
        };
        due.run(run).await
    }

    /// The thread with this id.
    pub fn thread(&self, id: impl Into<Arc<str>>) -> AnyThread {
        AnyThread { thread: self.graph.thread(id) }
    }

    /// Runs the graph without a thread. Only for graphs without a checkpointer.
    pub fn run(&self, request: Request) -> AnyRun {
        AnyRun::new(Target::new(self.graph.clone(), None), request)
    }
}

/// A thread of an [`AnyGraph`]. Cheap to clone; nothing is read until it is used.
#[derive(Clone, Debug)]
pub struct AnyThread {
    thread: Thread<Unknown, ()>,
}

impl AnyThread {
    /// The id of the thread.
    pub fn id(&self) -> &str {
        self.thread.id()
    }

    /// The same thread at this checkpoint, or in the namespace that it names.
    #[must_use]
    pub fn at(&self, checkpoint: CheckpointRef) -> Self {
        Self { thread: self.thread.at(checkpoint) }
    }

    /// Runs the graph on this thread.
    pub fn run(&self, request: Request) -> AnyRun {
        AnyRun::new(self.thread.target().clone(), request)
    }

    /// Reads the state of the thread. [`RawSnapshot::to_json`] converts it to LangGraph's form.
    ///
    /// # Errors
    /// The graph has no checkpointer, it failed, or the checkpoint does not exist.
    pub async fn state(&self, subgraphs: bool) -> Result<RawSnapshot, RunError> {
        self.thread.get_state().subgraphs(subgraphs).raw().await
    }

    /// The checkpoints of the thread, newest first: at most `limit`, older than `before`, with this metadata.
    ///
    /// # Errors
    /// As for [`state`](Self::state).
    pub async fn history(
        &self,
        limit: usize,
        before: Option<CheckpointId>,
        metadata: serde_json::Map<String, Json>,
    ) -> Result<Vec<RawSnapshot>, RunError> {
        let mut history = self.thread.get_state_history().limit(limit);
        if let Some(before) = before {
            history = history.before(before);
        }
        for (key, value) in metadata {
            history = history.filter(key, value);
        }
        history.raw().await
    }

    /// Changes the state in several supersteps, each of several updates.
    ///
    /// # Errors
    /// An update does not fit the graph, or storage failed; nothing was changed.
    pub async fn update(
        &self,
        steps: impl IntoIterator<Item = Vec<StateUpdate>>,
    ) -> Result<CheckpointRef, RunError> {
        self.thread.bulk_update_state(steps).await
    }

    /// As [`update`](Self::update), with metadata for each checkpoint that is made, except for copies.
    ///
    /// # Errors
    /// As for [`update`](Self::update).
    pub async fn update_with(
        &self,
        steps: impl IntoIterator<Item = Vec<StateUpdate>>,
        metadata: serde_json::Map<String, Json>,
    ) -> Result<CheckpointRef, RunError> {
        let mut update = self.thread.bulk_update_state(steps);
        for (key, value) in metadata {
            update = update.metadata(key, value);
        }
        update.await
    }
}
