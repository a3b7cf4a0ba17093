use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{Blob, CheckpointId, Interrupt, TaskId, Value, Version, wire};

/// A map by name that shares what it has in common with the map it was made from.
///
/// The checkpoints of a thread differ little from one to the next. With this, making one costs what changed, and so does
/// keeping it.
pub type SharedMap<V> = rpds::RedBlackTreeMapSync<Arc<str>, V>;

/// What is stored at a barrier: the value of every channel and who has seen which version of it.
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

/// What is known about a checkpoint besides its content.
#[derive(Clone, Debug, PartialEq)]
pub struct Metadata {
    /// Why it was made.
    pub source: Source,
    /// -1 for the first input of a thread, then one more each time.
    pub step: i64,
    /// For a nested graph: the checkpoint of each enclosing graph, by namespace.
    pub parents: BTreeMap<String, CheckpointId>,
    /// For each delta channel: updates and supersteps since its last whole value. Zero pairs are left out.
    pub delta_counters: BTreeMap<Arc<str>, (u64, u64)>,
    /// What the caller of the run attached, such as a user or a run id.
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
    /// Who wrote.
    pub task: TaskId,
    /// Where the task stands in its superstep; writes are applied in the order of this text.
    pub path: String,
    /// Channel and value of each write.
    pub writes: Vec<(Arc<str>, Blob)>,
    /// Whether everything stored for the task before is forgotten first: its superstep could not be applied, and the
    /// task is to run again.
    pub replaces: bool,
    /// What has to be stored in one reserved slot of the task for anything to be stored at all.
    pub expected: Option<Expected>,
}

impl TaskWrites {
    /// Writes that add to what the task has stored, whatever that is.
    pub fn new(task: TaskId, path: impl Into<String>, writes: Vec<(Arc<str>, Blob)>) -> Self {
        Self { task, path: path.into(), writes, replaces: false, expected: None }
    }

    /// The same writes, stored only if nobody else has written this slot in the meantime.
    #[must_use]
    pub fn expecting(mut self, channel: impl Into<Arc<str>>, value: Option<Blob>) -> Self {
        self.expected = Some(Expected { channel: channel.into(), value });
        self
    }
}

/// What a writer last saw in a reserved slot of a task.
///
/// Several writers may want to answer one question. Each says which answers it knew of, and only the first of them
/// finds that still to be so.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// A channel with a [`reserved_index`], such as `__resume__`.
    pub channel: Arc<str>,
    /// What is stored there. `None`: nothing.
    pub value: Option<Blob>,
}

/// The slot of writes that describe a task rather than come out of it, at most one of each per task.
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

/// A stored write, as it comes back.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingWrite {
    /// Who wrote.
    pub task: TaskId,
    /// Where the task stood in its superstep.
    pub path: String,
    /// The slot of the write among those of its task.
    pub index: i64,
    /// The channel.
    pub channel: Arc<str>,
    /// The value.
    pub value: Blob,
}

/// A checkpoint to be stored, and what it follows.
#[derive(Clone, Debug)]
pub struct Put {
    /// The thread.
    pub thread: Arc<str>,
    /// The namespace inside the thread; empty for the outermost graph.
    pub ns: Arc<str>,
    /// The checkpoint this one continues. `None` for the first of a thread.
    pub parent: Option<CheckpointId>,
    /// The head the writer knows. Not the same as `parent` when a branch is begun from an older checkpoint.
    pub head: Option<CheckpointId>,
    /// Writes of tasks of `parent`, stored in the same transaction as the checkpoint.
    pub writes: Vec<TaskWrites>,
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// What is known about it.
    pub metadata: Metadata,
    /// The channels whose version is newer than in the checkpoint last stored by this writer; a backend that
    /// keeps channels apart stores only these.
    pub changed: Vec<Arc<str>>,
}

/// A checkpoint as it comes back, with the writes stored since.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The thread.
    pub thread: Arc<str>,
    /// The namespace inside the thread.
    pub ns: Arc<str>,
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// What is known about it.
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
    /// The stored bytes are no list of questions.
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
