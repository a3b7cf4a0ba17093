use rusqlite::{Connection, OptionalExtension, params};

use super::{Result, row, text, whole};
use crate::store::Assistant;
use crate::time::Micros;

pub(super) fn find(connection: &Connection, id: &str) -> Result<Option<Assistant>> {
    row(connection, "SELECT body FROM server_assistants WHERE assistant_id = ?", id)
}

fn put(connection: &Connection, assistant: &Assistant) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO server_assistants
        (assistant_id, graph_id, name, created_at, updated_at, body) VALUES (?, ?, ?, ?, ?, ?)";
    connection.prepare_cached(sql)?.execute(params![
        assistant.assistant_id,
        assistant.graph_id,
        assistant.name,
        assistant.created_at.0,
        assistant.updated_at.0,
        text(assistant)?,
    ])?;
    Ok(())
}

fn put_version(connection: &Connection, assistant: &Assistant) -> Result<()> {
    let sql =
        "INSERT INTO server_assistant_versions (assistant_id, version, body) VALUES (?, ?, ?)";
    let version = i64::try_from(assistant.version).map_err(super::failed)?;
    let values = params![assistant.assistant_id, version, text(assistant)?];
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

pub(super) fn create(
    connection: &Connection,
    new: Assistant,
) -> Result<std::result::Result<Assistant, Box<Assistant>>> {
    if let Some(known) = find(connection, &new.assistant_id)? {
        return Ok(Err(Box::new(known)));
    }
    put(connection, &new)?;
    put_version(connection, &new)?;
    Ok(Ok(new))
}

pub(super) fn update(
    connection: &Connection,
    id: &str,
    change: Box<dyn FnOnce(&mut Assistant) + Send>,
) -> Result<Option<Assistant>> {
    let Some(mut assistant) = find(connection, id)? else { return Ok(None) };
    change(&mut assistant);
    let sql = "SELECT max(version) FROM server_assistant_versions WHERE assistant_id = ?";
    let last: i64 = connection.query_row(sql, [id], |row| row.get(0))?;
    assistant.version = whole(last)?.saturating_add(1);
    assistant.updated_at = Micros::now();
    put(connection, &assistant)?;
    put_version(connection, &assistant)?;
    Ok(Some(assistant))
}

pub(super) fn delete(connection: &Connection, id: &str) -> Result<bool> {
    super::crons::delete_of_assistant(connection, id)?;
    connection.execute("DELETE FROM server_assistant_versions WHERE assistant_id = ?", [id])?;
    Ok(connection.execute("DELETE FROM server_assistants WHERE assistant_id = ?", [id])? > 0)
}

pub(super) fn versions(connection: &Connection, id: &str) -> Result<Vec<Assistant>> {
    let sql =
        "SELECT body FROM server_assistant_versions WHERE assistant_id = ? ORDER BY version DESC";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([id])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(serde_json::from_str(&row.get::<_, String>(0)?)?);
    }
    Ok(found)
}

pub(super) fn use_version(
    connection: &Connection,
    id: &str,
    version: u64,
) -> Result<Option<Assistant>> {
    let Ok(version) = i64::try_from(version) else { return Ok(None) };
    let sql = "SELECT body FROM server_assistant_versions WHERE assistant_id = ? AND version = ?";
    let body: Option<String> =
        connection.query_row(sql, params![id, version], |row| row.get(0)).optional()?;
    let Some(body) = body else { return Ok(None) };
    let mut assistant: Assistant = serde_json::from_str(&body)?;
    assistant.updated_at = Micros::now();
    put(connection, &assistant)?;
    Ok(Some(assistant))
}
