//! A value on part of a line, for people who have to tell tasks apart.

use std::io::{self, Write};
use std::sync::Arc;

use serde::Serialize;

/// The number of characters of a value that are shown.
const CHARS_MAX: usize = 80;

/// The beginning of a value as JSON, with `…` where it was cut. A long value costs no more than a short one.
pub(crate) fn brief<T: Serialize + ?Sized>(value: &T) -> Arc<str> {
    let mut prefix = Prefix { bytes: Vec::new(), is_full: false };
    let written = serde_json::to_writer(&mut prefix, value);
    if let (Err(error), false) = (written, prefix.is_full) {
        return format!("<{error}>").into();
    }
    // A character may have been cut in two.
    let text = String::from_utf8_lossy(&prefix.bytes);
    let text = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None if prefix.is_full => format!("{text}…").into(),
        None => text.into(),
    }
}

/// Takes as many bytes as can be needed, and refuses the next.
struct Prefix {
    bytes: Vec<u8>,
    is_full: bool,
}

impl Write for Prefix {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A character has four bytes at most.
        let left = (4 * CHARS_MAX + 4).saturating_sub(self.bytes.len());
        if left == 0 && !bytes.is_empty() {
            self.is_full = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = &bytes[..left.min(bytes.len())];
        self.bytes.extend_from_slice(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde::Serializer;
    use serde::ser::SerializeSeq as _;

    use super::*;

    #[test]
    fn what_is_short_is_shown_whole() {
        assert_eq!(&*brief(&serde_json::json!({ "page": 7 })), "{\"page\":7}");
        assert_eq!(&*brief("line\nbreak"), "\"line\\nbreak\"");
        let just = "x".repeat(CHARS_MAX - 2);
        assert_eq!(&*brief(&just), format!("\"{just}\""));
    }

    #[test]
    fn what_is_long_is_cut_between_characters_and_marked() {
        for letter in ["x", "ß", "語", "🦀"] {
            for before in 0..5 {
                let text = "a".repeat(before) + &letter.repeat(1000);
                let shown = brief(&text);
                assert_eq!(shown.chars().count(), CHARS_MAX + 1, "{shown}");
                assert!(shown.ends_with(&format!("{letter}…")), "{shown}");
            }
        }
    }

    /// A value that counts how much of it was looked at.
    struct Endless<'a>(&'a Cell<usize>);

    impl Serialize for Endless<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut list = serializer.serialize_seq(None)?;
            for number in 0..1_000_000 {
                self.0.set(number);
                list.serialize_element(&number)?;
            }
            list.end()
        }
    }

    #[test]
    fn what_is_long_is_not_looked_at_to_its_end() {
        let seen = Cell::new(0);
        assert!(brief(&Endless(&seen)).starts_with("[0,1,2,"));
        assert!(seen.get() < 1000, "{}", seen.get());
    }

    #[test]
    fn what_cannot_be_shown_says_why() {
        let keys = std::collections::BTreeMap::from([(vec![1], 2)]);
        assert_eq!(&*brief(&keys), "<key must be a string>");
    }
}
