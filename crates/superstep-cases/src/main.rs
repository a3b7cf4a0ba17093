//! Runs conformance cases and says how they differ from what the reference did.
//!
//! ```text
//! conformance PATH...          runs the cases in these files and directories
//! conformance --trace FILE     runs one case and prints its normalised trace
//! ```
//!
//! The format of cases is described in `conformance/FORMAT.md`. A case that we answer better on purpose is listed in
//! `docs/divergences.md`; it is then counted apart, and it is a failure if it does not differ any more.

mod body;
mod build;
mod divergences;
mod expr;
mod normalise;
mod script;
mod trace;
mod world;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value as Json;

use crate::divergences::Divergences;
use crate::script::Script;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match &arguments[..] {
        [flag, file] if flag == "--trace" => print_trace(Path::new(file)),
        [] => Err("give case files or directories of them".to_owned()),
        paths => run_all(paths),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("conformance: {problem}");
            ExitCode::from(2)
        }
    }
}

/// How a case went.
enum Verdict {
    Pass,
    Differs(String),
    Broken(String),
}

fn run_all(paths: &[String]) -> Result<bool, String> {
    let divergences = Divergences::load(Path::new("docs/divergences.md"))?;
    let (mut passed, mut diverging, mut failed) = (0, 0, 0);
    for file in case_files(paths)? {
        let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        match (verdict(&file), divergences.reason(&name)) {
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

fn verdict(file: &Path) -> Verdict {
    let case = match read_case(file) {
        Ok(case) => case,
        Err(problem) => return Verdict::Broken(problem),
    };
    match run_case(&case) {
        Ok(got) => {
            let want = normalise::comparable(&case["trace"]);
            match normalise::first_difference(&want, &normalise::comparable(&got), "trace") {
                None => Verdict::Pass,
                Some(difference) => Verdict::Differs(difference),
            }
        }
        Err(problem) => Verdict::Broken(problem),
    }
}

/// The normalised trace of a case. Time is virtual, so that waiting costs nothing.
fn run_case(case: &Json) -> Result<Json, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| format!("there is no runtime: {error}"))?;
    let entries = runtime.block_on(Script::new(case).run())?;
    let pinned = case["ids"] == "pinned";
    Ok(normalise::normalise(entries, &case["trace"], pinned))
}

fn print_trace(file: &Path) -> Result<bool, String> {
    let trace = run_case(&read_case(file)?)?;
    let text = serde_json::to_string_pretty(&trace).map_err(|error| error.to_string())?;
    println!("{text}");
    Ok(true)
}
