//! Where the events of a feed are stored.

use std::sync::Arc;

use crate::store::{Store, StoreError, Stored};

/// How many events are read at a time to find the last one.
const PAGE: usize = 256;

/// The stored events of one feed.
#[derive(Clone)]
pub(crate) struct Log {
    store: Arc<dyn Store>,
    of: Of,
}

#[derive(Clone)]
enum Of {
    Run(String),
    Session(String),
}

impl Log {
    /// The events of a run.
    pub(crate) fn of_run(store: Arc<dyn Store>, run: &str) -> Self {
        Self { store, of: Of::Run(run.to_owned()) }
    }

    /// The events of a thread, for clients of the thread protocol.
    pub(crate) fn of_session(store: Arc<dyn Store>, thread: &str) -> Self {
        Self { store, of: Of::Session(thread.to_owned()) }
    }

    pub(super) async fn append(&self, events: Vec<Stored>) -> Result<(), StoreError> {
        match &self.of {
            Of::Run(run) => self.store.append(run, events).await,
            Of::Session(thread) => self.store.append_session(thread, events).await,
        }
    }

    pub(super) async fn after(&self, after: u64, limit: usize) -> Result<Vec<Stored>, StoreError> {
        match &self.of {
            Of::Run(run) => self.store.events(run, after, limit).await,
            Of::Session(thread) => self.store.session_events(thread, after, limit).await,
        }
    }

    /// All events, oldest first.
    pub(super) async fn all(&self) -> Result<Vec<Stored>, StoreError> {
        let mut all: Vec<Stored> = Vec::new();
        loop {
            let last = all.last().map_or(0, |event| event.seq);
            let page = self.after(last, PAGE).await?;
            if page.is_empty() {
                return Ok(all);
            }
            all.extend(page);
        }
    }

    /// The number of the last event.
    pub(super) async fn last(&self) -> Result<u64, StoreError> {
        let run = match &self.of {
            Of::Run(run) => run,
            Of::Session(thread) => return self.store.session_last(thread).await,
        };
        let mut last = 0;
        while let Some(newest) = self.store.events(run, last, PAGE).await?.last() {
            last = newest.seq;
        }
        Ok(last)
    }
}
