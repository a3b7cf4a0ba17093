//! The import is told to stop by SIGTERM: the chunk that is being loaded is finished and recorded, and no chunk is loaded twice.

#![cfg(unix)]

mod world;

use world::{Program, dir};

const IMPORT: &str = env!("CARGO_BIN_EXE_import");

#[test]
fn after_the_call_that_was_running() {
    let dir = dir("terminated_function");
    let file = dir.join("import.db");
    let file = file.to_str().expect("a path that is text");

    let mut first = Program::start(IMPORT, &[file, "1000"]);
    assert_eq!(first.line(), "loading chunk 1");
    first.terminate();
    let mut printed = vec!["loading chunk 1".to_owned()];
    printed.extend(first.rest());
    let stopped = printed.pop().expect("a line");
    assert_eq!(stopped, "stopped by SIGTERM; the next start continues");

    let second = Program::start(IMPORT, &[file, "0"]).rest();
    let (rows, loaded) = second.split_last().expect("lines");
    assert_eq!(rows, "1500 rows");
    printed.extend_from_slice(loaded);
    let expected: Vec<_> = (1..=5)
        .flat_map(|chunk| [format!("loading chunk {chunk}"), format!("loaded chunk {chunk}")])
        .collect();
    assert_eq!(printed, expected, "every chunk is loaded once, in order");
}
