use superstep_postgres::tables::Sql;

use super::rows::{first, number, objects, put_assistant, put_version};
use super::{PostgresStore, Result};
use crate::store::Assistant;
use crate::time::Micros;

const FIND: &str = "SELECT body FROM server_assistants WHERE assistant_id = $1";

/// Keeps others away from an assistant until the end of the transaction.
fn lock(id: &str) -> Sql {
    Sql::new("SELECT pg_advisory_xact_lock(1936024691, hashtext($1))").text(id)
}

/// The last of these statements finds an assistant, after it was locked.
pub(super) fn find_locked(id: &str) -> Vec<Sql> {
    vec![lock(id), Sql::new(FIND).text(id)]
}

impl PostgresStore {
    pub(super) async fn find_assistant(&self, id: &str) -> Result<Option<Assistant>> {
        first(&self.tables.read(&Sql::new(FIND).text(id)).await?)
    }

    pub(super) async fn make_assistant(
        &self,
        new: &Assistant,
        again: bool,
    ) -> Result<std::result::Result<Assistant, Box<Assistant>>> {
        let (transaction, rows) = self.tables.begin(&find_locked(&new.assistant_id)).await?;
        if let Some(known) = rows.last().map(|rows| first::<Assistant>(rows)).transpose()?.flatten()
        {
            transaction.commit(&[]).await?;
            // The answer to the first attempt was lost.
            let own = again && known.created_at == new.created_at;
            return Ok(if own { Ok(known) } else { Err(Box::new(known)) });
        }
        transaction.commit(&[put_assistant(new)?, put_version(new)?]).await?;
        Ok(Ok(new.clone()))
    }

    pub(super) async fn change_assistant(
        &self,
        id: &str,
        change: Box<dyn FnOnce(&mut Assistant) + Send>,
    ) -> Result<Option<Assistant>> {
        let last = "SELECT coalesce(max(version), 0) FROM server_assistant_versions WHERE assistant_id = $1";
        let sql = &[lock(id), Sql::new(FIND).text(id), Sql::new(last).text(id)];
        let (transaction, rows) = self.tables.insist(|_| self.tables.begin(sql)).await?;
        let found = rows.get(1).map(|rows| first::<Assistant>(rows)).transpose()?.flatten();
        let Some(mut assistant) = found else {
            transaction.commit(&[]).await?;
            return Ok(None);
        };
        change(&mut assistant);
        let last = rows.last().and_then(|rows| rows.first());
        let last = last.map_or(Ok(0), |row| number(row, 0))?;
        assistant.version = last.saturating_add(1);
        assistant.updated_at = Micros::now();
        transaction.commit(&[put_assistant(&assistant)?, put_version(&assistant)?]).await?;
        Ok(Some(assistant))
    }

    pub(super) async fn remove_assistant(&self, id: &str, again: bool) -> Result<bool> {
        let of = |text: &str| Sql::new(text).text(id);
        let sql = [
            lock(id),
            of("DELETE FROM server_crons WHERE assistant_id = $1"),
            of("DELETE FROM server_assistant_versions WHERE assistant_id = $1"),
            of("DELETE FROM server_assistants WHERE assistant_id = $1 RETURNING 1"),
        ];
        let (transaction, rows) = self.tables.begin(&sql).await?;
        transaction.commit(&[]).await?;
        Ok(again || rows.last().is_some_and(|rows| !rows.is_empty()))
    }

    pub(super) async fn assistant_versions(&self, id: &str) -> Result<Vec<Assistant>> {
        let sql = "SELECT body FROM server_assistant_versions WHERE assistant_id = $1 ORDER BY version DESC";
        objects(&self.tables.read(&Sql::new(sql).text(id)).await?)
    }

    pub(super) async fn back_to_version(
        &self,
        id: &str,
        version: u64,
    ) -> Result<Option<Assistant>> {
        let Ok(version) = i64::try_from(version) else { return Ok(None) };
        let find =
            "SELECT body FROM server_assistant_versions WHERE assistant_id = $1 AND version = $2";
        let sql = [lock(id), Sql::new(find).text(id).int(version)];
        let (transaction, rows) = self.tables.begin(&sql).await?;
        let found = rows.last().map(|rows| first::<Assistant>(rows)).transpose()?.flatten();
        let Some(mut assistant) = found else {
            transaction.commit(&[]).await?;
            return Ok(None);
        };
        assistant.updated_at = Micros::now();
        transaction.commit(&[put_assistant(&assistant)?]).await?;
        Ok(Some(assistant))
    }
}
