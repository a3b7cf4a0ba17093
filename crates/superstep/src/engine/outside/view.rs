//! Snapshots of a thread, with values as data.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use superstep_checkpoint::{CheckpointId, Interrupt, Map, Metadata, TaskId, Value};

use crate::engine::watch::event::interrupt_value;

/// Identifies a checkpoint of a thread, or the latest state of a namespace.
#[doc(alias = "RunnableConfig")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointRef {
    /// The thread.
    pub thread: Arc<str>,
    /// The namespace: empty for the outermost graph.
    pub ns: Arc<str>,
    /// The checkpoint; `None` for the latest.
    pub id: Option<CheckpointId>,
    /// For a nested graph: the checkpoints of the graphs that enclose it, by namespace.
    pub parents: BTreeMap<String, CheckpointId>,
}

impl CheckpointRef {
    /// The latest state of a thread.
    pub fn latest(thread: impl Into<Arc<str>>) -> Self {
        Self { thread: thread.into(), ns: "".into(), id: None, parents: BTreeMap::new() }
    }

    /// The same place, at this checkpoint.
    #[must_use]
    pub fn at(self, id: CheckpointId) -> Self {
        Self { id: Some(id), ..self }
    }

    /// The same thread, in this namespace.
    #[must_use]
    pub fn in_namespace(self, ns: impl Into<Arc<str>>) -> Self {
        Self { ns: ns.into(), ..self }
    }

    /// The same checkpoint, known to lie inside these of the graphs that enclose it.
    #[must_use]
    pub fn inside(self, parents: BTreeMap<String, CheckpointId>) -> Self {
        Self { parents, ..self }
    }
}

/// A task of the superstep after a checkpoint.
#[doc(alias = "PregelTask")]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskSnapshot {
    /// The task.
    pub id: TaskId,
    /// The node.
    pub name: Arc<str>,
    /// Its stored path in the superstep: the kind of trigger, and its name or position.
    pub path: Arc<str>,
    /// The argument of the dispatch: at most 80 characters of its JSON.
    pub arg: Option<Arc<str>>,
    /// Why it failed, if it did.
    pub error: Option<String>,
    /// What it asked.
    pub interrupts: Vec<Interrupt>,
    /// What it wrote, if it has finished.
    pub result: Option<Value>,
    /// The state of its subgraph, if it has one.
    pub state: Option<SubgraphState>,
}

/// The state of a subgraph.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SubgraphState {
    /// Where to find it.
    At(CheckpointRef),
    /// The state itself, if it was asked for.
    Snapshot(Box<RawSnapshot>),
}

/// Information about a checkpoint of a thread: its identity, and the next tasks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckpointInfo {
    /// The nodes that are to run next.
    pub next: Vec<Arc<str>>,
    /// Which checkpoint this is.
    pub config: CheckpointRef,
    /// The one before it.
    pub parent: Option<CheckpointRef>,
    /// The metadata of the checkpoint; `None` for a new thread.
    pub metadata: Option<Metadata>,
    /// When it was made.
    pub created_at: Option<String>,
    /// The tasks of the superstep after it.
    pub tasks: Vec<TaskSnapshot>,
    /// What those tasks asked.
    pub interrupts: Vec<Interrupt>,
}

impl CheckpointInfo {
    /// Whether the thread is new: nothing is stored for it, so its first run needs input.
    pub fn is_new(&self) -> bool {
        self.metadata.is_none()
    }
}

/// The state of a thread at a checkpoint, with the values as data.
///
/// It dereferences to [`CheckpointInfo`].
#[doc(alias = "StateSnapshot")]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RawSnapshot {
    /// The channels that have a value.
    pub values: Value,
    /// Where the thread stands.
    pub info: CheckpointInfo,
}

impl Deref for RawSnapshot {
    type Target = CheckpointInfo;

    fn deref(&self) -> &CheckpointInfo {
        &self.info
    }
}

impl RawSnapshot {
    /// The payload of a `checkpoints` event.
    pub(crate) fn to_event_value(&self) -> Value {
        let tasks = self.tasks.iter().map(|task| {
            Value::Map(Map::from_iter([
                ("id".to_owned(), Value::from(task.id.to_string())),
                ("name".to_owned(), Value::from(&*task.name)),
                ("error".to_owned(), Value::from(task.error.clone())),
                ("result".to_owned(), Value::from(task.result.clone())),
                (
                    "interrupts".to_owned(),
                    Value::List(task.interrupts.iter().map(interrupt_value).collect()),
                ),
                (
                    "state".to_owned(),
                    match &task.state {
                        Some(SubgraphState::At(at)) => config_value(at),
                        Some(SubgraphState::Snapshot(inner)) => inner.to_event_value(),
                        None => Value::Null,
                    },
                ),
            ]))
        });
        Value::Map(Map::from_iter([
            ("config".to_owned(), config_value(&self.config)),
            ("parent_config".to_owned(), self.parent.as_ref().map_or(Value::Null, config_value)),
            ("values".to_owned(), self.values.clone()),
            ("metadata".to_owned(), self.metadata.as_ref().map_or(Value::Null, metadata_value)),
            (
                "next".to_owned(),
                Value::List(self.next.iter().map(|name| Value::from(&**name)).collect()),
            ),
            ("tasks".to_owned(), Value::List(tasks.collect())),
        ]))
    }
}

fn config_value(at: &CheckpointRef) -> Value {
    let mut fields = Map::from_iter([
        ("thread_id".to_owned(), Value::from(&*at.thread)),
        ("checkpoint_ns".to_owned(), Value::from(&*at.ns)),
    ]);
    if let Some(id) = at.id {
        fields.insert("checkpoint_id".to_owned(), Value::from(id.to_string()));
    }
    Value::Map(Map::from_iter([("configurable".to_owned(), Value::Map(fields))]))
}

fn metadata_value(metadata: &Metadata) -> Value {
    let parents = metadata.parents.iter();
    let parents = parents.map(|(ns, id)| (ns.clone(), Value::from(id.to_string())));
    let mut map = Map::from_iter([
        ("source".to_owned(), Value::from(metadata.source.as_str())),
        ("step".to_owned(), Value::from(metadata.step)),
        ("parents".to_owned(), Value::Map(parents.collect())),
    ]);
    map.extend(metadata.extra.iter().map(|(key, value)| (key.clone(), value.clone())));
    Value::Map(map)
}
