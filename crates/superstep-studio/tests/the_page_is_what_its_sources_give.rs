//! What is committed as the built page is, byte for byte, what its sources give. Otherwise a change of a source would not reach users,
//! or a change of the built page could not be reviewed.
//!
//! Needs Node, and a directory into which `web/package.json` is installed, named by `SUPERSTEP_TEST_STUDIO`. Without it nothing is
//! tested, and the output says so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).expect("a directory");
        for entry in fs::read_dir(from).expect("a directory").flatten() {
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::copy(from, to).expect("a copy");
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = [output.stdout.as_slice(), &output.stderr].concat();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&said));
}

#[test]
fn a_fresh_build_has_the_same_bytes() {
    let Ok(packages) = std::env::var("SUPERSTEP_TEST_STUDIO") else {
        println!(
            "NOT RUN: set SUPERSTEP_TEST_STUDIO to a directory with the packages of the studio"
        );
        return;
    };
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Beside the packages, where Node looks for them, and apart from builds that others make there.
    let place = PathBuf::from(packages).join("compared");
    let _ = fs::remove_dir_all(&place);
    for name in ["src", "build.mjs", "tsconfig.json", "package.json"] {
        copy(&own.join("web").join(name), &place.join(name));
    }
    run(Command::new("npx").args(["--no-install", "tsc", "--noEmit"]).current_dir(&place));
    run(Command::new("node").args(["build.mjs", "fresh"]).current_dir(&place));
    let names = |dir: &Path| {
        let entries = fs::read_dir(dir).expect("a directory").flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        names.sort();
        names
    };
    let (built, fresh) = (own.join("dist"), place.join("fresh"));
    assert_eq!(names(&built), names(&fresh), "run `cargo xtask studio`");
    for name in names(&built) {
        let same = fs::read(built.join(&name)).ok() == fs::read(fresh.join(&name)).ok();
        assert!(
            same,
            "dist/{} is not what the sources give; run `cargo xtask studio`",
            name.display()
        );
    }
}
