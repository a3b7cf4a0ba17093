//! What is done to threads from outside: naming and thinning out what is stored of them.

use std::sync::Arc;

use crate::CheckpointId;

/// Which checkpoints [`Checkpointer::prune`](crate::Checkpointer::prune) looks at, and which of them stay.
#[derive(Clone, Debug)]
pub struct Prune {
    /// The threads. `None`: all of them.
    pub threads: Option<Vec<String>>,
    /// What stays.
    pub keep: Keep,
}

/// Which checkpoints of each namespace stay.
///
/// Whatever is asked, the head of a namespace stays, with its writes and so with its open questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keep {
    /// The head.
    Latest,
    /// This many, counted from the head.
    Newest(usize),
    /// Those with an id that is not less than this one; [`CheckpointId::at`] makes one of a time.
    Since(CheckpointId),
}

/// The names of everything that is stored, without a look at what is in it; see
/// [`Checkpointer::inventory`](crate::Checkpointer::inventory).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// The checkpoints, by thread, namespace and id.
    pub checkpoints: Vec<StoredKey>,
    /// Where there are writes beside a checkpoint that is not stored.
    pub stray_writes: Vec<StoredKey>,
}

/// Where a checkpoint is stored. Ids are text here, since what is damaged may be the id.
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
