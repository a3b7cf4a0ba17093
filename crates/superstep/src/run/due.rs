//! Running the threads on which a question is due.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::future::IntoFuture;
use std::ops::Deref;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::stream::{FuturesUnordered, StreamExt};
use superstep_checkpoint::{Alarm, AnyCheckpointer, Error, Stored, Value};

use super::input::Input;
use crate::engine::{self, Compiled, Durability, Outcome};
use crate::error::RunError;
use crate::graph::CompiledGraph;
use crate::node::BoxFuture;
use crate::state::State;

/// How many alarms are looked at together.
const BATCH: usize = 100;

/// How many threads run at the same time if nothing else was said.
const CONCURRENCY: usize = 16;

impl<S: State, O: Send + 'static> CompiledGraph<S, O> {
    /// Runs the threads whose [sleep](crate::Task::sleep) is over, or whose question has reached
    /// its [deadline](crate::Asking::or_after).
    ///
    /// Call it from time to time, in any number of processes: each timer fires once.
    /// [`DueRuns::next`] says when there is something to do again, as far as is known now. Timers
    /// that are shorter, and those that other processes set, may come before that.
    ///
    /// ```
    /// use std::time::Duration;
    /// # use superstep::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Letter { sent: bool }
    /// # async fn serve(app: superstep::CompiledGraph<Letter>) -> Result<(), RunError> {
    /// loop {
    ///     for due in app.run_due().await? {
    ///         println!("{}: {:?}", due.thread, due.outcome);
    ///     }
    ///     tokio::time::sleep(Duration::from_secs(1)).await;
    /// }
    /// # }
    /// ```
    pub fn run_due(&self) -> RunDue<S, O> {
        RunDue { graph: self.clone(), options: DueOptions::default() }
    }
}

/// A run of everything that is due, made by [`CompiledGraph::run_due`]. Await it.
///
/// Threads with open work for nodes that the graph does not have belong to another graph, and are
/// left alone. If graphs whose nodes have the same names share a checkpointer, tell their threads
/// apart by [`metadata`](Self::metadata).
///
/// A thread that has failed waits for somebody to look; the run that continues it fires its timers. So it is with
/// a thread whose run may be alive in another process. If a process dies after it has fired a timer, the next `run_due`
/// that comes five minutes later takes its thread up. A node that runs longer than that may then run twice at the
/// same time; the run that stores first goes on.
#[must_use = "nothing runs until it is awaited"]
pub struct RunDue<S: State, O = S> {
    graph: CompiledGraph<S, O>,
    options: DueOptions,
}

/// What was asked for.
#[derive(Clone, Debug)]
pub(super) struct DueOptions {
    concurrency: usize,
    durability: Durability,
    metadata: BTreeMap<String, Value>,
}

impl Default for DueOptions {
    fn default() -> Self {
        Self {
            concurrency: CONCURRENCY,
            durability: Durability::default(),
            metadata: BTreeMap::new(),
        }
    }
}

impl<S: State, O> RunDue<S, O> {
    /// The maximum number of threads that run at the same time. The default is 16.
    pub fn concurrency(mut self, threads: usize) -> Self {
        self.options.concurrency = threads.max(1);
        self
    }

    /// When the runs store their progress.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.options.durability = durability;
        self
    }

    /// Only threads whose head has this value in its metadata; see
    /// [`with_metadata`](CompiledGraph::with_metadata).
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.options.metadata.insert(key.into(), value.into());
        self
    }
}

impl<S: State, O> fmt::Debug for RunDue<S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunDue").field("options", &self.options).finish_non_exhaustive()
    }
}

impl<S: State, O: Send + 'static> IntoFuture for RunDue<S, O> {
    type Output = Result<DueRuns<O>, RunError>;
    type IntoFuture = BoxFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { graph, options } = self;
        let due = Due::of(&graph, &options);
        let run = move |thread: Arc<str>| -> BoxFuture<_> {
            let run = graph.thread(thread).invoke(Input::wake()).durability(options.durability);
            Box::pin(run)
        };
        Box::pin(async move { due?.run(run).await })
    }
}

/// The runs of what was due, in the order in which they ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DueRuns<O> {
    /// The runs. Threads that somebody else was running or took up first are not among them.
    pub runs: Vec<DueRun<O>>,
    /// When the next timer is due, as far as is known. It may be too early.
    pub next: Option<SystemTime>,
}

/// A run of a thread on which something was due.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DueRun<O> {
    /// The thread.
    pub thread: Arc<str>,
    /// How its run ended. An error is that of this thread; the others run all the same.
    pub outcome: Result<Outcome<O>, RunError>,
}

impl<O> Deref for DueRuns<O> {
    type Target = [DueRun<O>];

    fn deref(&self) -> &[DueRun<O>] {
        &self.runs
    }
}

impl<O> IntoIterator for DueRuns<O> {
    type Item = DueRun<O>;
    type IntoIter = std::vec::IntoIter<DueRun<O>>;

    fn into_iter(self) -> Self::IntoIter {
        self.runs.into_iter()
    }
}

/// Finds the threads on which something is due.
pub(super) struct Due {
    graph: Arc<Compiled>,
    checkpointer: AnyCheckpointer,
    context: engine::Context,
    options: DueOptions,
    /// Threads that are not looked at again: they have run, or are not ours.
    passed: BTreeSet<Arc<str>>,
}

impl Due {
    pub(super) fn of<S: State, O>(
        graph: &CompiledGraph<S, O>,
        options: &DueOptions,
    ) -> Result<Self, RunError> {
        let checkpointer = graph.inner().checkpointer.clone().ok_or_else(|| {
            RunError::Invalid(
                "the graph has no checkpointer, so nothing of it can be due; add one with `with_checkpointer`"
                    .to_owned(),
            )
        })?;
        Ok(Self {
            graph: graph.inner().clone(),
            checkpointer,
            context: graph.context.clone(),
            options: options.clone(),
            passed: BTreeSet::new(),
        })
    }

    /// Runs what is due, each thread once.
    pub(super) async fn run<O>(
        mut self,
        run: impl Fn(Arc<str>) -> BoxFuture<Result<Outcome<O>, RunError>>,
    ) -> Result<DueRuns<O>, RunError> {
        let mut done = DueRuns { runs: Vec::new(), next: None };
        let mut ready: VecDeque<Arc<str>> = VecDeque::new();
        let mut running = FuturesUnordered::new();
        let mut exhausted = false;
        loop {
            while running.len() < self.options.concurrency
                && let Some(thread) = ready.pop_front()
            {
                let run = run(thread.clone());
                running.push(async move { (thread, run.await) });
            }
            if ready.is_empty() && !exhausted {
                (exhausted, done.next) = self.find(&mut ready).await?;
                continue;
            }
            match running.next().await {
                Some((thread, outcome)) => {
                    if let Some(outcome) = own(&thread, outcome) {
                        done.runs.push(DueRun { thread, outcome });
                    }
                }
                None => break,
            }
        }
        // The alarms of what has run are moved now.
        if !done.runs.is_empty() {
            self.passed.clear();
            (_, done.next) = self.find(&mut VecDeque::new()).await?;
        }
        Ok(done)
    }

    /// Looks at the next alarms. Says whether there are no others, and when the next one goes off.
    async fn find(
        &mut self,
        ready: &mut VecDeque<Arc<str>>,
    ) -> Result<(bool, Option<SystemTime>), RunError> {
        let now = engine::now(&self.context);
        let limit = self.passed.len().saturating_add(BATCH);
        let page = self.checkpointer.alarms(now, limit).await?;
        let mut next = page.next;
        let mut found = false;
        for alarm in page.alarms {
            if self.passed.contains(&alarm.thread) {
                continue;
            }
            found = true;
            match self.look(&alarm, now).await? {
                Seen::Due => {
                    next = earlier(next, Some(alarm.at));
                    self.passed.insert(alarm.thread.clone());
                    ready.push_back(alarm.thread);
                }
                Seen::Later(later) => next = earlier(next, later),
                Seen::Foreign => drop(self.passed.insert(alarm.thread)),
            }
        }
        Ok((!found, next))
    }

    /// Reads the head of a thread, and moves an alarm that went off too early.
    async fn look(&self, alarm: &Alarm, now: SystemTime) -> Result<Seen, RunError> {
        let thread = &alarm.thread;
        let head = match self.checkpointer.get(thread, "", None).await {
            // The damage of one thread must not keep the others asleep.
            Err(error @ Error::Codec(_)) => {
                tracing::warn!(thread = &**thread, %error, "a thread that may be due cannot be read");
                return Ok(Seen::Foreign);
            }
            head => head?,
        };
        let Some(head) = head else { return Ok(Seen::Later(None)) };
        let due = head.due()?;
        if due.is_some_and(|due| due <= now) {
            let is_ours = head.metadata.matches(&self.options.metadata) && self.has_nodes(&head)?;
            return Ok(if is_ours { Seen::Due } else { Seen::Foreign });
        }
        let is_head = head.checkpoint.id == alarm.checkpoint;
        let beside = match is_head {
            true => Some(head),
            false => self.checkpointer.get(thread, "", Some(alarm.checkpoint)).await?,
        };
        let due = due.filter(|_| is_head);
        if let Some(alarm) = beside.and_then(|beside| beside.alarm()) {
            let moved = vec![alarm.moved(due)?];
            match self.checkpointer.put_writes(thread, "", alarm.checkpoint, moved).await {
                // Somebody else has moved it, or the thread has gone.
                Err(Error::Overtaken { .. } | Error::Unknown { .. }) => {}
                moved => moved?,
            }
        }
        Ok(Seen::Later(due))
    }
}

impl Due {
    /// Whether the open work of a thread is for nodes of this graph. A workflow is due by its input, so only what its task has stored
    /// names it.
    fn has_nodes(&self, head: &Stored) -> Result<bool, Error> {
        let is_known = |node: &str| self.graph.layout.node(node).is_some();
        let mut stored = head.writes.iter().filter_map(|write| engine::pulled(&write.path));
        let next = head.next()?;
        let mut next = next.iter().filter(|node| !node.starts_with("__"));
        Ok(next.all(|node| is_known(node)) && stored.all(is_known))
    }
}

/// What was found where an alarm went off.
enum Seen {
    /// Something is due.
    Due,
    /// Nothing is, before this time.
    Later(Option<SystemTime>),
    /// It is not for us to run the thread.
    Foreign,
}

fn earlier(a: Option<SystemTime>, b: Option<SystemTime>) -> Option<SystemTime> {
    a.into_iter().chain(b).min()
}

/// How a run ended, unless somebody else has the thread.
fn own<O>(
    thread: &str,
    outcome: Result<Outcome<O>, RunError>,
) -> Option<Result<Outcome<O>, RunError>> {
    match outcome {
        Err(
            error @ (RunError::NotDue { .. } | RunError::Busy { .. } | RunError::Conflict { .. }),
        ) => {
            tracing::debug!(thread, %error, "somebody else has the thread that was due");
            None
        }
        outcome => Some(outcome),
    }
}
