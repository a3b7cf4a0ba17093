//! Runs conformance cases and says how they differ from what the reference did.
//!
//! ```text
//! conformance [--db DB] PATH...            runs the cases in these files and directories
//! conformance [--db DB] --trace FILE       runs one case and prints its normalised trace
//! conformance --serve                      runs parts of cases on request, for hand-offs
//! conformance --judge FILE CARRY.json      compares what several engines did together
//! conformance --handoff PYTHON PATH...     hands cases to the reference and back, on SQLite
//! conformance --fuzz PYTHON [OPTIONS]      makes random cases, records them, and runs them
//! ```
//!
//! `DB` is `memory`, `sqlite` (a fresh file for each case), or `sqlite:FILE` (the same, with files named after it that stay).
//!
//! The format of cases is described in `conformance/FORMAT.md`. A case that we answer better on purpose is listed in
//! `docs/divergences.md`; it is then counted apart, and it is a failure if it does not differ any more.

mod body;
mod build;
mod db;
mod divergences;
mod expr;
mod fuzz;
mod handoff;
mod normalise;
mod script;
mod trace;
mod world;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value as Json;

use crate::db::Db;
use crate::divergences::Divergences;
use crate::handoff::Splits;
use crate::script::Script;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("conformance: {problem}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &[String]) -> Result<bool, String> {
    let (db, arguments) = match arguments {
        [flag, db, rest @ ..] if flag == "--db" => (Db::parse(db)?, rest),
        all => (Db::Memory, all),
    };
    match arguments {
        [flag, file] if flag == "--trace" => print_trace(&db, Path::new(file)),
        [flag] if flag == "--serve" => handoff::serve(),
        [flag, file, carry] if flag == "--judge" => {
            handoff::judge(Path::new(file), Path::new(carry))
        }
        [flag, python, one, paths @ ..] if flag == "--handoff" && one == "--one-split" => {
            handoff::hand_all(&db, python, Splits::One, &or_all(paths))
        }
        [flag, python, paths @ ..] if flag == "--handoff" => {
            handoff::hand_all(&db, python, Splits::Every, &or_all(paths))
        }
        [flag, python, options @ ..] if flag == "--fuzz" => fuzz::fuzz(python, options),
        [flag, ..] if flag.starts_with("--") => Err(format!("`{flag}` is not known here")),
        paths => run_all(&db, &or_all(paths)),
    }
}

/// The cases that were named, or those of the repository.
fn or_all(paths: &[String]) -> Vec<String> {
    if paths.is_empty() { vec!["conformance/cases".to_owned()] } else { paths.to_vec() }
}

/// How a case went.
enum Verdict {
    Pass,
    Differs(String),
    Broken(String),
}

fn run_all(db: &Db, paths: &[String]) -> Result<bool, String> {
    let divergences = Divergences::load(Path::new("docs/divergences.md"))?;
    let (mut passed, mut diverging, mut failed) = (0, 0, 0);
    for file in case_files(paths)? {
        let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        match (verdict(db, &file), divergences.reason(&name)) {
            (Verdict::Pass, None) => {
                passed += 1;
                println!("PASS {name}");
            }
            (Verdict::Pass, Some(reason)) => {
                failed += 1;
                println!("FAIL {name}");
                println!("     listed as a divergence ({reason}), but it does not differ");
            }
            (Verdict::Differs(_), Some(reason)) => {
                diverging += 1;
                println!("DIVERGES {name} {reason}");
            }
            (Verdict::Differs(how) | Verdict::Broken(how), _) => {
                failed += 1;
                println!("FAIL {name}");
                println!("     {how}");
            }
        }
    }
    println!("{diverging} diverge as documented");
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0)
}

fn case_files(paths: &[String]) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for path in paths.iter().map(PathBuf::from) {
        if !path.is_dir() {
            files.push(path);
            continue;
        }
        let entries = std::fs::read_dir(&path)
            .map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
        let inside = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut inside: Vec<_> =
            inside.filter(|file| file.extension().is_some_and(|ext| ext == "json")).collect();
        inside.sort();
        files.append(&mut inside);
    }
    Ok(files)
}

fn read_case(file: &Path) -> Result<Json, String> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("cannot read `{}`: {error}", file.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("`{}` is no case: {error}", file.display()))
}

fn verdict(db: &Db, file: &Path) -> Verdict {
    let case = match read_case(file) {
        Ok(case) => case,
        Err(problem) => return Verdict::Broken(problem),
    };
    match run_case(db, &case) {
        Ok(entries) => difference(&case, entries).map_or(Verdict::Pass, Verdict::Differs),
        Err(problem) => Verdict::Broken(problem),
    }
}

/// Where what calls gave differs from the stored trace first.
fn difference(case: &Json, entries: Vec<Json>) -> Option<String> {
    let want = normalise::comparable(&case["trace"]);
    let got = normalise::comparable(&normalised(case, entries));
    normalise::first_difference(&want, &got, "trace")
}

fn normalised(case: &Json, entries: Vec<Json>) -> Json {
    normalise::normalise(entries, &case["trace"], case["ids"] == "pinned")
}

/// What all calls of a case gave.
fn run_case(db: &Db, case: &Json) -> Result<Vec<Json>, String> {
    let (checkpointer, _scratch) = db.fresh(case["name"].as_str().unwrap_or("case"))?;
    let mut script = Script::new(case, checkpointer);
    runtime()?.block_on(script.run(0..usize::MAX))?;
    Ok(script.into_entries())
}

/// Time is virtual, so that waiting costs nothing.
fn runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| format!("there is no runtime: {error}"))
}

fn print_trace(db: &Db, file: &Path) -> Result<bool, String> {
    let case = read_case(file)?;
    let trace = normalised(&case, run_case(db, &case)?);
    let text = serde_json::to_string_pretty(&trace).map_err(|error| error.to_string())?;
    println!("{text}");
    Ok(true)
}
