//! The program, run as a process, and directories to run it in.

#![allow(dead_code, reason = "each test file uses some of it")]

pub(crate) mod server;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value as Json;

/// A directory that goes away with this value.
pub(crate) struct Dir(PathBuf);

impl Dir {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("superstep-cli-{}-{nth}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    pub(crate) fn demo(&self) -> PathBuf {
        self.0.join("demo")
    }

    /// The database of the demo, as `--db` takes it.
    pub(crate) fn demo_db(&self) -> String {
        format!("sqlite:{}", self.demo().join("mail.db").display())
    }

    /// Runs the demo to completion with these answers, or until they run out.
    pub(crate) fn run_demo(&self, answers: &str) -> String {
        let answers = self.file("answers.txt", answers);
        let demo = self.demo();
        let args = ["demo", "--pace", "0", "--dir", text(&demo), "--answers", text(&answers)];
        said(&superstep(&args))
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a path that is text")
}

/// The program with these arguments, and nobody at the terminal.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_superstep"));
    command.args(args).stdin(Stdio::null()).env_remove("SUPERSTEP_DB").env_remove("NO_COLOR");
    command
}

pub(crate) fn superstep(args: &[&str]) -> Output {
    command(args).output().expect("the program runs")
}

/// What a run that went well printed. Nothing that is piped is in colour.
pub(crate) fn said(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout.clone()).expect("text");
    assert!(!text.contains('\u{1b}'), "colours in a pipe: {text}");
    text
}

/// The JSON that a run with `--json` printed.
pub(crate) fn json(output: &Output) -> Json {
    serde_json::from_str(&said(output)).expect("one JSON value")
}

/// The one line that a run that failed printed, and its exit code.
pub(crate) fn failed(output: &Output) -> (String, i32) {
    let errors = String::from_utf8(output.stderr.clone()).expect("text");
    let code = output.status.code().expect("not ended by a signal");
    assert_ne!(code, 0, "it went well");
    assert_eq!(errors.lines().count(), 1, "not one line: {errors}");
    assert!(errors.starts_with("superstep: "), "{errors}");
    (errors.trim_end().to_owned(), code)
}

/// Every command that opens a database and expects it to be one already.
pub(crate) const OPENS: [&[&str]; 12] = [
    &["threads"],
    &["show", "x"],
    &["history", "x"],
    &["diff", "x", "head~1", "head"],
    &["fork", "x", "head~1", "--yes"],
    &["inbox"],
    &["answer", "x", "y"],
    &["prune", "--all", "--yes"],
    &["copy", "x", "y", "--yes"],
    &["delete", "x", "--yes"],
    &["export"],
    &["check"],
];

/// Runs all those commands on a database that cannot be opened, for people and for programs: each fails with one line.
pub(crate) fn none_opens(db: &str, says: &str) {
    for (args, form) in OPENS.iter().flat_map(|args| [(args, None), (args, Some("--json"))]) {
        let line = [&["--db", db][..], args].concat();
        let line: Vec<_> = line.into_iter().chain(form).collect();
        let output = superstep(&line);
        let (said, code) = failed(&output);
        assert!(said.contains(says), "{line:?}: {said}");
        assert!(!said.contains("swordfish"), "the password is shown: {said}");
        assert_eq!(code, 1, "{line:?}");
        assert!(output.stdout.is_empty(), "{line:?} said something before it failed");
    }
}

/// The content of every file in a directory, and of those inside.
pub(crate) fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).expect("a directory").flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => drop(found.insert(path.clone(), std::fs::read(&path).expect("a file"))),
        }
    }
    found
}

/// A database file written by LangGraph; `None` if there is no Python that has it, which is said.
pub(crate) fn python_db(dir: &Dir) -> Option<String> {
    let file = dir.path().join("python.db");
    python(text(&file), &[])?;
    Some(format!("sqlite:{}", file.display()))
}

/// What LangGraph says that makes threads in a database, or continues with one of them; `None` if
/// there is no Python that has it.
pub(crate) fn python(database: &str, task: &[&str]) -> Option<String> {
    python_script("threads.py", database, task)
}

/// What one of the programs in `tests/python` says; `None` if there is no Python that has
/// LangGraph.
pub(crate) fn python_script(script: &str, database: &str, task: &[&str]) -> Option<String> {
    let Ok(python) = std::env::var("SUPERSTEP_TEST_PYTHON") else {
        println!("NOT RUN: set SUPERSTEP_TEST_PYTHON to a Python that has LangGraph");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python").join(script);
    let output = Command::new(python).arg(script).arg(database).args(task).output();
    Some(said(&output.expect("Python")))
}
