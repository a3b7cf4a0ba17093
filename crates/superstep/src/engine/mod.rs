//! The kernel: what runs when, and what becomes of it.
//!
//! Definitions. A *head* is the state of a thread in memory. A *superstep* plans tasks from a head, runs them, and folds
//! their writes into it at a *barrier*. A *checkpoint* is a head as it was stored.
//!
//! Invariants, numbered so that tests can name them:
//!
//! 1. **A task sees the head as it was when its superstep was planned**, and nothing that a task of the same superstep
//!    writes. A router sees in addition what its own node wrote.
//! 2. **Writes become visible only at the barrier**, all at once, or not at all.
//! 3. **Writes are folded in the order of task paths**: triggered nodes by name, then dispatches by position. The order in
//!    which tasks finish has no influence on the state.
//! 4. **Every channel changes at most once in a superstep**, and all that change get the same new version.
//! 5. **A node runs if one of its triggers holds a version it has not seen.** Running marks the versions as seen, also when
//!    the run is dropped in favour of new input.
//! 6. **The writes of the tasks that end a superstep and the checkpoint are stored in one transaction.** The writes of
//!    tasks that end while others go on are stored at once, together with those that end meanwhile; a task that has
//!    started calls which still run has not ended.
//! 7. **A task whose writes are stored does not run again** in its superstep; one that failed stores no output.
//! 8. **A question, once asked, ends its task**: nothing the node does afterwards has any effect.
//! 9. **Ids of tasks and questions depend only on the checkpoint and on the place in the graph**, so they are the same when
//!    a superstep is run again.
//! 10. **A thread has one run at a time in a process.** A second one is refused before it reads anything. Of runs in different
//!     processes, the one that stores first goes on, and the other learns of it at its next commit at the latest.
//! 11. **A run does not get ahead of the reader of its stream.** No superstep begins and no node goes on from an `await`,
//!     spawned or not, while an event waits to be taken.
//!
//! [`plan`](plan::plan) and [`apply`](apply::apply) are pure functions of layout and head. `drive`, `open`, `step`, `attempt`
//! and `nest` turn them into a run; only these await anything. The state is an erased row: no type of the user's appears here.

mod answer;
mod apply;
mod at_exit;
mod attempt;
mod barrier;
mod cached;
mod drive;
mod emit;
mod entry;
mod futures;
mod handover;
mod head;
mod ids;
mod interrupt;
mod layout;
mod live;
mod nest;
mod old;
mod open;
mod output;
mod pending;
mod plan;
mod probe;
mod queue;
mod record;
mod run;
mod sink;
mod slots;
mod snapshot;
mod span;
mod stale;
mod step;
mod store;
mod superstep;
mod sync;
mod task;
mod update;

pub(crate) use answer::OpenThread;
pub(crate) use attempt::{Ran, TaskFuture, retry_after, run_watched};
pub(crate) use cached::{
    cache_ns, keep as keep_cached, look_up as look_up_cached, missed as missed_cached,
};
pub(crate) use drive::{CommandInput, Finish, How, Input, Opening, Resume, drive, value_input};
pub(crate) use emit::cache_key;
pub(crate) use head::{StartValue, Write};
pub(crate) use ids::node_names;
pub use interrupt::Asking;
pub(crate) use layout::{
    ControlKind, ControlSpec, END, Layout, NodeDef, Reads, START, TASKS, needed_context,
};
pub(crate) use live::Life;
pub(crate) use output::not_an_update;
pub(crate) use probe::Attempt;
#[cfg(feature = "testing")]
pub(crate) use probe::Way;
pub use run::CheckpointIds;
pub(crate) use run::{Context, Replay, Run};
pub(crate) use sink::{Reader, Sink};
pub(crate) use snapshot::{Look, Seen, look};
pub(crate) use superstep::Started;
pub(crate) use superstep::lock;
pub use task::Task;
pub(crate) use task::{Inflight, Suspension};
pub(crate) use update::{Change, ChangeValue, UpdateRequest, update};

/// Names of writes that say what happened to a task.
pub(crate) mod names {
    pub(crate) use super::ids::PUSH;
    pub(crate) use super::record::{ARGS, ERROR, INTERRUPT, RESUME, RETURN};
}
