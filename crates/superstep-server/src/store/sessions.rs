//! The event log of a thread, for clients of the thread protocol.

use super::{Answer, Stored};
use crate::time::Micros;

/// How many events of a thread are kept. A client that comes back later than that misses the oldest.
pub(crate) const SESSION_EVENTS_MAX: u64 = 10_000;

/// One log per thread, across its runs.
///
/// Events have numbers from 1, without gaps, in the order in which they were appended. A number is never used twice while the
/// thread exists, even after its event was forgotten, because clients continue after the last number they have seen.
pub(crate) trait SessionLog: Send + Sync + 'static {
    /// Appends events; those that are stored already are ignored, so a batch whose answer was lost can be sent again. Only
    /// the newest [`SESSION_EVENTS_MAX`] are kept.
    fn append_session(&self, thread: &str, events: Vec<Stored>) -> Answer<'_, ()>;
    /// The stored events after this number, in order.
    fn session_events(&self, thread: &str, after: u64, limit: usize) -> Answer<'_, Vec<Stored>>;
    /// The number of the last event of a thread; 0 if it has none.
    fn session_last(&self, thread: &str) -> Answer<'_, u64>;
    /// Forgets the events of threads that had none since this time.
    fn forget_sessions(&self, before: Micros) -> Answer<'_, usize>;
}
