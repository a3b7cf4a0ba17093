//! Shows that the calls in the guide's chapter on serving graphs work as they are printed, with curl, Python and JavaScript. A
//! reader tries them first.
//!
//! Each needs its program; without one it is not tried, and the output says so.

use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "world/served.rs"]
mod served;

/// The only program in this language under the heading of the calls, for this server.
fn printed(language: &str, url: &str) -> String {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/src/serving.md");
    let guide = std::fs::read_to_string(guide).expect("the guide");
    let calls = guide.split("\n## ").find(|part| part.starts_with("Calls\n")).expect("the calls");
    let program = calls.split(&format!("```{language}\n")).nth(1).expect("a program");
    let program = program.split("```").next().expect("its end");
    assert!(program.contains("http://127.0.0.1:2024"), "{program}");
    program.replace("http://127.0.0.1:2024", url)
}

/// The program, as a file in this directory.
fn written(dir: &Path, name: &str, program: String) -> PathBuf {
    let file = dir.join(name);
    std::fs::write(&file, program).expect("a file");
    file
}

#[test]
fn the_calls_in_the_guide_work() {
    let dir = served::directory("guide");
    let server = served::Served::start(&dir.join("server.db"), None);
    if Command::new("curl").arg("--version").output().is_ok() {
        let shell = written(&dir, "calls.sh", printed("sh", &server.url));
        let out = served::output(Command::new("sh").arg("-eu").arg(shell));
        assert!(out.contains("approve?") && out.contains("publish:yes"), "{out}");
    } else {
        println!("NOT RUN: the calls with curl, which is not there");
    }
    if let Ok(python) = std::env::var("SUPERSTEP_TEST_PYTHON") {
        let script = written(&dir, "calls.py", printed("python", &server.url));
        let out = served::output(Command::new(python).arg(script));
        assert!(out.contains("approve?") && out.contains("publish:yes"), "{out}");
    } else {
        println!("NOT RUN: set SUPERSTEP_TEST_PYTHON to a Python that has LangGraph");
    }
    if let Ok(clients) = std::env::var("SUPERSTEP_TEST_JAVASCRIPT") {
        let program = printed("js", &server.url).replace("@langchain/langgraph-sdk", "sdk-1");
        let script = written(Path::new(&clients), "calls.mjs", program);
        let out = served::output(Command::new("node").arg(script));
        assert!(out.contains("approve?") && out.contains("publish:yes"), "{out}");
    } else {
        println!("NOT RUN: set SUPERSTEP_TEST_JAVASCRIPT to a directory with LangGraph's clients");
    }
    std::fs::remove_dir_all(&dir).expect("it can be removed");
}
