use superstep_postgres::tables::Sql;

use super::rows::{event_lists, events, number, to_int};
use super::{PostgresStore, Result};
use crate::store::sessions::{SESSION_EVENTS_MAX, SessionLog};
use crate::store::{Answer, Stored};
use crate::time::Micros;

impl PostgresStore {
    /// The statements that append events to the session of a thread.
    pub(super) fn append_to_session(thread: &str, new: &[Stored], now: Micros) -> Result<Vec<Sql>> {
        let Some(last) = new.last().map(|event| event.seq) else { return Ok(Vec::new()) };
        let insert = "INSERT INTO server_session_events (thread_id, seq, event, data)
            SELECT $1, * FROM unnest($2::bigint[], $3::text[], $4::text[]) ON CONFLICT DO NOTHING";
        let note = "INSERT INTO server_sessions AS session (thread_id, last, updated_at) VALUES ($1, $2, $3)
            ON CONFLICT (thread_id) DO UPDATE SET last = greatest(session.last, $2), updated_at = $3";
        let trim = "DELETE FROM server_session_events WHERE thread_id = $1 AND seq <= $2";
        let oldest = to_int(last.saturating_sub(SESSION_EVENTS_MAX))?;
        let mut sql = vec![
            event_lists(Sql::new(insert).text(thread), new)?,
            Sql::new(note).text(thread).int(to_int(last)?).int(now.0),
        ];
        if oldest > 0 {
            sql.push(Sql::new(trim).text(thread).int(oldest));
        }
        Ok(sql)
    }
}

impl SessionLog for PostgresStore {
    fn append_session(&self, thread: &str, new: Vec<Stored>) -> Answer<'_, ()> {
        let thread = thread.to_owned();
        self.answer("store events of a thread", async move {
            let sql = Self::append_to_session(&thread, &new, Micros::now())?;
            self.tables.run(&sql).await.map(drop)
        })
    }

    fn session_events(&self, thread: &str, after: u64, limit: usize) -> Answer<'_, Vec<Stored>> {
        let sql = "SELECT seq, event, data FROM server_session_events
            WHERE thread_id = $1 AND seq > $2 ORDER BY seq LIMIT $3";
        let sql = super::events::after(Sql::new(sql).text(thread), after, limit);
        self.answer(
            "read events of a thread",
            async move { events(&self.tables.read(&sql).await?) },
        )
    }

    fn session_last(&self, thread: &str) -> Answer<'_, u64> {
        let sql = Sql::new("SELECT last FROM server_sessions WHERE thread_id = $1").text(thread);
        self.answer("read events of a thread", async move {
            let rows = self.tables.read(&sql).await?;
            rows.first().map_or(Ok(0), |row| number(row, 0))
        })
    }

    fn forget_sessions(&self, before: Micros) -> Answer<'_, usize> {
        let sql = "DELETE FROM server_session_events WHERE thread_id IN
            (SELECT thread_id FROM server_sessions WHERE updated_at < $1)";
        self.answer("forget events of threads", self.delete(sql, before))
    }
}
