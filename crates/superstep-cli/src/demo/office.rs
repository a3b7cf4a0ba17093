//! The outside world of the demo: a log of effects, and the sent mails.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use superstep::NodeError;

/// Files beside the database, in which every effect of the demo leaves a line. They tell whether something was done twice.
#[derive(Clone, Debug)]
pub struct Office {
    /// Without one nothing is written down.
    dir: Option<PathBuf>,
}

impl Office {
    /// The office in this directory.
    pub fn new(dir: &Path) -> Self {
        Self { dir: Some(dir.to_owned()) }
    }

    /// An office that writes nothing down.
    pub fn silent() -> Self {
        Self { dir: None }
    }

    /// Logs that something runs.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn note(&self, what: &str) -> Result<(), NodeError> {
        Ok(self.append("journal.txt", &format!("{}\t{what}", std::process::id()))?)
    }

    /// Hands a mail over to the outgoing server, and returns its receipt.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn deliver(&self, key: &str, to: &str, text: &str) -> Result<String, NodeError> {
        self.append("outbox.txt", &format!("{key}\t{to}\t{text}"))?;
        Ok(format!("accepted for {to}"))
    }

    /// How often each thing ran, and in how many processes, in the order of their first time.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn journal(&self) -> io::Result<Vec<(String, usize)>> {
        let Some(dir) = &self.dir else { return Ok(Vec::new()) };
        let text = match std::fs::read_to_string(dir.join("journal.txt")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            other => other?,
        };
        let mut order = Vec::new();
        let mut count: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, what) in text.lines().filter_map(|line| line.split_once('\t')) {
            if !count.contains_key(what) {
                order.push(what);
            }
            *count.entry(what).or_default() += 1;
        }
        Ok(order.into_iter().map(|what| (what.to_owned(), count[what])).collect())
    }

    /// Deletes the files.
    ///
    /// # Errors
    /// A file is there and cannot be removed.
    pub fn clear(&self) -> io::Result<()> {
        let Some(dir) = &self.dir else { return Ok(()) };
        for file in ["journal.txt", "outbox.txt"] {
            match std::fs::remove_file(dir.join(file)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn append(&self, file: &str, line: &str) -> io::Result<()> {
        let Some(dir) = &self.dir else { return Ok(()) };
        writeln!(OpenOptions::new().create(true).append(true).open(dir.join(file))?, "{line}")
    }
}
