//! Times as the tables keep them: text in UTC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: u64 = 86_400;

/// `YYYY-MM-DD HH:MM:SS.ffffff`.
pub(super) fn to_text(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (year, month, day) = date(since.as_secs() / DAY);
    let seconds = since.as_secs() % DAY;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let micros = since.subsec_micros();
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}")
}

/// The same with the zone, as the other engine writes when an item ends.
pub(super) fn to_zoned_text(time: SystemTime) -> String {
    to_text(time) + "+00:00"
}

/// A time with or without a fraction and a zone, which is UTC.
pub(super) fn from_text(text: &str) -> Option<SystemTime> {
    let text = text.trim_end_matches('Z').trim_end_matches("+00:00");
    let (date, time) = text.split_once([' ', 'T'])?;
    let mut date = date.splitn(3, '-').map(str::parse::<u64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut time = time.splitn(3, ':').map(str::parse::<u64>);
    let (hour, minute, second) = (time.next()?.ok()?, time.next()?.ok()?, time.next()?.ok()?);
    let micros: u64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    let date =
        (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !date || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = days(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
    Some(UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_micros(micros))
}

/// Whether a time can be written so that it is read again: its year has four digits.
pub(super) fn is_writable(time: SystemTime) -> bool {
    from_text(&to_text(time)).is_some()
}

/// Year, month and day from days since 1970, after the usual reckoning in eras of 400 years that begin in March.
fn date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year + era * 400 + u64::from(month <= 2), month, of_year - (153 * from_march + 2) / 5 + 1)
}

/// The other way round.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = year - u64::from(month <= 2);
    let (era, of_era) = (year / 400, year % 400);
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back() {
        for micros in [0, 1, 951_782_400_000_001, 1_794_774_987_023_418, 4_102_444_799_999_999] {
            let time = UNIX_EPOCH + Duration::from_micros(micros);
            assert_eq!(from_text(&to_text(time)), Some(time));
            assert_eq!(from_text(&to_zoned_text(time)), Some(time));
        }
    }

    const LEAP: &str = "9999-12-31 23:59:60";
    const ABSURD: &str = "2026-01-01 18446744073709551615:00:00";

    #[test]
    fn times_of_the_other_engine_are_read() {
        let wanted = Some(UNIX_EPOCH + Duration::from_secs(951_782_400));
        assert_eq!(from_text("2000-02-29 00:00:00"), wanted);
        assert_eq!(from_text("2000-02-29T00:00:00+00:00"), wanted);
        assert_eq!(to_text(UNIX_EPOCH), "1970-01-01 00:00:00.000000");
        for text in
            ["", "now", "2000-02-29", "2000-13-01 00:00:00", "0000-00-00 00:00:00", ABSURD, LEAP]
        {
            assert_eq!(from_text(text), None, "{text}");
        }
    }
}
