//! Runs both engines in turn and keeps what they say.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::figures::{Figures, Side};
use crate::plan::Cell;
use crate::protocol::{Answer, Checkpointer, Durability, Measured, Request};

/// A program that measures.
#[derive(Debug)]
pub(crate) struct Worker {
    name: &'static str,
    process: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    pub(crate) fn start(name: &'static str, mut command: Command) -> Result<Self, Failure> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {name} with {command:?}: {error}"))?;
        let requests = process.stdin.take();
        let answers = process.stdout.take().ok_or("the output of a worker is a pipe")?;
        let mut worker = Self { name, process, requests, answers: BufReader::new(answers) };
        // While it still loads what it needs, it would take the processor from the other one.
        match worker.ask(&small())? {
            Ok(_) => Ok(worker),
            Err(error) => Err(format!("{name} cannot measure anything: {error}").into()),
        }
    }

    /// What it says to a request. A failed measurement is told apart from a worker that is gone.
    pub(crate) fn ask(&mut self, request: &Request) -> Result<Result<Measured, String>, Failure> {
        let requests = self.requests.as_mut().ok_or("a worker hears until it is dropped")?;
        writeln!(requests, "{}", serde_json::to_string(request)?)?;
        requests.flush()?;
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err(format!("{} ended while it measured {request:?}", self.name).into());
        }
        match serde_json::from_str(&line) {
            Ok(Answer::Measured(measured)) => Ok(Ok(measured)),
            Ok(Answer::Failed { error }) => Ok(Err(error)),
            Err(error) => Err(format!("{} said {line:?}: {error}", self.name).into()),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Without requests it ends.
        drop(self.requests.take());
        let _ = self.process.wait();
    }
}

/// How much time a row may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// After this, no further round begins.
    pub(crate) time: Duration,
    pub(crate) rounds_min: usize,
    pub(crate) rounds_max: usize,
}

/// Measures one row: ours, theirs and the floor in turn.
pub(crate) fn measure(
    cell: &Cell,
    ours: &mut Worker,
    mut theirs: Option<&mut Worker>,
    effort: Effort,
) -> Result<Figures, Failure> {
    let began = Instant::now();
    let mut figures = Figures::of(cell);
    for round in 0..effort.rounds_max {
        if round >= effort.rounds_min && began.elapsed() > effort.time {
            break;
        }
        if round == 0 {
            // Also lets a graph, a cache and a connection settle.
            figures.ours.add(ours.ask(&request(cell, cell.size, 1, false))?);
        }
        let repeats = repeats(&figures.ours, effort);
        figures.ours.add(ours.ask(&request(cell, cell.size, repeats, false))?);
        if let (Some(theirs), Some(size)) = (&mut theirs, cell.theirs) {
            figures.theirs.add(theirs.ask(&request(cell, size, 1, false))?);
        }
        if has_floor(cell) {
            let repeats = repeats_of_floor(cell, repeats);
            figures.floor.add(ours.ask(&request(cell, cell.size, repeats, true))?);
        }
    }
    Ok(figures)
}

/// Measures ours in a worker that has done nothing else, as what a process holds depends on what it held before.
pub(crate) fn measure_once(cell: &Cell, fresh: &mut Worker) -> Result<Figures, Failure> {
    let mut figures = Figures::of(cell);
    figures.ours.add(fresh.ask(&request(cell, cell.size, 1, false))?);
    Ok(figures)
}

/// What is only a part of a run has no floor, since its rows would be those of the whole; nor have many threads, which
/// share transactions.
fn has_floor(cell: &Cell) -> bool {
    !matches!(cell.workload, "compile" | "superstep" | "first-event" | "concurrent")
}

/// Databases are slow enough to be measured once.
fn repeats_of_floor(cell: &Cell, repeats: usize) -> usize {
    if cell.checkpointer.is_database() { repeats } else { 10 }
}

/// Rounds of ours in one request: more when they are short, so that both sides get some of the time.
fn repeats(so_far: &Side, effort: Effort) -> usize {
    let Some(nanos) = so_far.round_min() else {
        return 1;
    };
    let share = effort.time.as_nanos() as u64 / 10;
    (share / nanos.max(1)).clamp(1, 30) as usize
}

/// As little as can be measured.
fn small() -> Request {
    Request {
        workload: "loop".to_owned(),
        size: 3,
        checkpointer: Checkpointer::None,
        durability: Durability::Sync,
        rounds: 1,
        floor: false,
    }
}

fn request(cell: &Cell, size: usize, rounds: usize, floor: bool) -> Request {
    let Cell { workload, checkpointer, durability, .. } = *cell;
    Request { workload: workload.to_owned(), size, checkpointer, durability, rounds, floor }
}
