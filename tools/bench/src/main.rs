//! Measures superstep beside LangGraph and beside the floor of the machine. `cargo xtask bench` starts it.

mod driver;
mod failure;
mod figures;
mod floor;
mod http;
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

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::failure::Failure;
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
    /// What is measured over HTTP: serves on a port until it is killed.
    Serve {
        who: http::Who,
        #[arg(long)]
        port: u16,
        /// The SQLite file.
        #[arg(long)]
        db: PathBuf,
        /// How many runs are driven at the same time.
        #[arg(long, default_value_t = 10)]
        workers: usize,
    },
}

fn serve(who: http::Who, port: u16, db: &Path, workers: usize) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(http::serve(who, port, db, workers))
}

fn main() -> ExitCode {
    let args = Args::parse();
    let ended = match args.task {
        None => run::run(&args.options),
        Some(Task::Worker { dir, postgres }) => {
            let places = Places { dir, postgres };
            worker::serve(&places, std::io::stdin().lock(), std::io::stdout().lock())
        }
        Some(Task::Serve { who, port, db, workers }) => serve(who, port, &db, workers),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
