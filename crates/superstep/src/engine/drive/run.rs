//! What all graphs of one run have in common.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::SystemTime;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use superstep_checkpoint::{AnyCache, AnyStore, CheckpointId, IdClock, InterruptId, Value};

use crate::engine::drive::control::{Durability, RunControl};
use crate::engine::drive::live::Life;
use crate::engine::kernel::layout::Layout;
use crate::engine::step::superstep::lock;
use crate::engine::task::probe;
use crate::engine::watch::event::Mode;
use crate::engine::watch::sink::Sink;
use crate::error::RunError;

/// One drive of a thread, with all the graphs that take part in it.
pub(crate) struct Run {
    pub(crate) thread: Option<Arc<str>>,
    /// Whether the run is stored anywhere, so that it can stop and continue later.
    pub(crate) keeps: bool,
    pub(crate) store: Option<AnyStore>,
    pub(crate) cache: Option<AnyCache>,
    pub(crate) context: Context,
    pub(crate) control: RunControl,
    pub(crate) durability: Durability,
    pub(crate) sink: Option<Arc<Sink>>,
    pub(crate) ids: Arc<dyn CheckpointIds>,
    /// What the caller attached; stored with every checkpoint.
    pub(crate) metadata: BTreeMap<String, Value>,
    pub(crate) max_concurrency: Option<usize>,
    pub(crate) recursion_limit: Option<u64>,
    /// Answers of this run that no question has taken yet.
    pub(crate) answers: Mutex<HashMap<InterruptId, Answer>>,
    /// Questions whose answers LangGraph had kept under another id.
    pub(crate) renamed: Mutex<Vec<(InterruptId, InterruptId)>>,
    /// Where subgraphs a run that stores at its end came to completion, of those that something was
    /// stored of before.
    pub(crate) ended: Mutex<Vec<CheckpointId>>,
    /// Set when the run was told where to begin.
    pub(crate) replay: Option<Replay>,
    pub(crate) life: Life,
    /// When questions that were stored before this run are due, wherever in the graphs they were asked.
    pub(crate) due: Mutex<HashMap<InterruptId, SystemTime>>,
}

/// An answer on its way to a question inside a task.
pub(crate) struct Answer {
    pub(crate) value: Value,
    /// The namespace of the task, if it asked nothing else.
    pub(crate) sole: Option<Arc<str>>,
}

/// How subgraphs a run that went back in time find their own past.
pub(crate) struct Replay {
    /// Their state is the latest one older than this. Not set if the run does not go back in time after all.
    pub(crate) before: OnceLock<CheckpointId>,
    /// Namespaces (without task ids) that were already looked at once.
    pub(crate) visited: Mutex<HashSet<String>>,
    /// It is a checkpoint of a nested graph that the run begins from.
    pub(crate) goes_inside: bool,
    /// The checkpoints of nested graphs that were addressed, by namespace.
    pub(crate) addressed: BTreeMap<String, CheckpointId>,
}

impl Run {
    /// How subgraphs find their own past, and what it is older than, if the run goes back in time.
    pub(crate) fn replay(&self) -> Option<(&Replay, CheckpointId)> {
        let replay = self.replay.as_ref()?;
        Some((replay, *replay.before.get()?))
    }

    /// The stream, if it wants events of this mode from a graph with this namespace.
    pub(crate) fn sink_for(&self, mode: Mode, ns: &str) -> Option<&Arc<Sink>> {
        self.sink.as_ref().filter(|sink| sink.wants(mode) && (ns.is_empty() || sink.subgraphs))
    }

    /// The time, by the clock of the process or of a test.
    pub(crate) fn now(&self) -> SystemTime {
        probe::now(&self.context)
    }

    pub(crate) fn take_answer(&self, id: &InterruptId) -> Option<Value> {
        lock(&self.answers).remove(id).map(|answer| answer.value)
    }

    /// The answer to the one question that was asked somewhere inside the task with the namespace around this one. From now
    /// on it answers the question with this id.
    pub(crate) fn take_sole_answer(&self, ns: &str, now: &InterruptId) -> Option<Value> {
        let mut answers = lock(&self.answers);
        let inside = |answer: &Answer| {
            answer.sole.as_ref().is_some_and(|task| {
                ns.strip_prefix(&**task)
                    .is_some_and(|rest| rest.starts_with(crate::engine::stored::ids::LEVEL))
            })
        };
        let id = answers.iter().find(|(_, answer)| inside(answer)).map(|(id, _)| id.clone())?;
        let answer = answers.remove(&id)?;
        lock(&self.renamed).push((id, now.clone()));
        Some(answer.value)
    }
}

/// Generates the ids of checkpoints.
///
/// The default uses the clock. A test may count instead, to get the same ids each time.
pub trait CheckpointIds: Send + Sync + 'static {
    /// The id of a checkpoint of this step that follows `parent`. It must be greater than every id made before and than
    /// that of the parent. Step -2 stands for the empty checkpoint a new thread begins with, which is not stored.
    fn next(&self, step: i64, parent: Option<CheckpointId>) -> CheckpointId;

    /// As [`next`](Self::next), for a checkpoint that is not stored anywhere.
    fn next_unstored(&self, step: i64, parent: CheckpointId) -> CheckpointId {
        self.next(step, Some(parent))
    }
}

impl CheckpointIds for IdClock {
    fn next(&self, step: i64, parent: Option<CheckpointId>) -> CheckpointId {
        IdClock::next(self, step, parent)
    }

    fn next_unstored(&self, step: i64, parent: CheckpointId) -> CheckpointId {
        IdClock::next_unstored(self, step, parent)
    }
}

/// What a run is given besides state, by type.
#[derive(Clone, Default)]
pub(crate) struct Context {
    values: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    json: Vec<JsonContext>,
}

/// How a type is made from the JSON that a run is given as its context.
#[derive(Clone, Copy)]
struct JsonContext {
    id: TypeId,
    read: fn(&Json) -> Result<Arc<dyn Any + Send + Sync>, serde_json::Error>,
    describe: fn() -> Json,
}

impl Context {
    pub(crate) fn insert<T: Clone + Send + Sync + 'static>(&mut self, value: T) {
        self.values.insert(TypeId::of::<T>(), Arc::new(value));
    }

    pub(crate) fn read_from_json<T>(&mut self)
    where
        T: Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
    {
        self.json.push(JsonContext {
            id: TypeId::of::<T>(),
            read: |json| Ok(Arc::new(T::deserialize(json)?)),
            describe: || {
                let mut schema = crate::state::describe::<T>();
                let default = T::deserialize(Json::Object(serde_json::Map::new())).ok();
                let default = default.and_then(|value| serde_json::to_value(value).ok());
                for (name, value) in default.iter().filter_map(Json::as_object).flatten() {
                    if let Some(property) = schema["properties"].get_mut(name) {
                        property["default"] = value.clone();
                    }
                }
                schema
            },
        });
    }

    /// With what the graph reads from JSON.
    ///
    /// # Errors
    /// The JSON is not what the graph reads.
    pub(crate) fn with_json(&self, json: &Json) -> Result<Self, RunError> {
        let mut all = self.clone();
        for JsonContext { id, read, .. } in &self.json {
            let value = read(json).map_err(|error| {
                RunError::Invalid(format!("the context is not what the graph takes: {error}"))
            })?;
            all.values.insert(*id, value);
        }
        Ok(all)
    }

    /// The JSON Schemas of what is read from JSON.
    pub(crate) fn json_schemas(&self) -> Vec<Json> {
        self.json.iter().map(|context| (context.describe)()).collect()
    }

    /// As [`check`](Self::check), for runs that are given their context as JSON.
    pub(crate) fn check_with_json(&self, layout: &Layout) -> Result<(), RunError> {
        let mut missing = Vec::new();
        let read = |id: TypeId| self.json.iter().any(|context| context.id == id);
        self.find_missing(layout, "", &read, &mut missing);
        if missing.is_empty() { Ok(()) } else { Err(RunError::Invalid(missing.join("; "))) }
    }

    pub(crate) fn get<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.values.get(&TypeId::of::<T>())?.downcast_ref::<T>().cloned()
    }

    pub(crate) fn has(&self, id: TypeId) -> bool {
        self.values.contains_key(&id)
    }

    /// Every node, also of subgraphs, must find the context it asks for before any of them runs.
    ///
    /// # Errors
    /// Something is missing; the text names each node and type.
    pub(crate) fn check(&self, layout: &Layout) -> Result<(), RunError> {
        if layout.needs.iter().all(|id| self.has(*id)) {
            return Ok(());
        }
        let mut missing = Vec::new();
        self.find_missing(layout, "", &|_| false, &mut missing);
        if missing.is_empty() { Ok(()) } else { Err(RunError::Invalid(missing.join("; "))) }
    }

    fn find_missing(
        &self,
        layout: &Layout,
        around: &str,
        made: &dyn Fn(TypeId) -> bool,
        missing: &mut Vec<String>,
    ) {
        for def in &layout.nodes {
            let name = &def.name;
            let has = |id: TypeId| self.has(id) || made(id);
            for (_, asked) in def.needs().iter().filter(|(id, _)| !has(*id)) {
                missing.push(format!(
                    "node `{around}{name}` asks for a context of type `{asked}`, which the run was not given; add it with `with_context`"
                ));
            }
            if let Some(inner) = &def.inner {
                self.find_missing(&inner.layout, &format!("{around}{name}/"), made, missing);
            }
        }
    }

    /// The values of `self`, with those of `other` in their place where both have one.
    pub(crate) fn extended(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.values.extend(other.values.iter().map(|(id, value)| (*id, value.clone())));
        all
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({} values)", self.values.len())
    }
}
