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
//!    tasks that end while others still run are stored at once, together with those that end meanwhile; a task that has
//!    started calls which still run has not ended.
//! 7. **A task whose writes are stored does not run again** in its superstep; one that failed stores no output.
//! 8. **A question, once asked, ends its task**: nothing the node does afterwards has any effect.
//! 9. **Ids of tasks and questions depend only on the checkpoint and on the place in the graph**, so they are the same when
//!    a superstep is run again.
//! 10. **A thread has one run at a time in a process.** A second one is refused before it reads anything. Of runs in different
//!     processes, the one that stores first continues, and the other learns of it at its next commit at the latest.
//! 11. **A run does not get ahead of the reader of its stream.** No superstep begins and no node continues from an `await`,
//!     spawned or not, while an event waits to be taken.
//!
//! [`plan`](kernel::plan::plan) and [`apply`](kernel::apply::apply) are pure functions of layout and head. `drive`, `open`, `step`, `attempt`
//! and `nest` turn them into a run; only these await anything. The state is an erased row: no type of the user's appears here.

mod drive;
mod kernel;
mod outside;
mod step;
mod stored;
mod sync;
mod task;
mod watch;

pub(crate) use drive::claim::{OpenThread, OwnAnswers};
pub(crate) use drive::clock::{is_due, too_late};
pub(crate) use drive::driver::{Finish, How, drive};
pub(crate) use drive::live::Life;
pub(crate) use drive::opening::{CommandInput, Input, Opening, Resume, value_input};
pub use drive::run::CheckpointIds;
pub(crate) use drive::run::{Context, Replay, Run};
pub(crate) use kernel::head::{StartValue, Write};
pub(crate) use kernel::join::JoinSpec;
pub(crate) use kernel::layout::{
    ControlKind, ControlSpec, END, Layout, NodeDef, Reads, START, TASKS, needed_context,
};
pub(crate) use outside::snapshot::{Look, ThreadView, look};
pub(crate) use outside::update::{Change, ChangeValue, UpdateRequest, update};
pub(crate) use step::attempt::{TaskFuture, TaskResult, next_attempt, run_watched, started};
pub(crate) use step::cached::{
    cache_ns, keep as keep_cached, look_up as look_up_cached, missed as missed_cached,
};
pub(crate) use step::output::not_an_update;
pub(crate) use step::superstep::Started;
pub(crate) use step::superstep::lock;
pub(crate) use stored::fits::fits_question;
pub(crate) use stored::ids::{node_names, pulled};
pub(crate) use task::calls::Inflight;
pub(crate) use task::handle::Suspension;
pub use task::handle::Task;
pub use task::interrupt::Asking;
pub(crate) use task::probe::Attempt;
#[cfg(feature = "testing")]
pub(crate) use task::probe::Way;
pub(crate) use task::probe::now;
pub use task::timer::Sleep;
pub(crate) use watch::emit::cache_key;
pub(crate) use watch::sink::{Reader, Sink};

pub use drive::control::{Durability, RunControl};
pub use kernel::breakpoint::BreakAt;
pub(crate) use kernel::breakpoint::{At, Breakpoints};
pub use kernel::compiled::Memory;
pub(crate) use kernel::compiled::{Compiled, DrawnEdge};
pub(crate) use kernel::policy::NodeOptions;
pub use kernel::policy::{CachePolicy, RetryPolicy, TimeoutPolicy};
pub use outside::view::{CheckpointInfo, CheckpointRef, RawSnapshot, SubgraphState, TaskSnapshot};
pub(crate) use watch::event::interrupt_value;
pub use watch::event::{
    Data, DebugEvent, Event, MessageEvent, Mode, TaskEnd, TaskStart, UpdatesEvent, ValuesEvent,
};
pub use watch::outcome::{Interrupted, Outcome};

/// Names of writes that say what happened to a task.
pub(crate) mod names {
    pub(crate) use super::stored::ids::PUSH;
    pub(crate) use super::stored::record::{ARGS, ERROR, INTERRUPT, RESUME, RETURN};
}
