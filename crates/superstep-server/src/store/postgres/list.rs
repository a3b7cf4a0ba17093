//! Pages of rows.

use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use superstep::checkpoint::Error;
use superstep_postgres::tables::Sql;

use super::rows::{number, object, plain, searchable};
use super::{PostgresStore, Result};
use crate::store::{ListQuery, Page, bound};

/// How many rows are read at a time while they are compared one by one.
const CHUNK: usize = 500;

/// The rows of a table that may match. PostgreSQL compares metadata less strictly than we do: 1 and 1.0 are equal to it.
fn select(what: &str, table: &str, query: &ListQuery) -> Sql {
    let mut text = format!(
        "SELECT {what} FROM {table} WHERE ($1::text IS NULL OR metadata IS NULL OR metadata @> $1::text::jsonb)"
    );
    for ((column, _), nth) in query.equal.iter().zip(2_usize..) {
        text.push_str(&format!(" AND {column} = ANY(${nth})"));
    }
    if query.expiring {
        text.push_str(" AND expires");
    }
    let metadata = (!query.metadata.is_empty()).then(|| searchable(&query.metadata)).flatten();
    let mut sql = Sql::new(text).maybe_text(metadata);
    for (_, allowed) in &query.equal {
        sql = sql.texts(allowed.iter().map(|value| plain(value)).collect());
    }
    sql
}

fn order(table: &str, query: &ListQuery) -> String {
    let direction = if query.descending { "DESC NULLS LAST" } else { "ASC NULLS FIRST" };
    // Rows of the same time come in the order in which they were made.
    let last = if table == "server_assistants" { "assistant_id" } else { "n" };
    format!(" ORDER BY {} {direction}, {last} {direction}", query.sort_by)
}

impl PostgresStore {
    /// How many rows of a table match, whatever page is asked for.
    pub(super) async fn count(&self, table: &str, query: &ListQuery) -> Result<u64> {
        if !query.is_filtered() {
            let rows = self.tables.read(&select("count(*)", table, query)).await?;
            return rows.first().map_or(Ok(0), |row| number(row, 0));
        }
        let rows = self.tables.read(&select("body", table, query)).await?;
        let mut count = 0_u64;
        for row in &rows {
            count = count.saturating_add(query.matches(&object::<Json>(row)?).into());
        }
        Ok(count)
    }

    /// The rows of a table that match, in order.
    pub(super) async fn page<T: DeserializeOwned>(
        &self,
        table: &str,
        query: &ListQuery,
    ) -> Result<Page<T>> {
        let wanted = query.limit.saturating_add(1);
        let filtered = query.is_filtered();
        let (mut skip, mut offset) = if filtered { (query.offset, 0) } else { (0, query.offset) };
        let chunk = if filtered { CHUNK.max(wanted) } else { wanted };
        let mut rows: Vec<T> = Vec::new();
        loop {
            let place = format!(" LIMIT {chunk} OFFSET {}", bound(offset));
            let sql = select("body", table, query).and(&order(table, query)).and(&place);
            let found = self.tables.read(&sql).await?;
            for row in &found {
                let body: Json = object(row)?;
                if filtered && !query.matches(&body) {
                    continue;
                }
                if skip > 0 {
                    skip = skip.saturating_sub(1);
                    continue;
                }
                rows.push(serde_json::from_value(body).map_err(Error::codec)?);
                if rows.len() == wanted {
                    break;
                }
            }
            if !filtered || rows.len() >= wanted || found.len() < chunk {
                break;
            }
            offset = offset.saturating_add(chunk);
        }
        let more = rows.len() > query.limit;
        rows.truncate(query.limit);
        Ok(Page { rows, more })
    }
}
