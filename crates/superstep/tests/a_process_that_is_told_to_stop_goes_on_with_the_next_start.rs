//! Starts `examples/long_job.rs` as processes of their own, and stops them with real signals.
//!
//! It could break where tests inside one process cannot look: a signal that ends the process at
//! once, a runtime that does not end, a file that is left half written.

#![cfg(unix)]

use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The example as cargo has built it beside the tests, or builds it now if only this test was asked for.
fn program() -> PathBuf {
    let test = std::env::current_exe().expect("a test is a program");
    let profile = test.ancestors().nth(2).expect("tests lie in `deps` of their profile");
    let program = profile.join("examples").join("long_job");
    if !program.exists() {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "-p", "superstep", "--example", "long_job"]);
        assert!(build.status().expect("cargo").success(), "the example builds");
    }
    program
}

struct Job {
    child: Child,
    said: Lines<BufReader<ChildStdout>>,
}

impl Job {
    fn start(file: &Path, pages: u64, pace: u64, grace: u64) -> Self {
        let mut child = Command::new(program())
            .arg(file)
            .args([pages, pace, grace].map(|number| number.to_string()))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the example starts");
        let said = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, said }
    }

    /// Waits until it says this.
    fn says(&mut self, wanted: &str) {
        let mut before = Vec::new();
        for line in &mut self.said {
            let line = line.expect("text");
            if line == wanted {
                return;
            }
            before.push(line);
        }
        panic!("it never said {wanted:?}, but {before:?}");
    }

    fn told_to_stop(&self) {
        let mut kill = Command::new("kill");
        let told = kill.args(["-TERM", &self.child.id().to_string()]).status();
        assert!(told.expect("`kill` is there").success());
    }

    /// Two signals that come before the first is looked at are one.
    fn told_to_stop_until_it_ends(&mut self) {
        while self.child.try_wait().expect("a child can be waited for").is_none() {
            self.told_to_stop();
            std::thread::yield_now();
        }
    }

    /// What else it says until it ends well.
    fn ends(mut self) -> Vec<String> {
        let rest = (&mut self.said).map(|line| line.expect("text")).collect();
        let status = self.child.wait().expect("a child can be waited for");
        assert!(status.success(), "{status}");
        rest
    }
}

fn file(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // A test that failed before may have left something.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    folder.join("book.db")
}

const STOPPED: &str = "stopped by SIGTERM; continues at the next start";

#[test]
fn after_the_superstep_that_was_running() {
    let file = file("after_the_superstep");
    let mut job = Job::start(&file, 9, 400, 60_000);
    job.says("page 2 of 9");
    job.told_to_stop();
    // On a busy machine the signal may come when another page is being read.
    let said = job.ends();
    let read = 1 + said.iter().filter(|line| line.ends_with("is read")).count();
    assert_eq!(said[said.len() - 2..], [format!("page {read} is read"), STOPPED.to_owned()]);
    assert!(read < 9, "it stopped in the middle");

    let job = Job::start(&file, 9, 1, 60_000);
    let mut expected = Vec::new();
    for page in read + 1..=9 {
        expected.push(format!("page {page} of 9"));
        expected.push(format!("page {page} is read"));
    }
    expected.push("the end".to_owned());
    assert_eq!(job.ends(), expected, "no page is read twice");
}

#[test]
fn at_the_end_of_the_grace_if_the_superstep_takes_longer() {
    let file = file("at_the_end_of_the_grace");
    let hour = 3_600_000;
    let mut job = Job::start(&file, 3, hour, 200);
    job.says("page 1 of 3");
    job.told_to_stop();
    assert_eq!(job.ends(), [STOPPED], "a page that takes an hour is given up");

    let job = Job::start(&file, 3, 1, 60_000);
    assert_eq!(
        job.ends()[..2],
        ["page 1 of 3", "page 1 is read"],
        "and read again from its beginning"
    );
}

#[test]
fn at_once_when_it_is_told_twice() {
    let file = file("at_once");
    let hour = 3_600_000;
    let mut job = Job::start(&file, 3, hour, hour);
    job.says("page 1 of 3");
    job.told_to_stop();
    job.told_to_stop_until_it_ends();
    assert_eq!(job.ends(), [STOPPED]);
}
