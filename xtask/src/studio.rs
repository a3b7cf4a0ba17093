//! Builds the page of the studio from its sources.

use std::path::Path;
use std::process::Command;

use crate::clients;
use crate::reference::run;

/// Writes `dist/` anew. The sources are built where the packages are installed: Node looks for them beside the sources.
pub(crate) fn build(root: &Path) -> Result<(), String> {
    let own = root.join("crates/superstep-studio");
    let place = clients::studio(root)?;
    let sources = place.join("src");
    if sources.exists() {
        std::fs::remove_dir_all(&sources)
            .map_err(|error| format!("{}: {error}", sources.display()))?;
    }
    for name in ["src", "build.mjs", "tsconfig.json"] {
        copy(&own.join("web").join(name), &place.join(name))?;
    }
    run(Command::new("npx").args(["--no-install", "tsc", "--noEmit"]).current_dir(&place))?;
    run(Command::new("node").arg("build.mjs").arg(own.join("dist")).current_dir(&place))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{} cannot be copied: {error}", from.display());
    if !from.is_dir() {
        return std::fs::copy(from, to).map(drop).map_err(failed);
    }
    std::fs::create_dir_all(to).map_err(failed)?;
    for entry in std::fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
