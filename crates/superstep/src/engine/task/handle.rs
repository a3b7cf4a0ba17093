//! One execution of a node.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::SystemTime;

use serde::de::DeserializeOwned;
use superstep_checkpoint::{
    AnyStore, CheckpointId, Interrupt, InterruptId, TaskId, Value, from_value,
};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::engine::kernel::head::StartValue;
use crate::engine::step::superstep::{Superstep, lock};
use crate::engine::stored::ids;
use crate::engine::task::handover::Handover;
use crate::engine::watch::sink::Emitted;
use crate::error::NodeError;
use crate::node::Output;
use crate::state::Row;

/// A handle to one execution of a node, taken as an argument. Cheap to clone.
#[doc(alias = "Runtime")]
#[derive(Clone)]
pub struct Task {
    pub(crate) inner: Arc<TaskInner>,
}

pub(crate) struct TaskInner {
    pub(crate) superstep: Arc<Superstep>,
    pub(crate) name: Arc<str>,
    /// What makes the id of the task.
    pub(super) identity: Identity,
    known: OnceLock<Known>,
    pub(crate) attempt: AtomicU32,
    /// Whether the task has stopped, and what it has started that still runs.
    pub(crate) handover: Handover,
    /// Whether the task has a limit on idle time.
    limited: AtomicBool,
    pub(super) emitted: Mutex<Emitted>,
    /// Whether events of this attempt were dropped.
    pub(super) lost_events: AtomicBool,
    /// Most tasks return at once and need none of this.
    scratch: OnceLock<Box<Mutex<Scratch>>>,
    /// The task that made this recorded call.
    pub(crate) caller: Option<Task>,
}

/// How the id of a task and its place in the superstep come about.
pub(crate) enum Identity {
    /// By a channel that triggered this node.
    Triggered(usize),
    /// By a dispatch, the one at this position.
    Dispatched(usize),
    /// By a task with this namespace and place, whose recorded call of this number it is.
    Called(Box<Called>),
    /// By the failure of a task.
    Handler(Box<Handler>),
}

pub(crate) struct Called {
    pub(super) ns: Arc<str>,
    pub(super) caller: String,
    pub(super) index: usize,
}

pub(crate) struct Handler {
    pub(super) ns: Arc<str>,
    failed: TaskId,
    path: String,
}

struct Known {
    id: TaskId,
    ns: Arc<str>,
}

#[derive(Default)]
pub(in crate::engine) struct Scratch {
    pub(in crate::engine) loaded: bool,
    pub(in crate::engine) answers: Vec<Value>,
    pub(in crate::engine) asked: usize,
    pub(in crate::engine) suspension: Suspension,
    /// The due times of questions that are stored for the task.
    pub(in crate::engine) stored_due: Vec<(InterruptId, SystemTime)>,
    /// Those that were decided in this run, in whichever attempt.
    pub(in crate::engine) decided_due: Vec<(InterruptId, SystemTime)>,
    pub(super) calls: usize,
    /// How many graphs this attempt has called.
    pub(super) subgraphs: usize,
    /// The graphs that were called in all attempts, each with the number of the call in its attempt.
    pub(super) called: Vec<(usize, StartValue)>,
    /// When the task last showed progress, if it has an idle timeout.
    progress: Option<Instant>,
    /// What a workflow saved when it last ran.
    previous: Option<Value>,
    /// The slot that a recorded call holds while it runs.
    pub(super) permit: Option<OwnedSemaphorePermit>,
    /// Answers that were used in this attempt.
    pub(in crate::engine) used: usize,
    /// An answer was forgotten, because it did not fit.
    pub(in crate::engine) forgot: bool,
}

/// Why a task stopped before its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Suspension {
    pub(crate) questions: Vec<Interrupt>,
    pub(crate) drained: Option<String>,
    /// A question or an answer was not taken. The run fails with it, past all retries and error handlers.
    pub(crate) refused: Option<Refusal>,
    /// A graph that the task called gave a command for the graph of the task.
    pub(crate) command: Option<Box<Output>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// The answer is not what the node takes; the text says why. The question stays open.
    Answer(String),
    /// The question cannot be stored, so it could never be answered.
    Question { node: Arc<str>, task: TaskId, error: NodeError },
}

impl Task {
    pub(crate) fn new(
        superstep: Arc<Superstep>,
        name: Arc<str>,
        identity: Identity,
        caller: Option<Task>,
    ) -> Self {
        let inner = TaskInner {
            superstep,
            name,
            identity,
            known: OnceLock::new(),
            attempt: AtomicU32::new(1),
            handover: Handover::new(),
            limited: AtomicBool::new(false),
            emitted: Mutex::default(),
            lost_events: AtomicBool::new(false),
            scratch: OnceLock::new(),
            caller,
        };
        Self { inner: Arc::new(inner) }
    }

    pub(in crate::engine) fn scratch(&self) -> MutexGuard<'_, Scratch> {
        lock(self.inner.scratch.get_or_init(Box::default))
    }

    /// What the task has noted, if it has noted anything.
    pub(super) fn noted(&self) -> Option<MutexGuard<'_, Scratch>> {
        self.inner.scratch.get().map(|scratch| lock(scratch))
    }

    /// Where the task stands in its superstep: the text by which writes are ordered, and which is stored with them.
    pub(crate) fn path(&self) -> String {
        match &self.inner.identity {
            Identity::Triggered(_) => ids::pull_path(&self.inner.name),
            Identity::Dispatched(index) => ids::push_path(*index),
            Identity::Called(called) => ids::call_path(&called.caller, called.index),
            Identity::Handler(handler) => ids::handler_path(&handler.path),
        }
    }

    fn known(&self) -> &Known {
        self.inner.known.get_or_init(|| {
            let superstep = &self.inner.superstep;
            let name = &*self.inner.name;
            let step = superstep.number.to_string();
            let place;
            let id = match &self.inner.identity {
                Identity::Triggered(node) => {
                    place = ids::place(&superstep.setting.ns, name);
                    let tail = &superstep.setting.layout.nodes[*node].id_tail;
                    ids::task_id(superstep.checkpoint, &[&place, &step, tail])
                }
                Identity::Dispatched(index) => {
                    place = ids::place(&superstep.setting.ns, name);
                    let index = index.to_string();
                    ids::task_id(superstep.checkpoint, &[&place, &step, name, ids::PUSH, &index])
                }
                Identity::Called(called) => {
                    place = ids::place(&called.ns, name);
                    let index = called.index.to_string();
                    let parts = [&place, &*step, name, ids::PUSH, &called.caller, &index];
                    ids::task_id(superstep.checkpoint, &parts)
                }
                Identity::Handler(handler) => {
                    place = ids::place(&handler.ns, name);
                    let failed = handler.failed.to_string();
                    let parts = [&place, &*step, name, ids::PUSH, ids::HANDLER, &failed];
                    ids::task_id(superstep.checkpoint, &parts)
                }
            };
            Known { id, ns: ids::task_ns(&place, id).into() }
        })
    }

    /// The id of this task: the same when it runs again, different for every other task.
    pub fn id(&self) -> TaskId {
        self.known().id
    }

    /// The namespace of this task, for the subgraphs that it calls.
    #[doc(alias = "checkpoint_ns")]
    pub fn namespace(&self) -> &str {
        &self.known().ns
    }

    /// The checkpoints of the graphs around a graph that this task calls, by namespace. As the reference has it, what calls
    /// a recorded call, and what failed into an error handler, counts as such a graph.
    pub(crate) fn parents(&self) -> BTreeMap<String, CheckpointId> {
        let Superstep { setting, checkpoint, .. } = &*self.inner.superstep;
        let mut parents = (*setting.around).clone();
        if setting.checkpointer.is_none() && !setting.ns.is_empty() {
            return parents;
        }
        parents.insert(setting.ns.to_string(), *checkpoint);
        let mut caller = Some(self);
        while let Some(task) = caller {
            let around = match &task.inner.identity {
                Identity::Called(called) => Some(&called.ns),
                Identity::Handler(handler) => Some(&handler.ns),
                Identity::Triggered(_) | Identity::Dispatched(_) => None,
            };
            parents.extend(around.map(|ns| (ns.to_string(), *checkpoint)));
            caller = task.inner.caller.as_ref();
        }
        parents
    }

    pub(crate) fn namespace_shared(&self) -> Arc<str> {
        self.known().ns.clone()
    }

    /// The name of the node.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The thread the run is on, if it is on one.
    pub fn thread(&self) -> Option<&str> {
        self.inner.superstep.setting.run.thread.as_deref()
    }

    /// The checkpoint that this superstep started from.
    pub fn checkpoint_id(&self) -> CheckpointId {
        self.inner.superstep.checkpoint
    }

    /// The number of this superstep.
    pub fn step(&self) -> i64 {
        self.inner.superstep.number
    }

    /// An idempotency key for external services: the same each time this task runs, different for
    /// every other task.
    ///
    /// Inside a [recorded call](Self::call_with) it is the key of the call. It is stable across
    /// interrupts, failures, crashes and retries, except under
    /// [`Durability::Exit`](crate::Durability::Exit), where a lost run starts over with new keys. A
    /// branch has its own keys.
    pub fn idempotency_key(&self) -> String {
        self.id().to_string()
    }

    /// Which attempt this is; the first is 1.
    pub fn attempt(&self) -> u32 {
        self.inner.attempt.load(Ordering::Relaxed)
    }

    /// How many supersteps are left before the recursion limit.
    pub fn remaining_steps(&self) -> i64 {
        self.inner.superstep.stop.saturating_sub(self.inner.superstep.number)
    }

    /// Whether this is the last superstep before the recursion limit.
    pub fn is_last_step(&self) -> bool {
        self.inner.superstep.number == self.inner.superstep.stop.saturating_sub(1)
    }

    /// Long-term memory, if the graph has one.
    pub fn store(&self) -> Option<&AnyStore> {
        self.inner.superstep.setting.store.as_ref()
    }

    /// The `T` of the run's context, if there is one.
    pub fn context<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.inner.superstep.setting.run.context.get()
    }

    /// The saved result of the workflow's last complete run on this thread.
    ///
    /// # Errors
    /// The saved result is not a `P`.
    pub fn previous<P: DeserializeOwned>(&self) -> Result<Option<P>, NodeError> {
        let previous = self.noted().and_then(|scratch| scratch.previous.clone());
        match (previous, &self.inner.caller) {
            (Some(value), _) => Ok(Some(from_value(value)?)),
            (None, Some(caller)) => caller.previous(),
            (None, None) => Ok(None),
        }
    }

    pub(crate) fn set_previous(&self, value: Option<Value>) {
        self.scratch().previous = value;
    }

    /// The channels that the node reads, as data.
    pub(crate) fn input_value(
        &self,
        cells: &Arc<dyn std::any::Any + Send + Sync>,
    ) -> Result<Value, superstep_checkpoint::Error> {
        let layout = &self.inner.superstep.setting.layout;
        let row = Row::new(cells.clone(), layout.schema.clone());
        let mut map = superstep_checkpoint::Map::new();
        let Some(node) = layout.node(self.name()) else { return Ok(Value::Map(map)) };
        if let crate::engine::kernel::layout::Reads::Channels(channels) = &layout.nodes[node].reads
        {
            for at in channels.iter().filter(|at| self.inner.superstep.filled[**at]) {
                map.insert(layout.channels[*at].name.to_string(), row.value(*at)?);
            }
        }
        Ok(Value::Map(map))
    }

    /// The control of the run, which can stop it. See [`RunControl`](crate::RunControl).
    pub fn control(&self) -> &crate::RunControl {
        &self.inner.superstep.setting.run.control
    }

    /// Reports progress to a limit on idle time.
    pub fn heartbeat(&self) {
        self.note_progress();
    }

    pub(crate) fn note_progress(&self) {
        if self.inner.limited.load(Ordering::Relaxed) {
            self.scratch().progress = Some(Instant::now());
        }
    }

    /// Begins to take note of progress.
    pub(crate) fn limit_idle_time(&self) {
        self.inner.limited.store(true, Ordering::Relaxed);
        self.note_progress();
    }

    pub(crate) fn last_progress(&self) -> Instant {
        self.scratch().progress.unwrap_or_else(Instant::now)
    }

    /// Begins an attempt: everything that is counted is counted from the beginning.
    pub(crate) fn begin_attempt(&self, attempt: u32) {
        self.inner.attempt.store(attempt, Ordering::Relaxed);
        if attempt > 1 {
            let mut scratch = self.scratch();
            scratch.asked = 0;
            scratch.used = 0;
            scratch.calls = 0;
            scratch.subgraphs = 0;
            scratch.suspension = Suspension::default();
            drop(scratch);
            self.inner.handover.restart();
            self.inner.lost_events.store(false, Ordering::Release);
            self.note_progress();
        }
    }

    /// Lets a task that has failed do something else in its place.
    pub(crate) fn restart(&self) {
        self.scratch().suspension = Suspension::default();
        self.inner.handover.restart();
        self.inner.lost_events.store(false, Ordering::Release);
        self.note_progress();
    }

    /// Marks the task as stopped, and has the driver look.
    pub(in crate::engine) fn suspend(&self) {
        self.inner.handover.stop();
        self.inner.superstep.setting.wake();
    }

    /// Records why a graph called by this task stopped. The task stops with it.
    pub(crate) fn suspend_with(&self, reason: Suspension) {
        let mut scratch = self.scratch();
        scratch.suspension.questions.extend(reason.questions);
        if reason.drained.is_some() {
            scratch.suspension.drained = reason.drained;
        }
        if reason.refused.is_some() {
            scratch.suspension.refused = reason.refused;
        }
        if reason.command.is_some() {
            scratch.suspension.command = reason.command;
        }
        drop(scratch);
        self.suspend();
    }

    pub(crate) fn take_suspension(&self) -> Suspension {
        std::mem::take(&mut self.scratch().suspension)
    }

    /// The answers that the task has, if it used any or forgot one.
    pub(crate) fn answers(&self) -> Option<Vec<Value>> {
        let scratch = self.noted()?;
        (scratch.used > 0 || scratch.forgot)
            .then(|| scratch.answers[..scratch.used.min(scratch.answers.len())].to_vec())
    }

    /// The task of the error handler of this one, which has failed.
    pub(crate) fn handled_by(&self, handler: Arc<str>) -> Self {
        let failed = Handler { ns: self.namespace_shared(), failed: self.id(), path: self.path() };
        let identity = Identity::Handler(Box::new(failed));
        Self::new(self.inner.superstep.clone(), handler, identity, None)
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("name", &self.inner.name)
            .field("step", &self.step())
            .field("attempt", &self.attempt())
            .finish_non_exhaustive()
    }
}
