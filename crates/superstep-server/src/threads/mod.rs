//! What is done to whole threads: they are deleted with all that belongs to them, and expire.
//!
//! Knows the store, who asks, and the queue, which stops the runs of a thread that other processes drive.

mod expire;

pub(crate) use expire::run as run_expiry;

use superstep::RunError;

use crate::access::Caller;
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::queue;
use crate::store::{Cancel, ListQuery, RunStatus};
use crate::tenant::id_of;
use crate::wire::Object;

/// How many threads are looked at in one call of the store.
const PAGE: usize = 500;

/// Deletes a thread with all that is stored for it. What runs on it is stopped first.
pub(crate) async fn remove(app: &App, id: &str) -> ApiResult<()> {
    let missing = || ApiError::no_thread(id_of(id));
    queue::stop_elsewhere(app, id).await?;
    let open = app.store.delete_thread(id).await?.ok_or_else(missing)?;
    for run in open {
        let active = app.hub.get(&run.run_id).filter(|_| run.status == RunStatus::Running);
        let Some(active) = active else {
            app.drop_run(&run.run_id);
            continue;
        };
        app.stop_run(&run.run_id, Cancel::Rollback);
        active.feed.result().await;
    }
    app.checkpointer.delete_thread(id).await.map_err(RunError::from)?;
    Ok(())
}

/// Deletes the threads whose latest run was that of an assistant.
pub(crate) async fn remove_of_assistant(app: &App, caller: &Caller, key: &str) -> ApiResult<()> {
    let of_assistant = Object::from_iter([("assistant_id".to_owned(), id_of(key).into())]);
    let query = ListQuery { metadata: of_assistant, limit: PAGE, ..ListQuery::default() };
    let Some(query) = caller.narrow(query) else { return Ok(()) };
    loop {
        let page = app.store.threads(query.clone()).await?;
        for thread in &page.rows {
            remove(app, &thread.thread_id).await?;
        }
        if !page.more {
            return Ok(());
        }
    }
}
