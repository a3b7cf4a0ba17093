use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use crate::Task;

/// Lets the tasks of a superstep complete in an order that a seed gives: the same seed, the same order.
///
/// Give it to a graph or to one run as context, and run in [virtual time](super::virtual_time). Each node and each recorded call then
/// takes a while longer, how long depends on the seed and on what it is. A graph whose result is another one for some seed
/// has an opinion about who comes first that its reducers do not share.
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
    /// The order that this seed gives. It also chooses the random part of the time between two attempts.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, within: Duration::from_secs(60) }
    }

    /// How much longer a task takes at most; a minute if nothing is said. Let it be more than what the nodes themselves wait
    /// for, if every order is to be possible, and less than the time limits of supersteps.
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
