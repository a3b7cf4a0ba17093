//! Threads that live for a time.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::http::StatusCode;
use superstep::RunError;
use superstep::checkpoint::{Keep, Prune};
use tokio::sync::Notify;

use super::{PAGE, remove};
use crate::app::App;
use crate::error::ApiResult;
use crate::store::{ListQuery, OnExpiry, Thread, ThreadStatus};
use crate::time::Micros;

/// How long a thread may outlive its time.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// Deletes expired threads until the server is gone, or stops. As long as no thread expires, nothing is looked at.
pub(crate) async fn run(app: Weak<App>, wake: Arc<Notify>) {
    loop {
        let mut woken = pin!(wake.notified());
        woken.as_mut().enable();
        let Some(alive) = app.upgrade().filter(|app| !app.is_stopping()) else { return };
        let again = expire(&alive, Micros::now()).await.unwrap_or_else(|error| {
            tracing::error!(error = error.detail, "expired threads could not be deleted");
            true
        });
        drop(alive);
        match again {
            true => drop(tokio::time::timeout(LOOK_AGAIN, woken).await),
            false => woken.await,
        }
    }
}

/// Does what is due at this time. Returns whether there are, or may be soon, threads that will expire.
pub(crate) async fn expire(app: &App, now: Micros) -> ApiResult<bool> {
    // Other processes do not say when they make one.
    let (mut due, mut some) = (Vec::new(), app.store.has_others());
    let oldest_first = ListQuery { limit: PAGE, descending: false, ..ListQuery::default() };
    let mut query = ListQuery { expiring: true, ..oldest_first };
    loop {
        let page = app.store.threads(query.clone()).await?;
        query.offset += page.rows.len();
        for thread in page.rows {
            some = true;
            due.extend(is_due(&thread, now).then_some(thread));
        }
        if !page.more {
            break;
        }
    }
    for thread in due {
        end(app, thread).await?;
    }
    Ok(some)
}

fn is_due(thread: &Thread, now: Micros) -> bool {
    let at_rest = thread.status != ThreadStatus::Busy;
    thread.ttl.is_some_and(|ttl| {
        let done = ttl.done_at == Some(thread.updated_at);
        at_rest && !done && ttl.expires_at(thread.updated_at) <= now
    })
}

async fn end(app: &App, thread: Thread) -> ApiResult<()> {
    let id = thread.thread_id;
    if thread.ttl.is_some_and(|ttl| ttl.on_expiry == OnExpiry::Delete) {
        return match remove(app, &id).await {
            // Somebody else was quicker.
            Err(error) if error.status == StatusCode::NOT_FOUND => Ok(()),
            removed => removed,
        };
    }
    let prune = Prune { threads: Some(vec![id.clone()]), keep: Keep::Latest };
    app.checkpointer.prune(prune).await.map_err(RunError::from)?;
    let used = thread.updated_at;
    let change = Box::new(move |thread: &mut Thread| {
        if let Some(ttl) = &mut thread.ttl {
            ttl.done_at = Some(used);
        }
    });
    app.store.update_thread(&id, change).await?;
    Ok(())
}

#[cfg(all(test, feature = "demo"))]
#[path = "tests.rs"]
mod tests;
