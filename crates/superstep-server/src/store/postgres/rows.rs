//! Between objects and rows.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};
use superstep::checkpoint::Error;
use superstep_postgres::tables::{Failure, Sql};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::store::{Assistant, Cron, Run, Stored, Thread, Webhook};
use crate::time::Micros;

type Result<T> = std::result::Result<T, Failure>;

fn unread(error: impl std::fmt::Display) -> Failure {
    Error::codec(format_args!("a row of the server cannot be read or written: {error}")).into()
}

/// A column of a row.
pub(super) fn column<'a, T: FromSql<'a>>(row: &'a Row, nth: usize) -> Result<T> {
    Ok(row.try_get(nth)?)
}

/// A number that is never negative.
pub(super) fn number(row: &Row, nth: usize) -> Result<u64> {
    u64::try_from(column::<i64>(row, nth)?).map_err(unread)
}

/// A number in a form that PostgreSQL can hold.
pub(super) fn to_int(number: impl TryInto<i64, Error: std::fmt::Display>) -> Result<i64> {
    number.try_into().map_err(unread)
}

/// The object in a row, whose first column is its body.
pub(super) fn object<T: DeserializeOwned>(row: &Row) -> Result<T> {
    serde_json::from_str(column(row, 0)?).map_err(unread)
}

pub(super) fn objects<T: DeserializeOwned>(rows: &[Row]) -> Result<Vec<T>> {
    rows.iter().map(object).collect()
}

pub(super) fn first<T: DeserializeOwned>(rows: &[Row]) -> Result<Option<T>> {
    rows.first().map(object).transpose()
}

pub(super) fn to_body(object: &impl Serialize) -> Result<String> {
    serde_json::to_string(object).map_err(unread)
}

/// Metadata for the index. Nothing if PostgreSQL cannot hold it; then rows are compared one by one.
pub(super) fn searchable(metadata: &Map<String, Json>) -> Option<String> {
    let text = serde_json::to_string(metadata).ok()?;
    (!text.contains("\\u0000")).then_some(text)
}

/// PostgreSQL text has no NUL. It is only in columns for sorting; the body has the text as it is.
pub(super) fn plain(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

pub(super) fn put_assistant(assistant: &Assistant) -> Result<Sql> {
    let sql = "INSERT INTO server_assistants
            (assistant_id, graph_id, name, created_at, updated_at, metadata, body)
        VALUES ($1, $2, $3, $4, $5, $6::text::jsonb, $7)
        ON CONFLICT (assistant_id) DO UPDATE SET
            graph_id = $2, name = $3, created_at = $4, updated_at = $5, metadata = $6::text::jsonb, body = $7";
    Ok(Sql::new(sql)
        .text(&assistant.assistant_id)
        .text(&assistant.graph_id)
        .text(plain(&assistant.name))
        .int(assistant.created_at.0)
        .int(assistant.updated_at.0)
        .maybe_text(searchable(&assistant.metadata))
        .text(to_body(assistant)?))
}

pub(super) fn put_version(assistant: &Assistant) -> Result<Sql> {
    let sql =
        "INSERT INTO server_assistant_versions (assistant_id, version, body) VALUES ($1, $2, $3)
        ON CONFLICT (assistant_id, version) DO UPDATE SET body = $3";
    let version = to_int(assistant.version)?;
    Ok(Sql::new(sql).text(&assistant.assistant_id).int(version).text(to_body(assistant)?))
}

pub(super) fn put_thread(thread: &Thread) -> Result<Sql> {
    let sql = "INSERT INTO server_threads
            (thread_id, status, created_at, updated_at, state_updated_at, metadata, body, wake_at, expires)
        VALUES ($1, $2, $3, $4, $5, $6::text::jsonb, $7, $8, $9::text::boolean)
        ON CONFLICT (thread_id) DO UPDATE SET status = $2, updated_at = $4, state_updated_at = $5,
            metadata = $6::text::jsonb, body = $7, wake_at = $8, expires = $9::text::boolean";
    Ok(Sql::new(sql)
        .text(&thread.thread_id)
        .text(thread.status.as_str())
        .int(thread.created_at.0)
        .int(thread.updated_at.0)
        .int(thread.state_updated_at.0)
        .maybe_text(searchable(&thread.metadata))
        .text(to_body(thread)?)
        .maybe_int(thread.wake.as_ref().map(|wake| wake.due.0))
        .text(thread.ttl.is_some().to_string()))
}

pub(super) fn put_run(run: &Run) -> Result<Sql> {
    let sql = "INSERT INTO server_runs
            (run_id, thread_id, graph_id, status, worker, epoch, created_at, updated_at, metadata, body)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::text::jsonb, $10)
        ON CONFLICT (run_id) DO UPDATE SET status = $4, worker = $5, epoch = $6, updated_at = $8, body = $10";
    Ok(Sql::new(sql)
        .text(&run.run_id)
        .text(&run.thread_id)
        .text(&run.graph_id)
        .text(run.status.as_str())
        .maybe_text(run.worker.clone())
        .int(to_int(run.epoch)?)
        .int(run.created_at.0)
        .int(run.updated_at.0)
        .maybe_text(searchable(&run.metadata))
        .text(to_body(run)?))
}

pub(super) fn put_cron(cron: &Cron) -> Result<Sql> {
    let sql = "INSERT INTO server_crons (cron_id, assistant_id, thread_id, enabled, next_run_date, end_time,
            created_at, updated_at, metadata, body)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::text::jsonb, $10)
        ON CONFLICT (cron_id) DO UPDATE SET assistant_id = $2, thread_id = $3, enabled = $4, next_run_date = $5,
            end_time = $6, updated_at = $8, metadata = $9::text::jsonb, body = $10";
    Ok(Sql::new(sql)
        .text(&cron.cron_id)
        .text(&cron.assistant_id)
        .maybe_text(cron.thread_id.clone())
        .text(cron.enabled.to_string())
        .maybe_int(cron.next_run_date.map(|at| at.0))
        .maybe_int(cron.end_time.map(|at| at.0))
        .int(cron.created_at.0)
        .int(cron.updated_at.0)
        .maybe_text(searchable(&cron.metadata))
        .text(to_body(cron)?))
}

/// Puts a webhook there; without a time it is given up.
pub(super) fn put_webhook(webhook: &Webhook, due: Option<Micros>) -> Result<Sql> {
    let sql = "INSERT INTO server_webhooks (run_id, ended_at, due_at, body) VALUES ($1, $2, $3, $4)
        ON CONFLICT (run_id) DO UPDATE SET ended_at = $2, due_at = $3, body = $4";
    Ok(Sql::new(sql)
        .text(&webhook.run.run_id)
        .int(webhook.ended_at.0)
        .maybe_int(due.map(|due| due.0))
        .text(to_body(webhook)?))
}

/// The numbers, names and data of events, as three lists.
pub(super) fn event_lists(sql: Sql, events: &[Stored]) -> Result<Sql> {
    let numbers = events.iter().map(|event| to_int(event.seq)).collect::<Result<_>>()?;
    let names = events.iter().map(|event| plain(&event.event)).collect();
    let data = events.iter().map(|event| event.data.clone()).collect();
    Ok(sql.ints(numbers).texts(names).texts(data))
}

pub(super) fn events(rows: &[Row]) -> Result<Vec<Stored>> {
    let event = |row: &Row| {
        Ok(Stored { seq: number(row, 0)?, event: column(row, 1)?, data: column(row, 2)? })
    };
    rows.iter().map(event).collect()
}
