//! Times: microseconds since 1970 inside, RFC 3339 outside.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use superstep::checkpoint::wire::UtcTime;

/// Microseconds since 1970, UTC.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(transparent)]
pub(crate) struct Micros(pub(crate) i64);

impl Micros {
    pub(crate) fn now() -> Self {
        Self::from(SystemTime::now())
    }

    pub(crate) fn plus_seconds(self, seconds: f64) -> Self {
        Self(self.0.saturating_add((seconds * 1e6) as i64))
    }

    /// How long it is from this time to a later one; zero if that has passed.
    pub(crate) fn until(self, later: Self) -> Duration {
        Duration::from_micros(u64::try_from(later.0.saturating_sub(self.0)).unwrap_or(0))
    }

    pub(crate) fn millis(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// The time in the form that clients read: with microseconds and `+00:00`.
    pub(crate) fn rfc3339(self) -> String {
        let time = UtcTime::from_micros(self.0);
        format!("{time}.{:06}+00:00", time.micros)
    }
}

impl From<SystemTime> for Micros {
    fn from(time: SystemTime) -> Self {
        let micros = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
        };
        Self(micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_microseconds_and_an_offset() {
        assert_eq!(Micros(0).rfc3339(), "1970-01-01T00:00:00.000000+00:00");
        assert_eq!(Micros(1_794_774_987_000_042).rfc3339(), "2026-11-15T20:36:27.000042+00:00");
        assert_eq!(Micros(-1).rfc3339(), "1969-12-31T23:59:59.999999+00:00");
    }
}
