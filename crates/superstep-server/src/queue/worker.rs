//! Workers: each takes a run, drives it to its end, and takes the next.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::JoinSet;

use super::execute::{execute, give_up};
use crate::app::App;
use crate::crons::run_crons;
use crate::threads::run_expiry;
use crate::time::Micros;
use crate::timers::run as run_timers;
use crate::webhooks::run_webhooks;

/// How long a worker waits when the store does not answer.
const STORE_DOWN: Duration = Duration::from_secs(1);

/// The workers of a server, what fires its crons and wakes its threads, and what sends its webhooks. They end when the server is gone, or stops.
pub(crate) struct Workers(JoinSet<()>);

impl Workers {
    pub(crate) fn start(app: &Arc<App>, count: usize) -> Self {
        let mut workers = JoinSet::new();
        for _ in 0..count {
            workers.spawn(work(Arc::downgrade(app), app.wake.clone()));
        }
        workers.spawn(run_crons(Arc::downgrade(app), app.cron_wake.clone()));
        workers.spawn(run_expiry(Arc::downgrade(app), app.expiry_wake.clone()));
        workers.spawn(run_timers(Arc::downgrade(app), app.timer_wake.clone()));
        workers.spawn(run_webhooks(Arc::downgrade(app), app.webhook_wake.clone()));
        Self(workers)
    }

    /// Waits until all have ended.
    pub(crate) async fn ended(&mut self) {
        while self.0.join_next().await.is_some() {}
    }
}

async fn work(app: Weak<App>, wake: Arc<tokio::sync::Notify>) {
    loop {
        let mut woken = pin!(wake.notified());
        // A run that is admitted from here on is not missed, nor is the end of the server.
        woken.as_mut().enable();
        let Some(alive) = app.upgrade().filter(|app| !app.is_stopping()) else { return };
        let wait = match alive.store.claim(Micros::now()).await {
            Ok(Ok(claimed)) => {
                if claimed.more {
                    wake.notify_one();
                }
                let run = claimed.run.clone();
                // A task of its own, so that a panic does not end the worker. It ends with the worker.
                let mut driven = JoinSet::new();
                driven.spawn(execute(alive.clone(), claimed));
                if let Some(Err(error)) = driven.join_next().await {
                    tracing::error!(run = %run.run_id, %error, "a run broke its worker");
                    give_up(&alive, &run).await;
                }
                continue;
            }
            Ok(Err(due)) => due.map(|due| Micros::now().until(due).max(Duration::from_millis(1))),
            Err(error) => {
                tracing::error!(%error, "no run can be taken");
                Some(STORE_DOWN)
            }
        };
        drop(alive);
        match wait {
            Some(wait) => drop(tokio::time::timeout(wait, woken).await),
            None => woken.await,
        }
    }
}
