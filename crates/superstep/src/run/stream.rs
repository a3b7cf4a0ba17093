use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::request::Request;
use crate::engine::Outcome;
use crate::engine::{Data, Event, Mode};
use crate::engine::{Reader, Sink};
use crate::error::RunError;
use crate::node::BoxFuture;
use crate::state::State;

/// A run, event by event.
///
/// Events come in the order in which things happened. The last item is the [outcome](Data::Outcome) of the run or an error.
///
/// The run makes progress only while the stream is polled, and only when all its events have been taken. So it never runs
/// ahead of its reader, and holds no more events than one poll of the run produced. That includes
/// [spawned](crate::StateGraph::spawned) nodes, which are polled beside the run; see [`Task::emit`](crate::Task::emit) for
/// nodes that never await.
///
/// Dropping the stream stops the run: what was stored stays, and the thread continues from there with no input.
#[must_use = "a run does nothing until its events are taken"]
pub struct RunStream<S: State, O = S> {
    phase: Phase<S, O>,
}

enum Phase<S: State, O> {
    Ready(Box<Ready<S, O>>),
    Running {
        run: BoxFuture<Result<Outcome<O>, RunError>>,
        events: Reader,
    },
    /// The run has ended; the events it left are still to be taken, then how it ended.
    Ended {
        events: Reader,
        ended: Box<Result<Outcome<O>, RunError>>,
    },
    Over,
}

struct Ready<S: State, O> {
    request: Request<S, O>,
    modes: Vec<Mode>,
    subgraphs: bool,
}

impl<S: State, O> fmt::Debug for RunStream<S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunStream").finish_non_exhaustive()
    }
}

impl<S: State, O> RunStream<S, O> {
    pub(super) fn new(request: Request<S, O>, modes: Vec<Mode>) -> Self {
        Self { phase: Phase::Ready(Box::new(Ready { request, modes, subgraphs: false })) }
    }

    fn ready(&mut self) -> &mut Ready<S, O> {
        match &mut self.phase {
            Phase::Ready(ready) => ready,
            _ => panic!("options of a stream are given before its first event is taken"),
        }
    }

    /// Whether events of graphs inside tasks are wanted too.
    ///
    /// # Panics
    /// An event was taken before.
    pub fn subgraphs(mut self, subgraphs: bool) -> Self {
        self.ready().subgraphs = subgraphs;
        self
    }

    /// The channels that `values` and `updates` show; all by default.
    ///
    /// # Panics
    /// An event was taken before.
    pub fn output_keys<T: Into<Arc<str>>>(mut self, keys: impl IntoIterator<Item = T>) -> Self {
        self.ready().request.options.output = Some(keys.into_iter().map(Into::into).collect());
        self
    }
}

impl<S: State, O: Send + 'static> RunStream<S, O> {
    /// The next event; `None` after the last one.
    pub async fn next(&mut self) -> Option<Result<Event<O>, RunError>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Runs to the end, drops the events that are left, and returns the outcome.
    ///
    /// # Errors
    /// The run failed.
    ///
    /// # Panics
    /// The outcome was taken before, as the last event.
    pub async fn into_outcome(mut self) -> Result<Outcome<O>, RunError> {
        while let Some(event) = self.next().await {
            if let Data::Outcome(outcome) = event?.data {
                return Ok(outcome);
            }
        }
        panic!("the outcome of a run was taken before, as its last event")
    }

    fn start(ready: Ready<S, O>) -> Phase<S, O> {
        let Ready { request: Request { target, input, options }, modes, subgraphs } = ready;
        let sink = Arc::new(Sink::new(&modes, subgraphs));
        let events = Reader::new(sink.clone());
        let layout = &target.graph.inner().layout;
        let keys = match &options.output {
            None => Ok(layout.shown.clone().into()),
            Some(names) => target.output_keys(names),
        };
        match keys {
            Ok(keys) => Phase::Running {
                run: Box::pin(target.drive(input, options, Some(sink), keys)),
                events,
            },
            Err(error) => Phase::Ended { events, ended: Box::new(Err(error)) },
        }
    }
}

impl<S: State, O> Unpin for RunStream<S, O> {}

impl<S: State, O: Send + 'static> Stream for RunStream<S, O> {
    type Item = Result<Event<O>, RunError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            match std::mem::replace(&mut this.phase, Phase::Over) {
                Phase::Ready(ready) => this.phase = Self::start(*ready),
                Phase::Running { mut run, events } => {
                    let mut next = events.poll_next(cx);
                    if next.is_pending() {
                        if let Poll::Ready(ended) = run.as_mut().poll(cx) {
                            this.phase = Phase::Ended { events, ended: Box::new(ended) };
                            continue;
                        }
                        next = events.poll_next(cx);
                    }
                    this.phase = Phase::Running { run, events };
                    return next.map(|event| Some(Ok(event.typed())));
                }
                Phase::Ended { events, ended } => {
                    let Some(event) = events.pop() else {
                        return Poll::Ready(Some((*ended).map(Event::outcome)));
                    };
                    this.phase = Phase::Ended { events, ended };
                    return Poll::Ready(Some(Ok(event.typed())));
                }
                Phase::Over => return Poll::Ready(None),
            }
        }
    }
}
