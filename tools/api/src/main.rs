//! Lists the public items of each library in `docs/api`, or compares what is there with the source.
//!
//! rustdoc describes a crate as JSON only if it is told that unstable options are fine. Telling the compiler the same would build
//! all dependencies again, so this program stands in for rustdoc and passes the word on to it alone.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The libraries whose interface is kept.
const LIBRARIES: [&str; 9] = [
    "superstep",
    "superstep-agent",
    "superstep-checkpoint",
    "superstep-contract",
    "superstep-encryption",
    "superstep-postgres",
    "superstep-server",
    "superstep-sqlite",
    "superstep-studio",
];

/// The version of rustdoc's JSON that `public-api` reads, as `Cargo.toml` names it.
const FORMAT: &str = "\"format_version\":57";

/// Names the real rustdoc to this program when it stands in for it.
const RUSTDOC: &str = "SUPERSTEP_API_RUSTDOC";

/// How many lines of difference are shown of each library.
const SHOWN_MAX: usize = 40;

fn main() -> ExitCode {
    if let Some(rustdoc) = std::env::var_os(RUSTDOC) {
        return stand_in_for(Path::new(&rustdoc));
    }
    let write = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [flag] if flag == "--write" => true,
        other => {
            eprintln!("unknown arguments: {}; there is only `--write`", other.join(" "));
            return ExitCode::from(2);
        }
    };
    match run(write) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!(
                "the public interface has changed: look at it, and store it with `cargo xtask api`"
            );
            ExitCode::FAILURE
        }
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn stand_in_for(rustdoc: &Path) -> ExitCode {
    let mut command = Command::new(rustdoc);
    command.args(std::env::args_os().skip(1)).env("RUSTC_BOOTSTRAP", "1").env_remove(RUSTDOC);
    match command.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cannot run `{}`: {error}", rustdoc.display());
            ExitCode::FAILURE
        }
    }
}

/// Whether every list is as it was, or was written.
fn run(write: bool) -> Result<bool, String> {
    let folder = root().join("docs/api");
    let mut same = true;
    describe()?;
    for library in LIBRARIES {
        let json = target().join("doc").join(format!("{}.json", library.replace('-', "_")));
        let text = std::fs::read_to_string(&json).map_err(|error| at(&json, &error))?;
        if !text.contains(FORMAT) {
            println!(
                "== NOT RUN: comparison of the public interface, which knows the rustdoc of Rust 1.95 and not the one here"
            );
            return Ok(true);
        }
        let found = list(&json)?;
        let file = folder.join(format!("{library}.txt"));
        if write {
            std::fs::create_dir_all(&folder).map_err(|error| at(&folder, &error))?;
            std::fs::write(&file, &found).map_err(|error| at(&file, &error))?;
        } else {
            let kept = std::fs::read_to_string(&file).map_err(|error| at(&file, &error))?;
            if kept != found {
                same = false;
                println!("{library}:\n{}", difference(&kept, &found));
            }
        }
    }
    Ok(same)
}

/// Has rustdoc describe all crates of the workspace in one go: each alone would be built with other features of its dependencies,
/// and these once more.
fn describe() -> Result<(), String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let rustdoc = std::env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into());
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .current_dir(root())
        .env("RUSTDOC", own)
        .env(RUSTDOC, rustdoc)
        .env("RUSTDOCFLAGS", "-Zunstable-options --output-format json --cap-lints allow")
        .args(["doc", "--quiet", "--workspace", "--all-features", "--no-deps", "--lib"]);
    let status = command.status().map_err(|error| format!("cannot run cargo: {error}"))?;
    if !status.success() {
        return Err("rustdoc cannot describe the libraries".to_owned());
    }
    Ok(())
}

/// The public items of a library, a line each.
fn list(json: &Path) -> Result<String, String> {
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build()
        .map_err(|error| at(json, &error))?;
    let lines: Vec<String> = api.items().map(ToString::to_string).collect();
    Ok(without_known_methods(&lines))
}

/// Leaves out what traits of the standard library and of serde bring along: that a type implements them says it.
fn without_known_methods(lines: &[String]) -> String {
    let mut known = false;
    let mut text = String::new();
    for line in lines {
        if line.starts_with("impl") {
            known = line.split_once(" for ").is_some_and(|(before, _)| {
                let name = before.split_whitespace().last().unwrap_or(before);
                ["core::", "alloc::", "std::", "serde"].iter().any(|from| name.starts_with(from))
            });
        } else if known && is_of_type(line) {
            continue;
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Whether a function, type or constant belongs to a type and not to a module.
fn is_of_type(line: &str) -> bool {
    let mut depth = 0_usize;
    let plain: String = line
        .chars()
        .filter(|&one| {
            match one {
                '<' => depth += 1,
                '>' => depth = depth.saturating_sub(1),
                _ => return depth == 0,
            }
            false
        })
        .collect();
    let path = plain.split(['(', ' ']).find(|word| word.contains("::")).unwrap_or_default();
    let mut owners = path.rsplit("::").skip(1);
    owners.next().is_some_and(|owner| owner.starts_with(char::is_uppercase))
}

/// The lines that only one of two lists has. They are sorted alike, so order is no difference.
fn difference(kept: &str, found: &str) -> String {
    let missing = |from: &str, other: &str, sign: char| -> Vec<String> {
        let other: std::collections::HashSet<&str> = other.lines().collect();
        let lines = from.lines().filter(|line| !other.contains(line));
        lines.map(|line| format!("{sign} {line}")).collect()
    };
    let mut lines = missing(kept, found, '-');
    lines.extend(missing(found, kept, '+'));
    let more = lines.len().saturating_sub(SHOWN_MAX);
    lines.truncate(SHOWN_MAX);
    if more > 0 {
        lines.push(format!("… and {more} more"));
    }
    lines.join("\n")
}

fn at(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).expect("this crate stands two folders below the workspace")
}

/// Where cargo builds.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_what_went_and_what_came() {
        assert_eq!(difference("a\nb\n", "b\nc\n"), "- a\n+ c");
        let many: String = (0..50).map(|n| format!("{n}\n")).collect();
        assert!(difference("", &many).ends_with("… and 10 more"));
    }

    #[test]
    fn methods_of_known_traits_are_left_out() {
        let lines = [
            "pub struct a::B",
            "impl a::B",
            "pub fn a::B::new() -> Self",
            "impl core::clone::Clone for a::B",
            "pub fn a::B::clone(&self) -> a::B",
            "impl<T> core::iter::traits::iterator::Iterator for a::C<T>",
            "pub type a::C<T>::Item = T",
            "impl a::Trait for a::B",
            "pub fn a::B::of_ours(&self)",
            "impl core::marker::Copy for a::B",
            "pub fn a::free()",
        ];
        let kept = without_known_methods(&lines.map(str::to_owned));
        let left_out = ["pub fn a::B::clone(&self) -> a::B", "pub type a::C<T>::Item = T"];
        let wanted: Vec<_> = lines.iter().filter(|line| !left_out.contains(line)).collect();
        assert_eq!(
            kept.lines().collect::<Vec<_>>(),
            wanted.into_iter().copied().collect::<Vec<_>>()
        );
    }

    /// A library that nobody added here could change unseen.
    #[test]
    fn every_library_that_others_depend_on_is_listed() {
        let folders = std::fs::read_dir(root().join("crates")).expect("there are crates");
        for folder in folders {
            let name = folder.expect("a folder").file_name().into_string().expect("a name");
            // A program, macros, and what is not for others.
            let other = ["superstep-cli", "superstep-macros", "superstep-names"];
            assert!(LIBRARIES.contains(&&*name) || other.contains(&&*name), "{name}");
        }
    }
}
