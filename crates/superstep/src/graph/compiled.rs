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

/// Converts the state of a graph to its result; `None` if it has not returned yet.
pub(crate) type Shape<S, O> = fn(Arc<S>) -> Result<Option<O>, Error>;

/// The result of a graph that is done.
pub(crate) fn returned<O>(output: Option<O>) -> Result<O, RunError> {
    output.ok_or_else(|| {
        let name = std::any::type_name::<O>();
        RunError::Invalid(format!(
            "the thread holds no result, or one that is null; the graph returns `{name}`"
        ))
    })
}

/// A graph that has been checked and can run. Cheap to clone.
///
/// `S` is its state; `O` is its result, which is the state unless the graph was declared with
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

    /// The same graph under another state type. Nothing that reads a state of that type may be
    /// used.
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

    /// Stores threads with this checkpointer.
    pub fn with_checkpointer(self, checkpointer: impl Checkpointer) -> Self {
        self.with_any_checkpointer(AnyCheckpointer::new(checkpointer))
    }

    /// As [`with_checkpointer`](Self::with_checkpointer), with a type-erased checkpointer.
    pub fn with_any_checkpointer(mut self, checkpointer: AnyCheckpointer) -> Self {
        self.graph = self.graph.with(|graph| graph.checkpointer = Some(checkpointer));
        self
    }

    /// Gives nodes this long-term memory.
    pub fn with_store(self, store: impl Store) -> Self {
        self.with_any_store(AnyStore::new(store))
    }

    /// As [`with_store`](Self::with_store), with a type-erased store.
    pub fn with_any_store(mut self, store: AnyStore) -> Self {
        self.graph = self.graph.with(|graph| graph.store = Some(store));
        self
    }

    /// Caches results of nodes with a [`CachePolicy`](crate::CachePolicy) in this cache.
    pub fn with_cache(self, cache: impl Cache) -> Self {
        self.with_any_cache(AnyCache::new(cache))
    }

    /// As [`with_cache`](Self::with_cache), with a type-erased cache.
    pub fn with_any_cache(mut self, cache: AnyCache) -> Self {
        self.graph = self.graph.with(|graph| graph.cache = Some(cache));
        self
    }

    /// Adds a value to the context of runs, such as a client; nodes take it as
    /// [`Ctx<T>`](crate::Ctx). One value per type.
    #[doc(alias = "context_schema")]
    pub fn with_context<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.context.insert(value);
        self
    }

    /// Deserializes the `T` that nodes take as [`Ctx<T>`](crate::Ctx) from the JSON context of a
    /// run, such as one that a client sends to a server. Without context, `T` is read from `{}`, so
    /// give its fields defaults.
    ///
    /// A typed run does not use this: it takes the `T` itself.
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

    /// Replaces the clock that makes checkpoint ids, for tests that need the same ids each time.
    pub fn with_checkpoint_ids(mut self, ids: Arc<dyn CheckpointIds>) -> Self {
        self.ids = ids;
        self
    }

    /// The warnings of [`compile`](crate::StateGraph::compile).
    pub fn warnings(&self) -> &[String] {
        &self.graph.warnings
    }

    /// Returns the thread with this id. Nothing is read or stored until it is used.
    #[doc(alias = "thread_id")]
    pub fn thread(&self, id: impl Into<Arc<str>>) -> Thread<S, O> {
        Thread::new(self.clone(), id.into())
    }

    /// Runs the graph without a thread. Only for graphs without a checkpointer.
    pub fn invoke(&self, input: impl IntoInput<S>) -> Run<S, O> {
        Run::new(Target::new(self.clone(), None), input.into_input())
    }

    /// Removes cached results: of these nodes, or of all.
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
