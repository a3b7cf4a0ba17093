//! Running one task: attempts, time limits, panics, and what comes after the node itself.

use std::borrow::Borrow;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use smallvec::SmallVec;
use tokio::time::{Instant, sleep, sleep_until};

use superstep_checkpoint::Blob;
use tracing::Span;

use super::head::{Mark, Packet, StartValue, Write};
use super::layout::{END, NodeDef, START};
use super::probe::{self, Attempt, Way};
use super::span;
use super::task::{Suspension, Task};
use crate::error::{Code, NodeError, TimeLimit, nearest, panic_text};
use crate::graph::{RetryPolicy, TimeoutPolicy};
use crate::node::{
    BoxFuture, Failure, Goto, Invocation, Output, RouteContext, Router, Routes, Target,
};
use crate::state::{Kind, Payload, Row, Taken, Unfit, WriteValue, Writes};

/// How a task ended.
#[derive(Debug)]
pub(crate) enum End {
    Done(Vec<Write>),
    Failed(NodeError),
    Suspended(Box<Suspension>),
    /// A command for the graph around this one.
    ForParent(Box<Output>),
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
    pub(crate) room: Vec<Write>,
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
            match retry_after(policies, error, task) {
                Ok(wait) => Box::pin(sleep(wait)).await,
                Err(error) => return End::Failed(error),
            }
            attempt += 1;
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
                Ok(Ran::Returned(output)) => self.ended(output),
                Ok(Ran::Suspended(suspension)) => match *suspension {
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
    async fn ran(&self) -> Result<Ran<Output>, NodeError> {
        let (task, def) = (&self.held.task, self.def());
        let call = Invocation {
            task,
            cells: self.held.row.cells(),
            arg: self.arg.as_ref(),
            start: self.start.as_deref(),
            failure: self.failure.as_deref(),
        };
        let timeout = self.timeout.or(def.options.timeout);
        let start = AssertUnwindSafe(|| def.node.run(call));
        let future = catch_unwind(start)
            .map_err(|panic| NodeError::panicked(&def.name, &panic_text(&*panic)))?;
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
        match writes_of(task, self.node, row, output, std::mem::take(&mut self.room)) {
            Ok(Written::Now(writes)) => Ended::Now(Ok(End::Done(writes))),
            Ok(Written::Later(writes)) => Ended::Later(Box::pin(async {
                match writes.await {
                    Ok(writes) => Ok(End::Done(writes)),
                    Err(Unwritten::Failed(error)) => Err(error),
                    Err(Unwritten::Suspended(suspension)) => Ok(End::Suspended(suspension)),
                }
            })),
            Err(error) => Ended::Now(Err(error)),
        }
    }
}

/// How an attempt ended, or what waits for the routers to tell it.
enum Ended<'a> {
    Now(Result<End, NodeError>),
    Later(TaskFuture<'a, End>),
}

/// How long to wait before the next attempt.
///
/// # Errors
/// There is none: the error comes back, or what went wrong when a policy looked at it.
pub(crate) fn retry_after(
    policies: &[RetryPolicy],
    error: NodeError,
    task: &Task,
) -> Result<std::time::Duration, NodeError> {
    let find = AssertUnwindSafe(|| policies.iter().find(|policy| policy.applies_to(&error)));
    match catch_unwind(find) {
        Err(panic) => {
            let text = format!("in a retry policy: {}", panic_text(&*panic));
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

pub(crate) enum Ran<T> {
    Returned(T),
    Suspended(Box<Suspension>),
}

/// Drives the future of a node as a task of its own, until it returns, fails, stops to ask, or its time is up.
async fn run_spawned<T: Send + 'static>(
    future: BoxFuture<Result<T, NodeError>>,
    task: &Task,
    timeout: Option<TimeoutPolicy>,
) -> Result<Ran<T>, NodeError> {
    let span = span::task(task);
    let mut handle =
        AbortOnDrop(tokio::spawn(Watched { future: Some(future), task: task.clone(), span }));
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
) -> Result<Ran<T>, NodeError> {
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

/// A node's future, dropped as soon as its task has stopped to ask something.
struct Watched<'a, T, K> {
    future: Option<TaskFuture<'a, T>>,
    task: K,
    span: Span,
}

impl<T, K: Borrow<Task> + Unpin> Future for Watched<'_, T, K> {
    type Output = Result<Ran<T>, NodeError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let task = this.task.borrow();
        let _entered = this.span.enter();
        let Some(future) = this.future.as_mut() else { return Poll::Pending };
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)));
        // What was asked counts, not what came back: a node cannot return past an open question.
        let over = task.is_over(cx.waker());
        match polled {
            _ if over => {
                this.future = None;
                Poll::Ready(Ok(Ran::Suspended(Box::new(task.take_suspension()))))
            }
            Err(panic) => {
                this.future = None;
                let text = panic_text(&*panic);
                Poll::Ready(Err(NodeError::panicked(task.name(), &text)))
            }
            Ok(Poll::Ready(ended)) => {
                this.future = None;
                let asked = task.inner.suspended.load(std::sync::atomic::Ordering::Acquire);
                if asked {
                    return Poll::Ready(Ok(Ran::Suspended(Box::new(task.take_suspension()))));
                }
                Poll::Ready(ended.map(Ran::Returned))
            }
            Ok(Poll::Pending) => {
                task.watch(cx.waker());
                // A question may have been asked on another thread between the poll and the watch.
                if task.is_over(cx.waker()) {
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

/// Why a task whose node has returned has no writes: one of its routers failed, or asked something.
pub(crate) enum Unwritten {
    Failed(NodeError),
    Suspended(Box<Suspension>),
}

impl From<NodeError> for Unwritten {
    fn from(error: NodeError) -> Self {
        Self::Failed(error)
    }
}

/// The writes of a task, or what makes them when a router has to be waited for.
pub(crate) enum Written<'a> {
    Now(Vec<Write>),
    Later(Pin<Box<dyn Future<Output = Result<Vec<Write>, Unwritten>> + Send + 'a>>),
}

/// The writes of a task: its update, where its command goes, its edges, and what its routers say.
pub(crate) fn writes_of<'a>(
    task: &'a Task,
    node: usize,
    row: &'a mut Row,
    mut output: Output,
    mut writes: Vec<Write>,
) -> Result<Written<'a>, NodeError> {
    let layout = &task.inner.superstep.setting.layout;
    let def = &layout.nodes[node];
    if output.writes.is_unchecked() {
        output.writes = output.writes.resolved(&*layout.schema).map_err(|unfit| match unfit {
            Unfit::NoUpdate(found) => not_an_update(task.name(), &found),
            Unfit::Problems(text) => NodeError::invalid_update(text, None),
        })?;
    }
    refuse_unknown(task, &output)?;
    let mut commanded = Vec::new();
    for goto in output.goto {
        go(task, goto, Mark::Null, &mut commanded)?;
    }
    if def.routers.is_empty() {
        gather(def, output.writes, commanded, &mut writes);
        return Ok(Written::Now(writes));
    }
    let seen = Seen::new(task, row, &output.writes)?;
    let mut asked = SmallVec::<[Asked; 1]>::new();
    for router in &def.routers {
        asked.push(ask(task, &**router, seen.row())?);
    }
    if asked.iter().any(|asked| matches!(asked, Asked::Awaited(_))) {
        return Ok(Written::Later(Box::pin(async move {
            let mut routes = SmallVec::<[Routes; 1]>::new();
            for asked in asked {
                routes.push(match asked {
                    Asked::Answered(routes) => routes?,
                    Asked::Awaited(future) => await_router(task, future).await?,
                });
            }
            drop(seen);
            gather(def, output.writes, commanded, &mut writes);
            for routes in routes {
                follow(task, routes, &mut writes)?;
            }
            Ok(writes)
        })));
    }
    drop(seen);
    gather(def, output.writes, commanded, &mut writes);
    for asked in asked {
        if let Asked::Answered(routes) = asked {
            follow(task, routes?, &mut writes)?;
        }
    }
    Ok(Written::Now(writes))
}

/// Lists the writes of a task in their order. What its routers say comes after them.
fn gather(def: &NodeDef, state: Writes, mut commanded: Vec<Write>, writes: &mut Vec<Write>) {
    let others = commanded.len() + def.edges.len() + def.joins.len() + def.routers.len();
    writes.reserve(state.list.len() + others);
    writes.extend(state.list.into_iter().map(|(at, value)| Write::State(at, value)));
    writes.append(&mut commanded);
    writes.extend(def.edges.iter().map(|control| Write::Branch(*control, Mark::Null)));
    writes.extend(def.joins.iter().map(|(control, member)| Write::Join(*control, *member)));
}

fn refuse_unknown(task: &Task, output: &Output) -> Result<(), NodeError> {
    let layout = &task.inner.superstep.setting.layout;
    for key in output.writes.unknown_keys() {
        if layout.lenient {
            tracing::warn!(%key, node = task.name(), "ignored an unknown key of an update");
            continue;
        }
        let near = nearest(key, layout.channels.iter().map(|spec| &*spec.name));
        return Err(NodeError::invalid_update(
            format!("node `{}` wrote to the unknown channel `{key}`{near}", task.name()),
            None,
        ));
    }
    Ok(())
}

/// Turns a place to go to into a write.
pub(crate) fn go(
    task: &Task,
    goto: Goto,
    mark: Mark,
    writes: &mut Vec<Write>,
) -> Result<(), NodeError> {
    match goto_write(&task.inner.superstep.setting.layout, goto, mark) {
        Ok(write) => writes.extend(write),
        Err(text) => {
            return Err(NodeError::invalid_update(format!("node `{}` {text}", task.name()), None));
        }
    }
    Ok(())
}

/// The write that leads to a place; nothing if it leads nowhere.
pub(crate) fn goto_write(
    layout: &super::layout::Layout,
    goto: Goto,
    mark: Mark,
) -> Result<Option<Write>, String> {
    let unknown = |name: &str, verb: &str| {
        if layout.lenient {
            tracing::warn!(node = name, "ignored an unknown node");
            return Ok(());
        }
        let near = nearest(name, layout.nodes.iter().map(|def| &*def.name));
        Err(format!("{verb} the unknown node `{name}`{near}"))
    };
    match goto {
        Goto::Node(name) if &*name == END => Ok(None),
        Goto::Node(name) => match layout.node(&name).and_then(|node| layout.branch_of[node]) {
            Some(control) => Ok(Some(Write::Branch(control, mark))),
            None => {
                unknown(&name, "goes to")?;
                // What the reference stores for it is stored, too.
                Ok(Some(Write::Unknown(format!("branch:to:{name}").into(), Blob::null())))
            }
        },
        Goto::Dispatch(dispatch) if &*dispatch.node == END => {
            Err("dispatched to the end of the graph, which runs nothing".to_owned())
        }
        Goto::Dispatch(dispatch) => {
            if layout.node(&dispatch.node).is_none() {
                unknown(&dispatch.node, "dispatched to")?;
            }
            let packet =
                Packet { node: dispatch.node, arg: dispatch.arg, timeout: dispatch.timeout };
            Ok(Some(Write::Send(packet)))
        }
    }
}

fn follow(task: &Task, routes: Routes, writes: &mut Vec<Write>) -> Result<(), NodeError> {
    for goto in routes.to {
        let answered = goto.filter(|goto| !matches!(goto, Goto::Node(name) if &**name == START));
        let Some(goto) = answered else {
            let text = format!("a router of node `{}` gave no destination", task.name());
            return Err(NodeError::bad_route("ValueError", text));
        };
        go(task, goto, Mark::Null, writes)?;
    }
    Ok(())
}

/// What routers look at: the state with the writes of their node applied, and nobody else's.
///
/// If nobody else holds the state, the writes are made in place and taken back afterwards; a superstep with one task then
/// costs what it writes, not what the state holds.
enum Seen<'a> {
    InPlace(Tried<'a>),
    Own(Row),
}

impl<'a> Seen<'a> {
    fn new(task: &Task, row: &'a mut Row, writes: &Writes) -> Result<Self, NodeError> {
        if row.is_alone() && writes.unknown().is_none() {
            let mut tried = Tried { row, taken: SmallVec::new() };
            write_own(task, tried.row, writes, &mut tried.taken)?;
            return Ok(Self::InPlace(tried));
        }
        let mut own = row.clone();
        write_own(task, &mut own, writes, &mut SmallVec::new())?;
        if let Some(unknown) = writes.unknown() {
            own.open().keep_unknown(unknown.clone());
        }
        Ok(Self::Own(own))
    }

    fn row(&self) -> &Row {
        match self {
            Self::InPlace(tried) => tried.row,
            Self::Own(row) => row,
        }
    }
}

/// What takes writes back, in the order they were made.
type Undos = SmallVec<[(usize, Taken); 2]>;

/// Writes that are taken back, also when whoever looks at them is dropped.
struct Tried<'a> {
    row: &'a mut Row,
    taken: Undos,
}

impl Drop for Tried<'_> {
    fn drop(&mut self) {
        let mut open = self.row.open();
        for (at, taken) in self.taken.drain(..).rev() {
            open.take_back(at, taken);
        }
    }
}

fn ask(task: &Task, router: &dyn Router, row: &Row) -> Result<Asked, NodeError> {
    let start = AssertUnwindSafe(|| match router.route_now(&**row.cells()) {
        Some(routes) => Asked::Answered(routes),
        None => {
            let context = RouteContext { cells: row.cells().clone(), task: task.clone() };
            Asked::Awaited(router.route(context))
        }
    });
    catch_unwind(start).map_err(|panic| router_panicked(task, &*panic))
}

fn router_panicked(task: &Task, panic: &(dyn std::any::Any + Send)) -> NodeError {
    NodeError::panicked(task.name(), &format!("in a router: {}", panic_text(panic)))
}

async fn await_router(
    task: &Task,
    future: BoxFuture<Result<Routes, NodeError>>,
) -> Result<Routes, Unwritten> {
    let caught = AssertUnwindSafe(future).catch_unwind();
    let future = Box::pin(async { caught.await.map_err(|panic| router_panicked(task, &*panic))? });
    match run_watched(future, task, None).await? {
        Ran::Returned(routes) => Ok(routes),
        Ran::Suspended(suspension) => Err(Unwritten::Suspended(suspension)),
    }
}

enum Asked {
    Answered(Result<Routes, NodeError>),
    Awaited(BoxFuture<Result<Routes, NodeError>>),
}

/// Makes the writes of one node to a row, and says how to take them back; also after a failure, those that were made.
fn write_own(
    task: &Task,
    row: &mut Row,
    writes: &Writes,
    taken: &mut Undos,
) -> Result<(), NodeError> {
    let made = catch_unwind(AssertUnwindSafe(|| try_write_own(task, row, writes, taken)));
    made.unwrap_or_else(|panic| {
        let text = format!("in a reducer: {}", panic_text(&*panic));
        Err(NodeError::panicked(task.name(), &text))
    })
}

fn try_write_own(
    task: &Task,
    row: &mut Row,
    writes: &Writes,
    taken: &mut Undos,
) -> Result<(), NodeError> {
    let layout = &task.inner.superstep.setting.layout;
    let mut open = row.open();
    let mut emptied = Vec::new();
    for (at, write) in &writes.list {
        let spec = &layout.channels[*at];
        let refused = |error: crate::state::ChannelError| {
            let text = format!("channel `{}` did not take a write: {error}", spec.name);
            NodeError::bad_route("TypeError", text)
        };
        let folds = matches!(spec.kind, Kind::Reduce | Kind::Delta(_) | Kind::Topic { .. });
        let overwrites = |(other, write): &(usize, WriteValue)| {
            other == at && matches!(write, WriteValue::Overwrite(_))
        };
        match write.clone() {
            // Beside an overwrite, other writes to the channel do not count.
            WriteValue::Update(_) if folds && writes.list.iter().any(overwrites) => {}
            WriteValue::Update(update) if folds => {
                if spec.kind == (Kind::Topic { accumulate: false }) && !emptied.contains(at) {
                    emptied.push(*at);
                    taken.push((*at, open.empty(*at)));
                }
                taken.push((*at, open.undo(*at, &update)));
                open.reduce(*at, update).map_err(refused)?;
                if matches!(spec.kind, Kind::Topic { .. }) && open.is_empty(*at) {
                    taken.push((*at, open.empty(*at)));
                }
            }
            WriteValue::Update(value) | WriteValue::Overwrite(value) => {
                taken.push((*at, open.swap(*at, value).map_err(refused)?));
            }
        }
    }
    Ok(())
}

/// What a node of the dynamic kind returned that is no update.
pub(crate) fn not_an_update(node: &str, found: &superstep_checkpoint::Value) -> NodeError {
    NodeError::invalid_update(
        format!("node `{node}` returned {found}, which is no update; return a map of channels"),
        Some(Code::InvalidGraphNodeReturnValue),
    )
}
