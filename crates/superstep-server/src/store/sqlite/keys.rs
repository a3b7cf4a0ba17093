use rusqlite::{Connection, params};

use super::{Result, SqliteStore, row, text};
use crate::store::{Answer, ApiKey, ApiKeys};
use crate::time::Micros;

pub(super) const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS server_api_keys (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, created_at INTEGER NOT NULL, revoked_at INTEGER,
    body TEXT NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS server_api_keys_name ON server_api_keys (name)
    WHERE revoked_at IS NULL;
";

fn find(connection: &Connection, id: &str) -> Result<Option<ApiKey>> {
    row(connection, "SELECT body FROM server_api_keys WHERE id = ?", id)
}

fn add(connection: &Connection, new: &ApiKey) -> Result<bool> {
    let sql = "INSERT OR IGNORE INTO server_api_keys (id, name, created_at, revoked_at, body)
        VALUES (?, ?, ?, NULL, ?)";
    let values = params![new.id, new.name, new.created_at.0, text(new)?];
    Ok(connection.prepare_cached(sql)?.execute(values)? > 0)
}

fn all(connection: &Connection) -> Result<Vec<ApiKey>> {
    let sql = "SELECT body FROM server_api_keys ORDER BY created_at, id";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut keys = Vec::new();
    while let Some(row) = rows.next()? {
        keys.push(serde_json::from_str(&row.get::<_, String>(0)?)?);
    }
    Ok(keys)
}

fn revoke(connection: &Connection, name_or_id: &str, now: Micros) -> Result<Option<ApiKey>> {
    let sql = "SELECT body FROM server_api_keys WHERE revoked_at IS NULL AND (name = ?1 OR id = ?1)
        ORDER BY name = ?1 DESC LIMIT 1";
    let Some(mut key) = row::<ApiKey>(connection, sql, name_or_id)? else { return Ok(None) };
    key.revoked_at = Some(now);
    let sql = "UPDATE server_api_keys SET revoked_at = ?, body = ? WHERE id = ?";
    connection.execute(sql, params![now.0, text(&key)?, key.id])?;
    Ok(Some(key))
}

impl ApiKeys for SqliteStore {
    fn add_key(&self, new: ApiKey) -> Answer<'_, bool> {
        self.call(move |connection| add(connection, &new))
    }

    fn key(&self, id: &str) -> Answer<'_, Option<ApiKey>> {
        let id = id.to_owned();
        self.call(move |connection| find(connection, &id))
    }

    fn keys(&self) -> Answer<'_, Vec<ApiKey>> {
        self.call(all)
    }

    fn revoke_key(&self, name_or_id: &str, now: Micros) -> Answer<'_, Option<ApiKey>> {
        let name_or_id = name_or_id.to_owned();
        self.call(move |connection| revoke(connection, &name_or_id, now))
    }
}
