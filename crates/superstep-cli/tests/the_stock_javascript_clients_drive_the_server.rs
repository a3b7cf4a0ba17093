//! Shows that LangGraph's own JavaScript clients, of two lines of versions, work against `superstep serve` without a change: each
//! method of the SDK, and its hook `useStream` in a page.
//!
//! Needs Node, and a directory into which `javascript/package.json` is installed, named by `SUPERSTEP_TEST_JAVASCRIPT`. Without it
//! nothing is tested, and the output says so.

use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "world/served.rs"]
mod served;

/// The directory with the clients, and our scripts in it: Node looks for packages where a script stands.
fn installed() -> Option<PathBuf> {
    let Ok(dir) = std::env::var("SUPERSTEP_TEST_JAVASCRIPT") else {
        println!(
            "NOT RUN: set SUPERSTEP_TEST_JAVASCRIPT to a directory with LangGraph's JavaScript clients"
        );
        return None;
    };
    let dir = PathBuf::from(dir);
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/javascript");
    for file in std::fs::read_dir(own).expect("scripts") {
        let file = file.expect("a script").path();
        if file.extension().is_some_and(|extension| extension == "mjs") {
            let name = file.file_name().expect("a name");
            std::fs::copy(&file, dir.join(name)).expect("a copy");
        }
    }
    Some(dir)
}

/// Runs each script with the packages it is for. It must show at least so much.
fn drive(what: &str, scripts: &[(&str, &str, u32)]) {
    let Some(clients) = installed() else { return };
    let dir = served::directory(what);
    let server = served::Served::start(&dir.join("server.db"), None);
    for (script, package, least) in scripts {
        let mut command = Command::new("node");
        command.current_dir(&clients).args([script, &*server.url, package]);
        let out = served::output(&mut command);
        let shown = out.split_whitespace().next().and_then(|number| number.parse::<u32>().ok());
        assert!(shown.is_some_and(|shown| shown >= *least), "{script} {package}: {out}");
    }
    std::fs::remove_dir_all(&dir).expect("it can be removed");
}

#[test]
fn the_sdk_with_each_of_its_methods() {
    drive("javascript-sdk", &[("client.mjs", "sdk-1", 65), ("client.mjs", "sdk-2", 62)]);
}

#[test]
fn the_hook_of_the_sdk_in_a_page() {
    drive("javascript-hook", &[("hook.mjs", "sdk-1", 25), ("hook.mjs", "sdk-2", 25)]);
}
