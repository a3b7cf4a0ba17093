use superstep_postgres::tables::Sql;

use super::rows::{column, number, objects, put_webhook, to_int};
use super::{PostgresStore, Result};
use crate::store::Answer;
use crate::store::webhooks::{Webhook, WebhookCounts, Webhooks};
use crate::time::Micros;

impl PostgresStore {
    /// What others take at the same time is passed over.
    async fn take(
        &self,
        now: Micros,
        until: Micros,
        limit: usize,
    ) -> Result<(Vec<Webhook>, Option<Micros>)> {
        let take = "WITH due AS (
                SELECT run_id, due_at FROM server_webhooks WHERE due_at <= $1
                ORDER BY due_at LIMIT $3 FOR UPDATE SKIP LOCKED
            ), taken AS (
                UPDATE server_webhooks AS hook SET due_at = $2 FROM due WHERE hook.run_id = due.run_id
                RETURNING hook.body, due.due_at
            )
            SELECT body FROM taken ORDER BY due_at";
        let next = "SELECT min(due_at) FROM server_webhooks WHERE due_at IS NOT NULL";
        let take = Sql::new(take).int(now.0).int(until.0).int(to_int(limit)?);
        // If the answer is lost they are due again at `until`.
        let rows = self.tables.run(&[take, Sql::new(next)]).await?;
        let taken = rows.first().map_or(Ok(Vec::new()), |rows| objects(rows))?;
        let next = rows.last().and_then(|rows| rows.first());
        let next: Option<i64> = next.map_or(Ok(None), |row| column(row, 0))?;
        Ok((taken, next.map(Micros)))
    }

    async fn count_them(&self) -> Result<WebhookCounts> {
        let sql = "SELECT count(due_at), count(*) - count(due_at) FROM server_webhooks";
        let rows = self.tables.read(&Sql::new(sql)).await?;
        let Some(row) = rows.first() else { return Ok(WebhookCounts::default()) };
        Ok(WebhookCounts { waiting: number(row, 0)?, given_up: number(row, 1)? })
    }
}

impl Webhooks for PostgresStore {
    fn take_webhooks(
        &self,
        now: Micros,
        until: Micros,
        limit: usize,
    ) -> Answer<'_, (Vec<Webhook>, Option<Micros>)> {
        self.answer("take webhooks", self.take(now, until, limit))
    }

    fn webhook_received(&self, run: &str) -> Answer<'_, ()> {
        let sql = Sql::new("DELETE FROM server_webhooks WHERE run_id = $1").text(run);
        self.answer("forget a webhook", async move { self.tables.run(&[sql]).await.map(drop) })
    }

    fn webhook_failed(&self, webhook: Webhook, again: Option<Micros>) -> Answer<'_, ()> {
        self.answer("keep a webhook", async move {
            self.tables.run(&[put_webhook(&webhook, again)?]).await.map(drop)
        })
    }

    fn count_webhooks(&self) -> Answer<'_, WebhookCounts> {
        self.answer("count webhooks", self.count_them())
    }

    fn forget_webhooks(&self, before: Micros) -> Answer<'_, usize> {
        let sql = "DELETE FROM server_webhooks WHERE due_at IS NULL AND ended_at < $1";
        self.answer("forget webhooks", self.delete(sql, before))
    }
}
