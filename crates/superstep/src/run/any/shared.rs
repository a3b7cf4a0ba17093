use std::fmt;
use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use super::run::{AnyEvent, AnyRun};
use crate::error::RunError;

type Item = Result<AnyEvent, RunError>;

/// A run in the background, with any number of readers. Cheap to clone.
///
/// All events of the run are kept in memory while a clone or a reader lives, so that each reader sees all of them. To end the
/// run early, use the [`RunControl`](crate::RunControl) of its request: dropping this does not stop it.
#[derive(Clone)]
pub struct SharedRun {
    log: Arc<Log>,
    grown: watch::Receiver<Length>,
}

struct Log {
    events: Mutex<Vec<Arc<Item>>>,
}

#[derive(Clone, Copy, Default)]
struct Length {
    events: usize,
    ended: bool,
}

impl fmt::Debug for SharedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedRun").field("events", &self.grown.borrow().events).finish()
    }
}

impl SharedRun {
    pub(super) fn new(mut run: AnyRun) -> Self {
        let log = Arc::new(Log { events: Mutex::default() });
        let (tell, grown) = watch::channel(Length::default());
        let kept = Arc::downgrade(&log);
        tokio::spawn(async move {
            while let Some(event) = run.next().await {
                // No reader is left.
                let Some(log) = kept.upgrade() else { continue };
                let events = {
                    let mut events = crate::engine::lock(&log.events);
                    events.push(Arc::new(event));
                    events.len()
                };
                tell.send_replace(Length { events, ended: false });
            }
            tell.send_modify(|length| length.ended = true);
        });
        Self { log, grown }
    }

    /// A reader of all events, from the first.
    pub fn events(&self) -> RunEvents {
        RunEvents { run: self.clone(), next: 0 }
    }

    /// Waits until the run has ended.
    pub async fn ended(&self) {
        // The channel closes when the task that drives the run is gone, which ends the run too.
        let _ = self.grown.clone().wait_for(|length| length.ended).await;
    }
}

/// A reader of a [`SharedRun`].
#[derive(Clone, Debug)]
pub struct RunEvents {
    run: SharedRun,
    next: usize,
}

impl RunEvents {
    /// The next event; nothing after the last one.
    pub async fn next(&mut self) -> Option<Arc<Result<AnyEvent, RunError>>> {
        let next = self.next;
        let grown = self.run.grown.wait_for(|length| length.events > next || length.ended).await;
        drop(grown);
        let event = crate::engine::lock(&self.run.log.events).get(next).cloned()?;
        self.next += 1;
        Some(event)
    }
}
