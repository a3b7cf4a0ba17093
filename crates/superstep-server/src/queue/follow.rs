//! Following the runs that other processes drive, and hearing what they want of ours.

use std::sync::Weak;
use std::time::Duration;

use serde_json::json;

use crate::app::{App, LOST};
use crate::events::Active;
use crate::store::{
    Cancel, ListQuery, News, NewsReader, Progress, Run, RunStatus, StoreError, Which,
};

/// How often is looked at what may have changed, whatever is heard.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How often a free worker looks for runs, whatever is heard.
const CLAIM_EVERY: u32 = 2;

/// How many runs are looked at together.
const RUNS_MAX: usize = 500;

/// Follows until the server is gone.
pub(super) async fn follow(app: Weak<App>) {
    let mut reader: Option<Box<dyn NewsReader>> = None;
    let mut looks = 0_u32;
    loop {
        let Some(alive) = app.upgrade().filter(|app| app.store.has_others()) else { return };
        if reader.is_none() {
            reader = alive.store.hear().await.unwrap_or_else(|error| {
                tracing::warn!(%error, "what other processes tell is not heard; it is looked for");
                None
            });
        }
        drop(alive);
        let news = tokio::time::timeout(LOOK_EVERY, heard(&mut reader)).await;
        let Some(alive) = app.upgrade() else { return };
        let looked = match news {
            Ok(news) => hear(&alive, news).await,
            Err(_) => {
                looks = looks.wrapping_add(1);
                if looks.is_multiple_of(CLAIM_EVERY) {
                    alive.wake.notify_one();
                }
                look_at_all(&alive).await
            }
        };
        if let Err(error) = looked {
            tracing::warn!(%error, "what other processes did cannot be looked at");
        }
    }
}

/// The next news. It never comes if nobody can be heard.
async fn heard(reader: &mut Option<Box<dyn NewsReader>>) -> News {
    if let Some(listening) = reader {
        if let Some(news) = listening.next().await {
            return news;
        }
        // The connection is lost. The next look makes another one.
        *reader = None;
    }
    std::future::pending().await
}

async fn hear(app: &App, news: News) -> Result<(), StoreError> {
    match news {
        News::Work => app.wake.notify_one(),
        News::Run(run) => {
            if app.hub.get(&run).is_some() {
                look_at(app, vec![run]).await?;
            }
        }
        News::Session(thread) => {
            if let Some(session) = app.hub.open_session(&thread) {
                session.catch_up().await?;
            }
        }
    }
    Ok(())
}

async fn look_at_all(app: &App) -> Result<(), StoreError> {
    for runs in app.hub.runs().chunks(RUNS_MAX) {
        look_at(app, runs.to_vec()).await?;
    }
    for session in app.hub.open_sessions() {
        session.catch_up().await?;
    }
    Ok(())
}

/// Looks how far runs have come that this process drives or follows.
async fn look_at(app: &App, runs: Vec<String>) -> Result<(), StoreError> {
    // What is known here comes first: if it changes meanwhile, what is read is newer.
    let known: Vec<_> = runs
        .iter()
        .filter_map(|run| {
            let active = app.hub.get(run)?;
            let (epoch, stored) = (active.feed.epoch(), active.feed.is_admitted());
            Some((run, active, epoch, stored))
        })
        .collect();
    let progress = app.store.progress(runs.clone()).await?;
    for (run, active, epoch, stored) in known {
        let now = progress.iter().find(|progress| progress.run_id == *run);
        match (epoch, now) {
            (Some(epoch), now) => look_at_own(app, run, &active, epoch, now),
            (None, Some(now)) => look_at_other(app, run, &active, now),
            // It was deleted.
            (None, None) if stored => app.drop_run(run),
            (None, None) => {}
        }
    }
    Ok(())
}

/// A run that this process drives.
fn look_at_own(app: &App, run: &str, active: &Active, epoch: u64, now: Option<&Progress>) {
    let Some(now) = now.filter(|now| now.epoch == epoch && now.status == RunStatus::Running) else {
        // It was deleted or taken over, or it is just ending, and then this comes too late.
        active.control.stop_now(LOST);
        return;
    };
    if now.followed {
        active.feed.store_all();
    }
    if let Some(action) = now.cancel {
        app.stop_run(run, action);
    }
}

/// A run that another process drives, or nobody yet.
fn look_at_other(app: &App, run: &str, active: &Active, now: &Progress) {
    active.feed.advance(now.last_event);
    if now.status.is_over() {
        active.feed.end(now.result.clone().unwrap_or_else(|| json!({})));
        app.hub.remove(run);
    }
}

/// The run among those of this process, which follows it if another one drives it.
pub(crate) async fn follow_run(app: &App, run: &Run) -> Result<Active, StoreError> {
    let known = app.hub.get(&run.run_id);
    let active = app.active(run);
    active.feed.admitted();
    if known.is_none() && app.store.has_others() {
        app.store.follow(&run.thread_id, &run.run_id).await?;
        look_at(app, vec![run.run_id.clone()]).await?;
    }
    Ok(active)
}

/// Waits until a run that was told to stop has ended, wherever it is.
pub(crate) async fn wait_for_end(app: &App, run: &str) -> Result<(), StoreError> {
    let active = match (app.hub.get(run), app.store.run(None, run).await?) {
        (Some(active), _) => active,
        (None, Some(run)) if !run.status.is_over() => follow_run(app, &run).await?,
        (None, _) => return Ok(()),
    };
    active.feed.result().await;
    Ok(())
}

/// Stops the run of a thread that is to be deleted, if another process drives it: what it stores later would stay.
pub(crate) async fn stop_elsewhere(app: &App, thread: &str) -> Result<(), StoreError> {
    if !app.store.has_others() {
        return Ok(());
    }
    let running = RunStatus::Running.as_str().to_owned();
    let equal = vec![("thread_id", vec![thread.to_owned()]), ("status", vec![running])];
    let running = app.store.runs(ListQuery { equal, ..ListQuery::default() }).await?;
    let is_own = |run: &Run| run.worker.as_deref() == Some(app.store.worker());
    for run in running.rows.into_iter().filter(|run| !is_own(run)) {
        let which = Which::Runs { thread: thread.to_owned(), runs: vec![run.run_id.clone()] };
        app.store.cancel(which, Cancel::Rollback).await?;
        app.stop_run(&run.run_id, Cancel::Rollback);
        wait_for_end(app, &run.run_id).await?;
    }
    Ok(())
}
