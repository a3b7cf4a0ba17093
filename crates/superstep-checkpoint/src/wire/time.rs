//! Times as text in what is stored.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: i64 = 86_400;

/// A time by the calendar, in UTC. It is displayed as `2026-11-15T20:36:27`, without microseconds and zone: what is stored differs
/// in those.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtcTime {
    /// The year. The one before 1 is 0.
    pub year: i64,
    /// The month, from 1.
    pub month: i64,
    /// The day of the month, from 1.
    pub day: i64,
    /// The hour, up to 23.
    pub hour: i64,
    /// The minute.
    pub minute: i64,
    /// The second.
    pub second: i64,
    /// The microsecond.
    pub micros: i64,
}

impl UtcTime {
    /// The time so many microseconds after, or before, the beginning of 1970.
    pub fn from_micros(micros: i64) -> Self {
        let (seconds, micros) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
        let (days, of_day) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        let (year, month, day) = date(days);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        Self { year, month, day, hour, minute, second, micros }
    }

    /// Reads a time with or without a fraction, and without a zone or with that of UTC. Times from 1970 to 9999 are read.
    pub fn parse(text: &str) -> Option<SystemTime> {
        let text = text.trim_end_matches('Z').trim_end_matches("+00:00");
        let (date, time) = text.split_once([' ', 'T'])?;
        let [year, month, day] = numbers(date, '-')?;
        let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
        let [hour, minute, second] = numbers(time, ':')?;
        let micros: u64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
        let date_is_known = (1970..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=31).contains(&day)
            && self::date(days(year, month, day)) == (year, month, day);
        if !date_is_known || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let seconds = days(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
        let since = Duration::from_secs(u64::try_from(seconds).ok()?);
        Some(UNIX_EPOCH + since + Duration::from_micros(micros))
    }
}

/// Times beyond what 64 bits of microseconds can tell are the last or the first of those.
impl From<SystemTime> for UtcTime {
    fn from(time: SystemTime) -> Self {
        Self::from_micros(match time.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
            Err(before) => {
                i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |before| -before)
            }
        })
    }
}

impl fmt::Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day, hour, minute, second, micros: _ } = self;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
    }
}

/// Three numbers without signs.
fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let mut numbers = text.splitn(3, separator).map(|number| {
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        if digits { number.parse::<u32>().ok().map(i64::from) } else { None }
    });
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

/// Year, month and day from days since 1970, counted in eras of 400 years that begin in March.
fn date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The inverse of [`date`].
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (micros, text, fraction) in [
            (0, "1970-01-01T00:00:00", 0),
            (-1, "1969-12-31T23:59:59", 999_999),
            (951_782_400_000_001, "2000-02-29T00:00:00", 1),
            (1_794_774_987_023_418, "2026-11-15T20:36:27", 23_418),
            (-62_135_596_800_000_000, "0001-01-01T00:00:00", 0),
        ] {
            let time = UtcTime::from_micros(micros);
            assert_eq!((time.to_string().as_str(), time.micros), (text, fraction));
        }
        assert_eq!(UtcTime::from_micros(i64::MAX).year, 294_247);
        assert_eq!(UtcTime::from_micros(i64::MIN).year, -290_308);
    }

    #[test]
    fn every_day_comes_back() {
        for day in (-800_000..3_000_000).step_by(97) {
            let (year, month, of_month) = date(day);
            assert_eq!(days(year, month, of_month), day);
        }
    }

    #[test]
    fn times_are_read_or_not() {
        let wanted = Some(UNIX_EPOCH + Duration::from_secs(951_782_400));
        for text in ["2000-02-29 00:00:00", "2000-02-29T00:00:00+00:00", "2000-02-29T00:00:00.000Z"]
        {
            assert_eq!(UtcTime::parse(text), wanted, "{text}");
        }
        for text in [
            "",
            "now",
            "2000-02-29",
            "2001-02-29 00:00:00",
            "2000-13-01 00:00:00",
            "2000-01-+1 00:00:00",
            "0000-00-00 00:00:00",
            "1969-12-31 23:59:59",
            "9999-12-31 23:59:60",
            "2026-01-01 18446744073709551615:00:00",
        ] {
            assert_eq!(UtcTime::parse(text), None, "{text}");
        }
    }
}
