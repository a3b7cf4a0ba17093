//! Finding the programs of the server, or installing them.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where distributions of the Debian family put each version.
const DISTRIBUTION: &str = "/usr/lib/postgresql";

/// The folder with `initdb` and `postgres`, after installing them if that is possible here.
pub(crate) fn find_or_install() -> io::Result<PathBuf> {
    if let Some(found) = find() {
        return Ok(found);
    }
    install()?;
    find().ok_or_else(|| {
        let message = format!(
            "the package `postgresql` is installed, but neither PATH nor {DISTRIBUTION}/*/bin has `initdb`"
        );
        io::Error::new(io::ErrorKind::NotFound, message)
    })
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(distribution()).find(|folder| complete(folder))
}

/// The programs look for each other beside themselves, so both must be in one folder.
fn complete(folder: &Path) -> bool {
    ["initdb", "postgres"].iter().all(|program| folder.join(program).is_file())
}

/// The folders of the distribution, the newest version first.
fn distribution() -> Vec<PathBuf> {
    let versions = std::fs::read_dir(DISTRIBUTION).into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.split('.').next()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    versions.into_iter().map(|(_, folder)| folder).collect()
}

fn install() -> io::Result<()> {
    let missing = |why: &str| {
        let message = format!(
            "no PostgreSQL server is installed ({why}); install the package `postgresql`, or set {} to the URL of one",
            crate::VARIABLE
        );
        io::Error::new(io::ErrorKind::NotFound, message)
    };
    if !crate::cluster::is_root()? {
        return Err(missing("and only root can install one"));
    }
    let done = apt_get(&["update", "-q"])
        .and_then(|updated| Ok(updated && apt_get(&install_package("postgresql"))?));
    match done {
        Ok(true) => Ok(()),
        Ok(false) => Err(missing("and `apt-get` failed")),
        Err(_) => Err(missing("and there is no `apt-get`")),
    }
}

/// Adds the extension `vector` to the server of the distribution if it does not exist and that is
/// possible here. Says whether the extension is there now.
pub(crate) fn add_pgvector() -> io::Result<bool> {
    let programs = find_or_install()?;
    let version = programs.strip_prefix(DISTRIBUTION).ok().and_then(|rest| rest.iter().next());
    let Some(version) = version.and_then(|version| version.to_str()) else { return Ok(false) };
    let control = format!("/usr/share/postgresql/{version}/extension/vector.control");
    if !Path::new(&control).exists() && crate::cluster::is_root()? {
        // Whether it works is seen by what is there afterwards.
        let _ = apt_get(&["update", "-q"]);
        let _ = apt_get(&install_package(&format!("postgresql-{version}-pgvector")));
    }
    Ok(Path::new(&control).exists())
}

fn install_package(name: &str) -> [&str; 4] {
    ["install", "-qy", "--no-install-recommends", name]
}

fn apt_get(args: &[&str]) -> io::Result<bool> {
    let mut command = Command::new("apt-get");
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
    Ok(command.status()?.success())
}
