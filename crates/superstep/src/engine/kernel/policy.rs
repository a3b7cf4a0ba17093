use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use superstep_checkpoint::{TimeLimits, Value};

use crate::error::NodeError;

/// Decides whether an error is retried.
type ErrorTest = Arc<dyn Fn(&NodeError) -> bool + Send + Sync>;

/// How often a failed node is retried, and for which errors.
///
/// The first policy of a node that matches the error applies. All policies share one count of
/// attempts.
#[derive(Clone)]
pub struct RetryPolicy {
    pub(crate) initial_interval: Duration,
    pub(crate) backoff_factor: f64,
    pub(crate) interval_max: Duration,
    pub(crate) attempts_max: u32,
    pub(crate) jitter: bool,
    pub(crate) matches: Option<ErrorTest>,
}

impl Default for RetryPolicy {
    /// Three attempts for [transient](NodeError::is_transient) errors, with waits that start at
    /// half a second and double, plus jitter.
    fn default() -> Self {
        Self {
            initial_interval: Duration::from_millis(500),
            backoff_factor: 2.0,
            interval_max: Duration::from_secs(128),
            attempts_max: 3,
            jitter: true,
            matches: None,
        }
    }
}

impl RetryPolicy {
    /// The default policy with this many attempts, including the first.
    #[doc(alias = "max_attempts")]
    pub fn attempts(attempts_max: u32) -> Self {
        Self { attempts_max, ..Self::default() }
    }

    /// How long to wait before the second attempt.
    #[must_use]
    pub fn initial_interval(self, initial_interval: Duration) -> Self {
        Self { initial_interval, ..self }
    }

    /// The factor by which each wait grows.
    #[must_use]
    pub fn backoff_factor(self, backoff_factor: f64) -> Self {
        Self { backoff_factor, ..self }
    }

    /// The longest wait, without jitter.
    #[must_use]
    pub fn interval_max(self, interval_max: Duration) -> Self {
        Self { interval_max, ..self }
    }

    /// Whether to add up to a second to each wait, so that many tasks do not retry at the same
    /// time.
    #[must_use]
    pub fn jitter(self, jitter: bool) -> Self {
        Self { jitter, ..self }
    }

    /// Which errors are retried.
    #[must_use]
    pub fn retry_on(self, matches: impl Fn(&NodeError) -> bool + Send + Sync + 'static) -> Self {
        Self { matches: Some(Arc::new(matches)), ..self }
    }

    pub(crate) fn applies_to(&self, error: &NodeError) -> bool {
        self.matches.as_ref().map_or_else(|| error.is_transient(), |matches| matches(error))
    }

    /// How long to wait after this many failed attempts; `random` is in [0, 1).
    pub(crate) fn wait(&self, failed: u32, random: f64) -> Duration {
        let factor = self.backoff_factor.powi(i32::try_from(failed).unwrap_or(i32::MAX) - 1);
        let wait = self.initial_interval.as_secs_f64() * factor;
        let wait = wait.min(self.interval_max.as_secs_f64());
        Duration::try_from_secs_f64(wait + if self.jitter { random } else { 0.0 })
            .unwrap_or(self.interval_max)
    }
}

impl fmt::Debug for RetryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryPolicy")
            .field("attempts_max", &self.attempts_max)
            .field("initial_interval", &self.initial_interval)
            .finish_non_exhaustive()
    }
}

/// Limits on the time of one attempt of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeoutPolicy {
    pub(crate) run: Option<Duration>,
    pub(crate) idle: Option<Duration>,
}

impl TimeoutPolicy {
    /// At most this long in all.
    pub fn run(limit: Duration) -> Self {
        Self { run: Some(limit), idle: None }
    }

    /// Limits the time without progress: an event, a recorded call, or a
    /// [`heartbeat`](crate::Task::heartbeat).
    pub fn idle(limit: Duration) -> Self {
        Self { run: None, idle: Some(limit) }
    }

    /// Adds a limit on the time without progress.
    #[must_use]
    pub fn and_idle(self, limit: Duration) -> Self {
        Self { idle: Some(limit), ..self }
    }

    pub(crate) fn stored(self) -> TimeLimits {
        TimeLimits {
            run: self.run.map(|limit| limit.as_secs_f64()),
            idle: self.idle.map(|limit| limit.as_secs_f64()),
        }
    }

    pub(crate) fn from_stored(limits: TimeLimits) -> Self {
        let duration = |seconds: Option<f64>| Duration::try_from_secs_f64(seconds?).ok();
        Self { run: duration(limits.run), idle: duration(limits.idle) }
    }
}

/// Makes the key of a result from the input it came from.
type KeyOf = Arc<dyn Fn(&Value) -> String + Send + Sync>;

/// Caches the result of a node for equal inputs.
///
/// If the cache fails, or its result cannot be read, the node runs, with a warning in `tracing`.
#[derive(Clone, Default)]
pub struct CachePolicy {
    pub(crate) key: Option<KeyOf>,
    pub(crate) ttl: Option<Duration>,
    pub(crate) strict: bool,
}

impl CachePolicy {
    /// Caches by the whole input, without expiry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Caches by the key that this function returns for the input.
    #[must_use]
    pub fn key(self, key: impl Fn(&Value) -> String + Send + Sync + 'static) -> Self {
        Self { key: Some(Arc::new(key)), ..self }
    }

    /// How long a result is kept.
    #[must_use]
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { ttl: Some(ttl), ..self }
    }

    /// Fails the run with [`RunError::Cache`](crate::RunError::Cache) if the cache fails; for nodes
    /// that must not run a second time.
    #[must_use]
    pub fn strict(self) -> Self {
        Self { strict: true, ..self }
    }
}

impl fmt::Debug for CachePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachePolicy").field("ttl", &self.ttl).finish_non_exhaustive()
    }
}

/// What was chosen for a node besides its function.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeOptions {
    pub(crate) retry: Option<Vec<RetryPolicy>>,
    pub(crate) timeout: Option<TimeoutPolicy>,
    pub(crate) cache: Option<CachePolicy>,
    pub(crate) spawned: bool,
    pub(crate) defer: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_longest_and_jitter_comes_on_top() {
        let policy = RetryPolicy::default().interval_max(Duration::from_secs(3));
        let waits: Vec<_> = (1..=4).map(|failed| policy.wait(failed, 0.0).as_millis()).collect();
        assert_eq!(waits, [500, 1000, 2000, 3000]);
        assert_eq!(policy.wait(4, 0.5).as_millis(), 3500);
        assert_eq!(policy.jitter(false).wait(1, 0.5).as_millis(), 500);
    }
}
