//! A queue between a run and the reader of its stream.
//!
//! The tests include this file a second time, with the locks of a model checker, so it uses nothing of the crate but
//! `crate::engine::sync`.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::engine::sync::{Mutex, lock};

/// Events on their way to one reader.
///
/// Writers may write at any time, and wait with [`taken`](Self::taken) before they continue. Whether there is something to take,
/// who waits for it and who waits for it to be taken is decided under one lock, so that nobody waits for what has happened.
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    events: VecDeque<T>,
    /// The reader has found the queue empty, and has not taken anything since: it waits.
    wanted: bool,
    /// The reader is gone.
    closed: bool,
    /// How many times the reader has found the queue empty.
    rounds: u64,
    reader: Option<Waker>,
    writers: Vec<(u64, Waker)>,
    next_writer: u64,
}

impl<T> State<T> {
    /// Whether writers may continue.
    fn is_taken(&self) -> bool {
        self.closed || (self.wanted && self.events.is_empty())
    }

    /// Where a writer stands among those that wait. It has no place any more once it was woken.
    fn writer(&self, place: &Place) -> Option<usize> {
        let id = place.0?;
        self.writers.iter().position(|(known, _)| *known == id)
    }
}

/// Where the queue was when something was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// How many times the reader had found the queue empty.
    pub(crate) round: u64,
    /// How many events are in the queue.
    pub(crate) len: usize,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        let state = State {
            events: VecDeque::new(),
            wanted: false,
            closed: false,
            rounds: 0,
            reader: None,
            writers: Vec::new(),
            next_writer: 0,
        };
        Self { state: Mutex::new(state) }
    }

    /// Adds an event. If the reader is gone, it is dropped.
    pub(crate) fn push(&self, event: T) -> Written {
        let mut state = lock(&self.state);
        let mut reader = None;
        if !state.closed {
            state.events.push_back(event);
            reader = state.reader.take();
        }
        let written = Written { round: state.rounds, len: state.events.len() };
        drop(state);
        // A waker may run anything, so none is woken under the lock.
        if let Some(reader) = reader {
            reader.wake();
        }
        written
    }

    /// How many times the reader has found the queue empty.
    pub(crate) fn round(&self) -> u64 {
        lock(&self.state).rounds
    }

    /// The next event, if there is one.
    pub(crate) fn pop(&self) -> Option<T> {
        let mut state = lock(&self.state);
        let event = state.events.pop_front();
        if event.is_some() {
            state.wanted = false;
        }
        event
    }

    /// The next event. If there is none, lets the writers continue, and wakes the reader at the next event.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<T> {
        let mut state = lock(&self.state);
        if let Some(event) = state.events.pop_front() {
            state.wanted = false;
            return Poll::Ready(event);
        }
        state.wanted = true;
        state.rounds += 1;
        let before = match &mut state.reader {
            Some(reader) if reader.will_wake(cx.waker()) => None,
            reader => reader.replace(cx.waker().clone()),
        };
        let writers = std::mem::take(&mut state.writers);
        drop(state);
        drop(before);
        writers.into_iter().for_each(|(_, writer)| writer.wake());
        Poll::Pending
    }

    /// Waits until all events were taken and the reader asks for more, or is gone.
    pub(crate) fn taken(&self) -> Taken<'_, T> {
        Taken { queue: self, place: Place::default() }
    }

    /// The reader goes: what it has not taken is dropped, and no writer waits any more.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        let events = std::mem::take(&mut state.events);
        let reader = state.reader.take();
        let writers = std::mem::take(&mut state.writers);
        drop(state);
        drop((events, reader));
        writers.into_iter().for_each(|(_, writer)| writer.wake());
    }

    /// Whether all events were taken and the reader asks for more, or is gone. If not, the writer with this place is woken
    /// when it is so.
    pub(crate) fn poll_taken(&self, place: &mut Place, waker: &Waker) -> Poll<()> {
        let mut state = lock(&self.state);
        let known = state.writer(place);
        if state.is_taken() {
            let before = known.map(|at| state.writers.swap_remove(at));
            place.0 = None;
            drop(state);
            drop(before);
            return Poll::Ready(());
        }
        let mut before = None;
        match known {
            Some(at) if state.writers[at].1.will_wake(waker) => {}
            Some(at) => before = Some(std::mem::replace(&mut state.writers[at].1, waker.clone())),
            None => {
                let id = state.next_writer;
                state.next_writer += 1;
                state.writers.push((id, waker.clone()));
                place.0 = Some(id);
            }
        }
        drop(state);
        drop(before);
        Poll::Pending
    }

    /// A writer no longer waits.
    pub(crate) fn leave(&self, place: &mut Place) {
        if place.0.is_none() {
            return;
        }
        let mut state = lock(&self.state);
        let before = state.writer(place).map(|at| state.writers.swap_remove(at));
        place.0 = None;
        drop(state);
        drop(before);
    }
}

/// The place of a writer among those that wait.
#[derive(Debug, Default)]
pub(crate) struct Place(Option<u64>);

/// See [`Queue::taken`].
pub(crate) struct Taken<'a, T> {
    queue: &'a Queue<T>,
    place: Place,
}

impl<T> Future for Taken<'_, T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.queue.poll_taken(&mut this.place, cx.waker())
    }
}

impl<T> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        self.queue.leave(&mut self.place);
    }
}
