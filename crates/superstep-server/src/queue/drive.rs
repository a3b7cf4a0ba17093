//! The events of a run, as they come from the engine.

use serde_json::{Value as Json, json};
use superstep::{AnyEvent, AnyThread, Mode, Outcome, Request, RunError};
use tokio::time::Instant;

use super::takeover::{Told, barrier};
use crate::events::{BARRIER, Feed};
use crate::protocol::Publisher;
use crate::store::StoreError;
use crate::wire::Frames;

/// How the engine ended a run.
pub(super) type End = Result<Outcome<Json>, RunError>;

/// Where the events of a run go.
pub(super) struct Tell<'a> {
    pub(super) feed: &'a Feed,
    pub(super) frames: &'a mut Frames,
    pub(super) told: Told,
    /// Whether the log says where checkpoints are.
    pub(super) barriers: bool,
    pub(super) publisher: &'a mut Option<Publisher>,
}

impl Tell<'_> {
    async fn push(
        &mut self,
        frames: impl IntoIterator<Item = (String, Json)>,
    ) -> Result<(), StoreError> {
        for (name, data) in frames {
            if self.told.is_new(&name, &data) {
                self.feed.push(&name, &data).await?;
            }
        }
        Ok(())
    }

    async fn event(&mut self, event: &AnyEvent) -> Result<(), StoreError> {
        let frames = self.frames.of(event);
        self.push(frames).await?;
        if let AnyEvent::Data { mode: Mode::Checkpoints, ns, data, .. } = event
            && ns.is_empty()
            && self.barriers
        {
            let id = &data["config"]["configurable"]["checkpoint_id"];
            if self.told.barrier(id) {
                self.feed.push(BARRIER, &barrier(id)).await?;
            }
        }
        match self.publisher {
            Some(publisher) => publisher.event(event).await,
            None => Ok(()),
        }
    }

    /// Whether something waits to be stored of what the session of the thread is told.
    fn has_published(&self) -> bool {
        self.publisher.as_ref().is_some_and(Publisher::has_staged)
    }

    fn has_staged(&self) -> bool {
        self.feed.has_staged() || self.has_published()
    }

    async fn flush(&mut self) -> Result<(), StoreError> {
        self.feed.flush().await?;
        match self.publisher {
            Some(publisher) => publisher.flush().await,
            None => Ok(()),
        }
    }
}

/// Takes the events of a run as they come.
pub(super) async fn drive(
    thread: AnyThread,
    request: Request,
    mut later: Option<Json>,
    tell: &mut Tell<'_>,
) -> Result<End, StoreError> {
    let begin = tell.frames.begin();
    tell.push(begin).await?;
    let answered = later.is_some().then(|| request.clone());
    let mut driven = thread.run(request);
    let (mut flush_at, mut shown) = (None, Json::Null);
    loop {
        let next = match flush_at {
            None => driven.next().await,
            Some(at) => match tokio::time::timeout_at(at, driven.next()).await {
                Ok(next) => next,
                Err(_) => {
                    tell.flush().await?;
                    flush_at = None;
                    continue;
                }
            },
        };
        match next {
            Some(Ok(AnyEvent::Outcome(Outcome::Interrupted(asked))))
                if asked.len() == 1 && later.is_some() =>
            {
                let command = Some(json!({ "resume": later.take() }));
                driven = thread.run(Request { command, ..answered.clone().unwrap_or_default() });
            }
            // It was sent before the question came.
            Some(Ok(AnyEvent::Data { mode: Mode::Values, data, .. }))
                if later.is_none() && data == shown =>
            {
                shown = Json::Null;
            }
            Some(Ok(AnyEvent::Data { data, .. }))
                if later.is_some() && data.get("__interrupt__").is_some() => {}
            Some(Ok(AnyEvent::Outcome(outcome))) => {
                let end = tell.frames.end(&outcome);
                tell.push(end).await?;
                return Ok(Ok(outcome));
            }
            Some(Ok(event)) => {
                if let (true, AnyEvent::Data { mode: Mode::Values, data, .. }) =
                    (later.is_some(), &event)
                {
                    shown = data.clone();
                }
                tell.event(&event).await?;
                let of_state = tells_of_state(&event);
                match tell.feed.patience(of_state) {
                    _ if !tell.has_staged() => {}
                    Some(wait) if !(of_state && tell.has_published()) => {
                        flush_at = flush_at.or_else(|| Some(Instant::now() + wait));
                    }
                    // The checkpoint is on its way to storage. What it follows from must not come later than it need.
                    _ => {
                        tell.flush().await?;
                        flush_at = None;
                    }
                }
            }
            Some(Err(error)) => return Ok(Err(error)),
            None => return Ok(Err(RunError::Invalid("the run ended without an end".to_owned()))),
        }
    }
}

/// Whether an event would not come again if the process died now. What a node emits while it runs does: the node runs again.
fn tells_of_state(event: &AnyEvent) -> bool {
    let AnyEvent::Data { mode, .. } = event else { return false };
    !matches!(mode, Mode::Messages | Mode::Custom)
}
