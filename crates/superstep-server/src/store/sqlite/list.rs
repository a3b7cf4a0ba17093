//! Pages of rows.

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, Row, params_from_iter};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::{Result, bound, whole};
use crate::store::{ListQuery, Page};

/// The condition of a query, as far as SQLite can say it, and its values.
fn condition(query: &ListQuery) -> (String, Vec<Sql>) {
    let mut sql = String::from("1");
    let mut values: Vec<Sql> = Vec::new();
    for (column, allowed) in &query.equal {
        let marks = vec!["?"; allowed.len()].join(", ");
        sql.push_str(&format!(" AND {column} IN ({marks})"));
        values.extend(allowed.iter().map(|value| Sql::Text(value.clone())));
    }
    if query.expiring {
        sql.push_str(" AND json_extract(body, '$.ttl') IS NOT NULL");
    }
    for (key, value) in &query.metadata {
        let Json::String(text) = value else { continue };
        // SQLite's texts end with NUL, and its paths have no way to quote these.
        if !key.contains(['"', '\\', '\0']) && !text.contains('\0') {
            sql.push_str(" AND json_extract(body, ?) = ?");
            values.push(Sql::Text(format!("$.metadata.\"{key}\"")));
            values.push(Sql::Text(text.clone()));
        }
    }
    (sql, values)
}

fn body(row: &Row<'_>) -> Result<Json> {
    Ok(serde_json::from_str(row.get_ref(0)?.as_str().map_err(super::failed)?)?)
}

/// How many rows of a table match, whatever page is asked for.
pub(super) fn count(connection: &Connection, table: &str, query: &ListQuery) -> Result<u64> {
    let (condition, values) = condition(query);
    if !query.is_filtered() {
        let sql = format!("SELECT count(*) FROM {table} WHERE {condition}");
        let mut statement = connection.prepare_cached(&sql)?;
        let count: i64 = statement.query_row(params_from_iter(values), |row| row.get(0))?;
        return Ok(whole(count)?);
    }
    let sql = format!("SELECT body FROM {table} WHERE {condition}");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found = statement.query(params_from_iter(values))?;
    let mut count = 0;
    while let Some(row) = found.next()? {
        count = u64::from(query.matches(&body(row)?)).saturating_add(count);
    }
    Ok(count)
}

/// The rows of a table that match, in order.
///
/// What SQLite can compare (columns, and texts in the metadata) it compares. The rest is compared here, on rows that are
/// read one after the other until the page is full.
pub(super) fn page<T: DeserializeOwned>(
    connection: &Connection,
    table: &str,
    query: &ListQuery,
) -> Result<Page<T>> {
    let (condition, values) = condition(query);
    let mut sql = format!("SELECT body FROM {table} WHERE {condition}");
    let direction = if query.descending { "DESC" } else { "ASC" };
    // Rows of the same time come in the order in which they were made.
    let last = if table == "server_assistants" { "assistant_id" } else { "rowid" };
    sql.push_str(&format!(" ORDER BY {} {direction}, {last} {direction}", query.sort_by));
    let filtered = query.is_filtered();
    let wanted = query.limit.saturating_add(1);
    if !filtered {
        let offset = bound(query.offset);
        sql.push_str(&format!(" LIMIT {wanted} OFFSET {offset}"));
    }
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found = statement.query(params_from_iter(values))?;
    let mut rows = Vec::new();
    let mut skip = if filtered { query.offset } else { 0 };
    while rows.len() < wanted
        && let Some(row) = found.next()?
    {
        let body = body(row)?;
        if filtered && !query.matches(&body) {
            continue;
        }
        if skip > 0 {
            skip = skip.saturating_sub(1);
            continue;
        }
        rows.push(serde_json::from_value(body)?);
    }
    let more = rows.len() > query.limit;
    rows.truncate(query.limit);
    Ok(Page { rows, more })
}
