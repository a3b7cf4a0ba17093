use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::Value as Json;

use super::{Result, SqliteStore, assistants, crons, runs, text, threads};
use crate::store::{
    Admission, Admitted, Answer, Asked, Create, Idempotency, Kept, Made, Once, rules,
};
use crate::time::Micros;

pub(super) const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS server_idempotency (
    key TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, at INTEGER NOT NULL, made TEXT NOT NULL, result TEXT
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS server_idempotency_at ON server_idempotency (at);
";

fn find(connection: &Connection, key: &str) -> Result<Option<Kept>> {
    let sql = "SELECT fingerprint, at, made, result FROM server_idempotency WHERE key = ?";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row([key], |row| {
        let (made, result): (String, Option<String>) = (row.get(2)?, row.get(3)?);
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, made, result))
    });
    let Some((fingerprint, at, made, result)) = found.optional()? else { return Ok(None) };
    let result = result.map(|result| serde_json::from_str(&result)).transpose()?;
    Ok(Some(Kept { fingerprint, at: Micros(at), made: serde_json::from_str(&made)?, result }))
}

fn put(connection: &Connection, key: &str, kept: &Kept) -> Result<()> {
    let sql = "DELETE FROM server_idempotency WHERE at < ?";
    connection.prepare_cached(sql)?.execute([rules::oldest(kept.at).0])?;
    let sql = "INSERT OR REPLACE INTO server_idempotency (key, fingerprint, at, made, result)
        VALUES (?, ?, ?, ?, NULL)";
    let values = params![key, kept.fingerprint, kept.at.0, text(&kept.made)?];
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

/// Keeps the result of a run that is deleted.
pub(super) fn put_result(connection: &Connection, key: &str, result: &Json) -> Result<()> {
    let sql = "UPDATE server_idempotency SET result = ? WHERE key = ?";
    connection.prepare_cached(sql)?.execute(params![text(result)?, key])?;
    Ok(())
}

/// All of them or none.
fn admit_all(connection: &Connection, admissions: Vec<Admission>) -> Result<Vec<Admitted>> {
    if let [first, _, ..] = &*admissions {
        let (pending, _) = runs::load(connection)?;
        if !rules::has_room(admissions.len(), pending, first.pending_max) {
            return Ok(vec![Admitted::Full]);
        }
    }
    connection.execute_batch("SAVEPOINT admissions")?;
    let mut all = Vec::new();
    for admission in admissions {
        let admitted = runs::admit(connection, admission)?;
        if !matches!(admitted, Admitted::Stored { .. }) {
            connection.execute_batch("ROLLBACK TO admissions; RELEASE admissions")?;
            return Ok(vec![admitted]);
        }
        all.push(admitted);
    }
    connection.execute_batch("RELEASE admissions")?;
    Ok(all)
}

fn make(connection: &Connection, what: Create) -> Result<Made> {
    Ok(match what {
        Create::Thread(new) => Made::Thread(threads::create(connection, new)?),
        Create::Assistant(new) => Made::Assistant(assistants::create(connection, new)?),
        Create::Cron(new) => {
            crons::put(connection, &new)?;
            Made::Cron(new)
        }
        Create::Runs(admissions) => Made::Runs(admit_all(connection, admissions)?),
    })
}

fn create(
    connection: &Connection,
    asked: Option<&Asked>,
    what: Create,
    now: Micros,
) -> Result<Once> {
    let Some(asked) = asked else { return Ok(Once::Made(Box::new(make(connection, what)?))) };
    if let Some(known) = rules::known(find(connection, &asked.key)?, asked, now) {
        return Ok(known);
    }
    let made = make(connection, what)?;
    if let Some(kept) = rules::keep(asked, &made, now)? {
        put(connection, &asked.key, &kept)?;
    }
    Ok(Once::Made(Box::new(made)))
}

impl Idempotency for SqliteStore {
    fn create(&self, asked: Option<Asked>, what: Create, now: Micros) -> Answer<'_, Once> {
        self.call(move |connection| create(connection, asked.as_ref(), what, now))
    }

    fn kept(&self, key: &str) -> Answer<'_, Option<Kept>> {
        let key = key.to_owned();
        self.call(move |connection| find(connection, &key))
    }
}
