//! The whole: databases, workers, rows, and what is printed and written.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::driver::{Effort, Worker, measure, measure_once};
use crate::failure::Failure;
use crate::instructions::instructions;
use crate::plan::{Wanted, cells};
use crate::progress::Progress;
use crate::protocol::Checkpointer;
use crate::report;
use crate::server::Server;

/// What to measure, and with what.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Less of everything: under two minutes.
    #[arg(long)]
    quick: bool,
    /// Only rows whose line contains this, such as `loop` or `sqlite sync`; may be given several times.
    #[arg(long, value_name = "PART")]
    only: Vec<String>,
    /// Only these checkpointers.
    #[arg(long, value_delimiter = ',', value_enum, default_values = ["none", "memory", "sqlite", "postgres"])]
    checkpointers: Vec<Checkpointer>,
    /// A Python that has LangGraph; without one, only our side and the floor are measured.
    #[arg(long, env = "SUPERSTEP_TEST_PYTHON")]
    python: Option<PathBuf>,
    /// A PostgreSQL server whose user may create databases.
    #[arg(long, env = "SUPERSTEP_TEST_POSTGRES")]
    postgres: Option<String>,
    /// Where files are made and results are written.
    #[arg(long, default_value = "target/bench")]
    dir: PathBuf,
    /// Count instructions of the hot path instead, and compare them with what is recorded.
    #[arg(long)]
    instructions: bool,
    /// Measure the server over HTTP instead, beside the stock server of the reference.
    #[arg(long)]
    server: bool,
    /// Record the counts.
    #[arg(long, requires = "instructions")]
    record: bool,
}

impl Options {
    fn effort(&self) -> Effort {
        if self.quick {
            Effort { time: Duration::from_millis(500), rounds_min: 1, rounds_max: 5 }
        } else {
            Effort { time: Duration::from_secs(4), rounds_min: 2, rounds_max: 15 }
        }
    }

    /// Where databases are while they are measured.
    fn files(&self) -> PathBuf {
        self.dir.join("files")
    }

    /// Without a server there is nothing to measure on it.
    fn checkpointers(&self) -> Vec<Checkpointer> {
        let there = |checkpointer: &Checkpointer| {
            *checkpointer != Checkpointer::Postgres || self.postgres.is_some()
        };
        self.checkpointers.iter().copied().filter(there).collect()
    }
}

/// Measures, prints and writes.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if options.instructions {
        return instructions(&options.dir, options.record);
    }
    if options.server {
        return crate::http::compare(&options.dir, options.quick);
    }
    compare(options)
}

fn compare(options: &Options) -> Result<(), Failure> {
    let checkpointers = options.checkpointers();
    let wanted =
        Wanted { quick: options.quick, checkpointers: &checkpointers, only: &options.only };
    let cells = cells(&wanted);
    if cells.is_empty() {
        return Err("nothing has that name; `--only loop` measures the loop".into());
    }
    let files = options.files();
    if files.exists() {
        std::fs::remove_dir_all(&files)?;
    }
    std::fs::create_dir_all(&files)?;
    let server = Server::of(
        options.postgres.as_deref().filter(|_| checkpointers.contains(&Checkpointer::Postgres)),
    )?;
    let mut ours = Worker::start("our worker", our_worker(options, &server)?)?;
    let mut theirs = match &options.python {
        Some(python) => {
            Some(Worker::start("LangGraph's worker", their_worker(python, options, &server))?)
        }
        None => None,
    };
    let progress = Progress::new(cells.len());
    let mut rows = Vec::new();
    for (done, cell) in cells.iter().enumerate() {
        progress.at(done, &format!("{} {}", cell.title(), cell.place()));
        rows.push(if cell.workload == "held" {
            let mut fresh = Worker::start("our worker", our_worker(options, &server)?)?;
            measure_once(cell, &mut fresh)?
        } else {
            measure(cell, &mut ours, theirs.as_mut(), options.effort())?
        });
    }
    progress.end();
    drop((ours, theirs));
    std::fs::remove_dir_all(&files)?;
    let conditions = conditions(options, &server);
    print!("{}", report::table(&rows));
    for line in report::notes(&rows).iter().chain(&conditions) {
        println!("- {line}");
    }
    write(&options.dir, "bench.json", &format!("{:#}\n", report::json(&rows, &conditions)))?;
    write(&options.dir, "bench.svg", &report::chart(&rows))
}

fn write(dir: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let file = dir.join(name);
    std::fs::write(&file, text)
        .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    println!("- written: {}", file.display());
    Ok(())
}

fn our_worker(options: &Options, server: &Server) -> Result<Command, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("worker").arg("--dir").arg(options.files());
    if let Some(url) = server.url("ours") {
        command.args(["--postgres", &url]);
    }
    Ok(command)
}

fn their_worker(python: &Path, options: &Options, server: &Server) -> Command {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/reference.py");
    let mut command = Command::new(python);
    command.arg(program).arg("--dir").arg(options.files());
    if let Some(url) = server.url("theirs") {
        command.args(["--postgres", &url]);
    }
    command
}

/// What one has to know to read the table.
fn conditions(options: &Options, server: &Server) -> Vec<String> {
    let mut lines = vec![
        "least time of the rounds, which alternate between the sides; ratio = theirs / ours"
            .to_owned(),
        "SQLite: journal_mode = WAL, synchronous = FULL, on both sides and in the floor; under \
         `async`, ours and the floor do not wait for the disk, LangGraph's background thread does"
            .to_owned(),
    ];
    lines.extend(
        server.conditions().map(|said| format!("PostgreSQL, the same server for all: {said}")),
    );
    if options.checkpointers.contains(&Checkpointer::Postgres) && options.postgres.is_none() {
        lines.push("PostgreSQL: not measured, no server was named".to_owned());
    }
    if options.python.is_none() {
        lines.push("LangGraph: not measured, no Python was named".to_owned());
    }
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    lines.push(format!("{cores} cores, {}", std::env::consts::ARCH));
    lines
}
