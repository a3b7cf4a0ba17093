//! Questions with a due time: the clock answers them if nobody else does.
//!
//! The due time is an annotation in the schema of the answer, which LangGraph keeps and shows as it is.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Interrupt, Map, Value};
use crate::wire::UtcTime;

/// The annotation in the schema of an answer. JSON Schema ignores keywords that it does not know.
const ANNOTATION: &str = "x-superstep";
const DUE: &str = "due";
/// The keyword of JSON Schema for the value that is used if there is none.
const DEFAULT: &str = "default";
const SLEEP: &str = "sleep";

/// What the clock answers a sleep with.
const AWAKE: Value = Value::Bool(true);

impl Interrupt {
    /// The question of a task that sleeps until this time. Its id is still empty.
    pub fn sleep_until(due: SystemTime) -> Self {
        let value: Value =
            [("type", Value::from(SLEEP)), ("until", due_text(due).into())].into_iter().collect();
        let id = String::new().into();
        Self { value, id, response_schema: None }.with_due(due, None)
    }

    /// The same question with a due time. At that time the clock gives this answer.
    #[must_use]
    pub fn with_due(mut self, due: SystemTime, default: Option<Value>) -> Self {
        let mut schema = match self.response_schema.take() {
            Some(Value::Map(schema)) => schema,
            None => Map::new(),
            // A schema may be a mere yes or no.
            Some(other) => Map::from_iter([("allOf".to_owned(), Value::List(vec![other]))]),
        };
        let mut fields = Map::from_iter([(DUE.to_owned(), due_text(due).into())]);
        match default {
            Some(default) => drop(schema.insert(DEFAULT.to_owned(), default)),
            None => drop(fields.insert(SLEEP.to_owned(), true.into())),
        }
        schema.insert(ANNOTATION.to_owned(), fields.into());
        self.response_schema = Some(schema.into());
        self
    }

    /// When the clock answers the question. `None`: it waits until somebody does.
    pub fn due(&self) -> Option<SystemTime> {
        UtcTime::parse(self.annotation()?.get(DUE)?.as_str()?)
    }

    /// Whether nobody is asked: the task sleeps until the [due time](Self::due).
    pub fn is_sleep(&self) -> bool {
        self.annotation().is_some_and(|fields| fields.contains_key(SLEEP)) && self.due().is_some()
    }

    /// The answer that the clock gives at the [due time](Self::due).
    pub fn due_answer(&self) -> Option<Value> {
        self.due()?;
        if self.is_sleep() {
            return Some(AWAKE);
        }
        self.response_schema.as_ref()?.as_map()?.get(DEFAULT).cloned()
    }

    fn annotation(&self) -> Option<&Map> {
        self.response_schema.as_ref()?.as_map()?.get(ANNOTATION)?.as_map()
    }
}

/// A time as the stored form has it: in UTC, with microseconds.
pub(crate) fn due_text(time: SystemTime) -> String {
    let time = UtcTime::from(time);
    format!("{time}.{:06}Z", time.micros)
}

/// The time as it is stored: cut to microseconds. `None` if the year has more than four digits. Times before 1970 are its
/// first moment.
pub fn storable_time(time: SystemTime) -> Option<SystemTime> {
    let Ok(since) = time.duration_since(UNIX_EPOCH) else { return Some(UNIX_EPOCH) };
    let micros = u64::try_from(since.as_micros()).ok()?;
    let cut = UNIX_EPOCH.checked_add(Duration::from_micros(micros))?;
    (UtcTime::parse(&due_text(cut)) == Some(cut)).then_some(cut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Blob;

    fn question(schema: Option<Value>) -> Interrupt {
        Interrupt { value: "pay?".into(), id: "1".to_owned().into(), response_schema: schema }
    }

    #[test]
    fn a_due_time_survives_the_stored_form() {
        let due = UNIX_EPOCH + Duration::from_micros(1_794_774_987_000_042);
        let asked = question(None).with_due(due, Some(false.into()));
        let blob = Blob::from_value(&Interrupt::list_to(std::slice::from_ref(&asked)))
            .expect("as it was made");
        let read = Interrupt::list_from(&blob.to_value().expect("as it was made"))
            .expect("as it was made")
            .remove(0);
        assert_eq!(read, asked);
        assert_eq!((read.due(), read.is_sleep()), (Some(due), false));
        assert_eq!(read.due_answer(), Some(false.into()));
        assert_eq!(read.value, "pay?".into());
    }

    #[test]
    fn a_schema_stays_beside_it() {
        let due = UNIX_EPOCH + Duration::from_secs(1);
        let schema: Value = [("type", Value::from("boolean"))].into_iter().collect();
        for schema in [schema, Value::Bool(true)] {
            let asked = question(Some(schema)).with_due(due, Some(Value::Null));
            assert_eq!((asked.due(), asked.due_answer()), (Some(due), Some(Value::Null)));
            let kept =
                asked.response_schema.as_ref().and_then(Value::as_map).expect("as it was made");
            assert!(kept.contains_key("type") || kept.contains_key("allOf"));
        }
    }

    #[test]
    fn what_is_no_due_time_is_none() {
        assert_eq!((question(None).due(), question(None).due_answer()), (None, None));
        let fields: Value =
            [(DUE, Value::from("tomorrow")), (SLEEP, true.into())].into_iter().collect();
        let schema: Value = [(ANNOTATION, fields)].into_iter().collect();
        let damaged = question(Some(schema));
        assert_eq!((damaged.due(), damaged.is_sleep()), (None, false));
    }

    #[test]
    fn times_have_four_digits_of_a_year() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(storable_time(at(253_402_300_799)), Some(at(253_402_300_799)));
        assert_eq!(storable_time(at(253_402_300_800)), None);
        let before = UNIX_EPOCH.checked_sub(Duration::from_secs(5)).expect("as it was made");
        assert_eq!(storable_time(before), Some(UNIX_EPOCH));
    }
}
