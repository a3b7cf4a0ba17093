//! The processes that drive runs.

use std::time::Duration;

use super::Answer;

/// The table of processes. Each says now and then that it lives, by the clock of the database; the runs of one that has not
/// said so for the time of its lease belong to whoever takes them.
pub(crate) trait WorkerTable: Send + Sync + 'static {
    /// The name of this process. It is new at each start.
    fn worker(&self) -> &str;
    /// How often this process is to beat, and to look for runs that were left.
    fn look_every(&self, lease: Duration) -> Duration;
    /// This process lives, and is taken for dead if it is not heard of for this long.
    fn beat(&self, lease: Duration) -> Answer<'_, ()>;
    /// Takes back the runs of processes that are dead, and ends those that were tried too often. Runs of processes that live
    /// are left alone. Returns how many runs there were.
    fn take_back(&self, attempts_max: u32) -> Answer<'_, usize>;
    /// This process drives no run any more.
    fn leave(&self) -> Answer<'_, ()>;
}
