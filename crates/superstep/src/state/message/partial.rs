//! JSON that ends anywhere.

use superstep_checkpoint::Value;

/// The value that `text` begins, as if what is open were closed: LangChain's `parse_partial_json`.
pub(super) fn parse_partial(text: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    let (mut text, closing) = closed(text)?;
    // What cannot be completed at the end, such as a key without a value, is cut off.
    loop {
        let len = text.len();
        text.push_str(&closing);
        if let Ok(value) = serde_json::from_str(&text) {
            return Some(value);
        }
        text.truncate(len);
        text.pop()?;
    }
}

/// The text with an open string closed, and the brackets that are open, the last one first. Nothing if a bracket is closed
/// that is not open.
fn closed(text: &str) -> Option<(String, String)> {
    let mut out = String::with_capacity(text.len() + 1);
    let mut open = Vec::new();
    let (mut in_string, mut escaped) = (false, false);
    for letter in text.chars() {
        if in_string {
            match letter {
                '"' if !escaped => in_string = false,
                '\\' => escaped = !escaped,
                // Models write line breaks into strings, which JSON does not allow.
                control if control.is_control() && (control as u32) < 0x20 => {
                    out.push_str(&format!("\\u{:04x}", control as u32));
                    escaped = false;
                    continue;
                }
                _ => escaped = false,
            }
        } else {
            match letter {
                '"' => (in_string, escaped) = (true, false),
                '{' => open.push('}'),
                '[' => open.push(']'),
                '}' | ']' if open.last() == Some(&letter) => drop(open.pop()),
                '}' | ']' => return None,
                _ => {}
            }
        }
        out.push(letter);
    }
    if in_string {
        if escaped {
            out.pop();
        }
        out.push('"');
    }
    Some((out, open.into_iter().rev().collect()))
}
