//! `check` finds what is damaged in a database, names it, and ends with exit code 1. Other threads can still be looked at.

mod world;

use rusqlite::Connection;
use world::{Dir, said, superstep};

#[test]
fn each_kind_of_damage() {
    for (damage, says) in [
        ("UPDATE checkpoints SET checkpoint = x'c1' WHERE rowid = 3", "cannot be read"),
        ("UPDATE checkpoints SET metadata = 'no JSON' WHERE rowid = 3", "cannot be read"),
        (
            "UPDATE checkpoints SET parent_checkpoint_id = '1f1e1343-b0b3-6f28-8001-f615d72d0c55' WHERE rowid = 3",
            "which is not stored",
        ),
        (
            "UPDATE checkpoints SET checkpoint_id = 'x' || checkpoint_id WHERE rowid = 3",
            "is not an id",
        ),
        ("DELETE FROM checkpoints WHERE rowid = 3", "but the checkpoint itself is missing"),
        ("UPDATE writes SET type = 'pickle' WHERE channel = 'facts'", "`pickle`"),
        (
            "UPDATE writes SET value = x'91' WHERE channel = '__interrupt__'",
            "`__interrupt__` cannot be read",
        ),
    ] {
        let dir = Dir::new();
        dir.run_demo("");
        let db = dir.demo_db();
        said(&superstep(&["--db", &db, "copy", "mail-1", "well", "--yes"]));
        let file = Connection::open(db.trim_start_matches("sqlite:")).expect("a file");
        assert!(file.execute(damage, []).expect("SQL") > 0, "{damage}");
        drop(file);
        let output = superstep(&["--db", &db, "check"]);
        let text = String::from_utf8(output.stdout).expect("text");
        assert_eq!(output.status.code(), Some(1), "{damage}: {text}");
        assert!(text.contains(says) && text.contains("thread `mail-1`"), "{damage}: {text}");
        let json = superstep(&["--db", &db, "check", "--json"]);
        assert_eq!(json.status.code(), Some(1));
        let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
        assert!(json["problems"].as_array().is_some_and(|all| !all.is_empty()));
        // The other thread is none the worse for it, unless the damage was done to its rows, too.
        assert!(said(&superstep(&["--db", &db, "threads"])).contains("well"), "{damage}");
    }
}
