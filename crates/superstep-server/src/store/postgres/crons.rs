use superstep_postgres::tables::Sql;

use super::rows::{column, first, objects, put_cron, to_int};
use super::{PostgresStore, Result};
use crate::store::crons::{Cron, Crons, Fired, Firing};
use crate::store::{Admitted, Answer, ListQuery, Page};
use crate::time::Micros;

const TABLE: &str = "server_crons";
const FIND: &str = "SELECT body FROM server_crons WHERE cron_id = $1";

/// Whether the cron is still due at this date. Nobody can change it until the end of the transaction that asks.
fn still_due(firing: &Firing) -> Sql {
    let sql = "SELECT body FROM server_crons WHERE cron_id = $1 AND next_run_date = $2 AND enabled = 'true'
        FOR UPDATE";
    Sql::new(sql).text(&firing.cron_id).int(firing.due.0)
}

fn moved(firing: &Firing, mut cron: Cron) -> Result<Sql> {
    cron.next_run_date = firing.next;
    put_cron(&cron)
}

impl PostgresStore {
    async fn change_cron(
        &self,
        id: &str,
        change: Box<dyn FnOnce(&mut Cron) + Send>,
    ) -> Result<Option<Cron>> {
        let sql = &[Sql::new(FIND).and(" FOR UPDATE").text(id)];
        let (transaction, rows) = self.tables.insist(|_| self.tables.begin(sql)).await?;
        let found = rows.last().map(|rows| first::<Cron>(rows)).transpose()?.flatten();
        let Some(mut cron) = found else {
            transaction.commit(&[]).await?;
            return Ok(None);
        };
        change(&mut cron);
        transaction.commit(&[put_cron(&cron)?]).await?;
        Ok(Some(cron))
    }

    async fn look_for_due(&self, now: Micros, limit: usize) -> Result<(Vec<Cron>, Option<Micros>)> {
        let due = "SELECT body FROM server_crons WHERE next_run_date <= $1 ORDER BY next_run_date, n LIMIT $2";
        let next = "SELECT min(next_run_date) FROM server_crons WHERE next_run_date IS NOT NULL";
        let sql = [Sql::new(due).int(now.0).int(to_int(limit)?), Sql::new(next)];
        let rows = self.tables.run(&sql).await?;
        let due = rows.first().map_or(Ok(Vec::new()), |rows| objects(rows))?;
        let next = rows.last().and_then(|rows| rows.first());
        let next: Option<i64> = next.map_or(Ok(None), |row| column(row, 0))?;
        Ok((due, next.map(Micros)))
    }

    async fn fire(&self, firing: &Firing, again: bool) -> Result<Fired> {
        let Some(admission) = &firing.run else {
            let (transaction, rows) = self.tables.begin(&[still_due(firing)]).await?;
            let cron = rows.last().map(|rows| first::<Cron>(rows)).transpose()?.flatten();
            let Some(cron) = cron else {
                transaction.commit(&[]).await?;
                return Ok(if again { Fired::Skipped } else { Fired::Elsewhere });
            };
            transaction.commit(&[moved(firing, cron)?]).await?;
            return Ok(Fired::Skipped);
        };
        if again && let Some(run) = self.run_by_id(&admission.run.run_id).await? {
            // The answer to the first attempt was lost.
            let stored = Admitted::Stored { run: Box::new(run), stop: vec![], dropped: vec![] };
            return Ok(Fired::Admitted(stored));
        }
        let moved = |cron| moved(firing, cron);
        let admitted = self.admit_if(admission, Some((still_due(firing), &moved))).await?;
        Ok(admitted.map_or(Fired::Elsewhere, Fired::Admitted))
    }
}

impl Crons for PostgresStore {
    fn cron(&self, id: &str) -> Answer<'_, Option<Cron>> {
        let sql = Sql::new(FIND).text(id);
        self.answer("read a cron", async move { first(&self.tables.read(&sql).await?) })
    }

    fn update_cron(
        &self,
        id: &str,
        change: Box<dyn FnOnce(&mut Cron) + Send>,
    ) -> Answer<'_, Option<Cron>> {
        let id = id.to_owned();
        self.answer("change a cron", async move { self.change_cron(&id, change).await })
    }

    fn delete_cron(&self, id: &str) -> Answer<'_, bool> {
        let sql = Sql::new("DELETE FROM server_crons WHERE cron_id = $1 RETURNING 1").text(id);
        self.answer("delete a cron", async move {
            let rows = self.tables.run(&[sql]).await?;
            Ok(rows.first().is_some_and(|rows| !rows.is_empty()))
        })
    }

    fn crons(&self, query: ListQuery) -> Answer<'_, Page<Cron>> {
        self.answer("list crons", async move { self.page(TABLE, &query).await })
    }

    fn count_crons(&self, query: ListQuery) -> Answer<'_, u64> {
        self.answer("count crons", async move { self.count(TABLE, &query).await })
    }

    fn due_crons(&self, now: Micros, limit: usize) -> Answer<'_, (Vec<Cron>, Option<Micros>)> {
        self.answer("look for due crons", self.look_for_due(now, limit))
    }

    fn fire_cron(&self, firing: Firing) -> Answer<'_, Fired> {
        self.answer("fire a cron", async move {
            let firing = &firing;
            self.tables.insist(move |again| self.fire(firing, again)).await
        })
    }
}
