//! The futures of a superstep: its tasks, what they have started, and what is being stored meanwhile.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_util::stream::FuturesUnordered;
use superstep_checkpoint::{Error, TaskWrites};

use crate::engine::step::attempt::End;
use crate::engine::step::superstep::{GraphRun, Superstep};
use crate::engine::task::handle::Task;
use crate::error::RunError;
use crate::node::BoxFuture;
use crate::state::Row;

pub(in crate::engine) type Running = BoxFuture<(usize, End, Row)>;
pub(in crate::engine) type Saving = BoxFuture<Result<(), Error>>;
/// Storing what tasks did, in storage or in the cache.
pub(in crate::engine) type Saved = BoxFuture<Result<(), RunError>>;

/// The futures of a superstep. Sets are made when something is put in: most supersteps need none of them.
#[derive(Default)]
pub(in crate::engine) struct Futures {
    pub(in crate::engine) tasks: Set<Running>,
    pub(in crate::engine) waiting: VecDeque<usize>,
    /// Error handlers: they start when the failure they handle is stored.
    pub(in crate::engine) handlers: VecDeque<usize>,
    pub(in crate::engine) children: Set<BoxFuture<()>>,
    pub(in crate::engine) saves: Set<Saved>,
    /// What tasks have done that is not being stored yet. What ends together is stored together.
    pub(in crate::engine) batch: Vec<(Task, TaskWrites)>,
    /// What is stored while tasks run, one thing after the other.
    pub(in crate::engine) background: Option<Saving>,
    /// Completes when the run is to stop at once. Made when there is something to wait for.
    stop: Option<BoxFuture<()>>,
    pub(in crate::engine) running: usize,
    /// A lone task was polled just now.
    pub(in crate::engine) polled: bool,
}

pub(in crate::engine) struct Set<F>(Option<FuturesUnordered<F>>);

impl<F> Default for Set<F> {
    fn default() -> Self {
        Self(None)
    }
}

impl<F: Future> Set<F> {
    pub(in crate::engine) fn push(&mut self, future: F) {
        self.0.get_or_insert_default().push(future);
    }

    /// The next future that is ready; nothing if none is, or if there is none.
    fn poll(&mut self, cx: &mut Context<'_>) -> Option<F::Output> {
        match Pin::new(self.0.as_mut()?).poll_next(cx) {
            Poll::Ready(ended) => ended,
            Poll::Pending => None,
        }
    }

    /// Waits for the next future that is ready; nothing if there is none.
    pub(in crate::engine) async fn next(&mut self) -> Option<F::Output> {
        poll_fn(|cx| match self.poll(cx) {
            None if !self.is_empty() => Poll::Pending,
            ended => Poll::Ready(ended),
        })
        .await
    }

    fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(FuturesUnordered::is_empty)
    }
}

pub(in crate::engine) enum Happened {
    Ended(usize, End, Row),
    Saved(Result<(), RunError>),
    TimedOut,
    /// The run is to stop at once.
    Stopped,
    /// Nothing is left to wait for.
    Idle,
}

impl Futures {
    /// Drives everything, and begins the tasks that are waiting, up to `limit` at the same time.
    pub(in crate::engine) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        superstep: &Superstep,
        limit: usize,
        mut lone: Pin<&mut Option<impl Future<Output = (usize, End, Row)>>>,
        mut begin: impl FnMut(usize) -> Running,
    ) -> Poll<Happened> {
        superstep.setting.watch(cx.waker());
        loop {
            if let Some(error) = superstep.work().fault.take() {
                return Poll::Ready(Happened::Saved(Err(error)));
            }
            if let Some(background) = &mut self.background
                && let Poll::Ready(saved) = background.as_mut().poll(cx)
            {
                self.background = None;
                if saved.is_err() {
                    return Poll::Ready(Happened::Saved(saved.map_err(RunError::from)));
                }
                superstep.stored.open();
            }
            if let Some(saved) = self.saves.poll(cx) {
                return Poll::Ready(Happened::Saved(saved));
            }
            if !std::mem::take(&mut self.polled)
                && let Some(task) = lone.as_mut().as_pin_mut()
                && let Poll::Ready((at, end, row)) = task.poll(cx)
            {
                lone.set(None);
                return Poll::Ready(Happened::Ended(at, end, row));
            }
            if let Some((at, end, row)) = self.tasks.poll(cx) {
                return Poll::Ready(Happened::Ended(at, end, row));
            }
            if self.saves.is_empty() && self.batch.is_empty() {
                self.waiting.append(&mut self.handlers);
            }
            while self.running < limit
                && let Some(at) = self.waiting.pop_front()
            {
                // Many tasks return at once, and need no place in the set.
                let mut task = begin(at);
                self.running += 1;
                match task.as_mut().poll(cx) {
                    Poll::Ready((at, end, row)) => {
                        return Poll::Ready(Happened::Ended(at, end, row));
                    }
                    Poll::Pending => self.tasks.push(task),
                }
            }
            if self.save_batch(superstep) {
                continue;
            }
            if self.children.poll(cx).is_some() {
                continue;
            }
            let started = std::mem::take(&mut superstep.work().started);
            if started.is_empty() && !self.flush(superstep) {
                break;
            }
            for child in started {
                self.children.push(child.future);
            }
        }
        let idle = lone.is_none()
            && self.tasks.is_empty()
            && self.children.is_empty()
            && self.saves.is_empty();
        if idle {
            return Poll::Ready(Happened::Idle);
        }
        if self.is_told_to_stop(cx, superstep) {
            return Poll::Ready(Happened::Stopped);
        }
        Poll::Pending
    }

    /// Begins to store what has ended, unless the superstep has: then it goes with the checkpoint. Returns whether it did.
    ///
    /// A task that has started calls which still run has not ended: stored, it would not run again, and neither would they.
    fn save_batch(&mut self, superstep: &Superstep) -> bool {
        let waits = self.running > 0 || !self.handlers.is_empty() || !self.children.is_empty();
        if self.batch.is_empty() || !waits || !self.saves.is_empty() {
            return false;
        }
        let ended = self.take_ended();
        if ended.is_empty() {
            return false;
        }
        let GraphRun { checkpointer: Some(checkpointer), run, ns, flushes, .. } =
            &*superstep.setting
        else {
            return false;
        };
        if *flushes {
            superstep.work().unsaved.extend(ended);
        } else if let Some(thread) = run.thread.clone() {
            let (checkpointer, ns, id) = (checkpointer.clone(), ns.clone(), superstep.checkpoint);
            let saved = async move { Ok(checkpointer.put_writes(&thread, &ns, id, ended).await?) };
            self.saves.push(Box::pin(saved));
        }
        true
    }

    /// What has ended and is not being stored yet.
    pub(in crate::engine) fn take_ended(&mut self) -> Vec<TaskWrites> {
        let ended = self.batch.extract_if(.., |(task, _)| !task.is_waited_for());
        ended.map(|(_, writes)| writes).collect()
    }

    /// The outermost graph stops for all graphs inside its tasks.
    fn is_told_to_stop(&mut self, cx: &mut Context<'_>, superstep: &Superstep) -> bool {
        if !superstep.setting.ns.is_empty() {
            return false;
        }
        let control = &superstep.setting.run.control;
        let stop = self.stop.get_or_insert_with(|| Box::pin(control.now()));
        stop.as_mut().poll(cx).is_ready()
    }

    /// Begins to store what has happened since it last did. Returns whether there is something.
    fn flush(&mut self, superstep: &Superstep) -> bool {
        let (Some(checkpointer), Some(thread)) =
            (&superstep.setting.checkpointer, &superstep.setting.run.thread)
        else {
            return false;
        };
        if !superstep.setting.flushes || self.background.is_some() {
            return false;
        }
        let writes = std::mem::take(&mut superstep.work().unsaved);
        if writes.is_empty() {
            return false;
        }
        let (checkpointer, thread) = (checkpointer.clone(), thread.clone());
        let (ns, id) = (superstep.setting.ns.clone(), superstep.checkpoint);
        self.background =
            Some(Box::pin(async move { checkpointer.put_writes(&thread, &ns, id, writes).await }));
        true
    }
}
