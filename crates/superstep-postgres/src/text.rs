//! What PostgreSQL cannot have in text.

use superstep_checkpoint::Error;

/// PostgreSQL has no NUL in text.
pub(crate) fn check_text(what: &str, text: &str) -> Result<(), Error> {
    if text.contains('\0') {
        return Err(Error::invalid(format_args!(
            "{what} {text:?} contains NUL, which PostgreSQL cannot store; leave it out"
        )));
    }
    Ok(())
}

/// Whether JSON text has the escape for NUL. A backslash before it may itself be escaped.
pub(crate) fn json_has_nul(json: &str) -> bool {
    // Most text has no escapes at all, and to look for one byte takes a tenth of the time.
    json.contains('\\')
        && json.match_indices("\\u0000").any(|(at, _)| {
            let before = json[..at].bytes().rev().take_while(|byte| *byte == b'\\').count();
            before % 2 == 0
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escaped_backslash_before_digits_is_no_nul() {
        assert!(json_has_nul(r#"{"a":"\u0000"}"#));
        assert!(json_has_nul(r#"{"a":"\\\u0000"}"#));
        assert!(!json_has_nul(r#"{"a":"\\u0000"}"#));
        assert!(!json_has_nul(r#"{"a":"\u0001"}"#));
    }
}
