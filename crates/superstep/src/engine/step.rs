//! Running the tasks of one superstep.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_util::stream::FuturesUnordered;
use superstep_checkpoint::{AnyCache, Blob, CacheKey, Error, Interrupt, TaskWrites, Value};
use tokio::time::{Instant, sleep_until};

use super::apply::{Actor, Applied};
use super::attempt::{End, Job};
use super::drive::{Driver, Stop};
use super::emit;
use super::head::{Control, Head, Packet, StartValue, Write};
use super::ids::Path;
use super::layout::{Layout, NodeDef, Reads};
use super::plan::{Cause, Planned};
use super::record::{self, ERROR, ERROR_SOURCE, INTERRUPT, NO_WRITES, RESUME};
use super::task::{Identity, Superstep, Suspension, Task, lock};
use crate::error::{NodeError, RunError, panic_text};
use crate::graph::TimeoutPolicy;
use crate::node::{BoxFuture, Failure, Output};
use crate::run::{Data, Durability, MessageEvent, Mode};
use crate::state::{Payload, Row};

/// A task of the superstep that is running.
pub(crate) struct Entry {
    pub(crate) task: Task,
    pub(crate) node: usize,
    kind: EntryKind,
    arg: Option<Payload>,
    timeout: Option<TimeoutPolicy>,
    failure: Option<Failure>,
    /// What it wrote, if it has finished.
    pub(crate) writes: Option<Vec<Write>>,
    /// The writes come from storage.
    pub(crate) kept: bool,
    /// It failed, and its error handler runs in its place.
    pub(crate) handled: bool,
    /// It has ended, one way or another.
    ended: bool,
    pub(crate) is_handler: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryKind {
    Triggered,
    Dispatched(usize),
}

impl Entry {
    pub(crate) fn new(superstep: &Arc<Superstep>, planned: Planned) -> Self {
        let Planned { node, cause } = planned;
        let name = superstep.layout.nodes[node].name.clone();
        let (kind, path, identity, arg, timeout) = match cause {
            Cause::Triggered => {
                let path = Path::Pull(name.clone());
                (EntryKind::Triggered, path, Identity::Triggered(node), None, None)
            }
            Cause::Dispatched(index, arg, timeout) => (
                EntryKind::Dispatched(index),
                Path::Push(index),
                Identity::Dispatched(index),
                Some(arg),
                timeout.map(TimeoutPolicy::from_stored),
            ),
        };
        Self {
            task: Task::new(superstep.clone(), name, path, identity, None),
            node,
            kind,
            arg,
            timeout,
            failure: None,
            writes: None,
            kept: false,
            handled: false,
            ended: false,
            is_handler: false,
        }
    }

    /// The task of the error handler of a failed task.
    pub(crate) fn handler(
        superstep: &Arc<Superstep>,
        failed: &Self,
        handler: usize,
        error: impl Into<HandledError>,
    ) -> Self {
        let name = superstep.layout.nodes[handler].name.clone();
        let path = Path::Handler(Box::new(failed.task.inner.path.clone()));
        let identity =
            Identity::Handler { ns: failed.task.namespace_shared(), failed: failed.task.id() };
        let error = error.into().0;
        Self {
            task: Task::new(superstep.clone(), name, path, identity, None),
            node: handler,
            kind: failed.kind,
            arg: failed.arg.clone(),
            timeout: None,
            failure: Some(Failure { node: failed.task.inner.name.clone(), error }),
            writes: None,
            kept: false,
            handled: false,
            ended: false,
            is_handler: true,
        }
    }

    /// The order in which writes are folded: that of the text of the path, without making the text.
    pub(crate) fn order(&self, layout: &Layout) -> (u8, OrderName<'_>, usize, bool) {
        match (self.kind, &self.failure) {
            (EntryKind::Dispatched(index), _) => (1, OrderName(""), index, self.is_handler),
            (EntryKind::Triggered, Some(failure)) => (0, OrderName(&failure.node), 0, true),
            (EntryKind::Triggered, None) => {
                let _ = layout;
                (0, OrderName(&self.task.inner.name), 0, self.is_handler)
            }
        }
    }

    pub(crate) fn actor(&self) -> Actor {
        let triggered = self.kind == EntryKind::Triggered && !self.is_handler;
        if triggered { Actor::Triggered(self.node) } else { Actor::Ran(self.node) }
    }

    pub(crate) fn into_applied(self) -> Applied {
        Applied {
            name: self.task.inner.name.clone(),
            actor: self.actor(),
            writes: self.writes.unwrap_or_default(),
        }
    }

    /// The dispatch that asked for this task, if one did.
    pub(crate) fn packet(&self) -> Option<Packet> {
        let arg = self.arg.clone()?;
        let timeout = self.timeout.map(TimeoutPolicy::stored);
        Some(Packet { node: self.task.inner.name.clone(), arg, timeout })
    }

    /// What the node gets, as data.
    pub(crate) fn input_value(&self, layout: &Layout, head: &Head, step: i64, stop: i64) -> Value {
        match &self.arg {
            Some(arg) => arg.to_value().unwrap_or_default(),
            None => emit::input_value(layout, head, &layout.nodes[self.node].reads, step, stop),
        }
    }

    pub(crate) fn triggers(&self, def: &NodeDef) -> Vec<Arc<str>> {
        match self.kind {
            EntryKind::Triggered if !self.is_handler => def.trigger_names.clone(),
            _ => vec![super::ids::PUSH.into()],
        }
    }

    fn job(&self, layout: &Layout, controls: &[Control], row: Row) -> Job {
        let start = match &layout.nodes[self.node].reads {
            Reads::Start => controls.iter().find_map(|control| match control {
                Control::Start(value) => value.clone(),
                _ => None,
            }),
            Reads::Channels(_) => None,
        };
        let arg = match &start {
            Some(StartValue::Arg(payload)) => Some(payload.clone()),
            _ => self.arg.clone(),
        };
        Job {
            task: self.task.clone(),
            node: self.node,
            row,
            arg,
            start,
            failure: self.failure.clone(),
            timeout: self.timeout,
        }
    }
}

/// Names compare by their bytes, as the stored paths do.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OrderName<'a>(&'a str);

/// An error on its way to a handler: as it happened, or as it was stored.
pub(crate) struct HandledError(NodeError);

impl From<NodeError> for HandledError {
    fn from(error: NodeError) -> Self {
        Self(error)
    }
}

impl From<String> for HandledError {
    fn from(stored: String) -> Self {
        let kind = stored.split(|c: char| !c.is_alphanumeric() && c != '_').next();
        let kind = kind.unwrap_or_default().to_owned();
        Self(NodeError::permanent(stored).named(kind))
    }
}

/// How the tasks of a superstep ended.
pub(super) enum StepEnd {
    /// All of them have writes to apply.
    Finished(Vec<Entry>),
    /// Something stopped the superstep; what was finished is stored.
    Stopped(Stop, Vec<Entry>),
}

type Running = BoxFuture<(usize, End, Row)>;
type Saving = BoxFuture<Result<(), Error>>;

/// The futures of a superstep. Sets are made when something is put in: most supersteps need none of them.
#[derive(Default)]
struct Futures {
    /// A lone task is polled in place, which is much cheaper than through a set.
    lone: Option<Running>,
    tasks: Set<Running>,
    waiting: VecDeque<usize>,
    /// Error handlers: they start when the failure they handle is stored.
    handlers: VecDeque<usize>,
    children: Set<BoxFuture<()>>,
    saves: Set<Saving>,
    running: usize,
}

struct Set<F>(Option<FuturesUnordered<F>>);

impl<F> Default for Set<F> {
    fn default() -> Self {
        Self(None)
    }
}

impl<F: Future> Set<F> {
    fn push(&mut self, future: F) {
        self.0.get_or_insert_default().push(future);
    }

    /// The next future that is ready; nothing if none is, or if there is none.
    fn poll(&mut self, cx: &mut Context<'_>) -> Option<F::Output> {
        match Pin::new(self.0.as_mut()?).poll_next(cx) {
            Poll::Ready(ended) => ended,
            Poll::Pending => None,
        }
    }

    fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(FuturesUnordered::is_empty)
    }
}

enum Happened {
    Ended(usize, End, Row),
    Saved(Result<(), Error>),
    TimedOut,
    /// Nothing is left to wait for.
    Idle,
}

impl Futures {
    fn poll(&mut self, cx: &mut Context<'_>, superstep: &Superstep) -> Poll<Happened> {
        *lock(&superstep.waker) = Some(cx.waker().clone());
        loop {
            if let Some(saved) = self.saves.poll(cx) {
                return Poll::Ready(Happened::Saved(saved));
            }
            if let Some(lone) = &mut self.lone
                && let Poll::Ready((at, end, row)) = lone.as_mut().poll(cx)
            {
                self.lone = None;
                return Poll::Ready(Happened::Ended(at, end, row));
            }
            if let Some((at, end, row)) = self.tasks.poll(cx) {
                return Poll::Ready(Happened::Ended(at, end, row));
            }
            while let Some(()) = self.children.poll(cx) {}
            let started = std::mem::take(&mut *lock(&superstep.started));
            if started.is_empty() {
                break;
            }
            for child in started {
                self.children.push(child.future);
            }
        }
        let idle = self.lone.is_none()
            && self.tasks.is_empty()
            && self.children.is_empty()
            && self.saves.is_empty();
        if idle { Poll::Ready(Happened::Idle) } else { Poll::Pending }
    }
}

impl Driver {
    /// Runs the tasks that have no writes yet.
    pub(super) async fn execute(
        &mut self,
        superstep: &Arc<Superstep>,
        mut entries: Vec<Entry>,
    ) -> Result<StepEnd, RunError> {
        self.use_cache(&mut entries).await?;
        let mut futures = Futures::default();
        let to_run = |entry: &Entry| entry.writes.is_none() && !entry.handled;
        futures.waiting =
            entries.iter().enumerate().filter(|(_, e)| to_run(e)).map(|(at, _)| at).collect();
        // A superstep with a time limit may be given up with its task and all that the task has.
        let lone = futures.waiting.len() == 1 && self.graph.step_timeout.is_none();
        let mut state = StepState::default();
        if lone {
            let at = futures.waiting.pop_front().unwrap_or_default();
            // The task has the state for itself: its routers can see its writes without a copy.
            let hollow = Row::hollow(&self.head.row);
            let row = std::mem::replace(&mut self.head.row, hollow);
            let job = entries[at].job(&self.layout, &self.head.controls, row);
            futures.lone = Some(Box::pin(async move {
                let (end, row) = job.run().await;
                (at, end, row)
            }));
            futures.running = 1;
        } else {
            self.start_waiting(&mut futures, &entries);
        }
        let deadline = self.graph.step_timeout.map(|limit| Instant::now() + limit);
        loop {
            let happened = match deadline {
                None => poll_fn(|cx| futures.poll(cx, superstep)).await,
                Some(deadline) => tokio::select! {
                    biased;
                    happened = poll_fn(|cx| futures.poll(cx, superstep)) => happened,
                    () = sleep_until(deadline) => Happened::TimedOut,
                },
            };
            match happened {
                Happened::Ended(at, end, row) => {
                    if self.head.row.is_hollow() {
                        self.head.row = row;
                    }
                    futures.running -= 1;
                    let failed =
                        self.ended(superstep, &mut futures, &mut entries, &mut state, at, end)?;
                    if let Some(error) = failed {
                        return Err(self.fail(futures, &entries, error).await);
                    }
                    self.start_waiting(&mut futures, &entries);
                }
                Happened::Saved(saved) => {
                    saved?;
                    self.start_waiting(&mut futures, &entries);
                }
                Happened::TimedOut => {
                    let limit = self.graph.step_timeout.unwrap_or_default();
                    let error = RunError::StepTimeout { step: self.step, limit };
                    return Err(self.fail(futures, &entries, error).await);
                }
                Happened::Idle => break,
            }
        }
        self.finish_step(entries, state).await
    }

    fn start_waiting(&self, futures: &mut Futures, entries: &[Entry]) {
        let limit = self.run.max_concurrency.unwrap_or(usize::MAX).max(1);
        if futures.saves.is_empty() {
            futures.waiting.append(&mut futures.handlers);
        }
        while futures.running < limit {
            let Some(at) = futures.waiting.pop_front() else { return };
            let job = entries[at].job(&self.layout, &self.head.controls, self.head.row.clone());
            futures.tasks.push(Box::pin(async move {
                let (end, row) = job.run().await;
                (at, end, row)
            }));
            futures.running += 1;
        }
    }

    /// Takes note of how a task ended. Returns the error that ends the superstep, if it does.
    fn ended(
        &mut self,
        superstep: &Arc<Superstep>,
        futures: &mut Futures,
        entries: &mut Vec<Entry>,
        state: &mut StepState,
        at: usize,
        end: End,
    ) -> Result<Option<RunError>, RunError> {
        let layout = self.layout.clone();
        let entry = &mut entries[at];
        entry.ended = true;
        let def = &layout.nodes[entry.node];
        let task = entry.task.clone();
        let answers = task.answers();
        match end {
            End::Done(writes) => {
                if !def.hidden {
                    self.emitter.update(&task.inner.name, &writes, false);
                    self.emitter.task_end(&task, self.step, &writes, None, &[]);
                    self.emit_messages(&task, &writes);
                }
                let stored = self.encode_output(&writes, answers)?;
                self.keep_in_cache(entry, &writes, futures)?;
                entry.writes = Some(writes);
                self.store(futures, &task, stored);
            }
            End::Failed(error) => {
                if !def.hidden {
                    self.emitter.task_end(&task, self.step, &[], Some(&error), &[]);
                }
                let mut stored = vec![(ERROR, Value::from(error.stored()))];
                if def.handler.is_some() {
                    stored.push((ERROR_SOURCE, Value::from(&*task.inner.name)));
                }
                if let Some(answers) = answers {
                    stored.push((RESUME, Value::List(answers)));
                }
                let Some(handler) = def.handler else {
                    self.store(futures, &task, encode(stored)?);
                    let node = task.inner.name.clone();
                    return Ok(Some(RunError::Node { node, task: task.id(), error }));
                };
                entry.handled = true;
                let handler = Entry::handler(superstep, entry, handler, error);
                entries.push(handler);
                futures.handlers.push_back(entries.len() - 1);
                self.store(futures, &task, encode(stored)?);
            }
            End::Suspended(suspension) => {
                self.suspended(futures, state, &task, def, suspension, answers)?;
            }
            End::ForParent(output) => {
                if !self.is_nested() {
                    let node = task.inner.name.clone();
                    return Ok(Some(RunError::NoParent { node }));
                }
                state.for_parent = Some(output);
            }
        }
        Ok(None)
    }

    fn suspended(
        &mut self,
        futures: &mut Futures,
        state: &mut StepState,
        task: &Task,
        def: &NodeDef,
        suspension: Suspension,
        answers: Option<Vec<Value>>,
    ) -> Result<(), RunError> {
        let Suspension { questions, drained, .. } = suspension;
        state.stopped = true;
        if questions.is_empty() {
            state.drained = drained.or(state.drained.take());
            return Ok(());
        }
        let mut stored = vec![(INTERRUPT, Interrupt::list_to(&questions))];
        if let Some(answers) = answers {
            stored.push((RESUME, Value::List(answers)));
        }
        self.store(futures, task, encode(stored)?);
        if !def.hidden {
            self.emitter.interrupted(&self.head, &questions);
            self.emitter.task_end(task, self.step, &[], None, &questions);
        }
        state.questions.push((task.inner.path.text(), questions));
        Ok(())
    }

    /// Stores what a task did, unless nothing is stored or it goes with the checkpoint.
    fn store(&mut self, futures: &mut Futures, task: &Task, writes: Vec<(Arc<str>, Blob)>) {
        let (Some(saver), Some(thread)) = (&self.saver, &self.run.thread) else { return };
        let writes =
            TaskWrites { task: task.id(), path: task.inner.path.text(), writes, replaces: false };
        let last =
            futures.running == 0 && futures.waiting.is_empty() && futures.handlers.is_empty();
        if last || self.run.durability == Durability::Exit {
            self.unsaved.push(writes);
            return;
        }
        let (saver, thread) = (saver.clone(), thread.clone());
        let (ns, id) = (self.ns.clone(), self.id);
        futures
            .saves
            .push(Box::pin(async move { saver.put_writes(&thread, &ns, id, vec![writes]).await }));
    }

    fn encode_output(
        &self,
        writes: &[Write],
        answers: Option<Vec<Value>>,
    ) -> Result<Vec<(Arc<str>, Blob)>, RunError> {
        if self.saver.is_none() {
            return Ok(Vec::new());
        }
        let mut stored = Vec::with_capacity(writes.len() + 1);
        if let Some(answers) = answers {
            stored.push((RESUME.into(), Blob::from_value(&Value::List(answers))?));
        }
        let mut any = false;
        for write in writes {
            if let Some(write) = record::encode_write(&self.layout, write)? {
                stored.push(write);
                any = true;
            }
        }
        if !any {
            stored.push((NO_WRITES.into(), Blob::null()));
        }
        Ok(stored)
    }

    /// A failed superstep: what runs is dropped, and everything known is stored before the error is told.
    async fn fail(&mut self, futures: Futures, entries: &[Entry], error: RunError) -> RunError {
        let Futures { lone, tasks, mut saves, waiting, .. } = futures;
        let begun = |at: &usize| !waiting.contains(at);
        drop((lone, tasks));
        let mut writes = std::mem::take(&mut self.unsaved);
        for (at, entry) in entries.iter().enumerate() {
            let open = entry.writes.is_none() && !entry.handled && !entry.ended;
            let stores = self.saver.is_some() && self.run.durability != Durability::Exit;
            if !open || !begun(&at) || !stores {
                continue;
            }
            let cancelled = NodeError::cancelled(entry.task.name());
            if let Ok(stored) = encode(vec![(ERROR, Value::from(cancelled.stored()))]) {
                writes.push(TaskWrites {
                    task: entry.task.id(),
                    path: entry.task.inner.path.text(),
                    writes: stored,
                    replaces: false,
                });
            }
        }
        if self.run.durability == Durability::Exit {
            self.unsaved = writes;
            return error;
        }
        while let Some(saved) = poll_fn(|cx| match saves.poll(cx) {
            None if !saves.is_empty() => Poll::Pending,
            saved => Poll::Ready(saved),
        })
        .await
        {
            if let Err(error) = saved {
                return error.into();
            }
        }
        if let Err(error) = self.put_writes(writes).await {
            return error.into();
        }
        error
    }

    async fn finish_step(
        &mut self,
        entries: Vec<Entry>,
        state: StepState,
    ) -> Result<StepEnd, RunError> {
        if !state.stopped && state.for_parent.is_none() {
            return Ok(StepEnd::Finished(entries));
        }
        if self.run.durability != Durability::Exit {
            let writes = std::mem::take(&mut self.unsaved);
            self.put_writes(writes).await?;
        }
        let mut asked = state.questions;
        asked.sort_by(|(a, _), (b, _)| a.cmp(b));
        let questions: Vec<_> = asked.into_iter().flat_map(|(_, questions)| questions).collect();
        let stop = match (questions.is_empty(), state.for_parent, state.drained) {
            (false, ..) => Stop::Interrupted(questions),
            (true, Some(output), _) => Stop::ForParent(output),
            (true, None, Some(reason)) => Stop::Drained(reason.into()),
            (true, None, None) => Stop::Breakpoint,
        };
        Ok(StepEnd::Stopped(stop, entries))
    }

    /// The cache and the key for a task, if its result is to be cached.
    fn cache_key(&self, entry: &Entry) -> Result<Option<(AnyCache, CacheKey)>, RunError> {
        let policy = self.layout.nodes[entry.node].options.cache.as_ref();
        let cache = self.run.cache.as_ref().filter(|_| !self.is_nested());
        let (Some(policy), Some(cache)) = (policy, cache) else { return Ok(None) };
        let input = entry.input_value(&self.layout, &self.head, self.step, self.stop);
        let key = catch_unwind(AssertUnwindSafe(|| emit::cache_key(&input, policy)));
        let key = key.map_err(|panic| {
            let text = format!("in the key of its cache: {}", panic_text(&*panic));
            let node = entry.task.inner.name.clone();
            let error = NodeError::panicked(&node, &text);
            RunError::Node { node, task: entry.task.id(), error }
        })?;
        let ns = cache_ns(&self.layout.name, &entry.task.inner.name);
        Ok(Some((cache.clone(), CacheKey { ns, key })))
    }

    /// Gives tasks whose result is cached that result.
    async fn use_cache(&mut self, entries: &mut [Entry]) -> Result<(), RunError> {
        if self.run.cache.is_none() {
            return Ok(());
        }
        let mut found = Vec::new();
        for (at, entry) in entries.iter().enumerate().filter(|(_, e)| e.writes.is_none()) {
            let Some((cache, key)) = self.cache_key(entry)? else { continue };
            let Some(cached) = cache.get(&key).await? else { continue };
            let writes =
                cached.iter().map(|(name, blob)| record::decode_write(&self.layout, name, blob));
            found.push((at, writes.collect::<Result<Vec<_>, _>>()?));
        }
        for (at, writes) in found {
            let entry = &mut entries[at];
            self.emitter.update(&entry.task.inner.name, &writes, true);
            let stored = self.encode_output(&writes, None)?;
            if self.saver.is_some() {
                self.unsaved.push(TaskWrites {
                    task: entry.task.id(),
                    path: entry.task.inner.path.text(),
                    writes: stored,
                    replaces: false,
                });
            }
            entry.writes = Some(writes);
        }
        Ok(())
    }

    fn keep_in_cache(
        &self,
        entry: &Entry,
        writes: &[Write],
        futures: &mut Futures,
    ) -> Result<(), RunError> {
        let Some((cache, key)) = self.cache_key(entry)? else { return Ok(()) };
        let ttl = self.layout.nodes[entry.node].options.cache.as_ref().and_then(|p| p.ttl);
        let stored =
            writes.iter().filter_map(|w| record::encode_write(&self.layout, w).transpose());
        let stored = stored.collect::<Result<Vec<_>, _>>()?;
        futures.saves.push(Box::pin(async move { cache.put(key, stored, ttl).await }));
        Ok(())
    }

    /// Shows whole messages that a node wrote and that neither it nor its input has shown before.
    fn emit_messages(&self, task: &Task, writes: &[Write]) {
        let Some(sink) = self.run.sink_for(Mode::Messages, &self.ns) else { return };
        for write in writes {
            let Write::State(at, value) = write else { continue };
            let written = messages_in(value.to_value().unwrap_or_default());
            if written.is_empty() {
                continue;
            }
            let known = messages_in(self.head.row.value(*at).unwrap_or_default());
            for message in written {
                let id = message.get("id").and_then(Value::as_str);
                let old = id.is_some()
                    && known.iter().any(|old| old.get("id").and_then(Value::as_str) == id);
                if old || !id.is_none_or(|id| sink.show_message(id)) {
                    continue;
                }
                let metadata = task.message_metadata();
                sink.push(&self.ns, Data::Messages(MessageEvent { chunk: message, metadata }));
            }
        }
    }
}

/// The messages in a value: itself, or the items of a list.
fn messages_in(value: Value) -> Vec<Value> {
    let is_message = |value: &Value| value.get("content").is_some() && value.get("type").is_some();
    match value {
        Value::List(items) => items.into_iter().filter(is_message).collect(),
        one if is_message(&one) => vec![one],
        _ => Vec::new(),
    }
}

/// Where results of a node are cached.
pub(crate) fn cache_ns(graph: &str, node: &str) -> Vec<String> {
    vec!["__pregel_ns_writes".to_owned(), graph.to_owned(), node.to_owned()]
}

/// What is known about a superstep that is running.
#[derive(Default)]
struct StepState {
    stopped: bool,
    drained: Option<String>,
    questions: Vec<(String, Vec<Interrupt>)>,
    for_parent: Option<Output>,
}

fn encode(writes: Vec<(&'static str, Value)>) -> Result<Vec<(Arc<str>, Blob)>, Error> {
    writes.into_iter().map(|(name, value)| Ok((name.into(), Blob::from_value(&value)?))).collect()
}
