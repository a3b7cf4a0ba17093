//! A Python that has the reference, for hand-offs between the two engines.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the cases were recorded with.
const PACKAGES: [&str; 4] = [
    "langgraph==1.2.20",
    "langgraph-checkpoint==4.3.1",
    "langgraph-checkpoint-sqlite==3.1.2",
    "langgraph-checkpoint-postgres==3.2.0",
];

/// The Python that `SUPERSTEP_TEST_PYTHON` names, or one in `target/` that is set up now if it does
/// not exist.
pub(crate) fn python(root: &Path) -> Result<PathBuf, String> {
    if let Some(python) = std::env::var_os("SUPERSTEP_TEST_PYTHON") {
        return Ok(python.into());
    }
    let venv = root.join("target/reference");
    let python = venv.join("bin/python");
    if !has_reference(&python) {
        println!("== setting up the reference in {}", venv.display());
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        let install = ["-m", "pip", "install", "--quiet", "psycopg[binary]"];
        run(Command::new(&python).args(install).args(PACKAGES))?;
    }
    Ok(python)
}

fn has_reference(python: &Path) -> bool {
    let import = "import langgraph.checkpoint.sqlite.aio, langgraph.checkpoint.postgres.aio";
    let tried = Command::new(python).args(["-c", import]).output();
    tried.is_ok_and(|output| output.status.success())
}

pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let shown = format!("{command:?}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{shown} ended with {status}")),
        Err(error) => Err(format!("cannot run {shown}: {error}")),
    }
}
