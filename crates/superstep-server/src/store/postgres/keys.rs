use superstep_postgres::tables::Sql;

use super::rows::{first, objects, plain, to_body};
use super::{PostgresStore, Result};
use crate::store::{Answer, ApiKey, ApiKeys};
use crate::time::Micros;

const FIND: &str = "SELECT body FROM server_api_keys WHERE id = $1";

impl PostgresStore {
    async fn find_key(&self, id: &str) -> Result<Option<ApiKey>> {
        first(&self.tables.read(&Sql::new(FIND).text(plain(id))).await?)
    }

    async fn make_key(&self, new: &ApiKey) -> Result<bool> {
        let sql = "INSERT INTO server_api_keys (id, name, created_at, body) VALUES ($1, $2, $3, $4)
            ON CONFLICT DO NOTHING";
        let sql = Sql::new(sql)
            .text(plain(&new.id))
            .text(plain(&new.name))
            .int(new.created_at.0)
            .text(to_body(new)?);
        self.tables.run(&[sql]).await?;
        // Whether it was stored now or before the answer was lost: it is there, or another one is.
        Ok(self.find_key(&new.id).await?.is_some_and(|known| known == *new))
    }

    async fn revoke(&self, name_or_id: &str, now: Micros, again: bool) -> Result<Option<ApiKey>> {
        let sql = "SELECT body FROM server_api_keys WHERE (revoked_at IS NULL OR ($2 = 1 AND revoked_at = $3))
            AND (name = $1 OR id = $1) ORDER BY name = $1 DESC LIMIT 1 FOR UPDATE";
        let sql = Sql::new(sql).text(plain(name_or_id)).int(i64::from(again)).int(now.0);
        let (transaction, rows) = self.tables.begin(&[sql]).await?;
        let found = rows.last().map(|rows| first::<ApiKey>(rows)).transpose()?.flatten();
        let Some(mut key) = found else {
            transaction.commit(&[]).await?;
            return Ok(None);
        };
        key.revoked_at = Some(now);
        let sql = "UPDATE server_api_keys SET revoked_at = $2, body = $3 WHERE id = $1";
        let sql = Sql::new(sql).text(plain(&key.id)).int(now.0).text(to_body(&key)?);
        transaction.commit(&[sql]).await?;
        Ok(Some(key))
    }
}

impl ApiKeys for PostgresStore {
    fn add_key(&self, new: ApiKey) -> Answer<'_, bool> {
        self.answer("store a key", async move { self.make_key(&new).await })
    }

    fn key(&self, id: &str) -> Answer<'_, Option<ApiKey>> {
        let id = id.to_owned();
        self.answer("read a key", async move { self.find_key(&id).await })
    }

    fn keys(&self) -> Answer<'_, Vec<ApiKey>> {
        let sql = Sql::new("SELECT body FROM server_api_keys ORDER BY created_at, id");
        self.answer("read keys", async move { objects(&self.tables.read(&sql).await?) })
    }

    fn revoke_key(&self, name_or_id: &str, now: Micros) -> Answer<'_, Option<ApiKey>> {
        let name_or_id = name_or_id.to_owned();
        self.answer("revoke a key", async move {
            let name_or_id = &*name_or_id;
            self.tables.insist(move |again| self.revoke(name_or_id, now, again)).await
        })
    }
}
