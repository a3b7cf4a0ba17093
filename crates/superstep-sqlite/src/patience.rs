//! How whoever asks waits for the answer.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long an answer may take for it to be worth staying awake. To be woken up takes some 50 microseconds: beside a disk that
/// takes longer than this, that does not count.
const ALERT: Duration = Duration::from_micros(500);

/// Lets a run that is alone stay awake while it waits for an answer that came soon the last time.
///
/// It asks to be polled again at once, so whatever else its executor has to do is done in between. With two runs there is
/// something else to do, and nobody stays awake.
pub(crate) struct Patience {
    /// How many wait.
    waiting: AtomicUsize,
    /// How long the last answer took, in nanoseconds.
    last: AtomicU64,
    /// Whether the thread that answers has a processor of its own.
    spare: bool,
}

impl Patience {
    pub(crate) fn new() -> Self {
        let spare = thread::available_parallelism().is_ok_and(|count| count.get() > 1);
        Self { waiting: AtomicUsize::new(0), last: AtomicU64::new(0), spare }
    }

    /// Begins to wait.
    pub(crate) fn wait(&self) -> Wait<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Wait { patience: self, since: Instant::now() }
    }

    fn is_worth_it(&self) -> bool {
        let last = Duration::from_nanos(self.last.load(Ordering::Relaxed));
        self.spare && last < ALERT && self.waiting.load(Ordering::Relaxed) == 1
    }
}

/// Somebody who waits.
pub(crate) struct Wait<'a> {
    patience: &'a Patience,
    since: Instant,
}

impl Wait<'_> {
    pub(crate) async fn until<F: Future>(self, answer: F) -> F::Output {
        let mut answer = pin!(answer);
        poll_fn(|cx| {
            let polled = answer.as_mut().poll(cx);
            if polled.is_pending() && self.since.elapsed() < ALERT && self.patience.is_worth_it() {
                cx.waker().wake_by_ref();
            }
            polled
        })
        .await
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let took = u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.patience.last.store(took, Ordering::Relaxed);
        self.patience.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
