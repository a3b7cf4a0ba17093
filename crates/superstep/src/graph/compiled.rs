use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use superstep_checkpoint::{
    AnyCache, AnyCheckpointer, AnyStore, Cache, Checkpointer, Error, IdClock, Store, Value,
};

use crate::engine::{CheckpointIds, Compiled, Context, cache_ns};
use crate::error::RunError;
use crate::run::{IntoInput, Run, Target, Thread};
use crate::state::State;

/// How the state of a graph becomes what the graph returns; `None` if it has returned nothing yet.
pub(crate) type Shape<S, O> = fn(Arc<S>) -> Result<Option<O>, Error>;

/// What a graph has returned that is done.
pub(crate) fn returned<O>(output: Option<O>) -> Result<O, RunError> {
    output.ok_or_else(|| {
        let name = std::any::type_name::<O>();
        RunError::Invalid(format!(
            "the thread holds no result, or one that is null; the graph returns `{name}`"
        ))
    })
}

/// A graph that was checked and can run. Cheap to clone.
///
/// `S` is its state; `O` is what it returns, which is the state unless the graph was declared with
/// [`output`](crate::StateGraph::output).
#[doc(alias = "CompiledStateGraph")]
pub struct CompiledGraph<S: State, O = S> {
    graph: Arc<Compiled>,
    pub(crate) finish: Shape<S, O>,
    pub(crate) context: Context,
    pub(crate) ids: Arc<dyn CheckpointIds>,
    pub(crate) metadata: BTreeMap<String, Value>,
}

impl<S: State, O> Clone for CompiledGraph<S, O> {
    fn clone(&self) -> Self {
        Self {
            graph: self.graph.clone(),
            finish: self.finish,
            context: self.context.clone(),
            ids: self.ids.clone(),
            metadata: self.metadata.clone(),
        }
    }
}

impl<S: State, O> fmt::Debug for CompiledGraph<S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<_> = self.graph.layout.nodes.iter().map(|node| &node.name).collect();
        f.debug_struct("CompiledGraph").field("nodes", &nodes).finish_non_exhaustive()
    }
}

impl<S: State, O> CompiledGraph<S, O> {
    pub(crate) fn new(graph: Arc<Compiled>, finish: Shape<S, O>) -> Self {
        Self {
            graph,
            finish,
            context: Context::default(),
            ids: Arc::new(IdClock::new()),
            metadata: BTreeMap::new(),
        }
    }

    /// The same graph under another state type. Whatever would see a state of that type must not be used.
    pub(crate) fn retyped<T: State, P>(self, finish: Shape<T, P>) -> CompiledGraph<T, P> {
        let Self { graph, context, ids, metadata, finish: _ } = self;
        CompiledGraph { graph, finish, context, ids, metadata }
    }

    pub(crate) fn inner(&self) -> &Arc<Compiled> {
        &self.graph
    }

    pub(super) fn with_inner(self, graph: Arc<Compiled>) -> Self {
        Self { graph, ..self }
    }

    /// Keeps threads in this saver.
    pub fn with_checkpointer(self, saver: impl Checkpointer) -> Self {
        self.with_any_checkpointer(AnyCheckpointer::new(saver))
    }

    /// Keeps threads in this saver, whose type was erased.
    pub fn with_any_checkpointer(mut self, saver: AnyCheckpointer) -> Self {
        self.graph = self.graph.with(|graph| graph.saver = Some(saver));
        self
    }

    /// Gives nodes this long-term memory.
    pub fn with_store(self, store: impl Store) -> Self {
        self.with_any_store(AnyStore::new(store))
    }

    /// Gives nodes this long-term memory, whose type was erased.
    pub fn with_any_store(mut self, store: AnyStore) -> Self {
        self.graph = self.graph.with(|graph| graph.store = Some(store));
        self
    }

    /// Keeps results of nodes with a [`CachePolicy`](crate::CachePolicy) in this cache.
    pub fn with_cache(self, cache: impl Cache) -> Self {
        self.with_any_cache(AnyCache::new(cache))
    }

    /// Keeps results of nodes in this cache, whose type was erased.
    pub fn with_any_cache(mut self, cache: AnyCache) -> Self {
        self.graph = self.graph.with(|graph| graph.cache = Some(cache));
        self
    }

    /// Gives runs a value that nodes ask for as [`Ctx<T>`](crate::Ctx), such as a client. One for each type.
    #[doc(alias = "context_schema")]
    pub fn with_context<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.context.insert(value);
        self
    }

    /// Lets runs that are given their context as JSON, such as those of a server, make the `T` that nodes ask for as
    /// [`Ctx<T>`](crate::Ctx) from it. Without context, `T` is read from `{}`, so give its fields defaults.
    ///
    /// A typed run does not use this: it is given the `T` itself.
    pub fn with_json_context<T>(mut self) -> Self
    where
        T: serde::Serialize + serde::de::DeserializeOwned + Clone + Send + Sync + 'static,
    {
        self.context.read_from_json::<T>();
        self
    }

    /// Attaches a value to every checkpoint, such as a user or a release.
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Makes ids of checkpoints in another way than with a clock. For tests that want the same ids each time.
    pub fn with_checkpoint_ids(mut self, ids: Arc<dyn CheckpointIds>) -> Self {
        self.ids = ids;
        self
    }

    /// What [`compile`](crate::StateGraph::compile) found suspicious but did not refuse.
    pub fn warnings(&self) -> &[String] {
        &self.graph.warnings
    }

    /// The thread with this id, to run the graph on and to look at.
    #[doc(alias = "thread_id")]
    pub fn thread(&self, id: impl Into<Arc<str>>) -> Thread<S, O> {
        Thread::new(self.clone(), id.into())
    }

    /// Runs the graph without a thread. Only for graphs without a checkpointer.
    pub fn invoke(&self, input: impl IntoInput<S>) -> Run<S, O> {
        Run::new(Target::new(self.clone(), None), input.into_input())
    }

    /// Forgets cached results: of these nodes, or of all.
    ///
    /// # Errors
    /// The graph has no cache, or the cache failed.
    pub async fn clear_cache(&self, nodes: Option<&[&str]>) -> Result<(), RunError> {
        let Some(cache) = &self.graph.cache else {
            return Err(RunError::Invalid(
                "the graph has no cache to clear; add one with `with_cache`".to_owned(),
            ));
        };
        let failed = |error| RunError::Cache(Arc::new(error));
        let Some(nodes) = nodes else { return cache.clear(None).await.map_err(failed) };
        for node in nodes {
            let ns = cache_ns(&self.graph.layout.name, node);
            cache.clear(Some(&ns)).await.map_err(failed)?;
        }
        Ok(())
    }
}
