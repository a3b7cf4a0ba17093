use std::fmt;

use serde::{de, ser};

/// Why a value could not be read or written, and where in it.
///
/// The path is gathered on the way out, so a value without faults pays nothing for it. Nor for the rest: what every step of
/// reading may return is one pointer.
#[derive(Debug)]
pub(crate) struct Fault(Box<Report>);

#[derive(Debug)]
struct Report {
    message: String,
    /// From the innermost step to the outermost.
    path: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Key(String),
    Index(usize),
}

impl Fault {
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self(Box::new(Report { message: message.to_string(), path: Vec::new() }))
    }

    /// The same fault, seen from the map that has it under `key`.
    pub(crate) fn in_field(mut self, key: impl Into<String>) -> Self {
        self.0.path.push(Step::Key(key.into()));
        self
    }

    /// The same fault, seen from the list that has it at `index`.
    pub(crate) fn in_item(mut self, index: usize) -> Self {
        self.0.path.push(Step::Index(index));
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, step) in self.0.path.iter().rev().enumerate() {
            f.write_str(if nth == 0 { "at `" } else { "" })?;
            match step {
                Step::Key(key) if nth == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        f.write_str(if self.0.path.is_empty() { "" } else { "`: " })?;
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Fault {}

impl ser::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message)
    }
}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message)
    }

    fn invalid_type(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::new(format_args!("expected {expected}, found {}", Found(found)))
    }

    fn invalid_value(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::new(format_args!("expected {expected}, found {}", Found(found)))
    }
}

/// Says what was found in the words people use for data, not in those of the language it is written in.
struct Found<'a>(de::Unexpected<'a>);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            de::Unexpected::Unit | de::Unexpected::Option => f.write_str("null"),
            de::Unexpected::Str(text) if text.len() > 40 => f.write_str("text"),
            de::Unexpected::Str(text) => write!(f, "text {text:?}"),
            de::Unexpected::Seq => f.write_str("a list"),
            de::Unexpected::Map => f.write_str("a map"),
            de::Unexpected::Bytes(_) => f.write_str("bytes"),
            other => other.fmt(f),
        }
    }
}

impl From<Fault> for crate::Error {
    fn from(fault: Fault) -> Self {
        Self::codec(fault)
    }
}
