//! The output of the program.

use std::fmt::{self, Display};
use std::io::{self, IsTerminal, Write};

use serde_json::Value as Json;

/// Why a command failed: a one-line message, and the exit code.
#[derive(Debug)]
pub struct Fail {
    message: String,
    /// What the process ends with.
    pub code: u8,
}

impl Fail {
    /// A failure with this message. Lines are joined: there is one line for each failure.
    pub fn new(message: impl Display) -> Self {
        let text = message.to_string();
        let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        Self { message: lines.join(" "), code: 1 }
    }

    /// Invalid arguments.
    pub fn usage(message: impl Display) -> Self {
        Self { code: 2, ..Self::new(message) }
    }

    /// The reader closed the output, which is not a failure.
    fn nobody_reads() -> Self {
        Self { message: String::new(), code: 0 }
    }

    /// The error with its causes, except those whose text ends the text before them: many errors show their source
    /// themselves.
    fn of(error: &(dyn std::error::Error + 'static)) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            if !message.ends_with(&text) {
                message = format!("{message}: {text}");
            }
            source = cause.source();
        }
        Self::new(message)
    }
}

impl Display for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

macro_rules! from {
    ($($error:ty),*) => {$(
        impl From<$error> for Fail {
            fn from(error: $error) -> Self {
                Self::of(&error)
            }
        }
    )*};
}

from!(superstep_checkpoint::Error, superstep::RunError, superstep::CompileError, serde_json::Error);

impl From<io::Error> for Fail {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::nobody_reads(),
            _ => Self::of(&error),
        }
    }
}

/// The output stream, and whether it is JSON or coloured.
#[derive(Clone, Copy, Debug)]
pub struct Out {
    /// Whether JSON is wanted.
    pub json: bool,
    colour: bool,
}

impl Out {
    /// Standard output. Colours are for terminals, and not if `NO_COLOR` is set.
    pub fn new(json: bool) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { json, colour: !json && !refused && io::stdout().is_terminal() }
    }

    /// Prints a line, at once.
    ///
    /// # Errors
    /// The reader closed the output, or it cannot be written.
    pub fn line(&self, text: impl Display) -> Result<(), Fail> {
        let mut out = io::stdout().lock();
        writeln!(out, "{text}")?;
        Ok(out.flush()?)
    }

    /// Prints `json` if JSON is wanted, else what `text` makes.
    ///
    /// # Errors
    /// As [`line`](Self::line).
    pub fn either(&self, json: &Json, text: impl FnOnce() -> String) -> Result<(), Fail> {
        if self.json {
            return self.line(json);
        }
        let text = text();
        let text = text.trim_end_matches('\n');
        if text.is_empty() { Ok(()) } else { self.line(text) }
    }

    fn paint(&self, code: &str, text: impl Display) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    /// What matters most.
    pub fn bold(&self, text: impl Display) -> String {
        self.paint("1", text)
    }

    /// What matters least.
    pub fn dim(&self, text: impl Display) -> String {
        self.paint("2", text)
    }

    /// What is well.
    pub fn good(&self, text: impl Display) -> String {
        self.paint("32", text)
    }

    /// The style of open questions.
    pub fn ask(&self, text: impl Display) -> String {
        self.paint("33", text)
    }

    /// What is wrong.
    pub fn bad(&self, text: impl Display) -> String {
        self.paint("31", text)
    }
}

/// Text that came from elsewhere, on one line and without anything that a terminal would take for a command.
pub(crate) fn tame(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The same, cut to this many characters.
pub(crate) fn brief(text: &str, length: usize) -> String {
    let text = tame(text);
    match text.char_indices().nth(length) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cause is told, even if its words occur in the error; one that the error already ends with is not told twice.
    #[test]
    fn causes_are_told_once() {
        let cause = io::Error::other("the connection had a timeout in line 3");
        let error = superstep_checkpoint::Error::backend("cannot read the thread: timeout", cause);
        let fail = Fail::from(superstep::RunError::from(error));
        assert_eq!(
            fail.to_string(),
            "the checkpointer failed: cannot read the thread: timeout: the connection had a \
             timeout in line 3"
        );
        let cause = io::Error::other("no such file");
        let error = superstep_checkpoint::Error::backend("cannot open `a`: no such file", cause);
        assert_eq!(Fail::from(error).to_string(), "cannot open `a`: no such file");
    }

    #[test]
    fn the_error_of_a_node_is_told_with_its_causes() {
        let error = superstep_checkpoint::Error::backend(
            "cannot reach the model",
            io::Error::other("reset"),
        );
        let fail = Fail::from(superstep::RunError::Node {
            node: "draft".into(),
            task: superstep_checkpoint::TaskId::from_bytes([0; 16]),
            arg: None,
            error: superstep::NodeError::from(error).named("NoModel"),
        });
        assert_eq!(fail.to_string(), "node `draft` failed: NoModel: cannot reach the model: reset");
    }
}
