//! The list of threads.

mod due;
mod status;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use crate::{CheckpointId, Error, Interrupt, Metadata, Stored, Value, wire};

pub use status::{Question, ThreadStatus, Verdict};

/// A query for a page of the list of threads.
///
/// ```
/// use superstep_checkpoint::{ThreadQuery, ThreadStatus};
///
/// let inbox = ThreadQuery::new(20).questions(true);
/// let to_repair = ThreadQuery::new(20).status(ThreadStatus::Failed).metadata("team", "billing");
/// ```
///
/// A thread that cannot be read has no status. It is part of every page that its metadata does not exclude, so that damage is
/// never hidden by a filter.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ThreadQuery {
    /// At most this many.
    pub limit: usize,
    /// The end of the previous page.
    pub after: Option<ThreadCursor>,
    /// Only threads with one of these. Empty: all of them.
    pub status: Vec<ThreadStatus>,
    /// Only threads that have open questions, or only those that have none.
    pub questions: Option<bool>,
    /// Only threads whose head has these values in its metadata; see [`Metadata::matches`].
    ///
    /// A checkpointer may index text, integers and booleans; other values are compared thread by
    /// thread.
    pub metadata: BTreeMap<String, Value>,
}

impl ThreadQuery {
    /// The first page, with at most this many threads.
    pub fn new(limit: usize) -> Self {
        let (status, metadata) = (Vec::new(), BTreeMap::new());
        Self { limit, after: None, status, questions: None, metadata }
    }

    /// The page that begins where another one ended.
    #[must_use]
    pub fn after(mut self, cursor: ThreadCursor) -> Self {
        self.after = Some(cursor);
        self
    }

    /// Only threads with this status. Called several times, threads with one of them.
    #[must_use]
    pub fn status(mut self, status: ThreadStatus) -> Self {
        self.status.push(status);
        self
    }

    /// Only threads that have open questions, or only those that have none.
    #[must_use]
    pub fn questions(mut self, open: bool) -> Self {
        self.questions = Some(open);
        self
    }

    /// Only threads whose head has this value in its metadata. Null stands for a missing key, too.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Whether a thread belongs to the list.
    pub fn matches(&self, info: &ThreadInfo) -> bool {
        let metadata = info.metadata.as_ref();
        self.admits(info.verdict())
            && metadata.is_none_or(|metadata| metadata.matches(&self.metadata))
    }

    /// Whether threads with this verdict can belong to the list.
    pub fn admits(&self, verdict: Verdict) -> bool {
        let Some(status) = verdict.status else { return true };
        (self.status.is_empty() || self.status.contains(&status))
            && self.questions.is_none_or(|wanted| wanted == verdict.has_questions)
    }
}

/// A position in the list of threads: after this thread with this head.
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

impl ThreadPage {
    /// Adds a thread unless the page is full. Then the page gets its end, and this returns `false`.
    pub fn add(&mut self, info: ThreadInfo, limit: usize) -> bool {
        if self.threads.len() < limit {
            self.threads.push(info);
            return true;
        }
        self.next = self.threads.last().map(ThreadInfo::cursor);
        false
    }
}

/// Information about a thread, read from the head of its outermost graph.
#[derive(Clone, Debug)]
pub struct ThreadInfo {
    /// The thread.
    pub thread: Arc<str>,
    /// The id of its head.
    pub head: CheckpointId,
    /// The metadata of the head. `None` if it cannot be read.
    pub metadata: Option<Metadata>,
    /// The status of the thread. `None` if the head cannot be read.
    pub status: Option<ThreadStatus>,
    /// The questions that wait for an answer, whatever the status; see
    /// [`Stored::open_questions`](crate::Stored::open_questions).
    pub pending: Vec<Interrupt>,
    /// Why something could not be read. A damaged thread is listed like any other.
    pub damage: Option<String>,
}

impl ThreadInfo {
    /// Reads the information from the head of a thread.
    pub fn of(head: Stored) -> Self {
        let read = head.status().and_then(|status| Ok((status, head.open_questions()?)));
        let read =
            read.map_err(|error| wire::damaged(&head.thread, &head.ns, head.checkpoint.id, &error));
        let Stored { thread, checkpoint, metadata, .. } = head;
        let mut info = Self::unread(thread, checkpoint.id, Some(metadata));
        match read {
            Ok((status, pending)) => (info.status, info.pending) = (Some(status), pending),
            Err(error) => info.damage = Some(error.to_string()),
        }
        info
    }

    /// A thread whose head cannot be read.
    pub fn damaged(
        thread: Arc<str>,
        head: CheckpointId,
        metadata: Option<Metadata>,
        error: &Error,
    ) -> Self {
        Self { damage: Some(error.to_string()), ..Self::unread(thread, head, metadata) }
    }

    fn unread(thread: Arc<str>, head: CheckpointId, metadata: Option<Metadata>) -> Self {
        Self { thread, head, metadata, status: None, pending: Vec::new(), damage: None }
    }

    /// When the head was made, as its id tells.
    pub fn updated_at(&self) -> Option<SystemTime> {
        self.head.time()
    }

    /// The earliest [due time](Interrupt::due) of its open questions.
    pub fn due(&self) -> Option<SystemTime> {
        self.pending.iter().filter_map(Interrupt::due).min()
    }

    /// Whether the thread only sleeps: it waits, and for nobody but the clock.
    pub fn is_sleeping(&self) -> bool {
        self.status == Some(ThreadStatus::Waiting) && self.pending.iter().all(Interrupt::is_sleep)
    }

    /// The place in the list after this thread.
    pub fn cursor(&self) -> ThreadCursor {
        ThreadCursor { head: self.head, thread: self.thread.clone() }
    }

    /// The indexed information about this thread.
    pub fn verdict(&self) -> Verdict {
        Verdict { status: self.status, has_questions: !self.pending.is_empty() }
    }
}
