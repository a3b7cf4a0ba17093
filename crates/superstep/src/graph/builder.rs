use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::compiled::Shape;
use super::join::{EdgeSource, Join, Source};
use crate::engine::{At, BreakAt, Breakpoints};
use crate::engine::{CachePolicy, NodeOptions, RetryPolicy, TimeoutPolicy};
use crate::engine::{Compiled, Memory};
use crate::engine::{END, START};
use crate::node::{AnyNode, AnyRouter, IntoNode, IntoRouter, Node, View};
use crate::state::{Schema, State};

/// Builds a graph.
///
/// Nodes are functions, edges say which node comes after which. Options such as
/// [`retry`](Self::retry) apply to the node that was added last. Nothing is checked before
/// [`compile`](Self::compile), which reports every problem at once.
///
/// Names are strings because they are stored in checkpoints: renaming a function must not orphan a
/// thread.
///
/// ```
/// use superstep::prelude::*;
///
/// #[derive(State, Clone, Default)]
/// struct Count {
///     n: i64,
/// }
///
/// # fn main() -> Result<(), CompileError> {
/// let graph = StateGraph::<Count>::new()
///     .add_node("step", |count: Arc<Count>| Count::update().n(count.n + 1))
///     .add_edge(START, "step")
///     .add_conditional_edges("step", ["step", END], |count: &Count| {
///         if count.n < 3 { "step" } else { END }
///     })
///     .compile()?;
/// # Ok(())
/// # }
/// ```
pub struct StateGraph<S: State, O = S> {
    pub(super) schema: Schema<S>,
    pub(super) name: Arc<str>,
    pub(super) nodes: Vec<NodeDecl>,
    pub(super) edges: Vec<(Arc<str>, Arc<str>)>,
    pub(super) joins: Vec<(Join, Arc<str>)>,
    pub(super) branches: Vec<Branch>,
    pub(super) defaults: NodeOptions,
    pub(super) default_handler: Option<Arc<dyn Node>>,
    pub(super) input: Option<Vec<Arc<str>>>,
    pub(super) output: Option<Vec<Arc<str>>>,
    pub(super) finish: Shape<S, O>,
    pub(super) breakpoints: Breakpoints,
    pub(super) step_timeout: Option<Duration>,
    pub(super) memory: Memory,
    pub(super) lenient: bool,
    pub(super) problems: Vec<String>,
}

pub(super) struct NodeDecl {
    pub(super) name: Arc<str>,
    pub(super) node: Arc<dyn Node>,
    pub(super) options: NodeOptions,
    pub(super) handler: Option<Arc<dyn Node>>,
    pub(super) collector: Option<Arc<dyn Node>>,
    pub(super) destinations: Vec<Arc<str>>,
    pub(super) reads: Option<Vec<Arc<str>>>,
    pub(super) writes: Option<Vec<Arc<str>>>,
    pub(super) inner: Option<Arc<Compiled>>,
}

pub(super) struct Branch {
    pub(super) from: Arc<str>,
    pub(super) targets: Targets,
    pub(super) router: AnyRouter,
}

/// The nodes a router may lead to.
///
/// A list of names; or a [`map`](Self::map) from the router's answers to nodes; or
/// [`any`](Self::any).
#[derive(Clone, Debug)]
pub struct Targets(pub(crate) Option<Vec<(Arc<str>, Arc<str>)>>);

impl Targets {
    /// Any node of the graph. The drawing then shows an edge to every node, and a wrong name is found only when the
    /// router answers it.
    pub fn any() -> Self {
        Self(None)
    }

    /// Maps the router's answers to nodes.
    #[doc(alias = "path_map")]
    pub fn map<A: Into<Arc<str>>, B: Into<Arc<str>>>(
        pairs: impl IntoIterator<Item = (A, B)>,
    ) -> Self {
        Self(Some(pairs.into_iter().map(|(answer, node)| (answer.into(), node.into())).collect()))
    }
}

impl<T: Into<Arc<str>>, const N: usize> From<[T; N]> for Targets {
    fn from(names: [T; N]) -> Self {
        Self::from(Vec::from(names))
    }
}

impl<T: Into<Arc<str>>> From<Vec<T>> for Targets {
    fn from(names: Vec<T>) -> Self {
        let names = names.into_iter().map(Into::into);
        Self(Some(names.map(|name: Arc<str>| (name.clone(), name)).collect()))
    }
}

impl<S: State> Default for StateGraph<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: State> StateGraph<S> {
    /// An empty graph over the channels that `S` declares.
    pub fn new() -> Self {
        Self::with_schema(Schema::of())
    }

    /// An empty graph over channels that are given at run time.
    pub fn with_schema(schema: Schema<S>) -> Self {
        Self {
            schema,
            name: "graph".into(),
            nodes: Vec::new(),
            edges: Vec::new(),
            joins: Vec::new(),
            branches: Vec::new(),
            defaults: NodeOptions::default(),
            default_handler: None,
            input: None,
            output: None,
            finish: |state| {
                Ok(Some(Arc::try_unwrap(state).unwrap_or_else(|shared| shared.duplicate())))
            },
            breakpoints: Breakpoints::default(),
            step_timeout: None,
            memory: Memory::PerCall,
            lenient: false,
            problems: Vec::new(),
        }
    }

    /// Returns a part of the state instead of the whole.
    #[doc(alias = "output_schema")]
    pub fn output<V: View<S>>(self) -> StateGraph<S, V> {
        let Self {
            schema,
            name,
            nodes,
            edges,
            joins,
            branches,
            defaults,
            default_handler,
            input,
            output: _,
            finish: _,
            breakpoints,
            step_timeout,
            memory,
            lenient,
            problems,
        } = self;
        StateGraph {
            schema,
            name,
            nodes,
            edges,
            joins,
            branches,
            defaults,
            default_handler,
            input,
            output: Some(V::CHANNELS.iter().map(|name| (*name).into()).collect()),
            finish: |state| Ok(Some(V::view(&state))),
            breakpoints,
            step_timeout,
            memory,
            lenient,
            problems,
        }
    }
}

impl<S: State, O> StateGraph<S, O> {
    /// Gives the graph a name, for streams and drawings.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Takes only a part of the state as input.
    #[doc(alias = "input_schema")]
    pub fn input<V: View<S>>(self) -> Self {
        self.input_channels(V::CHANNELS.iter().copied())
    }

    /// Takes only these channels as input.
    pub fn input_channels<T: Into<Arc<str>>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.input = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Returns only these channels in results and streams of a graph without a fixed type.
    pub fn output_channels<T: Into<Arc<str>>>(
        mut self,
        names: impl IntoIterator<Item = T>,
    ) -> Self {
        self.output = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Adds a node.
    pub fn add_node<M>(mut self, name: impl Into<Arc<str>>, node: impl IntoNode<S, M>) -> Self {
        let node = node.into_node().into_inner();
        let inner = node.subgraph();
        let reads = node.reads().map(|names| names.iter().map(|name| (*name).into()).collect());
        self.nodes.push(NodeDecl {
            name: name.into(),
            node,
            options: NodeOptions::default(),
            handler: None,
            collector: None,
            destinations: Vec::new(),
            reads,
            writes: None,
            inner,
        });
        self
    }

    /// Adds nodes, and an edge from each of them to the next. Lead to the first with an edge from [`START`](crate::START).
    ///
    /// Nodes of one list have one type, so wrap each function:
    /// `add_sequence([("a", AnyNode::new(a)), ("b", AnyNode::new(b))])`.
    pub fn add_sequence<T: Into<Arc<str>>>(
        mut self,
        nodes: impl IntoIterator<Item = (T, AnyNode<S>)>,
    ) -> Self {
        let mut last: Option<Arc<str>> = None;
        for (name, node) in nodes {
            let name = name.into();
            self = self.add_node::<()>(name.clone(), node);
            if let Some(last) = last.replace(name.clone()) {
                self.edges.push((last, name));
            }
        }
        if last.is_none() {
            self.problems.push("a sequence needs at least one node".to_owned());
        }
        self
    }

    fn last(&mut self, what: &str) -> Option<&mut NodeDecl> {
        if self.nodes.is_empty() {
            self.problems.push(format!("`{what}` is about the node added last, but there is none"));
        }
        self.nodes.last_mut()
    }

    /// Tries the node again when it fails. Of several policies the first that matches applies.
    pub fn retry(mut self, policy: impl Into<RetryPolicy>) -> Self {
        let policy = policy.into();
        if let Some(node) = self.last("retry") {
            node.options.retry.get_or_insert_default().push(policy);
        }
        self
    }

    /// Limits the time of one attempt of the node.
    pub fn timeout(mut self, policy: TimeoutPolicy) -> Self {
        if let Some(node) = self.last("timeout") {
            node.options.timeout = Some(policy);
        }
        self
    }

    /// Uses an earlier result of the node again for an equal input. The graph needs a cache.
    pub fn cache(mut self, policy: CachePolicy) -> Self {
        if let Some(node) = self.last("cache") {
            node.options.cache = Some(policy);
        }
        self
    }

    /// Runs the node only when nothing else is left to run.
    pub fn defer(mut self) -> Self {
        if let Some(node) = self.last("defer") {
            node.options.defer = true;
        }
        self
    }

    /// Runs the node as a task of the runtime, so that it can use another core. Use it for
    /// CPU-bound work; I/O overlaps without it. Like any other node, it resumes from an `await`
    /// only when the reader of the stream has taken its events.
    pub fn spawned(mut self) -> Self {
        if let Some(node) = self.last("spawned") {
            node.options.spawned = true;
        }
        self
    }

    /// Sets the node that runs in place of this one when its last attempt has failed. It gets a
    /// [`Failure`](crate::Failure) and may return a command; the edges of the failed node are not
    /// followed.
    #[doc(alias = "error_handler")]
    pub fn on_error<M>(mut self, handler: impl IntoNode<S, M>) -> Self {
        let handler = handler.into_node().into_inner();
        if let Some(node) = self.last("on_error") {
            node.handler = Some(handler);
        }
        self
    }

    /// Lets the run continue when tasks of the node fail, and collects the failures in the state.
    ///
    /// Without this, a failed task ends the run. Its siblings keep what they have finished, but no
    /// node after them runs. With it, a task that has failed (after its retries; by an error, a
    /// panic or a time limit) counts as finished: it writes what `collector` returns, and the edges
    /// and routers of the node are followed. The collector is a function like a node. It may ask
    /// for the [`Failure`](crate::Failure), for the [`Arg`](crate::Arg) that the task was
    /// dispatched with, and for the state.
    ///
    /// ```
    /// use superstep::prelude::*;
    ///
    /// #[derive(State, Clone, Default)]
    /// struct Survey {
    ///     #[channel(reduce = Append)]
    ///     results: Vec<Result<u32, String>>,
    /// }
    ///
    /// async fn measure(Arg(n): Arg<u32>) -> Result<SurveyUpdate, NodeError> {
    ///     if n == 1 {
    ///         return Err("nobody answers".into());
    ///     }
    ///     Ok(Survey::update().results([Ok(n * 10)]))
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// let app = StateGraph::<Survey>::new()
    ///     .add_node("spread", || (0..3).map(|n| Dispatch::new("measure", n)).collect::<Vec<_>>())
    ///     .destinations(["measure"])
    ///     .add_node("measure", measure)
    ///     .collect_failures(|Arg(n): Arg<u32>, failed: Failure| {
    ///         Survey::update().results([Err(format!("{n}: {}", failed.error))])
    ///     })
    ///     .add_edge(START, "spread")
    ///     .compile()?;
    /// let survey = app.invoke(Survey::update()).await?.done().expect("nothing is asked");
    /// assert_eq!(survey.results, [Ok(0), Err("1: nobody answers".to_owned()), Ok(20)]);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// Writes are folded in the order in which tasks were dispatched, so a list has its entries in that order, whichever
    /// task finished first. The stream shows the failure in the [`TaskEnd`](crate::TaskEnd) of the task.
    ///
    /// A collector that fails, fails the task. It cannot ask: use [`on_error`](Self::on_error) for that.
    pub fn collect_failures<M>(mut self, collector: impl IntoNode<S, M>) -> Self {
        let collector = collector.into_node().into_inner();
        if let Some(node) = self.last("collect_failures") {
            node.collector = Some(collector);
        }
        self
    }

    /// Declares the nodes that the node's commands and dispatches may lead to.
    #[doc(alias = "ends")]
    pub fn destinations<T: Into<Arc<str>>>(mut self, nodes: impl IntoIterator<Item = T>) -> Self {
        let nodes: Vec<_> = nodes.into_iter().map(Into::into).collect();
        if let Some(node) = self.last("destinations") {
            node.destinations.extend(nodes);
        }
        self
    }

    /// The channels the node sees of a state without fixed fields.
    pub fn reads<T: Into<Arc<str>>>(mut self, channels: impl IntoIterator<Item = T>) -> Self {
        let channels: Vec<_> = channels.into_iter().map(Into::into).collect();
        if let Some(node) = self.last("reads") {
            node.reads = Some(channels);
        }
        self
    }

    /// The channels the node writes. With this, [`compile`](Self::compile) can warn about two nodes that may write one
    /// last-value channel in the same superstep.
    pub fn writes<T: Into<Arc<str>>>(mut self, channels: impl IntoIterator<Item = T>) -> Self {
        let channels: Vec<_> = channels.into_iter().map(Into::into).collect();
        if let Some(node) = self.last("writes") {
            node.writes = Some(channels);
        }
        self
    }

    /// Declares that the node calls this graph, so that snapshots and drawings show it.
    pub fn calls<T: State, P>(mut self, graph: &crate::CompiledGraph<T, P>) -> Self {
        let inner = graph.inner().clone();
        if let Some(node) = self.last("calls") {
            node.inner = Some(inner);
        }
        self
    }

    /// Retries of nodes that have none of their own.
    #[doc(alias = "set_node_defaults")]
    pub fn default_retry(mut self, policy: impl Into<RetryPolicy>) -> Self {
        self.defaults.retry.get_or_insert_default().push(policy.into());
        self
    }

    /// Time limits of nodes that have none of their own.
    pub fn default_timeout(mut self, policy: TimeoutPolicy) -> Self {
        self.defaults.timeout = Some(policy);
        self
    }

    /// The cache policy of nodes that have none of their own.
    pub fn default_cache(mut self, policy: CachePolicy) -> Self {
        self.defaults.cache = Some(policy);
        self
    }

    /// The error handler of nodes that have none of their own.
    pub fn default_on_error<M>(mut self, handler: impl IntoNode<S, M>) -> Self {
        self.default_handler = Some(handler.into_node().into_inner());
        self
    }

    /// Adds an edge: when `from` has run, `to` runs. From a list of nodes it is a join: `to` runs when all have. A
    /// [`Join`] says how many of them are needed.
    ///
    /// An edge or a join to [`END`](crate::END) only shows in drawings.
    pub fn add_edge(mut self, from: impl EdgeSource, to: impl Into<Arc<str>>) -> Self {
        match from.into_source() {
            Source::Node(from) => self.edges.push((from, to.into())),
            Source::Join(join) => self.joins.push((join, to.into())),
        }
        self
    }

    /// Adds a router: when `from` has run, the router looks at the state as `from` left it and says where to go.
    pub fn add_conditional_edges<M>(
        mut self,
        from: impl Into<Arc<str>>,
        targets: impl Into<Targets>,
        router: impl IntoRouter<S, M>,
    ) -> Self {
        let (from, targets) = (from.into(), targets.into());
        self.branches.push(Branch { from, targets, router: router.into_router() });
        self
    }

    /// The graph begins with this node.
    pub fn set_entry_point(self, node: impl Into<Arc<str>>) -> Self {
        self.add_edge(START, node)
    }

    /// A router says where the graph begins.
    pub fn set_conditional_entry_point<M>(
        self,
        targets: impl Into<Targets>,
        router: impl IntoRouter<S, M>,
    ) -> Self {
        self.add_conditional_edges(START, targets, router)
    }

    /// The graph ends after this node.
    pub fn set_finish_point(mut self, node: impl Into<Arc<str>>) -> Self {
        self.edges.push((node.into(), END.into()));
        self
    }

    /// Stops every run before these nodes.
    pub fn interrupt_before(mut self, nodes: impl Into<BreakAt>) -> Self {
        self.breakpoints.before = nodes.into().0;
        self
    }

    /// Stops every run after these nodes.
    pub fn interrupt_after(mut self, nodes: impl Into<BreakAt>) -> Self {
        self.breakpoints.after = nodes.into().0;
        self
    }

    /// Limits the time of each superstep.
    pub fn step_timeout(mut self, limit: Duration) -> Self {
        self.step_timeout = Some(limit);
        self
    }

    /// Sets the graph's memory when it is a subgraph.
    #[doc(alias = "checkpointer")]
    pub fn memory(mut self, memory: Memory) -> Self {
        self.memory = memory;
        self
    }

    /// Logs and ignores unknown names in updates, commands and dispatches, and nodes that nothing leads to, instead of
    /// refusing them, and lets every join wait [across runs](Join::across_runs): what LangGraph does. For graphs that come from
    /// there.
    pub fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    pub(super) fn break_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.breakpoints.before.names().iter().chain(self.breakpoints.after.names())
    }

    pub(super) fn has_breakpoints(&self) -> bool {
        self.breakpoints.before != At::Nowhere || self.breakpoints.after != At::Nowhere
    }
}

impl<S: State, O> fmt::Debug for StateGraph<S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<_> = self.nodes.iter().map(|node| &node.name).collect();
        f.debug_struct("StateGraph")
            .field("nodes", &nodes)
            .field("edges", &self.edges)
            .field("joins", &self.joins)
            .finish_non_exhaustive()
    }
}
