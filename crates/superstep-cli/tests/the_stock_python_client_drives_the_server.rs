//! Shows that LangGraph's own Python client works against `superstep serve` without a change, on SQLite, and that what it did is
//! there after a restart.
//!
//! Needs a Python that has LangGraph's client, named by `SUPERSTEP_TEST_PYTHON`. Without it nothing is tested, and the output
//! says so.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(db: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_superstep"))
            .args(["--db", &format!("sqlite:{}", db.display()), "serve", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let out = child.stdout.take().expect("its output");
        let first = BufReader::new(out).lines().next().expect("a line").expect("text");
        let url = first.split_whitespace().find(|word| word.starts_with("http://"));
        let url = url.unwrap_or_else(|| panic!("no address in `{first}`")).to_owned();
        Self { child, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn python(script: &Path, url: &str) -> Option<String> {
    let python = std::env::var("SUPERSTEP_TEST_PYTHON").ok()?;
    let ran = Command::new(python).arg(script).arg(url).output().expect("Python runs");
    let out = String::from_utf8_lossy(&ran.stdout).into_owned();
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{out}\n{errors}");
    Some(out)
}

#[test]
fn the_stock_python_client_drives_the_server() {
    if std::env::var("SUPERSTEP_TEST_PYTHON").is_err() {
        println!("NOT RUN: set SUPERSTEP_TEST_PYTHON to a Python that has LangGraph");
        return;
    }
    let dir: PathBuf = std::env::temp_dir().join(format!("superstep-serve-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    let db = dir.join("server.db");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/client.py");
    for round in ["a new database", "the same database after a kill"] {
        let server = Server::start(&db);
        let out = python(&script, &server.url).expect("Python was named");
        let shown = out.split_whitespace().next().and_then(|number| number.parse::<u32>().ok());
        assert!(shown.is_some_and(|shown| shown >= 60), "{round}: {out}");
    }
    std::fs::remove_dir_all(&dir).expect("it can be removed");
}
