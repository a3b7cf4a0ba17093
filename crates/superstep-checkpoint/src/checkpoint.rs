use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{Blob, CheckpointId, Interrupt, TaskId, Value, Version, wire};

/// A persistent map by name: a changed copy shares what did not change.
///
/// Successive checkpoints of a thread differ little. With this map, making and keeping one costs
/// what changed.
pub type SharedMap<V> = rpds::RedBlackTreeMapSync<Arc<str>, V>;

/// The state that is stored at a barrier: the value and version of every channel, and the versions
/// that each node has seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The format; this crate writes [`Checkpoint::FORMAT`].
    pub v: u32,
    /// Names the checkpoint; the greatest id of a thread is its head.
    pub id: CheckpointId,
    /// When it was made, ISO 8601 in UTC. For people; nothing is ordered by it.
    pub ts: String,
    /// The encoded value of each channel that has one.
    pub channel_values: SharedMap<Blob>,
    /// The version of each channel that was ever written.
    pub channel_versions: SharedMap<Version>,
    /// For each node that ran, the version of each of its triggers when it last did.
    pub versions_seen: SharedMap<SharedMap<Version>>,
    /// The channels that changed in the superstep that made this checkpoint, sorted. `None`: not known.
    pub updated_channels: Option<Vec<Arc<str>>>,
}

impl Checkpoint {
    /// The format this crate writes.
    pub const FORMAT: u32 = 4;

    /// The stored value of a channel.
    pub fn value(&self, channel: &str) -> Option<&Blob> {
        self.channel_values.get(channel)
    }

    /// The version of a channel.
    pub fn version(&self, channel: &str) -> Option<&Version> {
        self.channel_versions.get(channel)
    }
}

/// Why a checkpoint was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Input was accepted.
    Input,
    /// A superstep was applied.
    Loop,
    /// The state was changed from outside.
    Update,
    /// A branch was begun, or a checkpoint copied.
    Fork,
    /// Not known: LangGraph stores an empty checkpoint without a source, to keep the writes of a run beside, when a run
    /// that stores only at its end begins a thread with a channel stored as deltas.
    Stub,
}

impl Source {
    /// The word that is stored. [`Stub`](Self::Stub) is stored by leaving it out.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Loop => "loop",
            Self::Update => "update",
            Self::Fork => "fork",
            Self::Stub => "stub",
        }
    }

    /// Whether it was made from outside, and not by a run of the graph.
    pub const fn is_outside(self) -> bool {
        matches!(self, Self::Update | Self::Fork)
    }

    /// The source a stored word stands for.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Input, Self::Loop, Self::Update, Self::Fork]
            .into_iter()
            .find(|source| source.as_str() == word)
    }
}

/// The metadata of a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Metadata {
    /// Why it was made.
    pub source: Source,
    /// The step: -1 for the first input of a thread, then incremented.
    pub step: i64,
    /// For a nested graph: the checkpoint of each enclosing graph, by namespace.
    pub parents: BTreeMap<String, CheckpointId>,
    /// For each delta channel: updates and supersteps since its last whole value. Zero pairs are left out.
    pub delta_counters: BTreeMap<Arc<str>, (u64, u64)>,
    /// Metadata of the run's caller, such as a user or a run id.
    pub extra: BTreeMap<String, Value>,
}

impl Metadata {
    /// Metadata of a checkpoint of an outermost graph, with nothing attached.
    pub fn new(source: Source, step: i64) -> Self {
        Self {
            source,
            step,
            parents: BTreeMap::new(),
            delta_counters: BTreeMap::new(),
            extra: BTreeMap::new(),
        }
    }

    /// Whether every key of a [`Query::filter`] has the wanted value here. Null is also the value of a missing key.
    pub fn matches(&self, filter: &BTreeMap<String, Value>) -> bool {
        filter.iter().all(|(key, wanted)| match key.as_str() {
            "source" => wanted.as_str() == Some(self.source.as_str()),
            "step" => *wanted == Value::Int(self.step),
            "parents" => wire::metadata_to_map(self).get(key) == Some(wanted),
            key => self.extra.get(key).unwrap_or(&Value::Null) == wanted,
        })
    }
}

/// The writes of one task to one checkpoint, in the order the task made them.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskWrites {
    /// The writer.
    pub task: TaskId,
    /// The path of the task in its superstep; writes are applied in the order of these texts.
    pub path: String,
    /// Channel and value of each write.
    pub writes: Vec<(Arc<str>, Blob)>,
    /// Whether to delete everything stored for the task first: its superstep could not be applied,
    /// and the task will run again.
    pub replaces: bool,
    /// A condition: the content of one reserved slot of the task, compared before anything is
    /// stored.
    pub expected: Option<Expected>,
}

impl TaskWrites {
    /// Writes that add to what the task has stored, whatever that is.
    pub fn new(task: TaskId, path: impl Into<String>, writes: Vec<(Arc<str>, Blob)>) -> Self {
        Self { task, path: path.into(), writes, replaces: false, expected: None }
    }

    /// Adds the condition that no other writer has changed this slot in the meantime.
    #[must_use]
    pub fn expecting(mut self, channel: impl Into<Arc<str>>, value: Option<Blob>) -> Self {
        self.expected = Some(Expected { channel: channel.into(), value });
        self
    }
}

/// The expected content of a reserved slot of a task.
///
/// Several writers may answer one question. Each names the answers it has read, and only the first
/// of them still matches.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// A channel with a [`reserved_index`], such as `__resume__`.
    pub channel: Arc<str>,
    /// The expected content. `None`: empty.
    pub value: Option<Blob>,
}

/// The slot of writes that describe a task instead of being its output, at most one of each per
/// task.
///
/// Other writes take the slot of their position in the list that was stored.
pub fn reserved_index(channel: &str) -> Option<i64> {
    match channel {
        "__error__" => Some(-1),
        "__scheduled__" => Some(-2),
        "__interrupt__" => Some(-3),
        "__resume__" => Some(-4),
        _ => None,
    }
}

/// A stored write.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingWrite {
    /// The writer.
    pub task: TaskId,
    /// The path of the task in its superstep.
    pub path: String,
    /// The slot of the write among those of its task.
    pub index: i64,
    /// The channel.
    pub channel: Arc<str>,
    /// The value.
    pub value: Blob,
}

/// A checkpoint to be stored, with its parent and writes.
#[derive(Clone, Debug)]
pub struct Put {
    /// The thread.
    pub thread: Arc<str>,
    /// The namespace inside the thread; empty for the outermost graph.
    pub ns: Arc<str>,
    /// The checkpoint this one continues. `None` for the first of a thread.
    pub parent: Option<CheckpointId>,
    /// The head that the writer expects. Differs from `parent` when a branch begins at an older
    /// checkpoint.
    pub head: Option<CheckpointId>,
    /// Writes of tasks of `parent`, stored in the same transaction as the checkpoint.
    pub writes: Vec<TaskWrites>,
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// Its metadata.
    pub metadata: Metadata,
    /// The channels whose version is newer than in the checkpoint last stored by this writer; a backend that
    /// keeps channels apart stores only these.
    pub changed: Vec<Arc<str>>,
}

/// A stored checkpoint, with the writes stored since.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The thread.
    pub thread: Arc<str>,
    /// The namespace inside the thread.
    pub ns: Arc<str>,
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// Its metadata.
    pub metadata: Metadata,
    /// The checkpoint it continues.
    pub parent: Option<CheckpointId>,
    /// Writes of tasks of this checkpoint, ordered by path, task and slot.
    pub writes: Vec<PendingWrite>,
}

impl Stored {
    /// The questions stored for a task, in the order they were asked.
    ///
    /// # Errors
    /// The stored bytes are not a list of questions.
    pub fn interrupts(&self, task: TaskId) -> Result<Vec<Interrupt>, crate::Error> {
        let found = self.writes.iter().find(|w| w.task == task && &*w.channel == "__interrupt__");
        found.map_or(Ok(Vec::new()), |write| Interrupt::list_from(&write.value.to_value()?))
    }
}

/// Which checkpoints to list.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Only this thread.
    pub thread: Option<Arc<str>>,
    /// Only this namespace. `None`: all of them.
    pub ns: Option<Arc<str>>,
    /// Only this checkpoint.
    pub id: Option<CheckpointId>,
    /// Only checkpoints older than this one.
    pub before: Option<CheckpointId>,
    /// At most this many.
    pub limit: Option<usize>,
    /// Only checkpoints whose metadata has these values. `source` and `step` are keys here too.
    pub filter: BTreeMap<String, Value>,
}

impl Query {
    /// Whether a checkpoint of the wanted thread and namespace is among those to list, but for the limit.
    pub fn admits(&self, id: CheckpointId, metadata: &Metadata) -> bool {
        self.id.is_none_or(|wanted| wanted == id)
            && self.before.is_none_or(|before| id < before)
            && metadata.matches(&self.filter)
    }
}
