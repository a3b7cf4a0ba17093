//! Rooms of the engine and of the server know of each other what their pages say.

use std::fs;
use std::path::{Path, PathBuf};

/// For each room of the engine, those it must not know.
const ENGINE: [(&str, &[&str]); 5] = [
    ("kernel", &["stored", "step", "task", "drive", "watch", "outside"]),
    ("stored", &["task", "drive", "watch", "outside"]),
    ("step", &["outside"]),
    ("task", &["outside"]),
    ("drive", &["outside"]),
];

/// What only the outermost rooms of the server know.
const OUTERMOST: [&str; 4] = ["routes", "auth", "server", "settings"];

/// For each room of the server, those it must not know, besides the outermost.
const SERVER: [(&str, &[&str]); 13] = [
    ("access", &["app", "wire", "events", "queue", "protocol", "crons", "webhooks", "demo"]),
    ("auth", &["wire", "events", "queue", "protocol", "crons", "webhooks", "demo"]),
    ("crons", &["events", "protocol", "webhooks", "demo"]),
    (
        "demo",
        &["app", "error", "store", "wire", "events", "queue", "protocol", "crons", "webhooks"],
    ),
    ("events", &["app", "error", "wire", "queue", "crons", "webhooks", "demo"]),
    ("protocol", &["crons", "webhooks", "demo"]),
    ("queue", &["demo"]),
    ("routes", &["demo"]),
    (
        "store",
        &["app", "error", "wire", "events", "queue", "protocol", "crons", "webhooks", "demo"],
    ),
    (
        "tenant",
        &[
            "app", "error", "store", "access", "wire", "events", "queue", "protocol", "crons",
            "webhooks", "demo",
        ],
    ),
    ("threads", &["events", "protocol", "crons", "webhooks", "demo"]),
    ("webhooks", &["events", "queue", "protocol", "crons", "demo"]),
    ("wire", &["events", "queue", "protocol", "crons", "demo"]),
];

fn sources(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("a room");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

fn in_this_crate(dir: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(dir)
}

/// The files below a directory whose text has one of `words`, each with that word.
fn naming(dir: &Path, words: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for file in sources(dir).iter().filter(|file| !file.ends_with("tests.rs")) {
        let text = fs::read_to_string(file).expect("a file");
        let named = words.iter().filter(|word| text.contains(*word));
        found.extend(named.map(|word| format!("{} names {word}", file.display())));
    }
    found
}

fn paths(prefix: &str, rooms: &[&str]) -> Vec<String> {
    rooms.iter().flat_map(|room| ["::", ";"].map(|end| format!("{prefix}{room}{end}"))).collect()
}

#[test]
fn a_room_of_the_engine_knows_only_what_it_may() {
    let engine = in_this_crate("src/engine");
    for (room, unknown) in ENGINE {
        assert!(sources(&engine.join(room)).len() > 3, "{room} has its files there");
        let found = naming(&engine.join(room), &paths("engine::", unknown));
        assert!(found.is_empty(), "{found:#?}");
    }
}

/// The typed faces are built on the engine, not the other way round.
#[test]
fn the_engine_knows_nothing_that_is_built_on_it() {
    let found = naming(&in_this_crate("src/engine"), &paths("crate::", &["run", "graph", "func"]));
    assert!(found.is_empty(), "{found:#?}");
}

/// What awaits, has a clock or makes ids can be told by its words.
#[test]
fn the_kernel_is_pure() {
    let words = [".await", "async ", "Instant::now", "SystemTime::now", "IdClock"];
    let found = naming(&in_this_crate("src/engine/kernel"), &words.map(str::to_owned));
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_room_of_the_server_knows_only_what_it_may() {
    let server = in_this_crate("../superstep-server/src");
    let rooms = fs::read_dir(&server).expect("the server").map(|entry| entry.expect("an entry"));
    let rooms = rooms.filter(|entry| entry.path().is_dir());
    let mut unlisted: Vec<_> = rooms.map(|room| room.file_name()).collect();
    for (room, unknown) in SERVER {
        unlisted.retain(|name| name != room);
        let mut words = paths("crate::", unknown);
        // The gate in front of an operation is told what kind of operation it is.
        let known = if ["routes", "auth"].contains(&room) { &["routes", "auth"][..] } else { &[] };
        let outermost = OUTERMOST.into_iter().filter(|other| !known.contains(other));
        words.extend(paths("crate::", &outermost.collect::<Vec<_>>()));
        let found = naming(&server.join(room), &words);
        assert!(found.is_empty(), "{found:#?}");
    }
    assert!(unlisted.is_empty(), "rooms of the server that are not listed here: {unlisted:?}");
}

/// The page of a room says what it is for and what it may know.
#[test]
fn every_room_says_what_it_may_know() {
    for (dir, rooms) in [
        ("src/engine", &["drive", "kernel", "outside", "step", "stored", "task", "watch"][..]),
        (
            "../superstep-server/src",
            &[
                "access", "auth", "crons", "demo", "events", "protocol", "queue", "routes",
                "store", "tenant", "threads", "webhooks", "wire",
            ],
        ),
    ] {
        for room in rooms {
            let page = in_this_crate(dir).join(room).join("mod.rs");
            let text = fs::read_to_string(&page).expect("a page");
            let says = text.lines().take_while(|line| line.starts_with("//!"));
            let says = says.collect::<Vec<_>>().join("\n");
            assert!(
                says.contains("nows ") || says.contains("know "),
                "{} does not say what it may know",
                page.display()
            );
        }
    }
}
