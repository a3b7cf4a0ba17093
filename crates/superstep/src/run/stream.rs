use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::driven::{Driven, Yield};
use super::request::Request;
use crate::engine::Outcome;
use crate::engine::{Data, Event, Mode};
use crate::engine::{Reader, Sink};
use crate::error::RunError;
use crate::state::State;

/// A run, event by event.
///
/// Events arrive in order. The last item is the [outcome](Data::Outcome) of the run or an error.
///
/// The run makes progress only while the stream is polled, and only when all its events have been taken. So it never runs
/// ahead of its reader, and holds no more events than one poll of the run produced. That includes
/// [spawned](crate::StateGraph::spawned) nodes, which are polled beside the run; see [`Task::emit`](crate::Task::emit) for
/// nodes that never await.
///
/// Dropping the stream stops the run: what was stored stays, and the thread continues from there with no input.
#[must_use = "a run does nothing until its events are taken"]
pub struct RunStream<S: State, O = S> {
    driven: Driven<Ready<S, O>, Outcome<O>>,
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
        Self { driven: Driven::Ready(Box::new(Ready { request, modes, subgraphs: false })) }
    }

    fn ready(&mut self) -> &mut Ready<S, O> {
        match &mut self.driven {
            Driven::Ready(ready) => ready,
            _ => panic!("options of a stream are given before its first event is taken"),
        }
    }

    /// Whether to include events of subgraphs.
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

    fn start(ready: Ready<S, O>) -> Driven<Ready<S, O>, Outcome<O>> {
        let Ready { request: Request { target, input, options }, modes, subgraphs } = ready;
        let sink = Arc::new(Sink::new(&modes, subgraphs));
        let events = Reader::new(sink.clone());
        let layout = &target.graph.inner().layout;
        let keys = match &options.output {
            None => Ok(layout.shown.clone().into()),
            Some(names) => target.output_keys(names),
        };
        match keys {
            Ok(keys) => Driven::Running {
                run: Box::pin(target.drive(input, options, Some(sink), keys)),
                events,
            },
            Err(error) => Driven::failed(error),
        }
    }
}

impl<S: State, O> Unpin for RunStream<S, O> {}

impl<S: State, O: Send + 'static> Stream for RunStream<S, O> {
    type Item = Result<Event<O>, RunError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().driven.poll_next(cx, Self::start).map(|next| {
            next.map(|next| match next {
                Yield::Event(event) => Ok(event.typed()),
                Yield::End(ended) => ended.map(Event::outcome),
            })
        })
    }
}
