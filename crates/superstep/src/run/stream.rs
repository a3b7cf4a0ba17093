use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::event::{Event, Mode};
use super::input::Input;
use super::options::{RunOptions, Target, run_options};
use super::outcome::Outcome;
use crate::engine::{Reader, Sink};
use crate::error::RunError;
use crate::node::BoxFuture;
use crate::state::State;

/// A run, event by event.
///
/// The run goes on only while the stream is polled, and only when all its events have been taken; so it never runs ahead of
/// its reader, and holds no more events than one poll of the run gave rise to. That counts for [spawned](crate::StateGraph::spawned)
/// nodes, too, which are polled beside the run; see [`Task::emit`](crate::Task::emit) for nodes that never await. Events come
/// in the order in which things happened. An error is the last item.
///
/// Dropping the stream stops the run: what was stored stays, and the thread goes on from there with no input.
#[must_use = "a run does nothing until its events are taken"]
pub struct RunStream<S: State, O = S> {
    phase: Phase<S, O>,
    outcome: Option<Outcome<O>>,
}

enum Phase<S: State, O> {
    Ready(Box<Ready<S, O>>),
    Running {
        run: BoxFuture<Result<Outcome<O>, RunError>>,
        events: Reader,
    },
    /// The run has ended; the events it left are still to be taken, and its error.
    Ended {
        events: Reader,
        error: Option<RunError>,
    },
    Over,
}

struct Ready<S: State, O> {
    target: Target<S, O>,
    input: Input,
    options: RunOptions,
    modes: Vec<Mode>,
    subgraphs: bool,
}

impl<S: State, O> fmt::Debug for RunStream<S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunStream").finish_non_exhaustive()
    }
}

impl<S: State, O> RunStream<S, O> {
    pub(crate) fn new(target: Target<S, O>, input: Input) -> Self {
        let ready = Ready {
            target,
            input,
            options: RunOptions::default(),
            modes: vec![Mode::Updates],
            subgraphs: false,
        };
        Self { phase: Phase::Ready(Box::new(ready)), outcome: None }
    }

    fn ready(&mut self) -> &mut Ready<S, O> {
        match &mut self.phase {
            Phase::Ready(ready) => ready,
            _ => panic!("options of a run are given before its first event is taken"),
        }
    }

    fn options_mut(&mut self) -> &mut RunOptions {
        &mut self.ready().options
    }

    /// Which events are wanted; `updates` if nothing is said.
    #[doc(alias = "stream_mode")]
    pub fn modes(mut self, modes: impl IntoIterator<Item = Mode>) -> Self {
        self.ready().modes = modes.into_iter().collect();
        self
    }

    /// Whether events of graphs inside tasks are wanted too.
    pub fn subgraphs(mut self, subgraphs: bool) -> Self {
        self.ready().subgraphs = subgraphs;
        self
    }

    /// The channels that `values` and `updates` show; all if nothing is said.
    pub fn output_keys<T: Into<Arc<str>>>(mut self, keys: impl IntoIterator<Item = T>) -> Self {
        self.ready().options.output = Some(keys.into_iter().map(Into::into).collect());
        self
    }

    run_options!();

    /// How the run ended; nothing before it has, or if it failed.
    pub fn outcome(&self) -> Option<&Outcome<O>> {
        self.outcome.as_ref()
    }

    /// How the run ended.
    pub fn into_outcome(self) -> Option<Outcome<O>> {
        self.outcome
    }
}

impl<S: State, O: Send + 'static> RunStream<S, O> {
    /// The next event; nothing after the last one.
    pub async fn next(&mut self) -> Option<Result<Event, RunError>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    fn start(ready: Ready<S, O>) -> Phase<S, O> {
        let Ready { target, input, options, modes, subgraphs } = ready;
        let layout = &target.graph.inner().layout;
        let keys = match &options.output {
            None => Ok(layout.shown.clone().into()),
            Some(names) => target.output_keys(names),
        };
        let keys: Arc<[usize]> = match keys {
            Ok(keys) => keys,
            Err(error) => {
                let events = Reader::new(Arc::new(Sink::new(&modes, subgraphs)));
                return Phase::Ended { events, error: Some(error) };
            }
        };
        let sink = Arc::new(Sink::new(&modes, subgraphs));
        let run = Box::pin(target.drive(input, options, Some(sink.clone()), keys));
        Phase::Running { run, events: Reader::new(sink) }
    }
}

impl<S: State, O> Unpin for RunStream<S, O> {}

impl<S: State, O: Send + 'static> Stream for RunStream<S, O> {
    type Item = Result<Event, RunError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            match &mut this.phase {
                Phase::Ready(_) => {
                    if let Phase::Ready(ready) = std::mem::replace(&mut this.phase, Phase::Over) {
                        this.phase = Self::start(*ready);
                    }
                }
                Phase::Running { run, events } => {
                    if let Poll::Ready(event) = events.poll_next(cx) {
                        return Poll::Ready(Some(Ok(event)));
                    }
                    let Poll::Ready(ended) = run.as_mut().poll(cx) else {
                        return events.poll_next(cx).map(|event| Some(Ok(event)));
                    };
                    let error = match ended {
                        Ok(outcome) => {
                            this.outcome = Some(outcome);
                            None
                        }
                        Err(error) => Some(error),
                    };
                    if let Phase::Running { events, .. } =
                        std::mem::replace(&mut this.phase, Phase::Over)
                    {
                        this.phase = Phase::Ended { events, error };
                    }
                }
                Phase::Ended { events, error } => {
                    if let Some(event) = events.pop() {
                        return Poll::Ready(Some(Ok(event)));
                    }
                    let error = error.take();
                    this.phase = Phase::Over;
                    if let Some(error) = error {
                        return Poll::Ready(Some(Err(error)));
                    }
                }
                Phase::Over => return Poll::Ready(None),
            }
        }
    }
}
