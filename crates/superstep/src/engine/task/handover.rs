//! How a task tells its driver that it has stopped.
//!
//! The tests include this file a second time, with the locks of a model checker, so it uses nothing of the crate but
//! `crate::engine::sync`.

use std::task::Waker;

use crate::engine::sync::{AtomicBool, Mutex, Ordering, lock};

/// Between a task and its driver, which may be on different threads.
///
/// A task is over when it has stopped and nothing that it has started still runs. Each of the two may come last, and the
/// driver is woken by whichever does.
pub(crate) struct Handover {
    stopped: AtomicBool,
    state: Mutex<State>,
}

struct State {
    /// How much of what the task has started still runs.
    inflight: usize,
    driver: Option<Waker>,
}

impl Handover {
    pub(crate) fn new() -> Self {
        let state = State { inflight: 0, driver: None };
        Self { stopped: AtomicBool::new(false), state: Mutex::new(state) }
    }

    /// The task begins anew.
    pub(crate) fn restart(&self) {
        self.stopped.store(false, Ordering::Release);
    }

    /// The task stops.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.wake();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Has the driver look at the task.
    pub(crate) fn wake(&self) {
        let driver = lock(&self.state).driver.take();
        // A waker may run anything, so it is not woken under the lock.
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    /// Whether the task is over. If it has stopped and is not over, the driver is woken when it is.
    pub(crate) fn is_over(&self, driver: &Waker) -> bool {
        self.is_stopped() && self.watch(driver)
    }

    /// Has the driver woken when there is something to look at. Returns whether the task is over already.
    pub(crate) fn watch(&self, driver: &Waker) -> bool {
        let mut state = lock(&self.state);
        let before = match &mut state.driver {
            Some(known) if known.will_wake(driver) => None,
            known => known.replace(driver.clone()),
        };
        // Read under the lock, and after the driver is known: a later stop wakes it.
        let over = self.is_stopped() && state.inflight == 0;
        drop(state);
        drop(before);
        over
    }

    /// Something that the task has started begins to run.
    pub(crate) fn enter(&self) {
        lock(&self.state).inflight += 1;
    }

    /// Something that the task has started has ended.
    pub(crate) fn leave(&self) {
        let mut state = lock(&self.state);
        state.inflight -= 1;
        let driver = if state.inflight == 0 { state.driver.take() } else { None };
        drop(state);
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    /// Whether something that the task has started still runs.
    pub(crate) fn is_waited_for(&self) -> bool {
        lock(&self.state).inflight > 0
    }
}
