//! Items in the tables. Everything here runs inside a transaction.

use std::time::{Duration, SystemTime};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};
use superstep_checkpoint::{
    Distance, Error, Item, Namespace, NamespaceQuery, PutItem, Search, Value, Vectors,
    wire::UtcTime,
};

use super::time;
use crate::error::During;

/// An item, and whether its time can start again.
pub(super) struct Found {
    pub(super) item: Item,
    pub(super) expires: bool,
}

/// The query of a semantic search.
pub(super) struct Near<'a> {
    pub(super) query: &'a [f32],
    pub(super) distance: Distance,
}

macro_rules! select {
    ($wanted:literal) => {
        concat!(
            "SELECT prefix, key, value, created_at, updated_at, expires_at, ttl_minutes FROM store ",
            $wanted
        )
    };
}

pub(super) fn get(
    db: &Connection,
    namespace: &[String],
    key: &str,
    now: SystemTime,
) -> Result<Option<Found>, Error> {
    let what = || format!("reading item `{key}` of the store");
    let mut statement =
        db.prepare_cached(select!("WHERE prefix = ?1 AND key = ?2")).during(what())?;
    let mut rows = statement.query([&*namespace.join("."), key]).during(what())?;
    let row = rows.next().during(what())?;
    Ok(row.map(|row| found(row, now)).transpose()?.flatten())
}

pub(super) fn search(
    db: &Connection,
    search: &Search,
    near: Option<&Near<'_>>,
    now: SystemTime,
) -> Result<Vec<Found>, Error> {
    let what = "searching the store";
    let prefix = search.prefix.join(".");
    // Everything below stands between the dot and the sign that follows it.
    let (from, to) = (format!("{prefix}."), format!("{prefix}/"));
    let sql = if prefix.is_empty() {
        select!("WHERE ?1 = ?1 AND ?2 = ?2 AND ?3 = ?3")
    } else {
        select!("WHERE prefix = ?1 OR (prefix >= ?2 AND prefix < ?3)")
    };
    let mut statement = db.prepare_cached(sql).during(what)?;
    let mut rows = statement.query([&prefix, &from, &to]).during(what)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next().during(what)? {
        // Compared here and not in SQL, which compares numbers and text differently, and fails for
        // all on one bad row.
        let Some(mut found) = found(row, now)?.filter(|found| search.matches(&found.item)) else {
            continue;
        };
        if let Some(near) = near {
            found.item.score = score(db, &found.item, near)?;
            if found.item.score.is_none() {
                continue;
            }
        }
        all.push(found);
    }
    all.sort_by(|Found { item: a, .. }, Found { item: b, .. }| {
        let score = |item: &Item| item.score.unwrap_or_default();
        let order = |item: &Item| (item.updated_at, item.namespace.clone(), item.key.clone());
        score(b).total_cmp(&score(a)).then_with(|| order(a).cmp(&order(b)))
    });
    Ok(all.into_iter().skip(search.offset).take(search.limit).collect())
}

/// The score of the nearest vector of an item; `None` if it has none.
fn score(db: &Connection, item: &Item, near: &Near<'_>) -> Result<Option<f64>, Error> {
    let what = || format!("reading the vectors of item `{}`", item.key);
    let sql = "SELECT embedding FROM store_vectors WHERE prefix = ?1 AND key = ?2";
    let mut statement = db.prepare_cached(sql).during(what())?;
    let mut rows = statement.query([&item.namespace.join("."), &item.key]).during(what())?;
    let mut best: Option<f64> = None;
    while let Some(row) = rows.next().during(what())? {
        let bytes = row.get_ref(0).during(what())?.as_blob().map_err(|error| {
            Error::codec(format_args!("a vector of item `{}` cannot be read: {error}", item.key))
        })?;
        let (numbers, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(Error::codec(format_args!(
                "a vector of item `{}` ends within a number; put the item again",
                item.key
            )));
        }
        let vector: Vec<f32> = numbers.iter().copied().map(f32::from_le_bytes).collect();
        if vector.len() != near.query.len() {
            return Err(Error::codec(format_args!(
                "item `{}` was indexed with vectors of {} numbers and the index has {}; put it again",
                item.key,
                vector.len(),
                near.query.len()
            )));
        }
        let score = near.distance.score(near.query, &vector);
        best = Some(best.map_or(score, |best| best.max(score)));
    }
    Ok(best)
}

pub(super) fn namespaces(
    db: &Connection,
    query: &NamespaceQuery,
    now: SystemTime,
) -> Result<Vec<Namespace>, Error> {
    let what = "listing the namespaces of the store";
    let sql = "SELECT prefix, expires_at FROM store GROUP BY prefix, expires_at";
    let mut statement = db.prepare_cached(sql).during(what)?;
    let mut rows = statement.query([]).during(what)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next().during(what)? {
        let namespace = labels(&row.get::<_, String>(0).during(what)?);
        let live = lives(row.get_ref(1).during(what)?, now)
            .map_err(|error| unread(format_args!("namespace `{}`", namespace.join(".")), &error))?;
        if live && query.matches(&namespace) {
            all.push(namespace);
        }
    }
    Ok(query.select(all))
}

/// Starts the time of an item again.
pub(super) fn refresh(db: &Connection, item: &Item, now: SystemTime) -> Result<(), Error> {
    let what = || format!("keeping item `{}` of the store longer", item.key);
    let (prefix, key) = (item.namespace.join("."), &item.key);
    let ttl = "SELECT ttl_minutes FROM store WHERE prefix = ?1 AND key = ?2";
    let minutes = db
        .prepare_cached(ttl)
        .and_then(|mut look| look.query_row([&prefix, key], |row| row.get::<_, Option<f64>>(0)))
        .optional()
        .during(what())?
        .flatten();
    let Some(minutes) = minutes.filter(|minutes| *minutes >= 0.0) else { return Ok(()) };
    let until =
        Duration::try_from_secs_f64(minutes * 60.0).ok().and_then(|ttl| now.checked_add(ttl));
    let sql = "UPDATE store SET expires_at = ?3 WHERE prefix = ?1 AND key = ?2";
    let until = until.map(time::to_zoned_text);
    db.prepare_cached(sql)
        .and_then(|mut update| update.execute(params![prefix, key, until]))
        .map(drop)
        .during(what())
}

/// Keeps an item, at a time that is later than that of what it replaces.
pub(super) fn put(
    db: &Connection,
    put: &PutItem,
    json: &str,
    ttl: Option<Duration>,
    (now, at): (SystemTime, SystemTime),
) -> Result<(), Error> {
    let what = || format!("storing item `{}`", put.key);
    let before = match get(db, &put.namespace, &put.key, now) {
        Ok(found) => found.map(|found| found.item),
        // What cannot be read can be replaced.
        Err(Error::Codec(_)) => None,
        Err(error) => return Err(error),
    };
    let created = before.as_ref().map_or(at, |item| item.created_at);
    let later = before.and_then(|item| item.updated_at.checked_add(Duration::from_micros(1)));
    let later = later.filter(|later| time::is_writable(*later));
    let updated = later.map_or(at, |later| at.max(later));
    let until = ttl.and_then(|ttl| now.checked_add(ttl)).map(time::to_zoned_text);
    let minutes = ttl.map(|ttl| ttl.as_secs_f64() / 60.0);
    let sql = "INSERT INTO store (prefix, key, value, created_at, updated_at, expires_at, ttl_minutes) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (prefix, key) DO UPDATE SET \
               value = excluded.value, created_at = excluded.created_at, \
               updated_at = excluded.updated_at, expires_at = excluded.expires_at, \
               ttl_minutes = excluded.ttl_minutes";
    // LangGraph stores values as bytes, too, and reads either.
    let row = params![
        put.namespace.join("."),
        put.key,
        json.as_bytes(),
        time::to_text(created),
        time::to_text(updated),
        until,
        minutes,
    ];
    db.prepare_cached(sql).and_then(|mut insert| insert.execute(row)).map(drop).during(what())
}

pub(super) fn delete(db: &Connection, namespace: &[String], key: &str) -> Result<(), Error> {
    let sql = "DELETE FROM store WHERE prefix = ?1 AND key = ?2";
    db.prepare_cached(sql)
        .and_then(|mut delete| delete.execute([&*namespace.join("."), key]))
        .map(drop)
        .during(format_args!("deleting item `{key}`"))
}

/// Replaces the vectors of an item.
pub(super) fn put_vectors(
    db: &Connection,
    namespace: &[String],
    key: &str,
    vectors: &Vectors,
) -> Result<(), Error> {
    let store = || {
        let prefix = namespace.join(".");
        let exists = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'store_vectors'";
        if vectors.0.is_empty() && !db.prepare_cached(exists)?.exists([])? {
            return Ok(());
        }
        db.prepare_cached("DELETE FROM store_vectors WHERE prefix = ?1 AND key = ?2")?
            .execute([&*prefix, key])?;
        let sql = "INSERT OR REPLACE INTO store_vectors (prefix, key, field_name, embedding) \
                   VALUES (?1, ?2, ?3, ?4)";
        let mut insert = db.prepare_cached(sql)?;
        for (field, vector) in &vectors.0 {
            let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
            insert.execute(params![prefix, key, field, bytes])?;
        }
        Ok(())
    };
    store().during(format_args!("storing the vectors of item `{key}`"))
}

/// Removes what is over, and says how much.
pub(super) fn sweep(db: &Connection, now: SystemTime) -> Result<usize, Error> {
    let what = "sweeping the store";
    let sql = "SELECT prefix, key, expires_at FROM store WHERE expires_at IS NOT NULL";
    let mut over: Vec<(String, String)> = Vec::new();
    let mut statement = db.prepare_cached(sql).during(what)?;
    let mut rows = statement.query([]).during(what)?;
    while let Some(row) = rows.next().during(what)? {
        let key: String = row.get(1).during(what)?;
        let live = lives(row.get_ref(2).during(what)?, now);
        if !live.map_err(|error| unread(format_args!("item `{key}`"), &error))? {
            over.push((row.get(0).during(what)?, key));
        }
    }
    for (prefix, key) in &over {
        delete(db, std::slice::from_ref(prefix), key)?;
        put_vectors(db, std::slice::from_ref(prefix), key, &Vectors::default())?;
    }
    Ok(over.len())
}

/// The item of a row, if its time is not over.
fn found(row: &Row<'_>, now: SystemTime) -> Result<Option<Found>, Error> {
    let what = "reading an item of the store";
    let key: String = row.get(1).during(what)?;
    let live = lives(row.get_ref(5).during(what)?, now);
    if !live.map_err(|error| unread(format_args!("item `{key}`"), &error))? {
        return Ok(None);
    }
    let value = match row.get_ref(2).during(what)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => serde_json::from_slice(bytes).ok(),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => None,
    };
    let value: serde_json::Value = value.ok_or_else(|| {
        Error::codec(format_args!("item `{key}` of the store cannot be read: its value is no JSON"))
    })?;
    let when = |at| match row.get_ref(at).during(what)? {
        ValueRef::Null => Ok(SystemTime::UNIX_EPOCH),
        text => text.as_str().ok().and_then(UtcTime::parse).ok_or_else(|| {
            Error::codec(format_args!(
                "item `{key}` of the store cannot be read: its time is none that is understood"
            ))
        }),
    };
    let (created_at, updated_at) = (when(3)?, when(4)?);
    let item = Item {
        namespace: labels(&row.get::<_, String>(0).during(what)?),
        key,
        value: Value::from(value),
        created_at,
        updated_at,
        score: None,
    };
    let expires = !matches!(row.get_ref(6).during(what)?, ValueRef::Null);
    Ok(Some(Found { item, expires }))
}

/// Whether what ends at this time, if at all, is still there.
fn lives(expires: ValueRef<'_>, now: SystemTime) -> Result<bool, Error> {
    let Some(text) = expires.as_str_or_null().map_err(Error::codec)? else { return Ok(true) };
    let until = UtcTime::parse(text)
        .ok_or_else(|| Error::codec(format_args!("`{text}` is no time that is understood")))?;
    Ok(now < until)
}

fn unread(what: impl std::fmt::Display, error: &Error) -> Error {
    Error::codec(format_args!("the end of {what} of the store cannot be read: {error}"))
}

fn labels(prefix: &str) -> Namespace {
    prefix.split('.').map(str::to_owned).collect()
}
