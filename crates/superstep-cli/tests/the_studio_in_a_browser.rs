//! The studio as people use it: a real browser, and servers that are processes. Each scenario begins with what a person wants, and
//! fails on any error in the console, any violation of the page's policy, and anything that runs out of a value.
//!
//! Needs Node with the packages of the studio in `SUPERSTEP_TEST_STUDIO`, and chromium in `SUPERSTEP_TEST_BROWSER`. Without them
//! nothing is tested, and the output says so.

use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "world/large.rs"]
mod large;
#[path = "world/served.rs"]
mod served;

/// The directory with the packages, into which the scenarios are copied: Node looks for packages where a script stands.
fn scenarios(packages: &str) -> PathBuf {
    let place = Path::new(packages).join("scenarios");
    std::fs::create_dir_all(&place).expect("a directory");
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/studio");
    for file in std::fs::read_dir(own).expect("scenarios").flatten() {
        std::fs::copy(file.path(), place.join(file.file_name())).expect("a copy");
    }
    place
}

/// Runs a file of scenarios, of which there must be at least so many. Other servers are named by their address.
fn play(file: &str, least: usize, other: impl FnOnce(&Path) -> Option<large::Large>) {
    let tools = (std::env::var("SUPERSTEP_TEST_STUDIO"), std::env::var("SUPERSTEP_TEST_BROWSER"));
    let (Ok(packages), Ok(browser)) = tools else {
        println!(
            "NOT RUN: set SUPERSTEP_TEST_STUDIO and SUPERSTEP_TEST_BROWSER; `cargo xtask test` does"
        );
        return;
    };
    let place = scenarios(&packages);
    let dir = served::directory(&format!("studio-{file}"));
    let mut command = Command::new("node");
    let other = other(&dir);
    if let Some(other) = &other {
        command.env("OTHER_SERVER", &other.url);
    }
    command.current_dir(place).arg(format!("{file}.mjs"));
    command.args([env!("CARGO_BIN_EXE_superstep"), &browser]).arg(&dir);
    let out = served::output(&mut command);
    println!("{out}");
    let played = out.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(played >= least, "{played} scenarios\n{out}");
    drop(other);
    std::fs::remove_dir_all(&dir).expect("it can be removed");
}

fn none(_: &Path) -> Option<large::Large> {
    None
}

#[test]
fn questions_are_answered() {
    play("answering", 11, none);
}

#[test]
fn threads_are_looked_into() {
    play("looking", 19, none);
}

#[test]
fn runs_are_started_and_everything_around_them() {
    play("trying", 10, none);
}

#[test]
fn nothing_breaks_the_page() {
    play("enduring", 18, none);
}

/// The way that the guide describes, as a newcomer goes it. With `SUPERSTEP_PICTURES` it writes the pictures of the guide there.
#[test]
fn the_way_in_the_guide_is_gone() {
    play("pictures", 3, none);
}

#[test]
fn large_things_stay_usable() {
    play("large", 5, |dir| Some(large::Large::start(dir)));
}
