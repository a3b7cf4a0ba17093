use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use crate::Task;

/// Makes the tasks of a superstep complete in a seeded order: the same seed, the same order.
///
/// Give it to a graph or to one run as context, and run in [virtual time](super::virtual_time).
/// Each node and each recorded call then takes a while longer, how long depends on the seed and on
/// what it is. If the result of a graph depends on the seed, one of its reducers or nodes depends
/// on the order.
///
/// ```
/// use superstep::prelude::*;
/// use superstep::testing::{CompletionOrder, virtual_time};
///
/// #[derive(State, Clone, Default)]
/// struct Notes {
///     #[channel(reduce = Append)]
///     lines: Vec<String>,
/// }
/// # fn main() -> Result<(), CompileError> {
/// let app = StateGraph::<Notes>::new()
///     .add_node("left", || Notes::update().lines(["left".to_owned()]))
///     .add_node("right", || Notes::update().lines(["right".to_owned()]))
///     .add_edge(START, "left")
///     .add_edge(START, "right")
///     .compile()?;
///
/// for seed in 0..100 {
///     let run = app.invoke(Notes::update()).context(CompletionOrder::seeded(seed));
///     let notes = virtual_time(run.into_future()).expect("a run").done().expect("an end");
///     assert_eq!(notes.lines, ["left", "right"], "seed {seed}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionOrder {
    seed: u64,
    within: Duration,
}

impl CompletionOrder {
    /// The order of this seed. It also chooses the jitter between two attempts.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, within: Duration::from_secs(60) }
    }

    /// The maximum delay of a task. The default is a minute. Choose more than what the nodes
    /// themselves wait for, to make every order possible, and less than the time limits of
    /// supersteps.
    #[must_use]
    pub fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    pub(crate) fn delay(&self, task: &Task) -> Duration {
        let parts = u64::try_from(self.within.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
        Duration::from_millis(self.draw(task, "delay") % parts)
    }

    pub(crate) fn random(&self, task: &Task) -> u32 {
        (self.draw(task, "random") >> 32) as u32
    }

    /// A number that depends on the place of the task alone: ids of checkpoints and tasks are others in each run.
    fn draw(&self, task: &Task, what: &str) -> u64 {
        let place = (task.step(), task.attempt(), super::place(task), task.path());
        xxh3_64(format!("{} {what} {place:?}", self.seed).as_bytes())
    }
}
