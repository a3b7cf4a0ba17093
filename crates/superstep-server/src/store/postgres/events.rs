use superstep_postgres::tables::Sql;

use super::rows::{column, event_lists, number, to_int};
use super::{PostgresStore, Result};
use crate::store::{Stored, bound};
use crate::time::Micros;

/// The parameters of a page of events. A number that PostgreSQL cannot hold is after all events.
pub(super) fn after(sql: Sql, after: u64, limit: usize) -> Sql {
    sql.int(bound(after)).int(bound(limit))
}

impl PostgresStore {
    /// Whoever drives a run keeps others from taking it over while its events are stored.
    pub(super) async fn append_events(
        &self,
        run: &str,
        epoch: Option<u64>,
        new: &[Stored],
    ) -> Result<bool> {
        let insert = "WITH driven AS MATERIALIZED (
                SELECT 1 FROM server_runs WHERE run_id = $1 AND epoch = $5 AND status = 'running' FOR SHARE
            ), stored AS (
                INSERT INTO server_events (run_id, seq, event, data)
                SELECT $1, new.* FROM unnest($2::bigint[], $3::text[], $4::text[]) AS new
                WHERE $5 IS NULL OR EXISTS (SELECT FROM driven)
                ON CONFLICT DO NOTHING
            )
            SELECT $5 IS NULL OR EXISTS (SELECT FROM driven)";
        let epoch = epoch.map(to_int).transpose()?;
        let sql = event_lists(Sql::new(insert).text(run), new)?.maybe_int(epoch);
        let rows = self.tables.run(&[sql]).await?;
        let row = rows.first().and_then(|rows| rows.first());
        row.map_or(Ok(false), |row| column(row, 0))
    }

    pub(super) async fn last_of(&self, run: &str) -> Result<u64> {
        let sql = Sql::new("SELECT coalesce(max(seq), 0) FROM server_events WHERE run_id = $1");
        let rows = self.tables.read(&sql.text(run)).await?;
        rows.first().map_or(Ok(0), |row| number(row, 0))
    }

    pub(super) async fn forget_events_before(&self, before: Micros) -> Result<usize> {
        let ends = Sql::new("DELETE FROM server_ends WHERE ended_at < $1").int(before.0);
        self.tables.run(&[ends]).await?;
        let sql = "DELETE FROM server_events AS event
            WHERE NOT EXISTS (SELECT FROM server_ends WHERE run_id = event.run_id)
            AND NOT EXISTS (SELECT FROM server_runs WHERE run_id = event.run_id
                AND (updated_at >= $1 OR status IN ('pending', 'running')))";
        self.delete(sql, before).await
    }
}
