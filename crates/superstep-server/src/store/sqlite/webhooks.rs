use rusqlite::{Connection, params};

use super::{Result, SqliteStore, failed, text};
use crate::store::Answer;
use crate::store::webhooks::{Webhook, WebhookCounts, Webhooks};
use crate::time::Micros;

pub(super) const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS server_webhooks (
    run_id TEXT PRIMARY KEY, ended_at INTEGER NOT NULL, due_at INTEGER, body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS server_webhooks_due ON server_webhooks (due_at) WHERE due_at IS NOT NULL;
";

/// Puts a webhook there; without a time it is given up.
pub(super) fn put(connection: &Connection, webhook: &Webhook, due: Option<Micros>) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO server_webhooks (run_id, ended_at, due_at, body) VALUES (?, ?, ?, ?)";
    let (run, ended, due) = (&webhook.run.run_id, webhook.ended_at.0, due.map(|due| due.0));
    connection.prepare_cached(sql)?.execute(params![run, ended, due, text(webhook)?])?;
    Ok(())
}

fn take(
    connection: &Connection,
    now: Micros,
    until: Micros,
    limit: usize,
) -> Result<(Vec<Webhook>, Option<Micros>)> {
    let sql = "SELECT body FROM server_webhooks WHERE due_at <= ? ORDER BY due_at LIMIT ?";
    let mut statement = connection.prepare_cached(sql)?;
    let limit = i64::try_from(limit).map_err(failed)?;
    let bodies = statement.query_map(params![now.0, limit], |row| row.get::<_, String>(0))?;
    let mut taken: Vec<Webhook> = Vec::new();
    for body in bodies {
        taken.push(serde_json::from_str(&body?)?);
    }
    let sql = "UPDATE server_webhooks SET due_at = ? WHERE run_id = ?";
    let mut statement = connection.prepare_cached(sql)?;
    for webhook in &taken {
        statement.execute(params![until.0, webhook.run.run_id])?;
    }
    let sql = "SELECT min(due_at) FROM server_webhooks WHERE due_at IS NOT NULL";
    let next: Option<i64> = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    Ok((taken, next.map(Micros)))
}

fn count(connection: &Connection) -> Result<WebhookCounts> {
    let sql = "SELECT count(due_at), count(*) - count(due_at) FROM server_webhooks";
    let mut statement = connection.prepare_cached(sql)?;
    let (waiting, given_up): (i64, i64) =
        statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(WebhookCounts {
        waiting: u64::try_from(waiting).map_err(failed)?,
        given_up: u64::try_from(given_up).map_err(failed)?,
    })
}

impl Webhooks for SqliteStore {
    fn take_webhooks(
        &self,
        now: Micros,
        until: Micros,
        limit: usize,
    ) -> Answer<'_, (Vec<Webhook>, Option<Micros>)> {
        self.call(move |connection| take(connection, now, until, limit))
    }

    fn webhook_received(&self, run: &str) -> Answer<'_, ()> {
        let run = run.to_owned();
        self.call(move |connection| {
            connection.execute("DELETE FROM server_webhooks WHERE run_id = ?", [run])?;
            Ok(())
        })
    }

    fn webhook_failed(&self, webhook: Webhook, again: Option<Micros>) -> Answer<'_, ()> {
        self.call(move |connection| put(connection, &webhook, again))
    }

    fn count_webhooks(&self) -> Answer<'_, WebhookCounts> {
        self.call(count)
    }

    fn forget_webhooks(&self, before: Micros) -> Answer<'_, usize> {
        let sql = "DELETE FROM server_webhooks WHERE due_at IS NULL AND ended_at < ?";
        self.call(move |connection| Ok(connection.execute(sql, [before.0])?))
    }
}
