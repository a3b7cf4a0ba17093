//! The tasks of this workspace. `cargo xtask help` lists them.

mod args;
mod clients;
mod reference;
mod stage;
mod studio;

use std::process::ExitCode;

use args::Task;

/// Adds what needs the reference, if it can be had.
fn with_reference(stages: Vec<stage::Stage>) -> Vec<stage::Stage> {
    let python = match reference::python(stage::root()) {
        Ok(python) => python,
        Err(problem) => {
            println!(
                "== NOT RUN: hand-offs, random cases and comparisons with the reference, which needs Python 3.10 or later: {problem}"
            );
            return stages;
        }
    };
    let name = python.display().to_string();
    let mut stages: Vec<_> =
        stages.into_iter().map(|stage| stage.env("SUPERSTEP_TEST_PYTHON", name.clone())).collect();
    let one = ["--one-split".to_owned()];
    stages.extend(
        ["sqlite", "postgres"]
            .map(|db| stage::built("conformance", stage::handoff(&python, db, &one))),
    );
    stages.extend(stage::short_fuzz(&python).map(|stage| stage::built("conformance", stage)));
    stages
}

/// Adds what the server is tried with, if it can be had.
fn with_clients(mut stages: Vec<stage::Stage>) -> Vec<stage::Stage> {
    let root = stage::root();
    let tools = [
        (
            "SUPERSTEP_TEST_SCHEMATHESIS",
            clients::schemathesis(root),
            "requests made from the OpenAPI document, which need Python 3.10 or later",
        ),
        (
            "SUPERSTEP_TEST_JAVASCRIPT",
            clients::javascript(root),
            "LangGraph's clients for JavaScript, which need Node 20 or later with npm",
        ),
        (
            "SUPERSTEP_TEST_STUDIO",
            clients::studio(root),
            "the studio, which needs Node 20 or later with npm",
        ),
        (
            "SUPERSTEP_TEST_BROWSER",
            clients::browser(),
            "the studio in a browser, which needs chromium",
        ),
    ];
    for (variable, tool, what) in tools {
        match tool {
            Ok(place) => {
                let place = place.display().to_string();
                let with = |stage: stage::Stage| stage.env(variable, place.clone());
                stages = stages.into_iter().map(with).collect();
            }
            Err(problem) => println!("== NOT RUN: {what}: {problem}"),
        }
    }
    stages
}

/// The bench, with the reference if it can be had.
fn bench(args: Vec<String>) -> stage::Stage {
    let of_server = args.iter().any(|arg| arg == "--server");
    let stage = stage::bench(args);
    if of_server {
        return match clients::langgraph(stage::root()) {
            Ok(venv) => stage.env("SUPERSTEP_BENCH_LANGGRAPH", venv.display().to_string()),
            Err(problem) => {
                println!(
                    "== NOT MEASURED: the stock server, which needs Python 3.11 or later: {problem}"
                );
                stage
            }
        };
    }
    if !stage.compares() {
        return stage;
    }
    match reference::python(stage::root()) {
        Ok(python) => stage.env("SUPERSTEP_TEST_PYTHON", python.display().to_string()),
        Err(problem) => {
            println!("== NOT MEASURED: the reference, which needs Python 3.10 or later: {problem}");
            stage
        }
    }
}

fn main() -> ExitCode {
    match args::parse(std::env::args().skip(1)) {
        Ok(Task::Help) => {
            print!("{}", args::HELP);
            ExitCode::SUCCESS
        }
        Ok(Task::Api) => stage::run(&[stage::api(vec!["--write".to_owned()])]),
        Ok(Task::Deny) => stage::run(&stage::deny()),
        Ok(Task::Guide) => stage::run(&stage::guide()),
        Ok(Task::Studio) => match studio::build(stage::root()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(problem) => {
                eprintln!("the studio cannot be built: {problem}");
                ExitCode::FAILURE
            }
        },
        Ok(Task::Test) => stage::run(&with_reference(with_clients(stage::test()))),
        Ok(Task::Conformance(args)) => stage::run(&[stage::conformance(args)]),
        Ok(Task::Handoff(cases)) => match reference::python(stage::root()) {
            Ok(python) => {
                stage::run(&["sqlite", "postgres"].map(|db| stage::handoff(&python, db, &cases)))
            }
            Err(problem) => {
                eprintln!("there is no reference to hand cases to: {problem}");
                ExitCode::FAILURE
            }
        },
        Ok(Task::Fuzz(args)) => match reference::python(stage::root()) {
            Ok(python) => stage::run(&[stage::fuzz(&python, &args)]),
            Err(problem) => {
                eprintln!("there is no reference to record cases with: {problem}");
                ExitCode::FAILURE
            }
        },
        Ok(Task::Kills(kills)) => stage::run(&[stage::kills(&kills)]),
        Ok(Task::Bench(args)) => stage::run(&[bench(args)]),
        Err(mistake) => {
            eprintln!("{mistake}\n\n{}", args::HELP);
            ExitCode::from(2)
        }
    }
}
