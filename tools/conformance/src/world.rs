//! What outlives one graph object: storage, counters, the graphs built so far.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value as Json;
use superstep::checkpoint::{
    AnyCache, AnyCheckpointer, AnyStore, CheckpointId, IdClock, MemoryCache, MemoryStore, Value,
};
use superstep::func::Workflow;
use superstep::state::Table;
use superstep::{CheckpointIds, CompiledGraph};

/// A graph of a case.
#[derive(Clone)]
pub(crate) enum Graph {
    State { graph: CompiledGraph<Table>, output: Vec<String> },
    Function(CompiledGraph<Workflow<Value>, Value>),
}

/// What a call gave as context.
#[derive(Clone, Default)]
pub(crate) struct CaseContext(pub(crate) Value);

pub(crate) struct World {
    pub(crate) case: Json,
    pub(crate) checkpointer: AnyCheckpointer,
    pub(crate) store: AnyStore,
    pub(crate) cache: AnyCache,
    pub(crate) ids: Arc<dyn CheckpointIds>,
    counts: Mutex<HashMap<String, i64>>,
    failures: Mutex<HashMap<String, i64>>,
    graphs: Mutex<HashMap<String, Graph>>,
}

/// Ids made by counting, for cases whose ids are compared as they are.
struct Counting(AtomicU64);

impl CheckpointIds for Counting {
    fn next(&self, step: i64, _: Option<CheckpointId>) -> CheckpointId {
        let number = if step == -2 { 0 } else { self.0.fetch_add(1, Ordering::Relaxed) + 1 };
        let text = format!("00000000-0000-6000-8000-{number:012x}");
        text.parse().expect("digits form an id")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    pub(crate) fn new(case: &Json, checkpointer: AnyCheckpointer) -> Arc<Self> {
        let ids: Arc<dyn CheckpointIds> = if case["ids"] == "pinned" {
            Arc::new(Counting(AtomicU64::new(0)))
        } else {
            Arc::new(IdClock::new())
        };
        Arc::new(Self {
            case: case.clone(),
            checkpointer,
            store: AnyStore::new(MemoryStore::new()),
            cache: AnyCache::new(MemoryCache::new()),
            ids,
            counts: Mutex::default(),
            failures: Mutex::default(),
            graphs: Mutex::default(),
        })
    }

    /// Forgets the graph objects, as a new process would.
    pub(crate) fn restart(&self) {
        lock(&self.graphs).clear();
    }

    pub(crate) fn built(&self, name: &str) -> Option<Graph> {
        lock(&self.graphs).get(name).cloned()
    }

    pub(crate) fn keep(&self, name: &str, graph: Graph) {
        lock(&self.graphs).insert(name.to_owned(), graph);
    }

    pub(crate) fn count(&self, name: &str) {
        *lock(&self.counts).entry(name.to_owned()).or_default() += 1;
    }

    pub(crate) fn counts(&self) -> Json {
        numbers_to_json(&lock(&self.counts))
    }

    /// How often each failure was reached.
    pub(crate) fn failures(&self) -> Json {
        numbers_to_json(&lock(&self.failures))
    }

    /// Continues counting where LangGraph has stopped.
    pub(crate) fn take_over(&self, counts: &Json, failures: &Json) {
        *lock(&self.counts) = numbers_from_json(counts);
        *lock(&self.failures) = numbers_from_json(failures);
    }

    /// Counts that a failure with this id is reached, and says how often it was.
    pub(crate) fn reach(&self, id: String) -> i64 {
        let mut failures = lock(&self.failures);
        let reached = failures.entry(id).or_default();
        *reached += 1;
        *reached
    }
}

fn numbers_to_json(numbers: &HashMap<String, i64>) -> Json {
    Json::Object(numbers.iter().map(|(name, n)| (name.clone(), Json::from(*n))).collect())
}

fn numbers_from_json(numbers: &Json) -> HashMap<String, i64> {
    let entries = numbers.as_object().into_iter().flatten();
    entries.map(|(name, n)| (name.clone(), n.as_i64().unwrap_or_default())).collect()
}
