//! Workers: each takes a run, drives it to its end, and takes the next.

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::execute::{execute, give_up};
use super::follow::follow;
use crate::app::{App, LOST};
use crate::crons::run_crons;
use crate::threads::run_expiry;
use crate::time::Micros;
use crate::timers::run as run_timers;
use crate::webhooks::run_webhooks;

/// How long a worker waits when the store does not answer.
const STORE_DOWN: Duration = Duration::from_secs(1);

/// The workers of a server, what fires its crons and wakes its threads, and what sends its webhooks. They end when the server is
/// gone, or stops.
pub(crate) struct Workers {
    all: JoinSet<()>,
    /// Says that this process lives, as long as it drives a run.
    _alive: JoinSet<()>,
}

impl Workers {
    pub(crate) fn start(app: &Arc<App>, count: usize) -> Self {
        let mut alive = JoinSet::new();
        alive.spawn(stay_alive(Arc::downgrade(app)));
        alive.spawn(follow(Arc::downgrade(app)));
        let mut workers = JoinSet::new();
        for _ in 0..count {
            workers.spawn(work(Arc::downgrade(app), app.wake.clone()));
        }
        workers.spawn(run_crons(Arc::downgrade(app), app.cron_wake.clone()));
        workers.spawn(run_expiry(Arc::downgrade(app), app.expiry_wake.clone()));
        workers.spawn(run_timers(Arc::downgrade(app), app.timer_wake.clone()));
        workers.spawn(run_webhooks(Arc::downgrade(app), app.webhook_wake.clone()));
        Self { all: workers, _alive: alive }
    }

    /// Waits until all have ended.
    pub(crate) async fn ended(&mut self) {
        while self.all.join_next().await.is_some() {}
    }
}

/// Says that this process lives, and goes on with the runs of those that do not.
async fn stay_alive(app: Weak<App>) {
    let mut beat_at = Instant::now();
    let mut heard_of = Instant::now();
    loop {
        let Some(alive) = app.upgrade() else { return };
        let lease = alive.lease;
        let now = Instant::now();
        if now >= beat_at {
            beat_at = now + lease / 3;
            match tokio::time::timeout(lease / 3, alive.store.beat(lease)).await {
                Ok(Ok(())) => heard_of = now,
                Ok(Err(error)) => {
                    tracing::error!(%error, "it could not be said that this process lives");
                }
                Err(_) => tracing::error!("it could not be said in time that this process lives"),
            }
        }
        if heard_of.elapsed() >= lease && alive.store.has_others() {
            // Others take its runs for their own by now. What it did since would be refused.
            alive.hub.stop_own(LOST);
        }
        match alive.take_back().await {
            Ok(0) => {}
            Ok(_) => alive.wake.notify_one(),
            Err(error) => tracing::error!(%error, "runs that were left cannot be looked for"),
        }
        let wait = alive.store.look_every(lease);
        drop(alive);
        tokio::time::sleep(wait).await;
    }
}

async fn work(app: Weak<App>, wake: Arc<tokio::sync::Notify>) {
    loop {
        let mut woken = pin!(wake.notified());
        // A run that is admitted from here on is not missed, nor is the end of the server.
        woken.as_mut().enable();
        let Some(alive) = app.upgrade().filter(|app| !app.is_stopping()) else { return };
        let wait =
            match alive.store.claim(Micros::now(), alive.graphs.keys().cloned().collect()).await {
                Ok(Ok(claimed)) => {
                    if claimed.more {
                        alive.run_is_ready();
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
                Ok(Err(due)) => {
                    due.map(|due| Micros::now().until(due).max(Duration::from_millis(1)))
                }
                Err(error) => {
                    tracing::error!(%error, "no run can be taken");
                    Some(STORE_DOWN)
                }
            };
        alive.free.fetch_add(1, Ordering::Relaxed);
        drop(alive);
        match wait {
            Some(wait) => drop(tokio::time::timeout(wait, woken).await),
            None => woken.await,
        }
        if let Some(alive) = app.upgrade() {
            alive.free.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
