//! What others have made and the server is tried with: schemathesis, and LangGraph's clients for JavaScript.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::reference::run;

/// What the server is measured beside.
const STOCK_SERVER: [&str; 3] =
    ["langgraph-cli[inmem]", "langgraph==1.2.20", "langgraph-api==0.16.7"];

const SCHEMATHESIS: &str = "schemathesis==4.32.5";

/// The program that `SUPERSTEP_TEST_SCHEMATHESIS` names, or one in `target/` that is set up now if it is not there.
pub(crate) fn schemathesis(root: &Path) -> Result<PathBuf, String> {
    if let Some(program) = std::env::var_os("SUPERSTEP_TEST_SCHEMATHESIS") {
        return Ok(program.into());
    }
    let venv = root.join("target/schemathesis");
    let program = venv.join("bin/schemathesis");
    let there = Command::new(&program).arg("--version").output();
    if !there.is_ok_and(|output| output.status.success()) {
        println!("== setting up schemathesis in {}", venv.display());
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        let install = ["-m", "pip", "install", "--quiet", SCHEMATHESIS];
        run(Command::new(venv.join("bin/python")).args(install))?;
    }
    Ok(program)
}

/// The virtual environment that `SUPERSTEP_BENCH_LANGGRAPH` names, or one in `target/` with the stock server.
pub(crate) fn langgraph(root: &Path) -> Result<PathBuf, String> {
    if let Some(venv) = std::env::var_os("SUPERSTEP_BENCH_LANGGRAPH") {
        return Ok(venv.into());
    }
    let venv = root.join("target/langgraph-dev");
    let there = Command::new(venv.join("bin/langgraph")).arg("--version").output();
    if !there.is_ok_and(|output| output.status.success()) {
        println!("== setting up the stock server of the reference in {}", venv.display());
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        let install = ["-m", "pip", "install", "--quiet"];
        run(Command::new(venv.join("bin/python")).args(install).args(STOCK_SERVER))?;
    }
    Ok(venv)
}

/// The directory that `SUPERSTEP_TEST_JAVASCRIPT` names, or one in `target/` into which the clients are installed now.
pub(crate) fn javascript(root: &Path) -> Result<PathBuf, String> {
    if let Some(dir) = std::env::var_os("SUPERSTEP_TEST_JAVASCRIPT") {
        return Ok(dir.into());
    }
    let dir = root.join("target/clients-js");
    println!("== setting up LangGraph's clients for JavaScript in {}", dir.display());
    install(&root.join("crates/superstep-cli/tests/javascript"), &dir)?;
    Ok(dir)
}

/// The directory that `SUPERSTEP_TEST_STUDIO` names, or one in `target/` into which the packages of the studio are installed now.
pub(crate) fn studio(root: &Path) -> Result<PathBuf, String> {
    if let Some(dir) = std::env::var_os("SUPERSTEP_TEST_STUDIO") {
        return Ok(dir.into());
    }
    let dir = root.join("target/studio");
    println!("== setting up the packages of the studio in {}", dir.display());
    install(&root.join("crates/superstep-studio/web"), &dir)?;
    Ok(dir)
}

/// Installs the packages that `own` names into a directory.
fn install(own: &Path, dir: &Path) -> Result<(), String> {
    std::fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    for file in ["package.json", "package-lock.json"] {
        let copied = std::fs::copy(own.join(file), dir.join(file));
        copied.map_err(|error| format!("{file} cannot be copied: {error}"))?;
    }
    run(Command::new("node").arg("--version").stdout(std::process::Stdio::null()))?;
    let install = ["ci", "--silent", "--no-audit", "--no-fund", "--prefer-offline"];
    run(Command::new("npm").args(install).current_dir(dir))
}

/// A browser for the tests of the studio: the one that `SUPERSTEP_TEST_BROWSER` names, or Debian's, which is installed if it is not
/// there and this can be done.
pub(crate) fn browser() -> Result<PathBuf, String> {
    if let Some(browser) = std::env::var_os("SUPERSTEP_TEST_BROWSER") {
        return Ok(browser.into());
    }
    let browser = PathBuf::from("/usr/bin/chromium");
    if !browser.exists() {
        println!("== installing chromium");
        run(Command::new("apt-get").args(["update", "-q"]))?;
        let packages = ["chromium", "fonts-dejavu-core"];
        run(Command::new("apt-get")
            .args(["install", "-q", "-y", "--no-install-recommends"])
            .args(packages)
            .env("DEBIAN_FRONTEND", "noninteractive"))?;
    }
    Ok(browser)
}
