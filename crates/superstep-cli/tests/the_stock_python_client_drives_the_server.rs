//! Shows that LangGraph's own Python client works against `superstep serve` without a change, on SQLite, and that what it did is
//! there after a restart.
//!
//! Needs a Python that has LangGraph's client, named by `SUPERSTEP_TEST_PYTHON`. Without it nothing is tested, and the output
//! says so.

use std::path::Path;
use std::process::Command;

#[path = "world/served.rs"]
mod served;

#[test]
fn the_stock_python_client_drives_the_server() {
    let Ok(python) = std::env::var("SUPERSTEP_TEST_PYTHON") else {
        println!("NOT RUN: set SUPERSTEP_TEST_PYTHON to a Python that has LangGraph");
        return;
    };
    let dir = served::directory("python");
    let db = dir.join("server.db");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/client.py");
    for round in ["a new database", "the same database after a kill"] {
        let server = served::Served::start(&db, None);
        let out = served::output(Command::new(&python).arg(&script).arg(&server.url));
        let shown = out.split_whitespace().next().and_then(|number| number.parse::<u32>().ok());
        assert!(shown.is_some_and(|shown| shown >= 60), "{round}: {out}");
    }
    std::fs::remove_dir_all(&dir).expect("it can be removed");
}
