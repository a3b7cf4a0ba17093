//! The event log of a thread, and its readers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value as Json, json};
use tokio::sync::watch;
use tokio::time::Instant;

use super::entry::LogEntry;
use super::subscription::Filter;
use crate::app::{App, stopped};
use crate::events::{Feed, FeedReader, HEARTBEAT};
use crate::store::{Store, StoreError, Stored};

/// The session of one thread.
pub(crate) struct Session {
    feed: Arc<Feed>,
    /// The graphs of the run in progress: namespace, name, and how far each has come. Empty if there is none.
    graphs: Mutex<Vec<Graph>>,
}

struct Graph {
    ns: Vec<String>,
    name: String,
    status: &'static str,
}

impl Session {
    pub(crate) fn new(thread: &str, store: Arc<dyn Store>) -> Self {
        Self { feed: Feed::of_session(thread, store), graphs: Mutex::default() }
    }

    /// The session of a thread, with what is stored of it.
    pub(crate) async fn open(app: &App, thread: &str) -> Result<Arc<Self>, StoreError> {
        let session = app.hub.session(thread, || Self::new(thread, app.store.clone()));
        session.feed.take_up().await?;
        Ok(session)
    }

    /// Takes up what other processes have written to the log.
    pub(crate) async fn catch_up(&self) -> Result<(), StoreError> {
        self.feed.take_up().await
    }

    /// What waits to be stored.
    pub(super) fn staged(&self) -> Vec<Stored> {
        self.feed.staged()
    }

    /// Forgets what waits: another process drives the run.
    pub(super) fn forget_staged(&self) {
        self.feed.forget_staged();
        self.forget_graphs();
    }

    /// Shows what waited, and is stored now.
    pub(super) fn stored(&self, staged: Vec<Stored>) {
        self.feed.were_stored(staged);
    }

    /// The number of the last event.
    pub(crate) fn last(&self) -> u64 {
        self.feed.shown()
    }

    pub(super) async fn push(
        &self,
        method: &str,
        id: Option<String>,
        ns: &[String],
        data: &Json,
    ) -> Result<(), StoreError> {
        self.feed.push_text(method, LogEntry::new(id, ns, data)?.to_text()?).await
    }

    pub(super) async fn flush(&self) -> Result<(), StoreError> {
        self.feed.flush().await
    }

    pub(super) fn has_staged(&self) -> bool {
        self.feed.has_staged()
    }

    fn graphs(&self) -> MutexGuard<'_, Vec<Graph>> {
        self.graphs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how far a graph of the run has come.
    pub(super) fn note(&self, ns: &[String], name: &str, status: &'static str) {
        let mut graphs = self.graphs();
        match graphs.iter_mut().find(|graph| graph.ns == ns) {
            Some(graph) => graph.status = status,
            None => graphs.push(Graph { ns: ns.to_vec(), name: name.to_owned(), status }),
        }
    }

    /// The run is over.
    pub(super) fn forget_graphs(&self) {
        self.graphs().clear();
    }

    /// The graphs of the run in progress, those inside others below them.
    pub(super) fn tree(&self) -> Option<Json> {
        fn node(graphs: &[Graph], at: &Graph) -> Json {
            let inside =
                |graph: &&Graph| graph.ns.len() == at.ns.len() + 1 && graph.ns.starts_with(&at.ns);
            let children: Vec<_> =
                graphs.iter().filter(inside).map(|graph| node(graphs, graph)).collect();
            json!({
                "namespace": at.ns, "status": at.status, "graph_name": at.name, "children": children,
            })
        }
        let graphs = self.graphs();
        let root = graphs.iter().find(|graph| graph.ns.is_empty())?;
        Some(node(&graphs, root))
    }
}

/// What a reader gets.
pub(crate) enum Next {
    /// An event, with its number and method.
    Event { seq: u64, method: String, text: String },
    /// Nothing happened for a while.
    Silence,
    /// The server stops.
    Stopping,
}

/// Reads the events of a session that pass a filter.
pub(crate) struct SessionReader {
    session: Arc<Session>,
    reader: FeedReader,
    filter: Filter,
    stopping: watch::Receiver<bool>,
    sent: Instant,
}

impl SessionReader {
    /// Reads what came after this number; everything that is kept if there is none.
    pub(crate) fn new(app: &App, session: Arc<Session>, filter: Filter) -> Self {
        // A number that was not given out yet is of a thread that was deleted since.
        let after = filter.since.unwrap_or(0).min(session.last());
        let reader = session.feed.after(after);
        let stopping = app.stopping.subscribe();
        Self { session, reader, filter, stopping, sent: Instant::now() }
    }

    pub(crate) async fn next(&mut self) -> Result<Next, StoreError> {
        loop {
            let due = self.sent + HEARTBEAT;
            let frame = tokio::select! {
                frame = self.reader.next() => frame?,
                () = tokio::time::sleep_until(due) => {
                    self.sent = Instant::now();
                    // Another process may have written to the log.
                    self.session.feed.take_up().await?;
                    return Ok(Next::Silence);
                }
                () = stopped(&mut self.stopping) => return Ok(Next::Stopping),
            };
            let Some(frame) = frame else { return Ok(Next::Stopping) };
            let entry = LogEntry::read(&frame)?;
            if self.filter.wants(&frame.event, entry.name.as_deref(), &entry.ns) {
                self.sent = Instant::now();
                let text = entry.to_event(&frame);
                return Ok(Next::Event { seq: frame.seq, method: frame.event.clone(), text });
            }
        }
    }
}
