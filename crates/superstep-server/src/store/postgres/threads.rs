use superstep_postgres::tables::Sql;

use super::rows::{first, put_thread};
use super::{PostgresStore, Result};
use crate::store::Thread;

const FIND: &str = "SELECT body FROM server_threads WHERE thread_id = $1";

/// Deletes a thread with all that is kept for it, except the events of this run. Runs go before their events: whoever appends some holds the row of the run.
pub(super) fn delete(thread: &str, keep_events: Option<&str>) -> Vec<Sql> {
    let sql = "WITH gone AS (DELETE FROM server_runs WHERE thread_id = $1 RETURNING run_id)
        DELETE FROM server_events WHERE run_id IN (SELECT run_id FROM gone)
            AND run_id IS DISTINCT FROM $2";
    let mut all = vec![Sql::new(sql).text(thread).maybe_text(keep_events.map(str::to_owned))];
    let tables = [
        "server_queue",
        "server_session_events",
        "server_sessions",
        "server_crons",
        "server_answers",
        "server_threads",
    ];
    let of_thread =
        |table| Sql::new(format!("DELETE FROM {table} WHERE thread_id = $1")).text(thread);
    all.extend(tables.map(of_thread));
    all
}

/// The last of these statements finds a thread, after it was locked.
pub(super) fn find_locked(id: &str) -> Vec<Sql> {
    let mut sql = Vec::from(super::runs::lock(id));
    sql.push(Sql::new(FIND).text(id));
    sql
}

impl PostgresStore {
    pub(super) async fn find_thread(&self, id: &str) -> Result<Option<Thread>> {
        first(&self.tables.read(&Sql::new(FIND).text(id)).await?)
    }

    pub(super) async fn make_thread(
        &self,
        new: &Thread,
        again: bool,
    ) -> Result<std::result::Result<Thread, Box<Thread>>> {
        let (transaction, rows) = self.tables.begin(&find_locked(&new.thread_id)).await?;
        if let Some(known) = rows.last().map(|rows| first::<Thread>(rows)).transpose()?.flatten() {
            transaction.commit(&[]).await?;
            // The answer to the first attempt was lost.
            let own = again && known.created_at == new.created_at;
            return Ok(if own { Ok(known) } else { Err(Box::new(known)) });
        }
        transaction.commit(&[put_thread(new)?]).await?;
        Ok(Ok(new.clone()))
    }

    pub(super) async fn change_thread(
        &self,
        id: &str,
        change: Box<dyn FnOnce(&mut Thread) + Send>,
    ) -> Result<Option<Thread>> {
        let sql = &find_locked(id);
        let begun = self.tables.insist(|_| self.tables.begin(sql)).await?;
        let (transaction, rows) = begun;
        let Some(mut thread) = rows.last().map(|rows| first::<Thread>(rows)).transpose()?.flatten()
        else {
            transaction.commit(&[]).await?;
            return Ok(None);
        };
        change(&mut thread);
        transaction.commit(&[put_thread(&thread)?]).await?;
        Ok(Some(thread))
    }
}
