//! What is done to threads from outside: looking over them, copying, thinning out.

use std::sync::Arc;
use std::time::SystemTime;

use crate::{CheckpointId, Interrupt, Metadata};

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

/// Which page of the list of threads is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadQuery {
    /// At most this many.
    pub limit: usize,
    /// Where the page before ended.
    pub after: Option<ThreadCursor>,
}

impl ThreadQuery {
    /// The first page, with at most this many threads.
    pub fn new(limit: usize) -> Self {
        Self { limit, after: None }
    }

    /// The page that begins where another one ended.
    #[must_use]
    pub fn after(mut self, cursor: ThreadCursor) -> Self {
        self.after = Some(cursor);
        self
    }
}

/// A place in the list of threads: that after this thread, when it had this head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadCursor {
    /// The head of the last thread of a page.
    pub head: CheckpointId,
    /// The last thread of a page.
    pub thread: Arc<str>,
}

/// A part of the list of threads, the most recently changed first.
#[derive(Clone, Debug, Default)]
pub struct ThreadPage {
    /// The threads.
    pub threads: Vec<ThreadInfo>,
    /// Where the next page begins. `None`: this is the last one.
    pub next: Option<ThreadCursor>,
}

/// A thread, as far as its head tells. Only the outermost graph of a thread counts.
#[derive(Clone, Debug)]
pub struct ThreadInfo {
    /// The thread.
    pub thread: Arc<str>,
    /// The id of its head.
    pub head: CheckpointId,
    /// What is known about the head: source, step, and what the caller attached. `None` if it cannot be read.
    pub metadata: Option<Metadata>,
    /// The questions that wait for an answer; see [`Stored::open_questions`](crate::Stored::open_questions).
    pub pending: Vec<Interrupt>,
    /// Why `metadata` or `pending` could not be read. A damaged thread is listed like any other.
    pub damage: Option<String>,
}

impl ThreadInfo {
    /// When the head was made, as its id tells.
    pub fn updated_at(&self) -> Option<SystemTime> {
        self.head.time()
    }
}
