//! Measures superstep beside LangGraph and beside the floor of the machine. `cargo xtask bench` starts it.

mod driver;
mod failure;
mod figures;
mod floor;
mod instructions;
mod plan;
mod progress;
mod protocol;
mod report;
mod run;
mod server;
mod setting;
mod worker;
mod workloads;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::setting::Places;

/// Measures superstep beside LangGraph and beside the floor of the machine.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    task: Option<Task>,
    #[command(flatten)]
    options: run::Options,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Our side alone: answers requests on the standard input, one JSON object a line.
    Worker {
        /// Where files are made.
        #[arg(long)]
        dir: PathBuf,
        /// A database of its own.
        #[arg(long)]
        postgres: Option<String>,
    },
}

fn main() -> ExitCode {
    let args = Args::parse();
    let ended = match args.task {
        None => run::run(&args.options),
        Some(Task::Worker { dir, postgres }) => {
            let places = Places { dir, postgres };
            worker::serve(&places, std::io::stdin().lock(), std::io::stdout().lock())
        }
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
