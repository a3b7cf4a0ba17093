use std::collections::BTreeMap;
use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;

use serde::Serialize;
use superstep_checkpoint::{AnyCheckpointer, CheckpointId, InterruptId, Value, to_value};

use super::history::History;
use super::input::{Input, IntoInput};
use super::options::Target;
use super::request::Run;
use super::snapshot::Snapshot;
use crate::engine::{self, Look, ThreadView, look, node_names};
use crate::engine::{CheckpointRef, RawSnapshot};
use crate::engine::{Compiled, Memory};
use crate::error::RunError;
use crate::graph::CompiledGraph;
use crate::node::{BoxFuture, IntoOutput};
use crate::state::State;

/// A series of checkpoints under one id, and the graph that runs on it. Cheap to clone; nothing is
/// read until it is used.
pub struct Thread<S: State, O = S> {
    target: Target<S, O>,
    pub(super) id: Arc<str>,
}

impl<S: State, O> Clone for Thread<S, O> {
    fn clone(&self) -> Self {
        Self { target: self.target.clone(), id: self.id.clone() }
    }
}

impl<S: State, O> fmt::Debug for Thread<S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thread").field("id", &self.id).field("at", &self.target.at).finish()
    }
}

/// Names a checkpoint: an id, a [`CheckpointRef`], or a snapshot.
pub trait IntoCheckpoint {
    /// The place of the checkpoint on this thread.
    fn into_checkpoint(self, thread: &Arc<str>) -> CheckpointRef;
}

impl IntoCheckpoint for CheckpointId {
    fn into_checkpoint(self, thread: &Arc<str>) -> CheckpointRef {
        CheckpointRef::latest(thread.clone()).at(self)
    }
}

impl IntoCheckpoint for CheckpointRef {
    fn into_checkpoint(self, _: &Arc<str>) -> CheckpointRef {
        self
    }
}

impl IntoCheckpoint for &RawSnapshot {
    fn into_checkpoint(self, _: &Arc<str>) -> CheckpointRef {
        self.config.clone()
    }
}

impl<S> IntoCheckpoint for &Snapshot<S> {
    fn into_checkpoint(self, _: &Arc<str>) -> CheckpointRef {
        self.config.clone()
    }
}

impl<S: State, O> Thread<S, O> {
    pub(crate) fn new(graph: CompiledGraph<S, O>, id: Arc<str>) -> Self {
        Self { target: Target::new(graph, Some(id.clone())), id }
    }

    pub(super) fn target(&self) -> &Target<S, O> {
        &self.target
    }

    /// The id of the thread.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The same thread at an older checkpoint: runs and updates begin a branch there.
    ///
    /// The newest checkpoint of any branch is the head of the thread. Naming the head has no
    /// effect.
    pub fn at(&self, checkpoint: impl IntoCheckpoint) -> Self {
        let mut thread = self.clone();
        thread.target.at = Some(checkpoint.into_checkpoint(&self.id));
        thread
    }

    /// Runs the graph on this thread with an input; with `()` it continues where the thread is.
    #[doc(alias = "ainvoke")]
    pub fn invoke(&self, input: impl IntoInput<S>) -> Run<S, O> {
        Run::new(self.target.clone(), input.into_input())
    }

    /// Answers the only open question and continues the thread.
    ///
    /// An answer that cannot be serialized, or that the node cannot read, is refused with
    /// [`RunError::Resume`]; the question stays open.
    pub fn resume<A: Serialize>(&self, answer: A) -> Run<S, O> {
        self.invoke(match to_value(&answer) {
            Ok(answer) => Input::answer(answer),
            Err(error) => Input::unfit(None, error),
        })
    }

    /// Answers several questions by id and continues the thread. Questions without an answer stay
    /// open.
    pub fn resume_all<I, A>(&self, answers: I) -> Run<S, O>
    where
        I: IntoIterator<Item = (InterruptId, A)>,
        A: Serialize,
    {
        let answers = answers.into_iter().map(|(id, answer)| match to_value(&answer) {
            Ok(answer) => Ok((id, answer)),
            Err(error) => Err(Box::new((id, error))),
        });
        self.invoke(match answers.collect::<Result<Vec<_>, _>>() {
            Ok(answers) => Input::answers(answers),
            Err(unfit) => {
                let (id, error) = *unfit;
                Input::unfit(Some(id), error)
            }
        })
    }

    /// Reads the thread: its state, the next nodes, the open questions.
    #[doc(alias = "aget_state")]
    pub fn get_state(&self) -> GetState<S, O> {
        GetState { thread: self.clone(), subgraphs: false }
    }

    /// The checkpoints of the thread, newest first.
    #[doc(alias = "aget_state_history")]
    pub fn get_state_history(&self) -> History<S, O> {
        History::of(self.clone())
    }

    /// Changes the state as if a node had written the update, and the node's edges were followed.
    #[doc(alias = "aupdate_state")]
    pub fn update_state(&self, update: impl IntoOutput<S>) -> UpdateState<S, O> {
        self.bulk_update_state([vec![StateUpdate::new(update)]])
    }

    /// Changes the state in several supersteps, each of several updates.
    pub fn bulk_update_state(
        &self,
        steps: impl IntoIterator<Item = Vec<StateUpdate>>,
    ) -> UpdateState<S, O> {
        let steps = steps.into_iter().collect();
        UpdateState { thread: self.clone(), steps, metadata: BTreeMap::new() }
    }

    /// Deletes the thread, with everything that is stored for it.
    ///
    /// # Errors
    /// The graph has no checkpointer, or it failed.
    pub async fn delete(&self) -> Result<(), RunError> {
        Ok(self.checkpointer()?.delete_thread(&self.id).await?)
    }

    pub(super) fn checkpointer(&self) -> Result<AnyCheckpointer, RunError> {
        self.target.graph.inner().checkpointer.clone().ok_or_else(|| {
            RunError::Invalid(
                "the graph has no checkpointer, so threads have no state; add one with `with_checkpointer`"
                    .to_owned(),
            )
        })
    }

    /// The graph that a namespace belongs to, and where it stores.
    pub(super) fn graph_at(&self, ns: &str) -> Result<(Arc<Compiled>, Arc<str>), RunError> {
        let mut graph = self.target.graph.inner().clone();
        if ns.is_empty() {
            return Ok((graph, "".into()));
        }
        let names = node_names(ns);
        for name in names.split('|') {
            let node = graph.layout.node(name);
            let inner = node.and_then(|node| graph.layout.nodes[node].inner.clone());
            graph = inner
                .ok_or_else(|| RunError::Invalid(format!("the graph has no subgraph `{names}`")))?;
        }
        let ns = match graph.memory {
            Memory::PerThread => {
                let levels = ns.split('|').map(|level| level.split(':').next().unwrap_or(level));
                levels.collect::<Vec<_>>().join("|")
            }
            Memory::PerCall | Memory::Nothing => ns.to_owned(),
        };
        Ok((graph, ns.into()))
    }

    pub(super) fn reference(&self) -> CheckpointRef {
        self.target.at.clone().unwrap_or_else(|| CheckpointRef::latest(self.id.clone()))
    }
}

/// A read of a thread's state. Await it.
#[must_use = "nothing is read until it is awaited"]
#[derive(Debug)]
pub struct GetState<S: State, O = S> {
    thread: Thread<S, O>,
    subgraphs: bool,
}

impl<S: State, O> GetState<S, O> {
    /// Whether to include the states of subgraphs.
    pub fn subgraphs(mut self, subgraphs: bool) -> Self {
        self.subgraphs = subgraphs;
        self
    }
}

impl<S: State, O: Send + 'static> GetState<S, O> {
    /// Reads the state as data, whichever graph the checkpoint belongs to. Needed for subgraphs
    /// with another state type.
    ///
    /// # Errors
    /// As for the typed read.
    pub async fn raw(self) -> Result<RawSnapshot, RunError> {
        self.read().await?.into_raw()
    }

    async fn read(self) -> Result<ThreadView, RunError> {
        let checkpointer = self.thread.checkpointer()?;
        let at = self.thread.reference();
        let (graph, ns) = self.thread.graph_at(&at.ns)?;
        let stored = checkpointer.get(&self.thread.id, &ns, at.id).await?;
        if let (None, Some(id)) = (&stored, at.id) {
            return Err(RunError::UnknownCheckpoint { thread: self.thread.id.clone(), id });
        }
        let live = at.id.is_none();
        let how = Look { graph, checkpointer, live, subgraphs: self.subgraphs };
        look(how, at.in_namespace(ns), stored).await
    }
}

impl<S: State, O: Send + 'static> IntoFuture for GetState<S, O> {
    type Output = Result<Snapshot<S>, RunError>;
    type IntoFuture = BoxFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { Snapshot::of(self.read().await?) })
    }
}

/// An update of the state, as if a node had made it.
#[derive(Debug)]
pub struct StateUpdate {
    value: UpdateValue,
    as_node: Option<Arc<str>>,
}

#[derive(Debug)]
enum UpdateValue {
    Nothing,
    Output(Result<crate::node::Output, crate::error::NodeError>),
    Data(Value),
}

impl StateUpdate {
    /// A typed update, or a command.
    pub fn new<S: State>(update: impl IntoOutput<S>) -> Self {
        Self { value: UpdateValue::Output(update.into_output()), as_node: None }
    }

    /// An update given as data, checked against the channels of the graph.
    pub fn data(value: impl Into<Value>) -> Self {
        Self { value: UpdateValue::Data(value.into()), as_node: None }
    }

    /// A command in LangGraph's JSON: `{"update", "goto"}`, each of them optional. `goto` is the name of a node,
    /// `{"node", "input"}`, or a list of these.
    ///
    /// # Errors
    /// The command is malformed.
    pub fn command(command: &serde_json::Value) -> Result<Self, RunError> {
        let (update, goto) = super::any::update_and_goto(command)?;
        let output = crate::node::Output { goto, ..crate::node::Output::writes(update) };
        Ok(Self { value: UpdateValue::Output(Ok(output)), as_node: None })
    }

    /// No writes; the edges of the node are still followed.
    pub fn nothing() -> Self {
        Self { value: UpdateValue::Nothing, as_node: None }
    }

    /// Sets the node that the update is from.
    #[must_use]
    pub fn as_node(mut self, node: impl Into<Arc<str>>) -> Self {
        self.as_node = Some(node.into());
        self
    }

    fn into_change(self) -> Result<engine::Change, RunError> {
        let value = match self.value {
            UpdateValue::Nothing => engine::ChangeValue::Nothing,
            UpdateValue::Data(value) => engine::ChangeValue::Data(value),
            UpdateValue::Output(Ok(output)) => engine::ChangeValue::Output(output),
            UpdateValue::Output(Err(error)) => {
                return Err(RunError::InvalidUpdate {
                    message: format!("{error:#}"),
                    code: error.code(),
                });
            }
        };
        Ok(engine::Change { value, as_node: self.as_node })
    }
}

/// A change of the state of a thread. Await it for the checkpoint it leads to.
#[must_use = "nothing is changed until it is awaited"]
pub struct UpdateState<S: State, O = S> {
    thread: Thread<S, O>,
    steps: Vec<Vec<StateUpdate>>,
    metadata: BTreeMap<String, Value>,
}

impl<S: State, O> fmt::Debug for UpdateState<S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpdateState")
            .field("thread", &self.thread)
            .field("steps", &self.steps)
            .finish()
    }
}

impl<S: State, O> UpdateState<S, O> {
    /// Sets the node that the update is from. The default is the node that ran last.
    pub fn as_node(mut self, node: impl Into<Arc<str>>) -> Self {
        let node = node.into();
        for update in self.steps.iter_mut().flatten() {
            update.as_node = Some(node.clone());
        }
        self
    }

    /// Attaches this to the metadata of each checkpoint that is made, except of copies of other checkpoints.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }
}

impl<S: State, O: Send + 'static> IntoFuture for UpdateState<S, O> {
    type Output = Result<CheckpointRef, RunError>;
    type IntoFuture = BoxFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let checkpointer = self.thread.checkpointer()?;
            let at = self.thread.reference();
            let (graph, ns) = self.thread.graph_at(&at.ns)?;
            let steps = self.steps.into_iter().map(|step| {
                step.into_iter().map(StateUpdate::into_change).collect::<Result<Vec<_>, _>>()
            });
            let request = engine::UpdateRequest {
                graph,
                checkpointer,
                ids: self.thread.target.graph.ids.clone(),
                thread: self.thread.id.clone(),
                ns: ns.clone(),
                at: at.id,
                steps: steps.collect::<Result<_, _>>()?,
                metadata: self.metadata,
            };
            let id = engine::update(request).await?;
            Ok(CheckpointRef { id: Some(id), ..at.in_namespace(ns) })
        })
    }
}
