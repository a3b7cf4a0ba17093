//! What the promises share.

use std::time::{Duration, SystemTime};

use superstep::checkpoint::{AnyCheckpointer, Interrupt};
use superstep::prelude::*;
use superstep::testing::Clock;
use superstep::{CompiledGraph, DueRuns};

#[derive(State, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// What nodes wrote, in the order in which it was folded.
    #[channel(reduce = Append)]
    pub(crate) lines: Vec<String>,
}

pub(crate) fn line(text: impl Into<String>) -> NotesUpdate {
    Notes::update().lines([text.into()])
}

pub(crate) const DAY: Duration = Duration::from_secs(86_400);
pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

/// A graph that keeps its threads in memory, and its clock.
pub(crate) fn kept(graph: StateGraph<Notes>) -> (CompiledGraph<Notes>, Clock) {
    kept_in(graph, AnyCheckpointer::new(MemorySaver::new()))
}

pub(crate) fn kept_in(
    graph: StateGraph<Notes>,
    checkpointer: AnyCheckpointer,
) -> (CompiledGraph<Notes>, Clock) {
    let clock = Clock::new();
    let graph = graph.compile().expect("a graph").with_any_checkpointer(checkpointer);
    (graph.with_context(clock.clone()), clock)
}

/// The questions of an outcome, which is one.
#[track_caller]
pub(crate) fn asked(outcome: Result<Outcome<Notes>, RunError>) -> Vec<Interrupt> {
    outcome.expect("a run").interrupted().expect("a question").to_vec()
}

/// The lines of a run that is done.
#[track_caller]
pub(crate) fn lines(outcome: Result<Outcome<Notes>, RunError>) -> Vec<String> {
    outcome.expect("a run").done().expect("an end").lines
}

/// The threads that were due, and ended.
#[track_caller]
pub(crate) fn ended(due: DueRuns<Notes>) -> Vec<(String, Vec<String>)> {
    due.into_iter().map(|due| (due.thread.to_string(), lines(due.outcome))).collect()
}

pub(crate) fn due(questions: &[Interrupt]) -> Vec<Option<SystemTime>> {
    questions.iter().map(Interrupt::due).collect()
}
