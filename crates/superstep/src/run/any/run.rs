use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use serde_json::Value as Json;

use super::request::Request;
use super::shared::SharedRun;
use super::{Unknown, shape};
use crate::engine::Mode;
use crate::engine::{Finish, How, Layout, Reader, Sink};
use crate::engine::{Interrupted, Outcome};
use crate::error::RunError;
use crate::node::BoxFuture;
use crate::run::options::Target;

/// What an [`AnyRun`] yields.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyEvent {
    /// Something happened.
    #[non_exhaustive]
    Data {
        /// The mode the event belongs to.
        mode: Mode,
        /// The graph it happened in: empty for the outermost, else the namespace of a subgraph, level by level.
        ns: Vec<String>,
        /// What happened, in the form that LangGraph's clients know.
        data: Json,
    },
    /// How the run ended. The last event of a run that did not fail.
    Outcome(Outcome<Json>),
}

/// A run of an [`AnyGraph`](super::AnyGraph), event by event. The last event is the outcome; an error is the last item.
///
/// The run goes on only while it is polled. Dropping it stops the run: what was stored stays. For a run that goes on by
/// itself and may have several readers, see [`spawn`](Self::spawn).
#[must_use = "a run does nothing until its events are taken"]
pub struct AnyRun {
    phase: Phase,
}

type Driving = BoxFuture<Result<Outcome<Json>, RunError>>;

enum Phase {
    Ready(Box<(Target<Unknown, ()>, Request)>),
    Running { run: Driving, events: Reader },
    Ended { events: Option<Reader>, end: Box<Result<Outcome<Json>, RunError>> },
    Over,
}

impl fmt::Debug for AnyRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyRun").finish_non_exhaustive()
    }
}

impl AnyRun {
    pub(super) fn new(target: Target<Unknown, ()>, request: Request) -> Self {
        Self { phase: Phase::Ready(Box::new((target, request))) }
    }

    /// The next event; nothing after the outcome or an error.
    pub async fn next(&mut self) -> Option<Result<AnyEvent, RunError>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Lets the run go on by itself, on the runtime this is called in. Any number of readers can follow it.
    pub fn spawn(self) -> SharedRun {
        SharedRun::new(self)
    }

    fn start(target: Target<Unknown, ()>, request: Request) -> Phase {
        match Self::prepare(target, &request) {
            Ok((run, sink)) => Phase::Running { run, events: Reader::new(sink) },
            Err(error) => Phase::Ended { events: None, end: Box::new(Err(error)) },
        }
    }

    fn prepare(
        mut target: Target<Unknown, ()>,
        request: &Request,
    ) -> Result<(Driving, Arc<Sink>), RunError> {
        let layout = target.graph.inner().layout.clone();
        let input = request.to_input(&layout)?;
        let options = request.to_options(&layout);
        let empty = Json::Object(serde_json::Map::new());
        let context = if request.context.is_null() { &empty } else { &request.context };
        target.graph.context = target.graph.context.with_json(context)?;
        let sink = Arc::new(Sink::new(&request.modes, request.subgraphs));
        let keys = layout.shown.clone().into();
        let finish = target.finish(input, options, Some(sink.clone()), keys);
        Ok((Box::pin(async move { outcome(&layout, finish.await?) }), sink))
    }
}

fn outcome(layout: &Layout, finish: Finish) -> Result<Outcome<Json>, RunError> {
    let Finish { head, how, questions } = finish;
    let values = || Ok::<_, RunError>(Json::from(head.shown(layout, &layout.output)?));
    Ok(match how {
        How::Done | How::ForParent(_) => Outcome::Done(values()?),
        How::Interrupted => Outcome::Interrupted(Interrupted { questions, state: Some(values()?) }),
        How::Drained(reason) => Outcome::Drained(reason),
    })
}

impl Unpin for AnyRun {}

impl Stream for AnyRun {
    type Item = Result<AnyEvent, RunError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            match &mut this.phase {
                Phase::Ready(_) => {
                    if let Phase::Ready(ready) = std::mem::replace(&mut this.phase, Phase::Over) {
                        this.phase = Self::start(ready.0, ready.1);
                    }
                }
                Phase::Running { run, events } => {
                    if let Poll::Ready(event) = events.poll_next(cx) {
                        return Poll::Ready(Some(shape::event(&event)));
                    }
                    let Poll::Ready(end) = run.as_mut().poll(cx) else {
                        return events.poll_next(cx).map(|event| Some(shape::event(&event)));
                    };
                    if let Phase::Running { events, .. } =
                        std::mem::replace(&mut this.phase, Phase::Over)
                    {
                        this.phase = Phase::Ended { events: Some(events), end: Box::new(end) };
                    }
                }
                Phase::Ended { events, .. } => {
                    if let Some(event) = events.as_ref().and_then(Reader::pop) {
                        return Poll::Ready(Some(shape::event(&event)));
                    }
                    let Phase::Ended { end, .. } = std::mem::replace(&mut this.phase, Phase::Over)
                    else {
                        return Poll::Ready(None);
                    };
                    return Poll::Ready(Some(end.map(AnyEvent::Outcome)));
                }
                Phase::Over => return Poll::Ready(None),
            }
        }
    }
}
