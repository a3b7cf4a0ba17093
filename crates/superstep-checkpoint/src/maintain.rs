//! Maintenance of threads: inventory and pruning.

use std::sync::Arc;

use crate::CheckpointId;

/// The arguments of [`Checkpointer::prune`](crate::Checkpointer::prune): the threads, and which
/// checkpoints stay.
#[derive(Clone, Debug)]
pub struct Prune {
    /// The threads. `None`: all of them.
    pub threads: Option<Vec<String>>,
    /// What stays.
    pub keep: Keep,
}

/// Which checkpoints of each namespace stay.
///
/// The head of a namespace always stays, with its writes and open questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keep {
    /// The head.
    Latest,
    /// This many of the newest.
    Newest(usize),
    /// Those whose id is not less than this one; [`CheckpointId::at`] converts a time.
    Since(CheckpointId),
}

/// The ids of everything that is stored; see
/// [`Checkpointer::inventory`](crate::Checkpointer::inventory).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// The checkpoints, by thread, namespace and id.
    pub checkpoints: Vec<StoredKey>,
    /// Where writes are stored for a missing checkpoint.
    pub stray_writes: Vec<StoredKey>,
}

/// The place of a checkpoint. Ids are text, since the id itself may be damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredKey {
    /// The thread.
    pub thread: Arc<str>,
    /// The namespace inside the thread.
    pub ns: Arc<str>,
    /// The id of the checkpoint.
    pub id: String,
    /// The id of the checkpoint it continues.
    pub parent: Option<String>,
}
