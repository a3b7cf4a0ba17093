//! Commands that look leave no file, no table and no byte behind, and what cannot be looked at is said in one line.

mod world;

use std::path::Path;

use world::{Dir, command, failed, files, none_opens, python_db, said, superstep, text};

const LOOKS: [&[&str]; 9] = [
    &["threads"],
    &["threads", "--json"],
    &["show", "mail-1"],
    &["history", "mail-1"],
    &["diff", "mail-1", "head~1", "head"],
    &["inbox"],
    &["export"],
    &["check"],
    &["prune", "--all"],
];

fn with_db<'a>(db: &'a str, args: &[&'a str]) -> Vec<&'a str> {
    [&["--db", db][..], args].concat()
}

#[test]
fn at_a_database_of_ours() {
    let dir = Dir::new();
    dir.run_demo("");
    let db = dir.demo_db();
    // The demo's process just ended; the first to look puts what SQLite left beside the file into it.
    said(&superstep(&with_db(&db, &["threads"])));
    let before = files(dir.path());
    for args in LOOKS {
        said(&superstep(&with_db(&db, args)));
        assert!(files(dir.path()) == before, "{args:?} changed something");
    }
    said(&superstep(&with_db(&db, &["delete", "mail-1"])));
    said(&superstep(&with_db(&db, &["copy", "mail-1", "mail-2"])));
    assert!(files(dir.path()) == before, "without --yes nothing is changed");
}

/// LangGraph's file is not in WAL mode and has no table of ours. It stays that way.
#[test]
fn at_a_database_of_python() {
    let dir = Dir::new();
    let Some(db) = python_db(&dir) else { return };
    let before = files(dir.path());
    for args in [
        &["threads"][..],
        &["show", "waits"],
        &["history", "done"],
        &["inbox"],
        &["check"],
        &["export"],
    ] {
        said(&superstep(&with_db(&db, args)));
        assert!(files(dir.path()) == before, "{args:?} changed something");
    }
}

#[test]
fn at_what_is_not_there_or_no_database() {
    let dir = Dir::new();
    let missing = format!("sqlite:{}", dir.path().join("missing.db").display());
    let noise =
        format!("sqlite:{}", dir.file("noise.db", &"this is no database. ".repeat(100)).display());
    let empty = format!("sqlite:{}", dir.file("empty.db", "").display());
    let unreachable = "postgres://nobody:swordfish@127.0.0.1:1/nothing";
    let before = files(dir.path());
    for (db, says) in [
        (missing.as_str(), "there is no file"),
        (&noise, "no SQLite database"),
        (&empty, "superstep migrate"),
        (unreachable, "PostgreSQL"),
    ] {
        none_opens(db, says);
    }
    for db in [&*noise, unreachable] {
        let (line, code) = failed(&superstep(&with_db(db, &["migrate"])));
        assert!(!line.contains("swordfish") && code == 1, "{line}");
    }
    assert!(files(dir.path()) == before);
    // `migrate` is the command that makes things.
    said(&superstep(&with_db(&missing, &["migrate"])));
    assert!(Path::new(missing.trim_start_matches("sqlite:")).exists());
    assert_eq!(said(&superstep(&with_db(&missing, &["threads"]))).trim(), "no threads");
}

#[test]
fn with_arguments_that_make_no_sense() {
    let dir = Dir::new();
    dir.run_demo("approve");
    let db = dir.demo_db();
    for (args, says) in [
        (&["bogus"][..], "bogus"),
        (&["--json"], "has no JSON"),
        (&["threads"], "no database was named"),
        (&["--db", "mysql://x:secret@y", "threads"], "sqlite:FILE"),
        (&["--db", &db, "threads", "--limit", "many"], "many"),
        (&["--db", &db, "threads", "--after", "x"], "--after"),
        (&["--db", &db, "prune"], "--all"),
        (&["--db", &db, "prune", "--all", "--older-than", "soon"], "30d"),
        (&["--db", &db, "show"], "THREAD"),
    ] {
        let (line, code) = failed(&superstep(args));
        assert!(line.contains(says) && !line.contains("secret"), "{line}");
        assert_eq!(code, 2, "{line}");
    }
    for (args, says) in [
        (&["--db", &db, "show", "nobody"][..], "no thread `nobody`"),
        (&["--db", &db, "history", "nobody"], "no thread `nobody`"),
        (&["--db", &db, "delete", "nobody", "--yes"], "no thread `nobody`"),
        (&["--db", &db, "export", "nobody"], "no thread `nobody`"),
        (&["--db", &db, "answer", "nobody", "1"], "no thread `nobody`"),
        (&["--db", &db, "diff", "mail-1", "head", "head~99"], "head~99"),
        (&["--db", &db, "import", "nowhere.jsonl"], "nowhere.jsonl"),
    ] {
        let (line, code) = failed(&superstep(args));
        assert!(line.contains(says), "{line}");
        assert_eq!(code, 1, "{line}");
    }
}

#[test]
fn the_database_may_come_from_the_environment_and_help_needs_none() {
    let dir = Dir::new();
    dir.run_demo("approve");
    let output =
        command(&["threads"]).env("SUPERSTEP_DB", dir.demo_db()).output().expect("it runs");
    assert!(said(&output).contains("mail-1"));
    let help = said(&superstep(&["--help"]));
    assert!(help.contains("Examples:") && help.contains("inbox"), "{help}");
    for shell in ["bash", "zsh", "fish"] {
        assert!(said(&superstep(&["completions", shell])).contains("superstep"));
    }
    let (line, _) =
        failed(&superstep(&["--db", &format!("sqlite:{}", text(dir.path())), "threads"]));
    assert!(line.contains("superstep: "), "{line}");
}
