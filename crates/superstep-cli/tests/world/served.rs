//! `superstep serve` as a process.

#![allow(dead_code, reason = "each test file uses some of it")]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// A server that is killed when it is dropped.
pub(crate) struct Served {
    child: Child,
    pub(crate) url: String,
}

impl Served {
    /// A server on this file, which only clients with the key get into if there is one.
    pub(crate) fn start(db: &Path, api_key: Option<&str>) -> Self {
        let mut command = Self::command(&format!("sqlite:{}", db.display()));
        if let Some(key) = api_key {
            command.args(["--api-key", key]);
        }
        Self::spawn(command)
    }

    /// A server on this database.
    pub(crate) fn start_on(db: &str) -> Self {
        Self::spawn(Self::command(db))
    }

    fn command(db: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_superstep"));
        command.args(["--db", db, "serve", "--listen", "127.0.0.1:0"]);
        command
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the server starts");
        let out = child.stdout.take().expect("its output");
        let first = BufReader::new(out).lines().next().expect("a line").expect("text");
        let url = first.split_whitespace().find(|word| word.starts_with("http://"));
        let url = url.unwrap_or_else(|| panic!("no address in `{first}`")).to_owned();
        Self { child, url }
    }

    /// Tells the server to end, as an operating system does.
    pub(crate) fn tell_to_end(&self) {
        output(Command::new("kill").args(["-TERM", &self.child.id().to_string()]));
    }

    /// Waits until the process has ended by itself.
    pub(crate) fn ended(mut self) -> ExitStatus {
        self.child.wait().expect("a status")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A new directory for the databases of a test.
pub(crate) fn directory(what: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("superstep-{what}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    dir
}

/// What a program printed, which must have gone well.
pub(crate) fn output(command: &mut Command) -> String {
    let ran = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let out = String::from_utf8_lossy(&ran.stdout).into_owned();
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{command:?}\n{out}\n{errors}");
    out
}
