//! Timers: threads that sleep, or wait for an answer no longer than until a deadline, are woken by a run.
//!
//! A thread knows when it is due next. A background task looks for what is due; one call of the store takes the time away and
//! admits the run, and only if the time is still the one that was seen, so several processes wake a thread once.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::app::App;
use crate::error::ApiError;
use crate::queue::settle_admission;
use crate::store::{DueThread, Woken};
use crate::time::Micros;

/// How many threads are looked at together.
const BATCH: usize = 100;

/// The shortest wait.
const SOON: Duration = Duration::from_millis(10);

/// The longest wait: another process may have put a thread to sleep.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Wakes threads until the server is gone, or stops.
pub(crate) async fn run(app: Weak<App>, wake: Arc<Notify>) {
    loop {
        let mut woken = pin!(wake.notified());
        woken.as_mut().enable();
        let Some(alive) = app.upgrade().filter(|app| !app.is_stopping()) else { return };
        let now = Micros::now();
        let wait = match wake_due(&alive, now).await {
            Ok(Some(next)) => {
                let micros = u64::try_from(next.0.saturating_sub(now.0)).unwrap_or(0);
                Duration::from_micros(micros).clamp(SOON, LOOK_AGAIN)
            }
            Ok(None) => LOOK_AGAIN,
            Err(error) => {
                tracing::error!(error = error.detail, "threads that are due could not be woken");
                LOOK_AGAIN
            }
        };
        drop(alive);
        // Either way it is time to look.
        drop(tokio::time::timeout(wait, woken).await);
    }
}

/// Wakes what is due. Returns when the next thread is.
pub(crate) async fn wake_due(app: &App, now: Micros) -> Result<Option<Micros>, ApiError> {
    loop {
        let (due, next) = app.store.due_threads(now, BATCH).await?;
        if due.is_empty() {
            return Ok(next);
        }
        let mut fired = false;
        for thread in due {
            fired |= fire(app, thread).await?;
        }
        if !fired {
            // Others are at it.
            return Ok(Some(now));
        }
    }
}

/// Wakes a thread, unless somebody else does.
async fn fire(app: &App, due: DueThread) -> Result<bool, ApiError> {
    let (thread, run) = (due.thread_id.clone(), Uuid::now_v7().to_string());
    let woken = app.store.fire_wake(due, run.clone(), app.pending_max).await?;
    let Woken::Admitted(admitted) = woken else { return Ok(false) };
    let stored = match &admitted {
        crate::store::Admitted::Stored { run, .. } => app.active(run),
        _ => return Err(ApiError::overloaded()),
    };
    match settle_admission(app, &run, stored, admitted) {
        Err(error) if error.status == StatusCode::TOO_MANY_REQUESTS => Err(error),
        Err(error) => {
            tracing::warn!(thread, error = error.detail, "a thread that is due was not woken");
            Ok(false)
        }
        Ok(_) => Ok(true),
    }
}

#[cfg(test)]
#[path = "timers_tests.rs"]
mod tests;
