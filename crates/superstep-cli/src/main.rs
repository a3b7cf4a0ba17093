//! The program `superstep`.

use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    superstep_cli::run(std::env::args_os()).await
}
