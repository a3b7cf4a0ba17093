//! The programs as processes, and directories for their files.

#![allow(dead_code, reason = "each test uses some of it")]

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A directory that is empty when the test begins.
pub(crate) fn dir(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // An earlier run may have left something.
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("a directory for the test");
    dir
}

/// A program that runs, and what it prints.
pub(crate) struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    pub(crate) fn start(program: &str, args: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let stdin = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, stdin, lines }
    }

    /// The next line it prints.
    pub(crate) fn line(&mut self) -> String {
        self.lines.next().expect("another line").expect("text")
    }

    /// Writes a line to its standard input.
    pub(crate) fn answer(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("a pipe");
        writeln!(stdin, "{line}").expect("the program reads");
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("the program runs");
        self.child.wait().expect("a child can be waited for");
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        let mut kill = Command::new("kill");
        let status = kill.args(["-TERM", &self.child.id().to_string()]).status();
        assert!(status.expect("`kill` is there").success());
    }

    /// What else it prints until it ends without an error.
    pub(crate) fn rest(mut self) -> Vec<String> {
        drop(self.stdin.take());
        let rest = (&mut self.lines).map(|line| line.expect("text")).collect();
        let status = self.child.wait().expect("a child can be waited for");
        assert!(status.success(), "{status}");
        rest
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // A test that fails leaves no process behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
