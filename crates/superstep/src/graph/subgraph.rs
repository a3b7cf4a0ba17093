use std::marker::PhantomData;
use std::sync::Arc;

use superstep_checkpoint::Value;

use super::compiled::{CompiledGraph, Shape, returned};
use crate::engine::Outcome;
use crate::engine::{Compiled, Memory};
use crate::engine::{StartValue, Task, value_input};
use crate::error::{NodeError, RunError};
use crate::node::{AnyNode, BoxFuture, FromTask, IntoNode, IntoOutput, Invocation, Node, Output};
use crate::run::{InputKind, IntoInput, refused_input};
use crate::state::{State, Writes};

/// A graph as a node of another, with functions that convert its input and result.
pub struct Subgraph<S, T: State, O, Enter, Leave> {
    graph: CompiledGraph<T, O>,
    enter: Enter,
    leave: Leave,
    outer: PhantomData<fn() -> S>,
}

impl<S, T: State, O, Enter, Leave> std::fmt::Debug for Subgraph<S, T, O, Enter, Leave> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subgraph").field("graph", &self.graph).finish_non_exhaustive()
    }
}

impl<T: State, O> CompiledGraph<T, O> {
    /// This graph as a node of a graph over `S`: `enter` converts the outer state to its input,
    /// `leave` converts its result to an update of the outer state.
    pub fn as_node<S, I, Enter, Leave, R>(
        &self,
        enter: Enter,
        leave: Leave,
    ) -> Subgraph<S, T, O, Enter, Leave>
    where
        S: State,
        Enter: Fn(&S) -> I + Send + Sync + 'static,
        I: IntoInput<T>,
        Leave: Fn(O) -> R + Send + Sync + 'static,
        R: IntoOutput<S>,
    {
        Subgraph { graph: self.clone(), enter, leave, outer: PhantomData }
    }

    /// The same graph with another memory inside other graphs.
    pub fn with_memory(&self, memory: Memory) -> Self {
        self.clone().with_inner(self.inner().with_memory(memory))
    }
}

/// Marks nodes that are graphs with functions leading in and out.
#[derive(Debug)]
pub struct Between;

/// Marks nodes that are graphs over the same state.
#[derive(Debug)]
pub struct Within;

impl<S, T, O, I, R, Enter, Leave> IntoNode<S, Between> for Subgraph<S, T, O, Enter, Leave>
where
    S: State,
    T: State,
    O: Send + 'static,
    I: IntoInput<T> + 'static,
    R: IntoOutput<S> + 'static,
    Enter: Fn(&S) -> I + Send + Sync + 'static,
    Leave: Fn(O) -> R + Send + Sync + 'static,
{
    fn into_node(self) -> AnyNode<S> {
        AnyNode::from_node(BetweenNode {
            graph: self.graph.inner().clone(),
            finish: self.graph.finish,
            enter: self.enter,
            leave: Arc::new(self.leave),
            types: PhantomData,
        })
    }
}

/// Types that a node has only in the signatures of its functions.
type Types<S, I, R> = PhantomData<fn() -> (S, I, R)>;

struct BetweenNode<S, T, O, I, R, Enter, Leave> {
    graph: Arc<Compiled>,
    finish: Shape<T, O>,
    enter: Enter,
    leave: Arc<Leave>,
    types: Types<S, I, R>,
}

impl<S, T, O, I, R, Enter, Leave> Node for BetweenNode<S, T, O, I, R, Enter, Leave>
where
    S: State,
    T: State,
    O: Send + 'static,
    I: IntoInput<T> + 'static,
    R: IntoOutput<S> + 'static,
    Enter: Fn(&S) -> I + Send + Sync + 'static,
    Leave: Fn(O) -> R + Send + Sync + 'static,
{
    fn run(&self, call: Invocation<'_>) -> BoxFuture<Result<Output, NodeError>> {
        let state = match <Arc<S> as FromTask<S>>::from_task(&call) {
            Ok(state) => state,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let input = (self.enter)(&state).into_input();
        let (graph, finish, leave) = (self.graph.clone(), self.finish, self.leave.clone());
        let task = call.task.clone();
        drop(state);
        Box::pin(async move {
            let state = run_inside::<T>(&task, graph, input.kind).await?;
            leave(returned(finish(state)?)?).into_output()
        })
    }

    fn subgraph(&self) -> Option<Arc<Compiled>> {
        Some(self.graph.clone())
    }
}

/// A graph over the same state is a node as it is: it gets the state, and what it returns is the update.
///
/// As in LangGraph, its result is applied like any other update: an appended list that it received
/// and returns is appended again. Use [`as_node`](CompiledGraph::as_node) to return only what is
/// new.
impl<S: State, O: Send + 'static> IntoNode<S, Within> for CompiledGraph<S, O> {
    fn into_node(self) -> AnyNode<S> {
        AnyNode::from_node(WithinNode { graph: self.inner().clone() })
    }
}

struct WithinNode {
    graph: Arc<Compiled>,
}

impl Node for WithinNode {
    fn run(&self, call: Invocation<'_>) -> BoxFuture<Result<Output, NodeError>> {
        let graph = self.graph.clone();
        let task = call.task.clone();
        let input = match call.arg {
            Some(arg) => Ok(StartValue::Arg(arg.clone())),
            None => task.input_value(call.cells).map(value_input),
        };
        Box::pin(async move {
            let input = input?;
            let outer = task.inner.superstep.setting.layout.schema.clone();
            let finish = task.run_graph(graph.clone(), input).await?;
            let values = finish.head.values(&graph.layout, &graph.layout.output)?;
            let (mut writes, problems) = outer.parse_map(Value::Map(values))?;
            if !problems.is_empty() {
                return Err(NodeError::invalid_update(problems.join("; "), None));
            }
            writes.forget_unknown();
            Ok(Output::writes(writes))
        })
    }

    fn subgraph(&self) -> Option<Arc<Compiled>> {
        Some(self.graph.clone())
    }
}

async fn run_inside<T: State>(
    task: &Task,
    graph: Arc<Compiled>,
    input: InputKind,
) -> Result<Arc<T>, RunError> {
    let start = match input {
        InputKind::Start(start) => start,
        InputKind::Nothing | InputKind::Wake => StartValue::Writes(Writes::new()),
        InputKind::Refused(error) => return Err(refused_input(&error)),
        InputKind::Command(_) => {
            return Err(RunError::Invalid(
                "a command cannot be the input of a graph that is called from a node".to_owned(),
            ));
        }
    };
    let finish = task.run_graph(graph, start).await?;
    let cells = finish.head.row.cells().clone();
    drop(finish);
    Ok(cells.downcast().expect("a graph ends with its own state type"))
}

impl Task {
    /// Runs a graph as part of this task.
    ///
    /// If the graph is interrupted or drained, this task is, too. When the thread is resumed, the
    /// node runs again from its first line and the graph continues where it was.
    ///
    /// # Errors
    /// The graph failed.
    pub async fn invoke<T: State, O>(
        &self,
        graph: &CompiledGraph<T, O>,
        input: impl IntoInput<T>,
    ) -> Result<O, RunError> {
        let state = run_inside::<T>(self, graph.inner().clone(), input.into_input().kind).await?;
        returned((graph.finish)(state)?)
    }

    /// Runs a graph on a thread of its own, as part of this run: with its context, store, control and stream, and in the same
    /// storage.
    ///
    /// The other thread is independent. If its run is interrupted or drained, this returns that
    /// outcome and the task continues; answers go to the other thread. With `()` as input the other
    /// thread continues where it is.
    ///
    /// # Errors
    /// The graph failed, or the thread is the one this task runs on.
    pub async fn invoke_on<T: State, O>(
        &self,
        graph: &CompiledGraph<T, O>,
        thread: impl Into<Arc<str>>,
        input: impl IntoInput<T>,
    ) -> Result<Outcome<O>, RunError> {
        crate::run::run_beside(self, graph, thread.into(), input.into_input()).await
    }
}
