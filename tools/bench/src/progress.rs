//! How far the run is: a bar in a terminal, lines elsewhere.

use std::io::{IsTerminal, Write};

const WIDTH: usize = 30;

#[derive(Debug)]
pub(crate) struct Progress {
    all: usize,
    bar: bool,
}

impl Progress {
    pub(crate) fn new(all: usize) -> Self {
        Self { all, bar: std::io::stderr().is_terminal() }
    }

    /// Says what comes next, after so many are done.
    pub(crate) fn at(&self, done: usize, what: &str) {
        let line = if self.bar { bar(done, self.all, what) } else { plain(done, self.all, what) };
        // Nothing is lost if nobody can read it.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    pub(crate) fn end(&self) {
        if self.bar {
            let _ = std::io::stderr().write_all(b"\r\x1b[K");
        }
    }
}

fn bar(done: usize, all: usize, what: &str) -> String {
    let filled = WIDTH * done / all.max(1);
    format!("\r\x1b[K[{}{}] {done}/{all} {what}", "#".repeat(filled), ".".repeat(WIDTH - filled))
}

fn plain(done: usize, all: usize, what: &str) -> String {
    format!("{}/{all} {what}\n", done + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_full_as_the_run_is_done() {
        let shown = bar(3, 6, "loop 1000 none");
        assert!(shown.contains(&format!("[{}{}]", "#".repeat(15), ".".repeat(15))), "{shown}");
        assert!(shown.ends_with("3/6 loop 1000 none"), "{shown}");
        assert_eq!(plain(0, 6, "loop 1000 none"), "1/6 loop 1000 none\n");
    }
}
