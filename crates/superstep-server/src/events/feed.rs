//! The events of one run, or of one session of the thread protocol.
//!
//! The newest events are in memory. What leaves the memory is in the store, so a reader that is slow, or comes late, holds
//! nothing: it is served from there. Events of a resumable run are shown only when they are stored, so that no reader has
//! seen what a crash takes back.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value as Json;
use tokio::sync::watch;

use super::log::Log;
use crate::store::{Store, StoreError, Stored};

/// How many events stay in memory, and how many of them leave it at a time.
const WINDOW: usize = 512;
const SPILL: usize = 256;
/// How long events of a resumable run wait for others before they are stored together.
const FLUSH_AFTER: Duration = Duration::from_millis(5);
/// How long those of other runs do, whose own readers have seen them already.
const FLUSH_FOLLOWED_AFTER: Duration = Duration::from_millis(20);
/// How many events a reader takes at a time, and holds while it stalls.
const PAGE: usize = 32;

/// What the log says when a checkpoint is on its way to storage. Readers are not shown it.
pub(crate) const BARRIER: &str = ":barrier";

/// An event, as it is sent.
pub(crate) type Frame = Stored;

pub(crate) struct Feed {
    log: Log,
    /// Whether events are stored before they are shown.
    resumable: bool,
    /// Set once the run is stored.
    admitted: AtomicBool,
    state: Mutex<State>,
    grown: watch::Sender<Length>,
}

#[derive(Default)]
struct State {
    /// The number of the event that came last.
    last: u64,
    /// The claim of the run that this process drives.
    epoch: Option<u64>,
    /// Not yet stored, and not yet shown if the feed is resumable.
    staged: Vec<Frame>,
    /// All events are stored, because other processes show them, too.
    store_all: bool,
    /// The newest events, up to the one with the number that is shown.
    window: VecDeque<Arc<Frame>>,
    /// What `wait` and `join` answer.
    result: Option<Json>,
}

#[derive(Clone, Copy, Default)]
struct Length {
    shown: u64,
    ended: bool,
}

impl Feed {
    /// The events of a run.
    pub(crate) fn new(run: &str, resumable: bool, store: Arc<dyn Store>) -> Arc<Self> {
        Self::on(Log::of_run(store, run), resumable)
    }

    /// The events of the session of a thread.
    pub(crate) fn of_session(thread: &str, store: Arc<dyn Store>) -> Arc<Self> {
        Self::on(Log::of_session(store, thread), true)
    }

    fn on(log: Log, resumable: bool) -> Arc<Self> {
        Arc::new(Self {
            log,
            resumable,
            admitted: AtomicBool::new(false),
            state: Mutex::default(),
            grown: watch::Sender::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This process drives the run, which it claimed with this epoch.
    pub(crate) fn drive(&self, epoch: u64) {
        self.state().epoch = Some(epoch);
    }

    /// The claim of the run that this process drives, if it does.
    pub(crate) fn epoch(&self) -> Option<u64> {
        self.state().epoch
    }

    /// The run is stored.
    pub(crate) fn admitted(&self) {
        self.admitted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_admitted(&self) -> bool {
        self.admitted.load(Ordering::Relaxed)
    }

    /// Stores all events from now on: other processes show them, too.
    pub(crate) fn store_all(&self) {
        self.state().store_all = true;
    }

    /// How long events wait for others, to be stored together; nothing if nobody waits for what tells of the state.
    pub(crate) fn patience(&self, tells_of_state: bool) -> Option<Duration> {
        match self.resumable {
            true if tells_of_state => None,
            true => Some(FLUSH_AFTER),
            false => Some(FLUSH_FOLLOWED_AFTER),
        }
    }

    /// Goes on after the events that are stored: those of an earlier attempt, or of another process.
    pub(crate) async fn take_up(&self) -> Result<(), StoreError> {
        let last = self.log.last().await?;
        self.advance(last);
        Ok(())
    }

    /// Goes on after the events that are stored, the last of which has this number.
    pub(crate) fn advance(&self, last: u64) {
        {
            let mut state = self.state();
            if last <= state.last {
                return;
            }
            state.last = last;
            // What came from elsewhere is read from the store, and so is what was before it.
            state.window.clear();
        }
        self.grown.send_modify(|length| length.shown = last);
    }

    /// What an earlier attempt has stored.
    pub(crate) async fn stored(&self) -> Result<Vec<Stored>, StoreError> {
        self.log.all().await
    }

    /// The number of the last event that is shown.
    pub(crate) fn shown(&self) -> u64 {
        self.grown.borrow().shown
    }

    /// Adds an event. It is shown when it is stored, if it has to be.
    pub(crate) async fn push(&self, event: &str, data: &Json) -> Result<(), StoreError> {
        self.push_text(event, data.to_string()).await
    }

    /// As [`push`](Self::push), for data that is JSON already.
    pub(crate) async fn push_text(&self, event: &str, data: String) -> Result<(), StoreError> {
        let (epoch, spilled, full) = {
            let mut state = self.state();
            let epoch = state.epoch;
            state.last += 1;
            let frame = Frame { seq: state.last, event: event.to_owned(), data };
            if self.resumable {
                state.staged.push(frame);
                (epoch, Vec::new(), state.staged.len() >= SPILL)
            } else {
                let shown = frame.seq;
                if state.store_all {
                    state.staged.push(frame.clone());
                }
                let full = state.staged.len() >= SPILL;
                state.window.push_back(Arc::new(frame));
                let spill = if state.window.len() > WINDOW { SPILL } else { 0 };
                let spilled: Vec<_> = state.window.iter().take(spill).cloned().collect();
                drop(state);
                self.grown.send_modify(|length| length.shown = shown);
                (epoch, spilled, full)
            }
        };
        if full {
            self.flush().await?;
        }
        if !spilled.is_empty() {
            let count = spilled.len();
            let frames = spilled.iter().map(|frame| (**frame).clone()).collect();
            self.log.append(epoch, frames).await?;
            self.state().window.drain(..count);
        }
        Ok(())
    }

    /// Whether events wait to be stored.
    pub(crate) fn has_staged(&self) -> bool {
        !self.state().staged.is_empty()
    }

    /// What waits to be stored. Whoever stores it says so with [`were_stored`](Self::were_stored).
    pub(crate) fn staged(&self) -> Vec<Frame> {
        self.state().staged.clone()
    }

    /// Forgets what waits to be stored: another process goes on, with the next number that is stored.
    pub(crate) fn forget_staged(&self) {
        let mut state = self.state();
        let staged = u64::try_from(std::mem::take(&mut state.staged).len()).unwrap_or(0);
        state.last = state.last.saturating_sub(staged);
    }

    /// Stores what waits, and shows it.
    pub(crate) async fn flush(&self) -> Result<(), StoreError> {
        let (epoch, staged) = {
            let state = self.state();
            (state.epoch, state.staged.clone())
        };
        if staged.is_empty() {
            return Ok(());
        }
        self.log.append(epoch, staged.clone()).await?;
        self.were_stored(staged);
        Ok(())
    }

    /// Shows what waited, and is stored now.
    pub(crate) fn were_stored(&self, staged: Vec<Frame>) {
        let Some(shown) = staged.last().map(|frame| frame.seq) else { return };
        self.log.tell(self.state().store_all);
        {
            let mut state = self.state();
            state.staged.drain(..staged.len());
            if !self.resumable {
                return;
            }
            state.window.extend(staged.into_iter().map(Arc::new));
            while state.window.len() > WINDOW {
                state.window.pop_front();
            }
        }
        self.grown.send_modify(|length| length.shown = shown);
    }

    /// The run is over, with this result; or, without one, another process continues it.
    pub(crate) fn end(&self, result: impl Into<Option<Json>>) {
        self.state().result = result.into();
        self.grown.send_modify(|length| length.ended = true);
    }

    /// Waits for the end of the run. Returns `None` if another process continues it.
    pub(crate) async fn result(&self) -> Option<Json> {
        // The sender lives as long as `self`.
        let _ = self.grown.subscribe().wait_for(|length| length.ended).await;
        self.state().result.clone()
    }

    /// A reader of what comes after this number.
    pub(crate) fn after(self: &Arc<Self>, after: u64) -> FeedReader {
        let grown = self.grown.subscribe();
        FeedReader { feed: self.clone(), grown, after, page: VecDeque::new() }
    }

    /// A reader of what comes from now on.
    pub(crate) fn from_now(self: &Arc<Self>) -> FeedReader {
        let shown = self.grown.borrow().shown;
        self.after(shown)
    }
}

pub(crate) struct FeedReader {
    feed: Arc<Feed>,
    grown: watch::Receiver<Length>,
    after: u64,
    page: VecDeque<Arc<Frame>>,
}

impl FeedReader {
    /// The next event; nothing after the last one.
    pub(crate) async fn next(&mut self) -> Result<Option<Arc<Frame>>, StoreError> {
        loop {
            if let Some(frame) = self.page.pop_front() {
                self.after = frame.seq;
                if frame.event == BARRIER {
                    continue;
                }
                return Ok(Some(frame));
            }
            let after = self.after;
            let wait = self.grown.wait_for(|length| length.shown > after || length.ended).await;
            let Ok(length) = wait.map(|length| *length) else { return Ok(None) };
            if length.shown <= after {
                return Ok(None);
            }
            let in_memory = {
                let state = self.feed.state();
                let first = state.window.front().map_or(u64::MAX, |frame| frame.seq);
                let at = (after + 1).checked_sub(first).and_then(|at| usize::try_from(at).ok());
                let frames = at.map(|at| state.window.iter().skip(at).take(PAGE).cloned());
                frames.map(Iterator::collect::<Vec<_>>).filter(|frames| !frames.is_empty())
            };
            match in_memory {
                Some(frames) => self.page.extend(frames),
                None => {
                    let stored = self.feed.log.after(after, PAGE).await?;
                    if stored.is_empty() {
                        if length.ended {
                            return Ok(None);
                        }
                        // They were forgotten.
                        self.after = length.shown;
                    }
                    self.page.extend(stored.into_iter().map(Arc::new));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::SqliteStore;

    async fn read_all(mut reader: FeedReader) -> Vec<u64> {
        let mut seen = Vec::new();
        while let Some(frame) = reader.next().await.expect("an answer") {
            seen.push(frame.seq);
        }
        seen
    }

    #[tokio::test]
    async fn a_slow_reader_misses_nothing_and_holds_nothing() {
        for resumable in [false, true] {
            let store = Arc::new(SqliteStore::open(None).await.expect("a store"));
            let feed = Feed::new("r", resumable, store);
            let early = feed.from_now();
            for n in 0..2_000 {
                feed.push("values", &json!(n)).await.expect("an answer");
            }
            feed.flush().await.expect("an answer");
            assert!(feed.state().window.len() <= WINDOW + 1, "what is older is in the store");
            feed.end(json!({}));
            let all: Vec<u64> = (1..=2_000).collect();
            assert_eq!(read_all(early).await, all, "resumable: {resumable}");
            assert_eq!(read_all(feed.after(1_990)).await, (1_991..=2_000).collect::<Vec<_>>());
            assert_eq!(read_all(feed.from_now()).await, Vec::<u64>::new());
        }
    }

    #[tokio::test]
    async fn an_event_of_a_resumable_run_is_stored_before_it_is_seen() {
        let store = Arc::new(SqliteStore::open(None).await.expect("a store"));
        let feed = Feed::new("r", true, store.clone());
        feed.push("values", &json!(1)).await.expect("an answer");
        assert_eq!(feed.grown.borrow().shown, 0, "nobody can have seen it");
        feed.flush().await.expect("an answer");
        assert_eq!(store.events("r", 0, 9).await.expect("an answer").len(), 1);
        // Another process continues with the next number.
        let next = Feed::new("r", true, store);
        next.take_up().await.expect("an answer");
        next.push("values", &json!(2)).await.expect("an answer");
        next.flush().await.expect("an answer");
        next.end(json!({}));
        assert_eq!(read_all(next.after(0)).await, [1, 2]);
    }
}
