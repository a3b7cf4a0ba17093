use std::fmt;
use std::sync::{Arc, Mutex, Weak};

use superstep_checkpoint::TaskId;

use crate::Task;
use crate::engine::{Run, Way, lock};

/// Records every node and recorded call that ran, in the order in which they began.
///
/// Add a clone of it to the context of a graph. It outlives runs, so that it shows what ran before
/// a crash or an interrupt and what ran again afterwards. Subgraphs and recorded calls are named by
/// the way to them: `review/ask`.
///
/// ```
/// use superstep::prelude::*;
/// use superstep::testing::{Journal, virtual_time};
///
/// #[derive(State, Clone, Default)]
/// struct Order {
///     paid: Option<u64>,
/// }
/// # fn main() -> Result<(), CompileError> {
/// let journal = Journal::new();
/// let app = StateGraph::<Order>::new()
///     .add_node("pay", |task: Task| async move {
///         let paid = task.call("charge", || async { Ok::<u64, NodeError>(42) }).await?;
///         let _: bool = task.interrupt("really?").await;
///         Ok::<_, NodeError>(Order::update().paid(paid))
///     })
///     .add_edge(START, "pay")
///     .compile()?
///     .with_checkpointer(MemorySaver::new())
///     .with_context(journal.clone());
///
/// virtual_time(async {
///     let thread = app.thread("1");
///     thread.invoke(Order::update()).await?;
///     thread.resume(true).await
/// })
/// .expect("a run");
/// assert_eq!(journal.run(1), ["pay", "pay/charge"]);
/// assert_eq!(journal.run(2), ["pay"], "a recorded call does not run again");
/// assert_eq!(journal.times("pay/charge"), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Journal {
    inner: Arc<Mutex<JournalEntries>>,
}

#[derive(Default)]
struct JournalEntries {
    /// A run that is kept weakly keeps its address, so that no two of them are mistaken for one.
    runs: Vec<Weak<Run>>,
    entries: Vec<Ran>,
}

/// One attempt of a node or of a recorded call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ran {
    /// The path of the node or call.
    pub name: String,
    /// The run, counted from 1.
    pub run: usize,
    /// The superstep of its graph.
    pub step: i64,
    /// The namespace of its graph; empty for the outermost.
    pub ns: String,
    /// The task: the same when it runs again.
    pub task: TaskId,
    /// Which attempt of the task in this run; the first is 1.
    pub attempt: u32,
    /// How it ended; `None` if it was dropped, or is still running.
    pub end: Option<RanEnd>,
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RanEnd {
    /// With a result.
    Returned,
    /// With an error.
    Failed,
    /// It was interrupted, or something inside it was.
    Stopped,
}

impl Journal {
    /// An empty journal.
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything that ran, in the order in which it began.
    pub fn entries(&self) -> Vec<Ran> {
        lock(&self.inner).entries.clone()
    }

    /// The names of everything that ran, in the order in which it began.
    pub fn ran(&self) -> Vec<String> {
        lock(&self.inner).entries.iter().map(|ran| ran.name.clone()).collect()
    }

    /// The names of everything that ran in one run; runs are counted from 1.
    pub fn run(&self, run: usize) -> Vec<String> {
        let inner = lock(&self.inner);
        let entries = inner.entries.iter().filter(|ran| ran.run == run);
        entries.map(|ran| ran.name.clone()).collect()
    }

    /// The number of runs that ran something.
    pub fn runs(&self) -> usize {
        lock(&self.inner).runs.len()
    }

    /// How often a node or call began, attempts included.
    pub fn times(&self, name: &str) -> usize {
        lock(&self.inner).entries.iter().filter(|ran| ran.name == name).count()
    }

    pub(crate) fn begins(&self, task: &Task) -> usize {
        let mut inner = lock(&self.inner);
        let run = Arc::downgrade(&task.inner.superstep.setting.run);
        let known = inner.runs.iter().position(|known| known.ptr_eq(&run));
        let run = known.unwrap_or_else(|| {
            inner.runs.push(run);
            inner.runs.len() - 1
        });
        inner.entries.push(Ran {
            name: super::place(task),
            run: run + 1,
            step: task.step(),
            ns: task.inner.superstep.setting.ns.to_string(),
            task: task.id(),
            attempt: task.attempt(),
            end: None,
        });
        inner.entries.len() - 1
    }

    pub(crate) fn ends(&self, at: usize, way: Way) {
        if let Some(ran) = lock(&self.inner).entries.get_mut(at) {
            ran.end = Some(match way {
                Way::Returned => RanEnd::Returned,
                Way::Failed => RanEnd::Failed,
                Way::Stopped => RanEnd::Stopped,
            });
        }
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ran()).finish()
    }
}
