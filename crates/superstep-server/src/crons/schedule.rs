//! When a cron is due: five fields, in a time zone.

use std::str::FromStr as _;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};

use crate::error::{ApiError, ApiResult};
use crate::time::Micros;

/// A schedule that can be computed with.
#[derive(Debug)]
pub(crate) struct Schedule {
    cron: Cron,
    zone: TimeZone,
}

impl Schedule {
    /// Reads five fields, and the IANA name of a time zone; UTC if there is none.
    pub(crate) fn read(fields: &str, timezone: Option<&str>) -> ApiResult<Self> {
        let wrong = |why: &str| {
            let example =
                "five fields such as `0 9 * * 1-5`: minute, hour, day, month, day of the week";
            ApiError::invalid(format!("`schedule` is `{fields}`{why}; give {example}"))
        };
        if fields.split_whitespace().count() != 5 {
            return Err(wrong(", which does not have five fields"));
        }
        let parser =
            CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let cron = parser
            .parse(fields)
            .map_err(|error| wrong(&format!(", which cannot be read: {error}")))?;
        let zone = match timezone {
            None => TimeZone::UTC,
            Some(name) => TimeZone::get(name).map_err(|_| {
                ApiError::invalid(format!(
                    "`timezone` is `{name}`, which is no IANA time zone; give one such as `Europe/Berlin`"
                ))
            })?,
        };
        Ok(Self { cron, zone })
    }

    /// The first time after this one; nothing if there is none.
    pub(crate) fn after(&self, after: Micros) -> ApiResult<Option<Micros>> {
        let after = Timestamp::from_microsecond(after.0)
            .map_err(|error| ApiError::invalid(format!("a time is out of range: {error}")))?;
        let next = self.cron.find_next_occurrence(&after.to_zoned(self.zone.clone()), false);
        // Only a day that does not exist, such as 30 February, is never found.
        Ok(next.ok().map(|next| Micros(next.timestamp().as_microsecond())))
    }
}

/// A time in RFC 3339; UTC if it has no offset.
pub(crate) fn parse_time(name: &str, text: &str) -> ApiResult<Micros> {
    let with_offset = Timestamp::from_str(text);
    let time = with_offset.or_else(|error| match civil::DateTime::from_str(text) {
        Ok(local) => local.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp()),
        Err(_) => Err(error),
    });
    time.map(|time| Micros(time.as_microsecond())).map_err(|_| {
        ApiError::invalid(format!("`{name}` is `{text}`, not a time such as 2030-01-31T09:00:00Z"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Micros {
        parse_time("time", text).expect("a time")
    }

    fn next(fields: &str, zone: Option<&str>, after: &str) -> Option<String> {
        let schedule = Schedule::read(fields, zone).expect("a schedule");
        schedule.after(at(after)).expect("an answer").map(Micros::rfc3339)
    }

    #[test]
    fn dates_follow_the_clock_of_the_zone() {
        for (fields, zone, after, expected) in [
            ("0 0 1 1 *", None, "2026-03-01T00:00:00Z", "2027-01-01T00:00:00.000000+00:00"),
            ("*/5 * * * *", None, "2026-03-01T00:05:00Z", "2026-03-01T00:10:00.000000+00:00"),
            (
                "0 9 * * *",
                Some("Europe/Berlin"),
                "2026-01-10T09:00:00Z",
                "2026-01-11T08:00:00.000000+00:00",
            ),
            (
                "0 9 * * *",
                Some("Europe/Berlin"),
                "2026-07-10T09:00:00Z",
                "2026-07-11T07:00:00.000000+00:00",
            ),
            // The clock goes from 2 to 3: what is due in between comes at 3.
            (
                "30 2 * * *",
                Some("Europe/Berlin"),
                "2026-03-28T12:00:00Z",
                "2026-03-29T01:00:00.000000+00:00",
            ),
        ] {
            let found = next(fields, zone, after);
            assert_eq!(found.as_deref(), Some(expected), "{fields} after {after}");
        }
        assert_eq!(next("0 0 30 2 *", None, "2026-01-01T00:00:00Z"), None);
    }

    #[test]
    fn what_is_no_schedule_is_named() {
        for (fields, zone, part) in [
            ("* * * * * *", None, "five fields"),
            ("", None, "five fields"),
            ("61 * * * *", None, "`61 * * * *`"),
            ("* * * * *", Some("Mars/Olympus"), "`timezone`"),
        ] {
            let error = Schedule::read(fields, zone).expect_err("no schedule").detail;
            assert!(error.contains(part), "{error}");
        }
        assert!(parse_time("end_time", "soon").expect_err("no time").detail.contains("`end_time`"));
        assert_eq!(at("2026-01-01T00:00:00"), at("2026-01-01T01:00:00+01:00"));
    }
}
