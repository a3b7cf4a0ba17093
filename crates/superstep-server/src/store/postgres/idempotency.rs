//! Making something once for each key, in one transaction that keeps other requests with the key waiting.

use serde_json::Value as Json;
use superstep::checkpoint::Error;
use superstep_postgres::tables::Sql;
use tokio_postgres::Row;

use super::rows::{
    column, first, number, objects, plain, put_assistant, put_cron, put_thread, put_version,
    to_body,
};
use super::runs::{Need, apply, load, lock};
use super::{PostgresStore, Result, assistants, threads};
use crate::store::rules::{self, ThreadRows};
use crate::store::{
    Admission, Admitted, Answer, Asked, Create, Idempotency, Kept, Made, Once, Run, StoreError,
};
use crate::time::Micros;

const FIND: &str = "SELECT fingerprint, at, made, result FROM server_idempotency WHERE key = $1";

fn failed(error: StoreError) -> Error {
    Error::codec(error)
}

fn kept(row: &Row) -> Result<Kept> {
    let unread = |error: serde_json::Error| Error::codec(error);
    let (made, result): (&str, Option<&str>) = (column(row, 2)?, column(row, 3)?);
    Ok(Kept {
        fingerprint: column(row, 0)?,
        at: Micros(column(row, 1)?),
        made: serde_json::from_str(made).map_err(unread)?,
        result: result.map(serde_json::from_str).transpose().map_err(unread)?,
    })
}

fn put(key: &str, kept: &Kept) -> Result<Sql> {
    let sql = "INSERT INTO server_idempotency (key, fingerprint, at, made) VALUES ($1, $2, $3, $4)
        ON CONFLICT (key) DO UPDATE SET fingerprint = $2, at = $3, made = $4, result = NULL";
    Ok(Sql::new(sql)
        .text(plain(key))
        .text(&kept.fingerprint)
        .int(kept.at.0)
        .text(to_body(&kept.made)?))
}

/// Keeps the result of a run that is deleted.
pub(super) fn put_result(key: &str, result: &Json) -> Sql {
    let sql = "UPDATE server_idempotency SET result = $2 WHERE key = $1";
    Sql::new(sql).text(plain(key)).text(result.to_string())
}

/// What has to be read and locked before something is made.
fn reads(what: &Create) -> Vec<Sql> {
    match what {
        Create::Thread(new) => threads::find_locked(&new.thread_id),
        Create::Assistant(new) => assistants::find_locked(&new.assistant_id),
        Create::Cron(_) => Vec::new(),
        Create::Runs(admissions) => {
            let mut sql: Vec<_> = super::runs::count_pending(admissions).into_iter().collect();
            // Whoever locks several threads does so in the same order.
            for admission in in_order(admissions) {
                sql.extend(lock(&admission.run.thread_id));
                sql.extend(load(&admission.run.thread_id, Need::of(admission)));
            }
            sql
        }
    }
}

fn in_order(admissions: &[Admission]) -> Vec<&Admission> {
    let mut sorted: Vec<_> = admissions.iter().collect();
    sorted.sort_by(|one, other| one.run.thread_id.cmp(&other.run.thread_id));
    sorted
}

/// What is made, and the statements that store it.
fn make(what: &Create, rows: &[Vec<Row>], now: Micros) -> Result<(Made, Vec<Sql>)> {
    let found = rows.last();
    Ok(match what {
        Create::Thread(new) => match found.map(|rows| first(rows)).transpose()?.flatten() {
            Some(known) => (Made::Thread(Err(Box::new(known))), Vec::new()),
            None => (Made::Thread(Ok(new.clone())), vec![put_thread(new)?]),
        },
        Create::Assistant(new) => match found.map(|rows| first(rows)).transpose()?.flatten() {
            Some(known) => (Made::Assistant(Err(Box::new(known))), Vec::new()),
            None => {
                let sql = vec![put_assistant(new)?, put_version(new)?];
                (Made::Assistant(Ok(new.clone())), sql)
            }
        },
        Create::Cron(new) => (Made::Cron(new.clone()), vec![put_cron(new)?]),
        Create::Runs(admissions) => {
            let (admitted, sql) = admit_all(admissions, rows, now)?;
            (Made::Runs(admitted), sql)
        }
    })
}

/// All of them or none.
fn admit_all(
    admissions: &[Admission],
    rows: &[Vec<Row>],
    now: Micros,
) -> Result<(Vec<Admitted>, Vec<Sql>)> {
    let Some((pending, rows)) = rows.split_first() else { return Ok((Vec::new(), Vec::new())) };
    let pending = pending.first().map_or(Ok(0), |row| number(row, 0))?;
    if let [one, _, ..] = admissions
        && !rules::has_room(admissions.len(), pending, one.pending_max)
    {
        return Ok((vec![Admitted::Full], Vec::new()));
    }
    let (mut all, mut sql) = (Vec::new(), Vec::new());
    for (admission, rows) in in_order(admissions).into_iter().zip(rows.chunks(5)) {
        let [_, _, thread, running, waiting] = rows else {
            return Err(Error::invalid("PostgreSQL answered less than was asked").into());
        };
        let mut open: Vec<Run> = objects(running)?;
        open.extend(objects::<Run>(waiting)?);
        let thread = ThreadRows { thread: first(thread)?, open };
        let (admitted, changes) = rules::admit(thread, admission.clone(), pending, now);
        if !matches!(admitted, Admitted::Stored { .. }) {
            return Ok((vec![admitted], Vec::new()));
        }
        sql.extend(apply(&admission.run.thread_id, &changes)?);
        all.push((&admission.run.run_id, admitted));
    }
    let place = |id: &String| admissions.iter().position(|admission| admission.run.run_id == *id);
    all.sort_by_key(|(id, _)| place(id));
    Ok((all.into_iter().map(|(_, admitted)| admitted).collect(), sql))
}

impl PostgresStore {
    async fn create_once(
        &self,
        asked: Option<&Asked>,
        what: &Create,
        now: Micros,
        again: bool,
    ) -> Result<Once> {
        // The answer to the first attempt may have been lost. With a key, what it made is known below.
        if let (true, None) = (again, asked)
            && let Some(made) = self.made_before(what).await?
        {
            return Ok(Once::Made(Box::new(made)));
        }
        let mut sql = Vec::new();
        if let Some(asked) = asked {
            let lock = "SELECT pg_advisory_xact_lock(1936024692, hashtext($1))";
            sql.push(Sql::new(lock).text(plain(&asked.key)));
            sql.push(Sql::new(FIND).text(plain(&asked.key)));
        }
        let own = sql.len();
        sql.extend(reads(what));
        if sql.is_empty() {
            sql.push(Sql::new("SELECT 1"));
        }
        let (transaction, rows) = self.tables.begin(&sql).await?;
        if let Some(asked) = asked {
            let known = rows.get(1).and_then(|rows| rows.first()).map(kept).transpose()?;
            if let Some(known) = rules::known(known, asked, now) {
                transaction.commit(&[]).await?;
                return Ok(known);
            }
        }
        let (made, mut sql) = make(what, rows.get(own..).unwrap_or_default(), now)?;
        if let Some(asked) = asked
            && let Some(kept) = rules::keep(asked, &made, now).map_err(failed)?
        {
            let old = "DELETE FROM server_idempotency WHERE at < $1";
            sql.push(Sql::new(old).int(rules::oldest(now).0));
            sql.push(put(&asked.key, &kept)?);
        }
        transaction.commit(&sql).await?;
        Ok(Once::Made(Box::new(made)))
    }

    /// What an attempt whose answer was lost has made.
    async fn made_before(&self, what: &Create) -> Result<Option<Made>> {
        Ok(match what {
            Create::Thread(new) => {
                let known = self.find_thread(&new.thread_id).await?;
                let own = known.filter(|known| known.created_at == new.created_at);
                own.map(|own| Made::Thread(Ok(own)))
            }
            Create::Assistant(new) => {
                let known = self.find_assistant(&new.assistant_id).await?;
                let own = known.filter(|known| known.created_at == new.created_at);
                own.map(|own| Made::Assistant(Ok(own)))
            }
            // Storing it once more changes nothing.
            Create::Cron(_) => None,
            Create::Runs(admissions) => {
                let mut all = Vec::new();
                for admission in admissions {
                    let run = self.run_by_id(&admission.run.run_id).await?;
                    let stored = |run| Admitted::Stored {
                        run: Box::new(run),
                        stop: vec![],
                        dropped: vec![],
                    };
                    all.extend(run.map(stored));
                }
                (!all.is_empty() && all.len() == admissions.len()).then_some(Made::Runs(all))
            }
        })
    }
}

impl Idempotency for PostgresStore {
    fn create(&self, asked: Option<Asked>, what: Create, now: Micros) -> Answer<'_, Once> {
        self.answer("make something", async move {
            let (asked, what) = (asked.as_ref(), &what);
            self.tables.insist(move |again| self.create_once(asked, what, now, again)).await
        })
    }

    fn kept(&self, key: &str) -> Answer<'_, Option<Kept>> {
        let sql = Sql::new(FIND).text(plain(key));
        self.answer("read what is kept for a key", async move {
            self.tables.read(&sql).await?.first().map(kept).transpose()
        })
    }
}
