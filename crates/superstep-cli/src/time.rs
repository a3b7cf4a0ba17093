//! Times, as they are printed and parsed.

use std::time::{Duration, SystemTime};

use superstep::checkpoint::wire::UtcTime;

/// A time in UTC, ISO 8601, to the second.
pub(crate) fn iso(time: SystemTime) -> String {
    format!("{}Z", UtcTime::from(time))
}

/// A length of time: a number and `s`, `m`, `h` or `d`.
pub(crate) fn length(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration; write 90s, 15m, 12h or 30d");
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
    use std::time::UNIX_EPOCH;

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
