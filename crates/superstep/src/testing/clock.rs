use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::engine::lock;

/// A clock for timers and deadlines that a test sets and advances. Clones are the same clock.
///
/// It is added to the context of a graph, and is then the clock of everything that
/// [`Task::sleep`](crate::Task::sleep), [`or_after`](crate::Asking::or_after) and
/// [`run_due`](crate::CompiledGraph::run_due) do. It stands still until it is advanced, so nothing in a test waits.
/// Tokio's sleeps are another matter; see [`virtual_time`](super::virtual_time).
///
/// ```
/// use std::time::Duration;
/// use superstep::prelude::*;
/// use superstep::testing::{Clock, virtual_time};
///
/// #[derive(State, Clone, Default)]
/// struct Letter {
///     sent: bool,
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = Clock::new();
/// let app = StateGraph::<Letter>::new()
///     .add_node("send", |task: Task| async move {
///         task.sleep(Duration::from_secs(86_400)).await;
///         Letter::update().sent(true)
///     })
///     .add_edge(START, "send")
///     .compile()?
///     .with_checkpointer(MemorySaver::new())
///     .with_context(clock.clone());
///
/// virtual_time(async {
///     let thread = app.thread("letter-1");
///     assert!(thread.invoke(Letter::update()).await?.interrupted().is_some());
///     assert!(app.run_due().await?.is_empty());
///
///     clock.advance(Duration::from_secs(86_400));
///     assert_eq!(app.run_due().await?.len(), 1);
///     assert!(thread.get_state().await?.state().sent);
///     Ok(())
/// })
/// # }
/// ```
#[derive(Clone)]
pub struct Clock(Arc<Mutex<SystemTime>>);

impl Clock {
    /// A clock that stands at the beginning of 2030, in UTC.
    pub fn new() -> Self {
        Self::at(UNIX_EPOCH + Duration::from_secs(1_893_456_000))
    }

    /// A clock that stands at this time.
    pub fn at(time: SystemTime) -> Self {
        Self(Arc::new(Mutex::new(time)))
    }

    /// The time it shows.
    pub fn now(&self) -> SystemTime {
        *lock(&self.0)
    }

    /// Sets it, forwards or backwards.
    pub fn set(&self, time: SystemTime) {
        *lock(&self.0) = time;
    }

    /// Advances it. At the end of what a [`SystemTime`] can hold it stays where it is.
    pub fn advance(&self, by: Duration) {
        let mut now = lock(&self.0);
        *now = now.checked_add(by).unwrap_or(*now);
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}
