//! Sending what waits.

use std::sync::{Arc, Weak};

use serde_json::Value as Json;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::app::App;
use crate::due::run_when_due;
use crate::store::{StoreError, Webhook};
use crate::time::Micros;
use crate::wire::webhook_json;

/// How often a webhook is sent before it is given up. The waits between double from 5 seconds: some 10 minutes in all.
pub(super) const ATTEMPTS_MAX: u32 = 8;

const FIRST_WAIT_SECONDS: f64 = 5.0;

/// How long a webhook that was taken is left alone by others; longer than it may take.
const TAKEN_SECONDS: f64 = 60.0;

/// How many are sent at the same time.
const BATCH: usize = 16;

/// Sends webhooks until the server is gone, or stops.
pub(crate) async fn run(app: Weak<App>, wake: Arc<Notify>) {
    run_when_due(app, wake, "webhooks could not be sent", |app, now| async move {
        deliver_due(&app, now).await
    })
    .await;
}

/// Sends what is due. Returns when the next webhook is.
pub(super) async fn deliver_due(app: &Arc<App>, now: Micros) -> Result<Option<Micros>, StoreError> {
    loop {
        let until = now.plus_seconds(TAKEN_SECONDS);
        let (due, next) = app.store.take_webhooks(now, until, BATCH).await?;
        if due.is_empty() {
            return Ok(next);
        }
        let mut sending = JoinSet::new();
        for webhook in due {
            sending.spawn(deliver(app.clone(), webhook, now));
        }
        while let Some(sent) = sending.join_next().await {
            match sent {
                Ok(sent) => sent?,
                Err(error) => tracing::error!(%error, "sending a webhook broke off"),
            }
        }
    }
}

async fn deliver(app: Arc<App>, mut webhook: Webhook, now: Micros) -> Result<(), StoreError> {
    let run = webhook.run.run_id.clone();
    let body: Json = webhook_json(&webhook, now);
    let seconds = now.0.div_euclid(1_000_000);
    let error = match app.webhooks.send(&webhook.url, &run, seconds, body.to_string()).await {
        Ok(()) => return app.store.webhook_received(&run).await,
        Err(error) => error.to_string(),
    };
    webhook.failures += 1;
    let again = (webhook.failures < ATTEMPTS_MAX).then(|| {
        let doubled = f64::from(1_u32 << (webhook.failures - 1));
        now.plus_seconds(FIRST_WAIT_SECONDS * doubled)
    });
    let failures = webhook.failures;
    match again {
        Some(_) => tracing::warn!(run, failures, error, "a webhook was not received"),
        None => tracing::error!(run, failures, error, "a webhook was given up"),
    }
    webhook.error = Some(error);
    app.store.webhook_failed(webhook, again).await
}

#[cfg(all(test, feature = "demo"))]
#[path = "tests.rs"]
mod tests;
