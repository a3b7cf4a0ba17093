use superstep_postgres::tables::Sql;
use tokio_postgres::Row;

use super::rows::{column, number, to_int};
use super::runs::{Need, count_up_to};
use super::{PostgresStore, Result};
use crate::store::wakes::{DueThread, Wakes, Woken};
use crate::store::{Admitted, Answer, rules};
use crate::time::Micros;

fn due(row: &Row) -> Result<DueThread> {
    Ok(DueThread { thread_id: column(row, 0)?, due: Micros(column(row, 1)?) })
}

impl PostgresStore {
    async fn look_for_wakes(
        &self,
        now: Micros,
        limit: usize,
    ) -> Result<(Vec<DueThread>, Option<Micros>)> {
        let find =
            "SELECT thread_id, wake_at FROM server_threads WHERE wake_at <= $1 AND status <> 'busy'
            ORDER BY wake_at LIMIT $2";
        let next = "SELECT min(wake_at) FROM server_threads WHERE wake_at > $1";
        let sql = [Sql::new(find).int(now.0).int(to_int(limit)?), Sql::new(next).int(now.0)];
        let rows = self.tables.run(&sql).await?;
        let due = rows.iter().take(1).flatten().map(due).collect::<Result<_>>()?;
        let next = rows.last().and_then(|rows| rows.first());
        let next: Option<i64> = next.map_or(Ok(None), |row| column(row, 0))?;
        Ok((due, next.map(Micros)))
    }

    async fn wake(
        &self,
        seen: &DueThread,
        run: &str,
        pending_max: usize,
        again: bool,
    ) -> Result<Woken> {
        if again && let Some(run) = self.run_by_id(run).await? {
            // The answer to the first attempt was lost.
            let stored = Admitted::Stored { run: Box::new(run), stop: vec![], dropped: vec![] };
            return Ok(Woken::Admitted(stored));
        }
        let rule = |rows, also: &[Vec<Row>]| {
            let pending = also.first().and_then(|rows| rows.first());
            let room = (pending.map_or(Ok(0), |row| number(row, 0))?, pending_max);
            let run = (run.to_owned(), &*self.worker);
            let (woken, changes) = rules::wake(rows, seen, run, room, Micros::now());
            Ok((woken, changes, Vec::new()))
        };
        let also = vec![count_up_to(pending_max)];
        self.with_thread(&seen.thread_id, Need::Some(Vec::new()), also, rule).await
    }
}

impl Wakes for PostgresStore {
    fn due_threads(
        &self,
        now: Micros,
        limit: usize,
    ) -> Answer<'_, (Vec<DueThread>, Option<Micros>)> {
        self.answer("look for threads that are due", self.look_for_wakes(now, limit))
    }

    fn fire_wake(&self, seen: DueThread, run: String, pending_max: usize) -> Answer<'_, Woken> {
        self.answer("wake a thread", async move {
            let (seen, run) = (&seen, &*run);
            self.tables.insist(move |again| self.wake(seen, run, pending_max, again)).await
        })
    }
}
