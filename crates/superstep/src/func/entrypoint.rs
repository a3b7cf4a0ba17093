use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use superstep_checkpoint::{Value, from_value, to_value};

use crate::engine::{Breakpoints, Compiled, Memory, NodeOptions, RetryPolicy, TimeoutPolicy};
use crate::engine::{
    ControlKind, ControlSpec, END, Layout, NodeDef, Reads, START, TASKS, Task, needed_context,
};
use crate::error::NodeError;
use crate::graph::{CompiledGraph, id_tail};
use crate::node::{BoxFuture, Invocation, Node, Output};
use crate::state::{ErasedSchema, Row, Schema, State, Writes};

use super::workflow::{PREVIOUS, Workflow};

/// A workflow that is a plain async function of an input and a [`Task`], with recorded calls inside.
///
/// The function is the one node of a graph. It runs again from its first line after an interrupt or
/// a crash; recorded calls return their recorded results. `I` is its input type, `O` its result
/// type.
///
/// ```
/// use superstep::func::Entrypoint;
/// use superstep::prelude::*;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let double = Entrypoint::new("double", |n: i64, task: Task| async move {
///     task.call("double", || async { Ok::<_, NodeError>(n * 2) }).await
/// })
/// .compile();
/// let doubled = double.start(21).await.unwrap().done();
/// assert_eq!(doubled, Some(42));
/// # });
/// ```
#[doc(alias = "entrypoint")]
pub struct Entrypoint<I, O> {
    name: Arc<str>,
    node: Arc<dyn Node>,
    options: NodeOptions,
    memory: Memory,
    inner: Option<Arc<Compiled>>,
    types: PhantomData<fn(I) -> O>,
}

impl<I, O> fmt::Debug for Entrypoint<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entrypoint").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A result that differs from what the thread remembers as [`Task::previous`].
#[doc(alias = "entrypoint.final")]
#[derive(Clone, Debug)]
pub struct Final<V, P> {
    /// What the run returns.
    pub value: V,
    /// What the thread remembers.
    pub save: P,
}

/// A return type of workflows: a value, or a [`Final`].
pub trait IntoFinal {
    /// The result type of the workflow.
    type Output;

    /// The result, and what is remembered.
    ///
    /// # Errors
    /// One of them cannot be stored.
    fn into_final(self) -> Result<(Value, Value), superstep_checkpoint::Error>;
}

impl<T: Serialize> IntoFinal for T {
    type Output = T;

    fn into_final(self) -> Result<(Value, Value), superstep_checkpoint::Error> {
        let value = to_value(&self)?;
        Ok((value.clone(), value))
    }
}

impl<V: Serialize, P: Serialize> IntoFinal for Final<V, P> {
    type Output = V;

    fn into_final(self) -> Result<(Value, Value), superstep_checkpoint::Error> {
        Ok((to_value(&self.value)?, to_value(&self.save)?))
    }
}

impl<I, O> Entrypoint<I, O>
where
    I: DeserializeOwned + Send + 'static,
    O: DeserializeOwned + Send + 'static,
{
    /// A workflow with this name and function.
    pub fn new<F, R, T, E>(name: impl Into<Arc<str>>, function: F) -> Self
    where
        F: Fn(I, Task) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, E>> + Send + 'static,
        T: IntoFinal<Output = O>,
        E: Into<NodeError>,
    {
        Self {
            name: name.into(),
            node: Arc::new(FunctionNode { function, input: PhantomData::<fn(I)> }),
            options: NodeOptions::default(),
            memory: Memory::default(),
            inner: None,
            types: PhantomData,
        }
    }

    /// Tries the workflow again when it fails.
    #[must_use]
    pub fn retry(mut self, policy: impl Into<RetryPolicy>) -> Self {
        self.options.retry.get_or_insert_default().push(policy.into());
        self
    }

    /// Limits the time of one attempt.
    #[must_use]
    pub fn timeout(mut self, policy: TimeoutPolicy) -> Self {
        self.options.timeout = Some(policy);
        self
    }

    /// Sets the workflow's memory when it is a subgraph.
    #[must_use]
    pub fn memory(mut self, memory: Memory) -> Self {
        self.memory = memory;
        self
    }

    /// Declares that the workflow calls this graph, so that snapshots show it.
    #[must_use]
    pub fn calls<T: State, P>(mut self, graph: &CompiledGraph<T, P>) -> Self {
        self.inner = Some(graph.inner().clone());
        self
    }

    /// Compiles the workflow.
    pub fn compile(self) -> CompiledGraph<Workflow<I>, O> {
        let compiled = Compiled {
            breakpoints: Breakpoints::default(),
            step_timeout: None,
            memory: self.memory,
            warnings: Vec::new(),
            edges: Vec::new(),
            checkpointer: None,
            store: None,
            cache: None,
            layout: Arc::new(self.layout()),
        };
        CompiledGraph::new(Arc::new(compiled), |flow| match flow.result() {
            // A workflow that has not returned yet, or whose result serializes to null.
            Value::Null => Ok(from_value(Value::Null).ok()),
            result => from_value(result.clone()).map(Some),
        })
    }

    fn layout(self) -> Layout {
        let schema = Arc::new(Schema::<Workflow<I>>::of());
        let erased: Arc<dyn ErasedSchema> = schema.clone();
        let triggers = vec![START.into()];
        let def = NodeDef {
            id_tail: id_tail(&self.name, &triggers),
            name: self.name.clone(),
            node: self.node,
            triggers: vec![0],
            trigger_names: triggers,
            reads: Reads::Start,
            edges: Vec::new(),
            joins: Vec::new(),
            routers: Vec::new(),
            options: self.options,
            handler: None,
            collector: None,
            hidden: false,
            inner: self.inner,
        };
        let names = [END, PREVIOUS, START, TASKS];
        let row_schema = erased.clone();
        Layout {
            name: self.name.clone(),
            channels: erased.specs(),
            managed: Vec::new(),
            schema: erased,
            empty: Arc::new(move || {
                Row::new(Arc::new(Workflow::<I>::empty(&schema)), row_schema.clone())
            }),
            controls: vec![ControlSpec { name: START.into(), kind: ControlKind::Start }],
            node_by_name: HashMap::from([(def.name.clone(), 0)]),
            needs: needed_context(std::slice::from_ref(&def)),
            nodes: vec![def],
            rank: vec![0],
            triggered: vec![vec![0]],
            deferred: Vec::new(),
            joins: Vec::new(),
            partial_joins: Vec::new(),
            slot_by_name: names.iter().enumerate().map(|(at, name)| ((*name).into(), at)).collect(),
            branch_of: vec![None],
            output: vec![0],
            shown: vec![0],
            nests: true,
            single: true,
            lenient: false,
        }
    }
}

struct FunctionNode<F, I> {
    function: F,
    input: PhantomData<fn(I)>,
}

impl<I, F, R, T, E> Node for FunctionNode<F, I>
where
    I: DeserializeOwned + Send + 'static,
    F: Fn(I, Task) -> R + Send + Sync + 'static,
    R: Future<Output = Result<T, E>> + Send + 'static,
    T: IntoFinal,
    E: Into<NodeError>,
{
    fn run(&self, call: Invocation<'_>) -> BoxFuture<Result<Output, NodeError>> {
        let Invocation { task, cells, arg, .. } = call;
        let flow = cells.downcast_ref::<Workflow<I>>();
        let previous = flow.map(|flow| &flow.previous).filter(|value| **value != Value::Null);
        task.set_previous(previous.cloned());
        let value = arg.map(crate::state::Payload::to_value).transpose();
        let input = match value.and_then(|value| from_value::<I>(value.unwrap_or_default())) {
            Ok(input) => input,
            Err(error) => {
                let text = format!("the input of `{}` does not fit: {error}", task.name());
                return Box::pin(std::future::ready(Err(NodeError::permanent(text))));
            }
        };
        let future = (self.function)(input, task.clone());
        Box::pin(async move {
            let (value, save) = future.await.map_err(Into::into)?.into_final()?;
            let mut writes = Writes::new();
            writes.push(0, value);
            writes.push(1, save);
            Ok(Output::writes(writes))
        })
    }
}

impl<F, I> fmt::Debug for FunctionNode<F, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FunctionNode")
    }
}
