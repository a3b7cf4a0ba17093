//! Where a workload runs: its checkpointer, and the clock that knows when what is measured begins.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use superstep::checkpoint::{AnyCheckpointer, MemorySaver};
use superstep::state::State;
use superstep::{CompiledGraph, IntoInput, Outcome, Run, Thread};
use superstep_postgres::{Options, PostgresSaver};
use superstep_sqlite::SqliteSaver;

use crate::failure::Failure;
use crate::floor::Mark;
use crate::protocol::{Checkpointer, Request};
use crate::workloads;

/// Where databases are.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// A folder for files.
    pub(crate) dir: PathBuf,
    /// A database of our own.
    pub(crate) postgres: Option<String>,
}

impl Places {
    pub(crate) fn postgres(&self) -> Result<&str, Failure> {
        Ok(self.postgres.as_deref().ok_or("no PostgreSQL server was named")?)
    }
}

/// What a workload runs on.
pub(crate) struct Setting {
    pub(crate) rounds: usize,
    checkpointer: Option<AnyCheckpointer>,
    kind: Checkpointer,
    durability: superstep::Durability,
    file: PathBuf,
    postgres: Option<String>,
    threads: AtomicU64,
    /// What the databases held when the clock first started, for the floor.
    mark: Option<Mark>,
    recording: bool,
}

impl Setting {
    /// Opens an empty checkpointer. A `recording` remembers what was in it when the clock started.
    pub(crate) async fn open(
        places: &Places,
        request: &Request,
        recording: bool,
    ) -> Result<Self, Failure> {
        let file = new_file(places)?;
        let checkpointer = match request.checkpointer {
            Checkpointer::None => None,
            Checkpointer::Memory => Some(AnyCheckpointer::new(MemorySaver::new())),
            Checkpointer::Sqlite => Some(AnyCheckpointer::new(SqliteSaver::open(&file).await?)),
            Checkpointer::Postgres => {
                let url = places.postgres()?;
                let checkpointer = PostgresSaver::connect(Options::new(url).prepared()).await?;
                crate::floor::postgres::empty(url).await?;
                Some(AnyCheckpointer::new(checkpointer))
            }
        };
        let setting = Self {
            rounds: request.rounds,
            checkpointer,
            kind: request.checkpointer,
            durability: request.durability.into(),
            file,
            postgres: places.postgres.clone(),
            threads: AtomicU64::new(0),
            mark: None,
            recording,
        };
        if request.checkpointer.is_database() {
            workloads::warm_up(&setting).await?;
        }
        Ok(setting)
    }

    /// The graph with the checkpointer, if there is one.
    pub(crate) fn equip<S: State, O>(&self, graph: CompiledGraph<S, O>) -> CompiledGraph<S, O> {
        match &self.checkpointer {
            Some(checkpointer) => graph.with_any_checkpointer(checkpointer.clone()),
            None => graph,
        }
    }

    /// A thread nobody has used.
    pub(crate) fn thread<S: State, O>(&self, graph: &CompiledGraph<S, O>) -> Thread<S, O> {
        let number = self.threads.fetch_add(1, Ordering::Relaxed);
        graph.thread(format!("thread-{number:08}"))
    }

    /// Invokes a graph, on a new thread if there is a checkpointer.
    pub(crate) fn invoke<S: State, O>(
        &self,
        graph: &CompiledGraph<S, O>,
        input: impl IntoInput<S>,
    ) -> Run<S, O> {
        let run = match self.checkpointer {
            Some(_) => self.thread(graph).invoke(input),
            None => graph.invoke(input),
        };
        self.with_options(run)
    }

    pub(crate) fn with_options<S: State, O>(&self, run: Run<S, O>) -> Run<S, O> {
        run.durability(self.durability).recursion_limit(STEPS_MAX)
    }

    /// Starts the clock.
    pub(crate) async fn start(&mut self) -> Result<Instant, Failure> {
        if self.recording && self.mark.is_none() {
            self.mark = Some(match self.kind {
                Checkpointer::Sqlite => crate::floor::sqlite::mark(&self.file)?,
                Checkpointer::Postgres => {
                    let url = self.postgres.as_deref().ok_or("no PostgreSQL server was named")?;
                    crate::floor::postgres::mark(url).await?
                }
                Checkpointer::None | Checkpointer::Memory => Mark::default(),
            });
        }
        Ok(Instant::now())
    }

    pub(crate) fn mark(&self) -> Mark {
        self.mark.unwrap_or_default()
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }
}

/// More supersteps than any workload has.
const STEPS_MAX: u64 = 1_000_000;

/// The state a run has ended with.
pub(crate) fn done<O>(outcome: Outcome<O>) -> Result<O, Failure> {
    Ok(outcome.done().ok_or("the run stopped before its end")?)
}

/// Where no database is. The one before is removed, and its name not used again: whoever had it open may still be busy
/// closing it.
fn new_file(places: &Places) -> Result<PathBuf, Failure> {
    static OPENED: AtomicU64 = AtomicU64::new(0);
    let number = OPENED.fetch_add(1, Ordering::Relaxed);
    let named = |number: u64| places.dir.join(format!("ours-{number}.db"));
    if let Some(before) = number.checked_sub(1) {
        remove_database(&named(before))?;
    }
    remove_database(&named(number))?;
    Ok(named(number))
}

/// Removes a database file and what SQLite keeps next to it.
pub(crate) fn remove_database(file: &Path) -> Result<(), Failure> {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = file.as_os_str().to_owned();
        name.push(suffix);
        match std::fs::remove_file(&name) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

/// As nanoseconds, for an answer.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::PathBuf;

    /// An empty folder that stays below `target/`.
    pub(crate) fn scratch(name: &str) -> PathBuf {
        let dir =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/tmp/bench").join(name);
        std::fs::create_dir_all(&dir).expect("a folder in `target/`");
        dir
    }
}
