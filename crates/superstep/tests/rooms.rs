//! Rooms of the engine know of each other what their pages say.

use std::fs;
use std::path::{Path, PathBuf};

/// For each room, those it must not know.
const UNKNOWN: [(&str, &[&str]); 5] = [
    ("kernel", &["stored", "step", "task", "drive", "watch", "outside"]),
    ("stored", &["task", "drive", "watch", "outside"]),
    ("step", &["outside"]),
    ("task", &["outside"]),
    ("drive", &["outside"]),
];

fn sources(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("a room");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

#[test]
fn a_room_knows_only_what_it_may() {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine");
    let mut found = Vec::new();
    for (room, unknown) in UNKNOWN {
        let files = sources(&engine.join(room));
        assert!(files.len() > 3, "{room}: {files:?}");
        for file in files {
            let text = fs::read_to_string(&file).expect("a file");
            let named = unknown.iter().filter(|other| text.contains(&format!("engine::{other}::")));
            found.extend(named.map(|other| format!("{} names {other}", file.display())));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// The typed faces are built on the engine, not the other way round.
#[test]
fn the_engine_knows_nothing_that_is_built_on_it() {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine");
    let mut found = Vec::new();
    for file in sources(&engine) {
        let text = fs::read_to_string(&file).expect("a file");
        let named = ["run", "graph", "func"].into_iter();
        let named = named.filter(|room| text.contains(&format!("crate::{room}::")));
        found.extend(named.map(|room| format!("{} names {room}", file.display())));
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// What awaits, has a clock or makes ids can be told by its words.
#[test]
fn the_kernel_is_pure() {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine");
    for file in sources(&engine.join("kernel")) {
        let text = fs::read_to_string(&file).expect("a file");
        for word in [".await", "async ", "Instant::now", "SystemTime::now", "IdClock"] {
            assert!(!text.contains(word), "{} has `{word}`", file.display());
        }
    }
}
