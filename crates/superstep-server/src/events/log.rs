//! Where the events of a feed are stored.

use std::sync::Arc;

use crate::store::{News, Store, StoreError, Stored};

/// How many events are read at a time.
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

    /// Appends events of a run that was claimed with this epoch; without one, whoever drives it.
    pub(super) async fn append(
        &self,
        epoch: Option<u64>,
        events: Vec<Stored>,
    ) -> Result<(), StoreError> {
        match &self.of {
            Of::Run(run) => match self.store.append(run, epoch, events).await? {
                true => Ok(()),
                false => Err(StoreError::Superseded),
            },
            Of::Session(thread) => self.store.append_session(thread, events).await,
        }
    }

    /// Tells other processes that there are events, if they want to know.
    pub(super) fn tell(&self, is_followed: bool) {
        match &self.of {
            Of::Run(run) if is_followed => self.store.tell(News::Run(run.clone())),
            Of::Run(_) => {}
            Of::Session(thread) => self.store.tell(News::Session(thread.clone())),
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
        match &self.of {
            Of::Run(run) => self.store.last_event(run).await,
            Of::Session(thread) => self.store.session_last(thread).await,
        }
    }
}
