//! How long to wait before another try.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// How often to try again, and how long to wait: LangChain's defaults.
#[derive(Clone, Debug)]
pub struct Backoff {
    retries_max: u32,
    first: Duration,
    factor: f64,
    longest: Duration,
    jitter: bool,
}

impl Default for Backoff {
    /// Two more tries after one second and after two, a quarter more or less.
    fn default() -> Self {
        let (first, longest) = (Duration::from_secs(1), Duration::from_secs(60));
        Self { retries_max: 2, first, factor: 2.0, longest, jitter: true }
    }
}

impl Backoff {
    /// This many tries after the first.
    #[must_use]
    pub fn retries(self, retries_max: u32) -> Self {
        Self { retries_max, ..self }
    }

    /// The wait before the second try; each further one is longer by this factor, and none longer than `longest`.
    #[must_use]
    pub fn waits(self, first: Duration, factor: f64, longest: Duration) -> Self {
        Self { first, factor, longest, ..self }
    }

    /// Whether waits vary by a quarter, so that many tries do not come at the same time.
    #[must_use]
    pub fn jitter(self, jitter: bool) -> Self {
        Self { jitter, ..self }
    }

    /// How long to wait before this retry, counted from 0; nothing if it is one too many.
    pub(super) fn wait(&self, retry: u32) -> Option<Duration> {
        if retry >= self.retries_max {
            return None;
        }
        let factor = self.factor.powi(i32::try_from(retry).unwrap_or(i32::MAX));
        let seconds = (self.first.as_secs_f64() * factor).min(self.longest.as_secs_f64());
        let vary = if self.jitter { 0.75 + random() / 2.0 } else { 1.0 };
        Some(Duration::try_from_secs_f64(seconds * vary).unwrap_or(self.longest))
    }
}

/// A number from 0 to 1: each hasher of the standard library has other keys.
fn random() -> f64 {
    (RandomState::new().build_hasher().finish() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_limit() {
        let plain = Backoff::default().retries(3).jitter(false);
        let plain = plain.waits(Duration::from_secs(20), 2.0, Duration::from_secs(60));
        let waits: Vec<_> = (0..4).map(|retry| plain.wait(retry).map(|it| it.as_secs())).collect();
        assert_eq!(waits, [Some(20), Some(40), Some(60), None]);
        let varied = Backoff::default().wait(0).expect("a wait");
        assert!((0.75..1.25).contains(&varied.as_secs_f64()), "{varied:?}");
    }
}
