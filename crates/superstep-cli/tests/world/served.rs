//! `superstep serve` as a process.

#![allow(dead_code, reason = "each test file uses some of it")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use serde_json::Value as Json;

/// A server that is killed when it is dropped.
pub(crate) struct Served {
    child: Child,
    pub(crate) url: String,
}

impl Served {
    /// A server on this file, which only clients with the key get into if there is one.
    pub(crate) fn start(db: &Path, api_key: Option<&str>) -> Self {
        let key = api_key.map_or(Vec::new(), |key| vec!["--api-key", key]);
        Self::on(&format!("sqlite:{}", db.display()), &key)
    }

    /// A server on this database, with these arguments.
    pub(crate) fn on(db: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_superstep"));
        command.args(["--db", db, "serve", "--listen", "127.0.0.1:0"]).args(arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the server starts");
        let out = child.stdout.take().expect("its output");
        let first = BufReader::new(out).lines().next().expect("a line").expect("text");
        let url = first.split_whitespace().find(|word| word.starts_with("http://"));
        let url = url.unwrap_or_else(|| panic!("no address in `{first}`")).to_owned();
        Self { child, url }
    }

    /// Tells the server to end, as an operating system does.
    pub(crate) fn tell_to_end(&self) {
        self.signal("-TERM");
    }

    /// Sends a signal, as `kill` names it.
    pub(crate) fn signal(&self, signal: &str) {
        output(Command::new("kill").args([signal, &self.child.id().to_string()]));
    }

    /// Ends the process where it is.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it was there");
        self.child.wait().expect("a status");
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

/// The lines of an answer, as they come, without its head.
pub(crate) fn ask(
    url: &str,
    method: &str,
    path: &str,
    last: Option<&str>,
    body: &str,
) -> impl Iterator<Item = String> + use<> {
    let address = url.strip_prefix("http://").expect("an address");
    let mut stream = TcpStream::connect(address).expect("a server");
    let last = last.map_or_else(String::new, |id| format!("last-event-id: {id}\r\n"));
    // An answer of the older version ends with its connection, and has no chunks.
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nhost: {address}\r\ncontent-type: application/json\r\n{last}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("a request");
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let status = lines.next().expect("a status");
    assert!(status.contains(" 200 "), "{status}");
    lines.skip_while(|line| !line.is_empty()).skip(1)
}

/// An answer that is JSON.
pub(crate) fn json_of(lines: impl Iterator<Item = String>) -> Json {
    let text: String = lines.collect();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
