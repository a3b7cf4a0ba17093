//! Where events go until the reader of the stream takes them.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use tokio::runtime::{Handle, RuntimeFlavor};

use crate::engine::step::superstep::lock;
use crate::engine::stored::ids;
use crate::engine::watch::event::{Data, Event, Mode};
use crate::engine::watch::queue::{Place, Queue, Taken, Written};

/// How many events may wait before a spawned node that emits one more is made to wait.
const WAIT_AT: usize = 1_024;

/// How many events a task may emit before any of them is taken, where it cannot be made to wait.
pub(crate) const EMITTED_MAX: usize = 100_000;

/// Where events go until the reader of the stream takes them.
///
/// The run continues only when the queue is empty and the reader asks for more, so it never runs ahead of its reader. Spawned
/// nodes, which the run does not poll, wait for the same; see [`Turn`].
pub(crate) struct Sink {
    modes: u16,
    pub(crate) subgraphs: bool,
    queue: Queue<Event>,
    /// Ids of messages that were shown.
    messages: Mutex<HashSet<String>>,
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink").field("modes", &self.modes).finish_non_exhaustive()
    }
}

impl Sink {
    pub(crate) fn new(modes: &[Mode], subgraphs: bool) -> Self {
        let modes = modes.iter().fold(0, |set, mode| set | mode.bit());
        Self { modes, subgraphs, queue: Queue::new(), messages: Mutex::default() }
    }

    pub(crate) fn wants(&self, mode: Mode) -> bool {
        self.modes & mode.bit() != 0
    }

    /// Adds an event of the engine.
    pub(crate) fn push(&self, ns: &str, data: Data) {
        self.queue.push(event(ns, data));
    }

    /// Adds an event of a node.
    ///
    /// If many wait, the thread is made to wait until they are taken, provided that the reader is certainly on another one.
    ///
    /// # Errors
    /// The task has emitted as much as it may before anything of it is taken. The event is dropped.
    pub(crate) fn emit(&self, emitted: &Mutex<Emitted>, ns: &str, data: Data) -> Result<(), Full> {
        let before = *lock(emitted);
        if before.count >= EMITTED_MAX && before.round == self.queue.round() {
            return Err(Full);
        }
        let Written { round, len } = self.queue.push(event(ns, data));
        let mut emitted = lock(emitted);
        let count = if emitted.round == round { emitted.count } else { 0 };
        *emitted = Emitted { round, count: count + 1 };
        drop(emitted);
        if len >= WAIT_AT && self.may_block() {
            tokio::task::block_in_place(|| Handle::current().block_on(self.taken()));
        }
        Ok(())
    }

    /// Whether this thread polls a spawned node of this run, and others poll the rest of it meanwhile.
    fn may_block(&self) -> bool {
        POLLED.get() == self.address()
            && Handle::try_current()
                .is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread)
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Takes note that a message is shown. Returns whether it had not been before.
    pub(crate) fn show_message(&self, id: &str) -> bool {
        lock(&self.messages).insert(id.to_owned())
    }

    /// Waits until all events were taken and the reader asks for more: no superstep begins before.
    pub(crate) fn taken(&self) -> Taken<'_, Event> {
        self.queue.taken()
    }
}

fn event(ns: &str, data: Data) -> Event {
    let ns =
        if ns.is_empty() { Vec::new() } else { ns.split(ids::LEVEL).map(str::to_owned).collect() };
    Event { ns, data }
}

/// A task has emitted more events than the reader had a chance to take.
pub(crate) struct Full;

/// How many events a task has emitted since the reader last found none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Emitted {
    round: u64,
    count: usize,
}

/// The end of a sink from which events are taken. When it is dropped, writers no longer wait for events to be taken.
pub(crate) struct Reader(Arc<Sink>);

impl Reader {
    pub(crate) fn new(sink: Arc<Sink>) -> Self {
        Self(sink)
    }

    pub(crate) fn pop(&self) -> Option<Event> {
        self.0.queue.pop()
    }

    /// The next event. If there is none, the run may continue.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Event> {
        self.0.queue.poll_next(cx)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.queue.close();
    }
}

thread_local! {
    /// The sink of the run whose spawned node this thread polls.
    static POLLED: Cell<usize> = const { Cell::new(0) };
}

/// Lets a spawned node, which the run does not poll, continue only when the run may.
pub(crate) struct Turn {
    sink: Option<Arc<Sink>>,
    place: Place,
    /// The node was polled before. Like any other node, it begins at once.
    begun: bool,
}

impl Turn {
    pub(crate) fn new(sink: Option<Arc<Sink>>) -> Self {
        Self { sink, place: Place::default(), begun: false }
    }

    /// Whether the node may be polled. If not, it is woken when it may.
    pub(crate) fn poll(&mut self, waker: &Waker) -> Poll<Polled> {
        let Some(sink) = &self.sink else { return Poll::Ready(Polled(POLLED.replace(0))) };
        if std::mem::replace(&mut self.begun, true)
            && sink.queue.poll_taken(&mut self.place, waker).is_pending()
        {
            return Poll::Pending;
        }
        Poll::Ready(Polled(POLLED.replace(sink.address())))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(sink) = &self.sink {
            sink.queue.leave(&mut self.place);
        }
    }
}

/// While it lives, this thread polls a spawned node.
pub(crate) struct Polled(usize);

impl Drop for Polled {
    fn drop(&mut self) {
        POLLED.set(self.0);
    }
}
