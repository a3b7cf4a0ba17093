//! Times, as they are printed and typed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A time in UTC, ISO 8601, to the second.
pub(crate) fn iso(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // The civil calendar, counted in eras of 400 years that begin in March.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// A length of time: a number and `s`, `m`, `h` or `d`.
pub(crate) fn length(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no length of time; write 90s, 15m, 12h or 30d");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_printed_by_the_calendar() {
        let at = |seconds| iso(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_794_774_987), "2026-11-15T20:36:27Z");
    }

    #[test]
    fn lengths_have_a_unit() {
        assert_eq!(length("2h"), Ok(Duration::from_secs(7_200)));
        for wrong in ["", "h", "2", "2 days", "-1d", "99999999999999999999d", "3é"] {
            assert!(length(wrong).is_err(), "{wrong}");
        }
    }
}
