//! A run that is driven by the reader of its events.

use std::task::{Context, Poll};

use crate::engine::{Event, Reader};
use crate::error::RunError;
use crate::node::BoxFuture;

/// A run, its events, and how it ended. The run makes progress only when there is no event left to take.
pub(super) enum Driven<R, T> {
    /// What is needed to begin.
    Ready(Box<R>),
    Running {
        run: BoxFuture<Result<T, RunError>>,
        events: Reader,
    },
    /// The run has ended; the remaining events are still to be taken, then the outcome.
    Ended {
        events: Option<Reader>,
        ended: Box<Result<T, RunError>>,
    },
    Over,
}

/// What a run yields.
pub(super) enum Yield<T> {
    Event(Event),
    /// The last one.
    End(Result<T, RunError>),
}

impl<R, T> Driven<R, T> {
    /// A run that failed before it began.
    pub(super) fn failed(error: RunError) -> Self {
        Self::Ended { events: None, ended: Box::new(Err(error)) }
    }

    pub(super) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        start: fn(R) -> Self,
    ) -> Poll<Option<Yield<T>>> {
        loop {
            match std::mem::replace(self, Self::Over) {
                Self::Ready(ready) => *self = start(*ready),
                Self::Running { mut run, events } => {
                    let mut next = events.poll_next(cx);
                    if next.is_pending() {
                        if let Poll::Ready(ended) = run.as_mut().poll(cx) {
                            *self = Self::Ended { events: Some(events), ended: Box::new(ended) };
                            continue;
                        }
                        next = events.poll_next(cx);
                    }
                    *self = Self::Running { run, events };
                    return next.map(|event| Some(Yield::Event(event)));
                }
                Self::Ended { events, ended } => {
                    let Some(event) = events.as_ref().and_then(Reader::pop) else {
                        return Poll::Ready(Some(Yield::End(*ended)));
                    };
                    *self = Self::Ended { events, ended };
                    return Poll::Ready(Some(Yield::Event(event)));
                }
                Self::Over => return Poll::Ready(None),
            }
        }
    }
}
