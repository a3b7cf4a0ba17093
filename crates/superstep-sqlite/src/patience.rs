//! How a caller waits for the reply.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The longest reply time for which polling is worthwhile. Waking up takes some 50 microseconds,
/// which does not matter on a slower disk.
const ALERT: Duration = Duration::from_micros(500);

/// Lets a lone run poll for its reply if the last reply was quick.
///
/// It asks to be polled again at once, so the executor does its other work in between. With two
/// runs there is other work, and neither polls.
pub(crate) struct Patience {
    /// How many wait.
    waiting: AtomicUsize,
    /// How long the last answer took the caller that gave it, in nanoseconds. How long it was
    /// waited for would not tell: those who are asleep wait for being woken up, too, and would
    /// never find that it is worth staying awake.
    last: AtomicU64,
    /// Whether the answering thread has another processor.
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

    /// Takes note of how long an answer took the caller that gave it.
    pub(crate) fn note(&self, took: Duration) {
        #[expect(clippy::disallowed_methods, reason = "a wait this long is as good as for ever")]
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.last.store(took, Ordering::Relaxed);
    }

    /// Whether no caller waits.
    pub(crate) fn is_unused(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) == 0
    }

    fn is_worth_it(&self) -> bool {
        let last = Duration::from_nanos(self.last.load(Ordering::Relaxed));
        self.spare && last < ALERT && self.waiting.load(Ordering::Relaxed) == 1
    }
}

/// A waiting caller.
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
                // The thread that answers may have been given this processor.
                thread::yield_now();
                cx.waker().wake_by_ref();
            }
            polled
        })
        .await
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.patience.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether a caller whose reply does not exist asks to be polled again.
    fn stays_awake(wait: Wait<'_>) -> bool {
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(wakes.clone());
        let mut waiting = pin!(wait.until(std::future::pending::<()>()));
        let polled = Pin::new(&mut waiting).poll(&mut Context::from_waker(&waker));
        assert_eq!(polled, Poll::Pending);
        wakes.0.load(Ordering::Relaxed) > 0
    }

    fn on_several_cores() -> Patience {
        Patience { spare: true, ..Patience::new() }
    }

    #[test]
    fn who_is_alone_stays_awake() {
        assert!(stays_awake(on_several_cores().wait()));
    }

    #[test]
    fn of_several_nobody_does() {
        let patience = on_several_cores();
        let (one, other) = (patience.wait(), patience.wait());
        assert!(!stays_awake(one), "the other one still waits");
        assert!(stays_awake(other), "now it is alone");
    }

    #[test]
    fn nobody_does_after_an_answer_that_took_long() {
        let patience = on_several_cores();
        patience.note(ALERT);
        assert!(!stays_awake(patience.wait()));
    }

    #[test]
    fn nobody_does_for_longer_than_it_is_worth() {
        let patience = on_several_cores();
        let since = Instant::now().checked_sub(ALERT).expect("a clock that runs for a while");
        let mut wait = patience.wait();
        wait.since = since;
        assert!(!stays_awake(wait));
    }

    #[test]
    fn nobody_does_on_one_core() {
        let patience = Patience { spare: false, ..Patience::new() };
        assert!(!stays_awake(patience.wait()));
    }
}
