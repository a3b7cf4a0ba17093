//! What the tasks of one superstep have in common.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::SystemTime;

use superstep_checkpoint::{
    AnyCache, AnyCheckpointer, AnyStore, CheckpointId, InterruptId, TaskId, TaskWrites, Value,
};
use tokio::sync::{Notify, Semaphore};

use crate::engine::drive::run::Run;
use crate::engine::kernel::layout::Layout;
use crate::engine::watch::emit::Emitter;
use crate::error::RunError;
use crate::node::BoxFuture;
use crate::state::Row;

/// What all supersteps of one graph in one run have in common.
pub(crate) struct GraphRun {
    pub(crate) run: Arc<Run>,
    pub(crate) layout: Arc<Layout>,
    /// Where this graph stores, if it does.
    pub(crate) checkpointer: Option<AnyCheckpointer>,
    /// Where graphs inside this one store.
    pub(crate) inside: Option<AnyCheckpointer>,
    /// The namespace of the graph; empty for the outermost.
    pub(crate) ns: Arc<str>,
    /// The checkpoints of the graphs around this one, by namespace.
    pub(crate) around: Arc<BTreeMap<String, CheckpointId>>,
    /// How many recorded calls may run at the same time, if there is a limit.
    pub(crate) call_slots: Option<Arc<Semaphore>>,
    pub(crate) emitter: Arc<Emitter>,
    /// The run's long-term memory, or the graph's own if the run has none.
    pub(crate) store: Option<AnyStore>,
    /// Whether what happens is stored as it happens.
    pub(crate) stores: bool,
    /// Whether what is not stored as it happens is stored meanwhile.
    pub(crate) flushes: bool,
    /// Wakes the task that polls the run.
    waker: Mutex<Option<Waker>>,
}

impl GraphRun {
    pub(crate) fn new(
        run: Arc<Run>,
        layout: Arc<Layout>,
        checkpointer: Option<AnyCheckpointer>,
        ns: Arc<str>,
        around: Arc<BTreeMap<String, CheckpointId>>,
        emitter: Arc<Emitter>,
        store: Option<AnyStore>,
    ) -> Self {
        use crate::engine::drive::control::Durability;
        let checkpointer = match run.durability {
            Durability::Async => checkpointer.map(AnyCheckpointer::relaxed),
            Durability::Sync | Durability::Exit => checkpointer,
        };
        Self {
            call_slots: run.max_concurrency.map(|slots| Arc::new(Semaphore::new(slots.max(1)))),
            store: run.store.clone().or(store),
            stores: run.durability == Durability::Sync,
            flushes: run.durability == Durability::Async && checkpointer.is_some(),
            waker: Mutex::default(),
            run,
            layout,
            inside: checkpointer.clone(),
            checkpointer,
            ns,
            around,
            emitter,
        }
    }

    /// Where results are kept by key. A graph inside another has no cache.
    pub(crate) fn cache(&self) -> Option<&AnyCache> {
        self.run.cache.as_ref().filter(|_| self.ns.is_empty())
    }

    /// Takes note of whom to wake.
    pub(crate) fn watch(&self, waker: &Waker) {
        let mut known = lock(&self.waker);
        match &mut *known {
            Some(known) => known.clone_from(waker),
            None => *known = Some(waker.clone()),
        }
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = &*lock(&self.waker) {
            waker.wake_by_ref();
        }
    }
}

/// One superstep of a graph, as its tasks see it.
pub(crate) struct Superstep {
    pub(crate) setting: Arc<GraphRun>,
    pub(crate) checkpoint: CheckpointId,
    pub(crate) number: i64,
    pub(crate) stop: i64,
    /// Whether graphs that are called in this superstep continue from where they were; unknown after the first one.
    pub(crate) resuming: Option<bool>,
    /// The checkpoint of this superstep, or of one around it, was made from outside, and not by a run.
    pub(crate) touched: bool,
    /// Opens when the checkpoint of this superstep is stored. Graphs inside its tasks store nothing before.
    pub(crate) stored: Gate,
    /// Answers for tasks of a branch that begins here, by path.
    pub(crate) seeds: HashMap<String, Vec<Value>>,
    /// Whether each state channel has a value; known only in graphs with graphs as nodes.
    pub(crate) filled: Vec<bool>,
    work: Mutex<Work>,
}

/// What tasks leave for the driver while they run.
#[derive(Default)]
pub(crate) struct Work {
    /// What is stored about tasks of this superstep.
    pub(crate) records: HashMap<TaskId, Record>,
    /// Tasks that were started by other tasks and are to be driven with them.
    pub(crate) started: Vec<Started>,
    /// The state, given back by a lone task that was dropped.
    pub(crate) lent: Option<Row>,
    /// The names of the recorded calls that were made.
    pub(crate) calls: BTreeSet<Arc<str>>,
    /// What tasks and recorded calls did, when it is not stored as it happens.
    pub(crate) unsaved: Vec<TaskWrites>,
    /// Something a task did could not be stored: the run ends, whatever the node makes of it.
    pub(crate) fault: Option<RunError>,
}

impl Work {
    fn clear(&mut self) {
        let Self { records, started, lent, calls, unsaved, fault } = self;
        records.clear();
        started.clear();
        *lent = None;
        if !calls.is_empty() {
            calls.clear();
        }
        unsaved.clear();
        *fault = None;
    }

    /// Whether nothing is left that the driver has to see to.
    pub(in crate::engine) fn is_quiet(&self) -> bool {
        self.started.is_empty() && self.fault.is_none()
    }
}

/// A recorded call that the driver has to drive.
pub(crate) struct Started {
    pub(crate) future: BoxFuture<()>,
}

/// What is known about a task from storage or from earlier in the superstep.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) answers: Vec<Value>,
    /// When questions of the task are due.
    pub(crate) due: Vec<(InterruptId, SystemTime)>,
    pub(crate) returned: Option<Value>,
    /// How the task failed, as it was stored.
    pub(crate) error: Option<String>,
    /// What the arguments of a recorded call came to.
    pub(crate) args: Option<Value>,
}

impl Superstep {
    pub(crate) fn new(setting: Arc<GraphRun>) -> Self {
        Self {
            setting,
            checkpoint: CheckpointId::from_bytes([0; 16]),
            number: 0,
            stop: 0,
            resuming: None,
            touched: false,
            stored: Gate::new(true),
            seeds: HashMap::new(),
            filled: Vec::new(),
            work: Mutex::default(),
        }
    }

    /// Makes it the superstep with this number, about which nothing is known yet.
    pub(crate) fn begin(&mut self, checkpoint: CheckpointId, number: i64, stop: i64) {
        (self.checkpoint, self.number, self.stop) = (checkpoint, number, stop);
        self.seeds.clear();
        self.work.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Takes note of what is stored about its tasks.
    pub(crate) fn know(&mut self, records: HashMap<TaskId, Record>) {
        self.work.get_mut().unwrap_or_else(PoisonError::into_inner).records = records;
    }

    pub(crate) fn work(&self) -> MutexGuard<'_, Work> {
        lock(&self.work)
    }

    /// Ends the run: what is stored is not what happened.
    pub(crate) fn fail_run(&self, error: RunError) {
        self.work().fault.get_or_insert(error);
        self.setting.wake();
    }

    pub(crate) fn record(&self, id: TaskId) -> Record {
        self.work().records.get(&id).cloned().unwrap_or_default()
    }
}

/// Opens once, and then stays open.
#[derive(Default)]
pub(crate) struct Gate {
    open: AtomicBool,
    told: Notify,
}

impl Gate {
    pub(crate) fn new(open: bool) -> Self {
        Self { open: AtomicBool::new(open), told: Notify::new() }
    }

    pub(crate) fn open(&self) {
        self.open.store(true, Ordering::Release);
        self.told.notify_waiters();
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Waits until it is open.
    pub(crate) async fn pass(&self) {
        let mut told = std::pin::pin!(self.told.notified());
        told.as_mut().enable();
        if !self.is_open() {
            told.await;
        }
    }
}

/// Locks a mutex, also after a panic while it was held: what it guards is valid after every statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
