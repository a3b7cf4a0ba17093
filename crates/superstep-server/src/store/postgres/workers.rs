use std::time::Duration;

use superstep_postgres::tables::Sql;

use super::{PostgresStore, Result};
use crate::store::workers::WorkerTable;
use crate::store::{Answer, bound};

impl PostgresStore {
    async fn beat_once(&self, lease: Duration) -> Result<()> {
        let sql = "INSERT INTO server_workers (worker_id, started_at, beat_at, expires_at)
            VALUES ($1, clock_timestamp(), clock_timestamp(), clock_timestamp() + $2 * interval '1 millisecond')
            ON CONFLICT (worker_id) DO UPDATE SET beat_at = EXCLUDED.beat_at, expires_at = EXCLUDED.expires_at";
        let lease = bound(lease.as_millis());
        let beat = Sql::new(sql).text(&*self.worker).int(lease);
        // Rows of those that died are left for a while, for people who look.
        let forget =
            "DELETE FROM server_workers WHERE expires_at < clock_timestamp() - interval '1 day'";
        self.tables.run(&[beat, Sql::new(forget)]).await.map(drop)
    }
}

impl WorkerTable for PostgresStore {
    fn worker(&self) -> &str {
        &self.worker
    }

    #[expect(clippy::arithmetic_side_effects, reason = "it is not divided by zero")]
    fn look_every(&self, lease: Duration) -> Duration {
        lease / 3
    }

    fn beat(&self, lease: Duration) -> Answer<'_, ()> {
        self.answer("say that this process lives", self.beat_once(lease))
    }

    fn take_back(&self, attempts_max: u32) -> Answer<'_, usize> {
        self.answer("take back runs", self.take_back_runs(attempts_max))
    }

    fn leave(&self) -> Answer<'_, ()> {
        let sql = Sql::new("DELETE FROM server_workers WHERE worker_id = $1").text(&*self.worker);
        self.answer(
            "say that this process ends",
            async move { self.tables.run(&[sql]).await.map(drop) },
        )
    }
}
