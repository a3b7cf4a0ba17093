//! The command line of superstep, and its demo.
//!
//! `superstep demo` runs the [graph of the demo](demo::graph), which is also an example. The other
//! commands work on the threads of any database in LangGraph's format, without their graph.
//! Commands that read change nothing: no file, no table, no row.

mod args;
mod base64;
mod commands;
mod db;
pub mod demo;
mod look;
mod out;
mod readable;
mod time;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;

use args::Args;
use out::{Fail, Out};

/// Runs the command line with these arguments, the first of which is the name of the program.
pub async fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match Args::try_parse_from(args) {
        Ok(args) => args,
        Err(error)
            if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) =>
        {
            // A closed output is not an error of `--help`.
            drop(error.print());
            return ExitCode::SUCCESS;
        }
        Err(error) => return tell(&Fail::usage(one_line(&error))),
    };
    let out = Out::new(args.json);
    match commands::run(args, out).await {
        Ok(code) => code,
        Err(fail) => tell(&fail),
    }
}

fn tell(fail: &Fail) -> ExitCode {
    if fail.code != 0 {
        eprintln!("superstep: {fail}");
    }
    ExitCode::from(fail.code)
}

/// The error about the arguments, without the usage text.
fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let said = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let said: Vec<_> =
        said.filter(|line| !line.is_empty() && !line.starts_with("For more")).collect();
    let said = said.join(" ");
    let said = said.strip_prefix("error: ").unwrap_or(&said);
    format!("{said}; see `superstep --help`")
}
