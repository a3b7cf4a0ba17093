//! Firing what is due.

use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::Notify;

use super::{name_in, next_date, request};
use crate::app::App;
use crate::due::run_when_due;
use crate::error::ApiError;
use crate::queue::{admission, settle_admission};
use crate::store::{Cron, Fired, Firing};
use crate::time::Micros;

/// A firing that is later than this was missed.
pub(super) const LATE_MAX: Duration = Duration::from_secs(60);

/// How many due crons are taken at a time.
const BATCH: usize = 100;

/// Fires crons until the server is gone, or stops.
pub(crate) async fn run(app: Weak<App>, wake: Arc<Notify>) {
    run_when_due(app, wake, "crons could not be fired", |app, now| async move {
        fire_due(&app, now).await
    })
    .await;
}

/// Fires what is due. Returns when the next cron is.
pub(crate) async fn fire_due(app: &App, now: Micros) -> Result<Option<Micros>, ApiError> {
    loop {
        let (due, next) = app.store.due_crons(now, BATCH).await?;
        if due.is_empty() {
            return Ok(next);
        }
        for cron in due {
            fire(app, cron, now).await?;
        }
    }
}

async fn fire(app: &App, cron: Cron, now: Micros) -> Result<(), ApiError> {
    let Some(due) = cron.next_run_date else { return Ok(()) };
    let id = cron.cron_id.clone();
    // A cron that cannot be computed any more must not stop the others.
    let next = next_date(&cron, now).unwrap_or_else(|error| {
        tracing::error!(cron = id, error = error.detail, "a cron has no next date");
        None
    });
    let late = due.until(now);
    let firing = |run| Firing { cron_id: id.clone(), due, next, run };
    if late > LATE_MAX {
        tracing::warn!(cron = id, due = due.rfc3339(), "a cron was due while no server ran");
        app.store.fire_cron(firing(None)).await?;
        return Ok(());
    }
    let made = match request(&cron) {
        Ok(request) => {
            app.assistant(&cron.assistant_id).await.map(|assistant| (request, assistant))
        }
        Err(error) => Err(error),
    };
    let (request, assistant) = match made {
        Ok(made) => made,
        Err(error) if error.status.is_server_error() => return Err(error),
        Err(error) => {
            tracing::error!(cron = id, error = error.detail, "a cron cannot start its run");
            app.store.fire_cron(firing(None)).await?;
            return Ok(());
        }
    };
    let mut admission = admission(app, &assistant, cron.thread_id.as_deref(), &request, now);
    name_in(&mut admission.run.kwargs, &id);
    let (run_id, active) = (admission.run.run_id.clone(), app.active(&admission.run));
    match app.store.fire_cron(firing(Some(Box::new(admission)))).await {
        Ok(Fired::Admitted(admitted)) => match settle_admission(app, &run_id, active, admitted) {
            Err(error) if error.status == StatusCode::TOO_MANY_REQUESTS => Err(error),
            Err(error) => {
                tracing::warn!(cron = id, error = error.detail, "a cron did not start its run");
                Ok(())
            }
            Ok(_) => Ok(()),
        },
        Ok(Fired::Elsewhere | Fired::Skipped) => {
            app.hub.remove(&run_id);
            Ok(())
        }
        Err(error) => {
            app.hub.remove(&run_id);
            Err(error.into())
        }
    }
}

#[cfg(all(test, feature = "demo"))]
#[path = "tests.rs"]
mod tests;
