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
use crate::run::driven::{Driven, Yield};
use crate::run::options::Target;

/// An event of an [`AnyRun`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyEvent {
    /// Something happened.
    #[non_exhaustive]
    Data {
        /// The mode the event belongs to.
        mode: Mode,
        /// The graph of the event: empty for the outermost, else the namespace of a subgraph, level
        /// by level.
        ns: Vec<String>,
        /// The payload, in the form that LangGraph's clients know.
        data: Json,
    },
    /// The outcome. The last event of a run that did not fail.
    Outcome(Outcome<Json>),
}

/// A run of an [`AnyGraph`](super::AnyGraph), event by event. The last event is the outcome; an error is the last item.
///
/// The run makes progress only while it is polled. Dropping it stops the run; what was stored
/// stays. For a background run with any number of readers, see [`spawn`](Self::spawn).
#[must_use = "a run does nothing until its events are taken"]
pub struct AnyRun {
    driven: Driven<Ready, Outcome<Json>>,
}

type Driving = BoxFuture<Result<Outcome<Json>, RunError>>;

/// Where the graph runs, and what was asked for.
type Ready = (Target<Unknown, ()>, Request);

impl fmt::Debug for AnyRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyRun").finish_non_exhaustive()
    }
}

impl AnyRun {
    pub(super) fn new(target: Target<Unknown, ()>, request: Request) -> Self {
        Self { driven: Driven::Ready(Box::new((target, request))) }
    }

    /// The next event; nothing after the outcome or an error.
    pub async fn next(&mut self) -> Option<Result<AnyEvent, RunError>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Takes all events, and returns the outcome.
    pub(super) async fn outcome(mut self) -> Result<Outcome<Json>, RunError> {
        while let Some(event) = self.next().await {
            if let AnyEvent::Outcome(outcome) = event? {
                return Ok(outcome);
            }
        }
        Err(RunError::Invalid("the run ended without an end".to_owned()))
    }

    /// Spawns the run on the current runtime. Any number of readers can follow it.
    pub fn spawn(self) -> SharedRun {
        SharedRun::new(self)
    }

    fn start((target, request): Ready) -> Driven<Ready, Outcome<Json>> {
        match Self::prepare(target, &request) {
            Ok((run, sink)) => Driven::Running { run, events: Reader::new(sink) },
            Err(error) => Driven::failed(error),
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
        self.get_mut().driven.poll_next(cx, Self::start).map(|next| {
            next.map(|next| match next {
                Yield::Event(event) => shape::event(&event),
                Yield::End(ended) => ended.map(AnyEvent::Outcome),
            })
        })
    }
}
