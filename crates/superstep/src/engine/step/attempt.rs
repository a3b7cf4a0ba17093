//! Running one task: attempts, time limits, panics, and what comes after the node itself.

use std::borrow::Borrow;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use superstep_checkpoint::Blob;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::Span;

use crate::engine::drive::live;
use crate::engine::kernel::head::{StartValue, Write};
use crate::engine::kernel::layout::NodeDef;
use crate::engine::kernel::policy::{RetryPolicy, TimeoutPolicy};
use crate::engine::step::output::{Unwritten, Written, writes_of};
use crate::engine::stored::slots;
use crate::engine::task::handle::{Suspension, Task};
use crate::engine::task::probe::{self, Attempt, Way};
use crate::engine::watch::sink::{EMITTED_MAX, Turn};
use crate::engine::watch::span;
use crate::error::{NodeError, TimeLimit, panic_text};
use crate::node::{BoxFuture, Failure, Invocation, Node, Output, Target};
use crate::state::{Payload, Row};

/// How a task ended.
#[derive(Debug)]
pub(crate) enum End {
    Done(Done),
    Failed(NodeError),
    Suspended(Box<Suspension>),
    /// A command for the graph around this one.
    ForParent(Box<Output>),
}

/// What a task has done: its writes, and their stored form if there is storage.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) writes: Vec<Write>,
    pub(crate) stored: Vec<(Arc<str>, Blob)>,
    /// The failure that was collected, if the writes are what became of one.
    pub(crate) failed: Option<NodeError>,
}

/// Everything a task needs to run.
pub(crate) struct Job {
    /// Where the task stands in its superstep.
    pub(crate) at: usize,
    pub(crate) node: usize,
    pub(crate) held: Held,
    pub(crate) arg: Option<Payload>,
    pub(crate) start: Option<Arc<StartValue>>,
    pub(crate) failure: Option<Arc<Failure>>,
    pub(crate) timeout: Option<TimeoutPolicy>,
    /// An empty list for its writes.
    pub(crate) write_buffer: Vec<Write>,
}

/// A task and the state it works on.
pub(crate) struct Held {
    pub(crate) task: Task,
    pub(crate) row: Row,
    /// Nobody else has the state: it goes back to the superstep if the task is dropped.
    pub(crate) lent: bool,
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.lent {
            self.task.inner.superstep.work().lent = Some(self.row.take());
        }
    }
}

impl Job {
    /// Runs the node until it succeeds, stops, or has no attempts left.
    ///
    /// The row comes back with the end, so that a lone task can have it for itself while it runs.
    #[expect(clippy::manual_async_fn, reason = "an `async fn` would keep the job twice")]
    pub(crate) fn run(mut self) -> impl Future<Output = (usize, End, Row)> + Send {
        async move {
            let end = self.attempts().await;
            self.held.lent = false;
            (self.at, end, self.held.row.take())
        }
    }

    async fn attempts(&mut self) -> End {
        let mut attempt = 1;
        loop {
            let error = match self.attempt(attempt).await {
                Ok(end) => return end,
                Err(error) => error,
            };
            let task = &self.held.task;
            let policies = self.def().options.retry.as_deref().unwrap_or_default();
            attempt = match Box::pin(next_attempt(policies, error, task)).await {
                Ok(next) => next,
                Err(error) => return self.failed(error).await,
            };
        }
    }

    /// A task that has failed for good is over, unless its node collects failures.
    async fn failed(&mut self, error: NodeError) -> End {
        let collector = self.def().collector.clone().filter(|_| !error.is_cancelled());
        match collector {
            None => End::Failed(error),
            Some(collector) => Box::pin(self.collect(&*collector, error)).await,
        }
    }

    /// Runs what makes an update of a failure, in the place of the node.
    async fn collect(&mut self, collector: &dyn Node, error: NodeError) -> End {
        let task = self.held.task.clone();
        task.restart();
        let failure = Failure { node: task.inner.name.clone(), error: error.clone() };
        let call = Invocation {
            task: &task,
            cells: self.held.row.cells(),
            arg: self.arg.as_ref(),
            start: self.start.as_deref(),
            failure: Some(&failure),
        };
        let ran = match started(task.name(), || collector.run(call)) {
            Err(panicked) => Err(panicked),
            Ok(future) => run_watched(future, &task, None).await,
        };
        let ended = match ran {
            Ok(TaskResult::Returned(output)) => match self.ended(output) {
                Ended::Now(ended) => ended,
                Ended::Later(ended) => ended.await,
            },
            Ok(TaskResult::Suspended(_)) => Err(NodeError::permanent(format!(
                "what collects the failures of node `{}` cannot ask; use `on_error` for that",
                task.name()
            ))),
            Err(error) => Err(error),
        };
        match ended {
            Ok(End::Done(done)) => {
                tracing::warn!(node = task.name(), task = %task.id(), %error, "collected a failure");
                End::Done(Done { failed: Some(error), ..done })
            }
            Ok(end) => end,
            Err(error) => End::Failed(error),
        }
    }

    fn def(&self) -> &NodeDef {
        &self.held.task.inner.superstep.setting.layout.nodes[self.node]
    }

    async fn attempt(&mut self, attempt: u32) -> Result<End, NodeError> {
        self.held.task.begin_attempt(attempt);
        let watched = Attempt::begins(&self.held.task, self.def().hidden);
        let ended = {
            let ended = match self.ran().await {
                Ok(TaskResult::Returned(output)) => self.ended(output),
                Ok(TaskResult::Suspended(suspension)) => match *suspension {
                    Suspension { refused: None, command: Some(output), .. } => self.ended(*output),
                    other => Ended::Now(Ok(End::Suspended(Box::new(other)))),
                },
                Err(error) => Ended::Now(Err(error)),
            };
            match ended {
                Ended::Now(ended) => ended,
                Ended::Later(ended) => ended.await,
            }
        };
        watched.ends(&self.held.task, Way::of(&ended)).await;
        ended
    }

    /// Runs the node once.
    async fn ran(&self) -> Result<TaskResult<Output>, NodeError> {
        let (task, def) = (&self.held.task, self.def());
        let call = Invocation {
            task,
            cells: self.held.row.cells(),
            arg: self.arg.as_ref(),
            start: self.start.as_deref(),
            failure: self.failure.as_deref(),
        };
        let timeout = self.timeout.or(def.options.timeout);
        let future = started(&def.name, || def.node.run(call))?;
        if def.options.spawned {
            return Box::pin(run_spawned(future, task, timeout)).await;
        }
        run_watched(future, task, timeout).await
    }

    /// What comes after the node has returned.
    fn ended(&mut self, output: Output) -> Ended<'_> {
        if output.target == Target::Parent {
            return Ended::Now(Ok(End::ForParent(Box::new(output))));
        }
        let Held { task, row, .. } = &mut self.held;
        match writes_of(task, self.node, row, output, std::mem::take(&mut self.write_buffer)) {
            Ok(Written::Now(writes)) => Ended::Now(done(task, writes)),
            Ok(Written::Later(writes)) => Ended::Later(Box::pin(async {
                match writes.await {
                    Ok(writes) => done(task, writes),
                    Err(Unwritten::Failed(error)) => Err(error),
                    Err(Unwritten::Suspended(suspension)) => Ok(End::Suspended(suspension)),
                }
            })),
            Err(error) => Ended::Now(Err(error)),
        }
    }
}

/// Takes the writes of a task, if they can be stored: a task whose writes cannot has failed, and nobody sees them.
fn done(task: &Task, writes: Vec<Write>) -> Result<End, NodeError> {
    let setting = &task.inner.superstep.setting;
    if setting.checkpointer.is_none() {
        return Ok(End::Done(Done { writes, ..Done::default() }));
    }
    let encode = || slots::encode_output(&setting.layout, &writes, task.answers());
    match catch_unwind(AssertUnwindSafe(encode)) {
        Ok(Ok(stored)) => Ok(End::Done(Done { writes, stored, failed: None })),
        Ok(Err(unstorable)) => {
            let text = format!("node `{}` gave {unstorable}", task.name());
            Err(NodeError::permanent(text).named("TypeError"))
        }
        Err(panic) => {
            let text = format!("in the stored form of what it gave: {}", panic_text(&*panic));
            Err(NodeError::panicked(task.name(), &text))
        }
    }
}

/// How an attempt ended, or what waits for the routers to tell it.
enum Ended<'a> {
    Now(Result<End, NodeError>),
    Later(TaskFuture<'a, End>),
}

/// The future of a node, a collector or a recorded call. To panic before there is one is to fail.
pub(crate) fn started<F>(name: &str, start: impl FnOnce() -> F) -> Result<F, NodeError> {
    catch_unwind(AssertUnwindSafe(start))
        .map_err(|panic| NodeError::panicked(name, &panic_text(&*panic)))
}

/// Waits until it is time for the next attempt, and returns its number.
///
/// # Errors
/// There is none: the error comes back, or what went wrong when a policy looked at it.
pub(crate) async fn next_attempt(
    policies: &[RetryPolicy],
    error: NodeError,
    task: &Task,
) -> Result<u32, NodeError> {
    sleep(retry_after(policies, error, task)?).await;
    Ok(task.attempt() + 1)
}

fn retry_after(
    policies: &[RetryPolicy],
    error: NodeError,
    task: &Task,
) -> Result<std::time::Duration, NodeError> {
    let find = AssertUnwindSafe(|| policies.iter().find(|policy| policy.applies_to(&error)));
    match catch_unwind(find) {
        Err(panic) => {
            let text = panic_text(&*panic);
            let text = format!("in a retry policy: {text}; it looked at `{error:?}`");
            Err(NodeError::permanent(text).named("Panic"))
        }
        Ok(Some(policy)) if task.attempt() < policy.attempts_max => {
            let random = probe::random(task);
            Ok(policy.wait(task.attempt(), f64::from(random) / f64::from(u32::MAX)))
        }
        Ok(_) => Err(error),
    }
}

/// The future of a node or of a recorded call.
pub(crate) type TaskFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, NodeError>> + Send + 'a>>;

pub(crate) enum TaskResult<T> {
    Returned(T),
    Suspended(Box<Suspension>),
}

/// Drives the future of a node as a task of its own, until it returns, fails, stops to ask, or its time is up.
async fn run_spawned<T: Send + 'static>(
    future: BoxFuture<Result<T, NodeError>>,
    task: &Task,
    timeout: Option<TimeoutPolicy>,
) -> Result<TaskResult<T>, NodeError> {
    let watched = Watched { future: Some(future), task: task.clone(), span: span::task(task) };
    let run = &task.inner.superstep.setting.run;
    let turn = Turn::new(run.sink.clone());
    let spawned = Spawned { watched, turn, _alive: run.life.spawned() };
    let mut handle = AbortOnDrop(tokio::spawn(spawned));
    match limited(&mut handle.0, task, timeout).await? {
        Ok(ended) => ended,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => Err(NodeError::panicked(task.name(), &panic_text(&*panic))),
            Err(_) => Err(NodeError::cancelled(task.name())),
        },
    }
}

/// Drives a future of a task where it is, until it returns, fails, stops to ask, or its time is up.
pub(crate) async fn run_watched<T>(
    future: TaskFuture<'_, T>,
    task: &Task,
    timeout: Option<TimeoutPolicy>,
) -> Result<TaskResult<T>, NodeError> {
    let watched = Watched { future: Some(future), task, span: span::task(task) };
    match timeout {
        None => watched.await,
        Some(_) => Box::pin(limited(watched, task, timeout)).await?,
    }
}

/// A spawned node must not outlive the run.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A node that the runtime polls and not the run. It continues only when the run may, so that it does not get ahead of
/// the reader of the stream.
struct Spawned<T> {
    watched: Watched<'static, T, Task>,
    turn: Turn,
    /// Dropped last: until then no other run may begin on the thread.
    _alive: Option<live::Spawned>,
}

impl<T> Future for Spawned<T> {
    type Output = Result<TaskResult<T>, NodeError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let Poll::Ready(_polled) = this.turn.poll(cx.waker()) else { return Poll::Pending };
        Pin::new(&mut this.watched).poll(cx)
    }
}

/// A node's future, dropped as soon as its task has stopped to ask something.
struct Watched<'a, T, K> {
    future: Option<TaskFuture<'a, T>>,
    task: K,
    span: Span,
}

impl<T, K: Borrow<Task> + Unpin> Future for Watched<'_, T, K> {
    type Output = Result<TaskResult<T>, NodeError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let task = this.task.borrow();
        let _entered = this.span.enter();
        let Some(future) = this.future.as_mut() else { return Poll::Pending };
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)));
        // What was asked counts, not what came back: a node cannot return past an open question.
        let over = task.inner.handover.is_over(cx.waker());
        match polled {
            _ if over => {
                this.future = None;
                Poll::Ready(Ok(TaskResult::Suspended(Box::new(task.take_suspension()))))
            }
            Err(panic) => {
                this.future = None;
                let text = panic_text(&*panic);
                Poll::Ready(Err(NodeError::panicked(task.name(), &text)))
            }
            _ if task.has_lost_events() => {
                this.future = None;
                Poll::Ready(Err(NodeError::lost_events(task.name(), EMITTED_MAX)))
            }
            Ok(Poll::Ready(ended)) => {
                this.future = None;
                let asked = task.inner.handover.is_stopped();
                if asked {
                    return Poll::Ready(Ok(TaskResult::Suspended(Box::new(
                        task.take_suspension(),
                    ))));
                }
                Poll::Ready(ended.map(TaskResult::Returned))
            }
            Ok(Poll::Pending) => {
                // Something may have happened on another thread between the poll and this.
                if task.inner.handover.watch(cx.waker()) || task.has_lost_events() {
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            }
        }
    }
}

async fn limited<F: Future>(
    future: F,
    task: &Task,
    timeout: Option<TimeoutPolicy>,
) -> Result<F::Output, NodeError> {
    let Some(TimeoutPolicy { run, idle }) = timeout else { return Ok(future.await) };
    let began = Instant::now();
    if idle.is_some() {
        task.limit_idle_time();
    }
    let run_limit = async {
        match run {
            Some(limit) => sleep_until(began + limit).await,
            None => std::future::pending().await,
        }
    };
    let idle_limit = async {
        let Some(limit) = idle else { return std::future::pending().await };
        loop {
            let until = task.last_progress() + limit;
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    };
    tokio::select! {
        biased;
        output = future => Ok(output),
        () = run_limit => {
            Err(NodeError::timed_out(task.name(), TimeLimit::Run, run.unwrap_or_default()))
        }
        () = idle_limit => {
            Err(NodeError::timed_out(task.name(), TimeLimit::Idle, idle.unwrap_or_default()))
        }
    }
}
