//! The demo is run as a user runs it: started, killed in the middle of a superstep, started again, asked and answered. What had
//! finished does not run again, and one mail leaves.

mod world;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use world::{Dir, command, failed, said, superstep, text};

/// Runs the demo until it prints a line with this in it, and kills it there.
fn killed_at(dir: &Path, line: &str) -> String {
    let args = ["demo", "--pace", "150", "--dir", text(dir)];
    let mut child = command(&args).stdout(Stdio::piped()).spawn().expect("the program runs");
    let mut seen = String::new();
    let mut lines = BufReader::new(child.stdout.take().expect("output")).lines();
    let found = lines.any(|said| {
        let said = said.expect("text");
        seen.push_str(&said);
        seen.push('\n');
        said.contains(line)
    });
    // SIGKILL: nothing in the process gets to tidy up.
    child.kill().expect("killed");
    child.wait().expect("it has ended");
    assert!(found, "no line with `{line}` in {seen}");
    seen
}

fn count(journal: &str, what: &str) -> usize {
    journal.lines().filter(|line| line.ends_with(&format!("\t{what}"))).count()
}

#[test]
fn killed_and_started_again() {
    let dir = Dir::new();
    let first = killed_at(&dir.demo(), "page 5 of");
    assert!(first.contains("try `kill -9 "), "{first}");
    assert!(first.contains("done  orders"), "{first}");
    let second = dir.run_demo("edit: Sorry, Ada!\n");
    assert!(
        second.contains("orders: had finished when the process ended, does not run again"),
        "{second}"
    );
    assert!(second.contains("handbook: had not finished, runs again"), "{second}");
    assert!(second.contains("handbook: its recorded call, not made again"), "{second}");
    assert!(second.contains("sent: accepted for ada@example.org"), "{second}");
    let journal = std::fs::read_to_string(dir.demo().join("journal.txt")).expect("a journal");
    for once in [
        "read",
        "classify (recorded call)",
        "orders",
        "download (recorded call)",
        "draft",
        "deliver (recorded call)",
    ] {
        assert_eq!(count(&journal, once), 1, "{once} in {journal}");
    }
    assert_eq!(count(&journal, "handbook"), 2, "{journal}");
    let outbox = std::fs::read_to_string(dir.demo().join("outbox.txt")).expect("an outbox");
    assert_eq!(outbox.lines().count(), 1);
    assert!(outbox.contains("Sorry, Ada!"));
    let third = dir.run_demo("");
    assert!(third.contains("this thread is done"), "{third}");
    let fresh = said(&superstep(&["demo", "--fresh", "--pace", "0", "--dir", text(&dir.demo())]));
    assert!(fresh.contains("superstep 1") && fresh.contains("the question stays open"), "{fresh}");
}

#[test]
fn asked_answered_refused_and_rejected() {
    let dir = Dir::new();
    let open = dir.run_demo("");
    assert!(
        open.contains("may this be sent?") && open.contains("the question stays open"),
        "{open}"
    );
    let refused = dir.run_demo("\"perhaps\"\nreject\n");
    assert!(
        refused.contains("refused: the answer does not fit the schema of question"),
        "{refused}"
    );
    assert!(refused.contains("rejected: nothing was sent"), "{refused}");
    assert!(!dir.demo().join("outbox.txt").exists());
}

/// The answer is left by another process, and the next start of the demo takes it up.
#[test]
fn an_answer_from_outside_is_taken_up() {
    let dir = Dir::new();
    dir.run_demo("");
    let db = dir.demo_db();
    let (line, code) = failed(&superstep(&["--db", &db, "answer", "mail-1", "perhaps"]));
    assert!(line.contains("expected one of \"approve\", \"reject\""), "{line}");
    assert_eq!(code, 1);
    let told = said(&superstep(&["--db", &db, "answer", "mail-1", "approve"]));
    assert!(told.contains("is answered with \"approve\""), "{told}");
    let (line, _) = failed(&superstep(&["--db", &db, "answer", "mail-1", "approve"]));
    assert!(line.contains("no question is open"), "{line}");
    assert!(said(&superstep(&["--db", &db, "inbox"])).contains("no open questions"));
    let ended = dir.run_demo("");
    assert!(ended.contains("sent: accepted for"), "{ended}");
}

#[test]
fn a_directory_that_cannot_be_used_is_named() {
    let dir = Dir::new();
    let file = dir.file("taken", "");
    let (line, _) = failed(&superstep(&["demo", "--dir", text(&file)]));
    assert!(line.contains("taken"), "{line}");
    let (line, _) =
        failed(&superstep(&["demo", "--answers", "nowhere.txt", "--dir", text(&dir.demo())]));
    assert!(line.contains("nowhere.txt"), "{line}");
    assert!(!dir.demo().exists(), "nothing is made before the arguments are known to be good");
}
