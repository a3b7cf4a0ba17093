use superstep_postgres::tables::Sql;

use super::rows::{objects, plain, to_body, to_int};
use super::{PostgresStore, Result};
use crate::store::{Answer, Answered, Answers, InboxPlace, Thread};

pub(super) fn put(answered: &Answered) -> Result<Sql> {
    let sql = "INSERT INTO server_answers (thread_id, at, run_id, interrupt_id, body) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (thread_id, at, run_id, interrupt_id) DO UPDATE SET body = $5";
    Ok(Sql::new(sql)
        .text(&answered.thread_id)
        .int(answered.at.0)
        .text(&answered.run_id)
        .text(plain(&answered.interrupt_id))
        .text(to_body(answered)?))
}

impl PostgresStore {
    async fn waiting(
        &self,
        tenant: &str,
        after: Option<InboxPlace>,
        limit: usize,
    ) -> Result<Vec<Thread>> {
        let (at, thread) = after
            .map_or((i64::MIN, String::new()), |place| (place.state_updated_at.0, place.thread_id));
        let sql = "SELECT body FROM server_threads WHERE status = 'interrupted' AND tenant = $1
            AND (state_updated_at, thread_id) > ($2, $3) ORDER BY state_updated_at, thread_id LIMIT $4";
        let sql = Sql::new(sql).text(plain(tenant)).int(at).text(plain(&thread));
        objects(&self.tables.read(&sql.int(to_int(limit)?)).await?)
    }

    async fn answers_of(&self, thread: &str, limit: usize) -> Result<Vec<Answered>> {
        let sql = "SELECT body FROM server_answers WHERE thread_id = $1
            ORDER BY at DESC, run_id DESC, interrupt_id LIMIT $2";
        objects(&self.tables.read(&Sql::new(sql).text(thread).int(to_int(limit)?)).await?)
    }
}

impl Answers for PostgresStore {
    fn waiting_threads(
        &self,
        tenant: &str,
        after: Option<InboxPlace>,
        limit: usize,
    ) -> Answer<'_, Vec<Thread>> {
        let tenant = tenant.to_owned();
        self.answer("list open questions", async move { self.waiting(&tenant, after, limit).await })
    }

    fn answers(&self, thread: &str, limit: usize) -> Answer<'_, Vec<Answered>> {
        let thread = thread.to_owned();
        self.answer("list answers", async move { self.answers_of(&thread, limit).await })
    }
}
