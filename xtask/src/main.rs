//! The tasks of this workspace. `cargo xtask help` lists them.

mod args;
mod reference;
mod stage;

use std::process::ExitCode;

use args::Task;

fn main() -> ExitCode {
    match args::parse(std::env::args().skip(1)) {
        Ok(Task::Help) => {
            print!("{}", args::HELP);
            ExitCode::SUCCESS
        }
        Ok(Task::Test) => stage::run(&stage::test()),
        Ok(Task::Conformance(args)) => stage::run(&[stage::conformance(args)]),
        Ok(Task::Handoff(cases)) => match reference::python(stage::root()) {
            Ok(python) => stage::run(&[stage::handoff(&python, cases)]),
            Err(problem) => {
                eprintln!("there is no reference to hand cases to: {problem}");
                ExitCode::FAILURE
            }
        },
        Err(mistake) => {
            eprintln!("{mistake}\n\n{}", args::HELP);
            ExitCode::from(2)
        }
    }
}
