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
    for args in
        [&["update", "-q"][..], &["install", "-qy", "--no-install-recommends", "postgresql"]]
    {
        let status = Command::new("apt-get")
            .args(args)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .status()
            .map_err(|_| missing("and there is no `apt-get`"))?;
        if !status.success() {
            return Err(missing("and `apt-get` failed"));
        }
    }
    Ok(())
}
