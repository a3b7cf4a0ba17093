//! Filters of items as conditions on JSON.

use serde_json::Value as Json;
use superstep_checkpoint::{Comparison, Condition, Error, Value};

use super::Question;
use crate::text::{check_text, json_has_nul};

/// A condition that holds if the value under a key is this one. Null is also the value of a missing key.
pub(super) fn equal(question: &mut Question, key: &str, value: &Value) -> Result<String, Error> {
    let (found, wanted) = both(question, key, value)?;
    Ok(format!("{found} = {wanted}"))
}

/// A condition that holds if the value under a key compares so.
pub(super) fn holds(question: &mut Question, condition: &Condition) -> Result<String, Error> {
    let (found, wanted) = both(question, &condition.key, &condition.value)?;
    let sign = match condition.comparison {
        Comparison::NotEqual => return Ok(format!("{found} <> {wanted}")),
        Comparison::Less => "<",
        Comparison::AtMost => "<=",
        Comparison::Greater => ">",
        Comparison::AtLeast => ">=",
    };
    // PostgreSQL orders numbers in JSON as numbers. It orders text by its language, and values of other kinds too.
    Ok(match &condition.value {
        Value::Int(_) | Value::UInt(_) | Value::Float(_) => {
            format!("(jsonb_typeof({found}) = 'number' AND {found} {sign} {wanted})")
        }
        Value::Str(_) => format!(
            "(jsonb_typeof({found}) = 'string' AND ({found} #>> '{{}}') COLLATE \"C\" {sign} ({wanted} #>> '{{}}'))"
        ),
        _ => "false".to_owned(),
    })
}

fn both(question: &mut Question, key: &str, value: &Value) -> Result<(String, String), Error> {
    check_text("key", key)?;
    let json = Json::from(value.clone()).to_string();
    if json_has_nul(&json) {
        return Err(Error::invalid(format_args!(
            "what is looked for under `{key}` has NUL in it, which no stored item has; leave it out"
        )));
    }
    let (key, wanted) = (question.text(key.to_owned()), question.text(json));
    let found = format!(
        "coalesce(CASE jsonb_typeof(s.value) WHEN 'object' THEN s.value -> {key} END, 'null')"
    );
    Ok((found, format!("{wanted}::jsonb")))
}
