//! Times: microseconds since 1970 inside, RFC 3339 outside.

use std::time::{SystemTime, UNIX_EPOCH};

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

    pub(crate) fn millis(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// The time in the form that clients read: with microseconds and `+00:00`.
    pub(crate) fn rfc3339(self) -> String {
        let (seconds, micros) = (self.0.div_euclid(1_000_000), self.0.rem_euclid(1_000_000));
        let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        // The civil calendar, counted in eras of 400 years that begin in March.
        let shifted = days + 719_468;
        let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}+00:00")
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
