//! Times as the tables keep them: text in UTC.

use std::time::SystemTime;

use superstep_checkpoint::wire::UtcTime;

/// `YYYY-MM-DD HH:MM:SS.ffffff`.
pub(super) fn to_text(time: SystemTime) -> String {
    let time = UtcTime::from(time);
    format!("{time}.{:06}", time.micros).replacen('T', " ", 1)
}

/// The same with the zone, as LangGraph writes when an item ends.
pub(super) fn to_zoned_text(time: SystemTime) -> String {
    to_text(time) + "+00:00"
}

/// Whether a time can be written so that it is read again: its year has four digits.
pub(super) fn is_writable(time: SystemTime) -> bool {
    UtcTime::parse(&to_text(time)).is_some()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn times_come_back() {
        assert_eq!(to_text(UNIX_EPOCH), "1970-01-01 00:00:00.000000");
        for micros in [0, 1, 951_782_400_000_001, 1_794_774_987_023_418, 4_102_444_799_999_999] {
            let time = UNIX_EPOCH + Duration::from_micros(micros);
            assert_eq!(UtcTime::parse(&to_text(time)), Some(time));
            assert_eq!(UtcTime::parse(&to_zoned_text(time)), Some(time));
        }
    }
}
