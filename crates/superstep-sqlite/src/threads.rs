//! The list of threads, the most recently changed first.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, ToSql, params};
use superstep_checkpoint::{
    CheckpointId, Error, Metadata, ThreadCursor, ThreadInfo, ThreadPage, ThreadQuery, Verdict, wire,
};

use crate::error::During;
use crate::{read, schema};

/// A page, and the threads whose verdict had to be computed.
pub(crate) struct Listed {
    pub(crate) page: ThreadPage,
    pub(crate) unsettled: Vec<Arc<str>>,
}

/// A thread that may belong to a page.
struct Candidate {
    thread: Arc<str>,
    head: CheckpointId,
    verdict: Option<Verdict>,
}

impl Candidate {
    fn cursor(&self) -> ThreadCursor {
        ThreadCursor { head: self.head, thread: self.thread.clone() }
    }
}

pub(crate) fn list(db: &Connection, query: &ThreadQuery) -> Result<Listed, Error> {
    let what = "listing threads";
    let is_kept = schema::lists_threads(db).during(what)?;
    let mut listed = Listed { page: ThreadPage::default(), unsettled: Vec::new() };
    let mut after = query.after.clone();
    loop {
        let found = candidates(db, is_kept, query, after.as_ref()).during(what)?;
        after = found.last().map(Candidate::cursor);
        let is_end = found.len() <= query.limit;
        for candidate in found {
            let is_unsettled = is_kept && candidate.verdict.is_none();
            let info = info(db, candidate)?;
            if is_unsettled {
                listed.unsettled.push(info.thread.clone());
            }
            if query.matches(&info) && !listed.page.add(info, query.limit) {
                return Ok(listed);
            }
        }
        if is_end {
            return Ok(listed);
        }
    }
}

/// Caches verdicts about the heads of threads until the threads change.
pub(crate) fn settle(db: &Connection, threads: &[Arc<str>]) -> Result<(), Error> {
    for thread in threads {
        let Some(head) = head(db, thread)? else { continue };
        let info = info(db, Candidate { thread: thread.clone(), head, verdict: None })?;
        keep(db, &info).during(format_args!("keeping the status of thread `{thread}`"))?;
    }
    Ok(())
}

/// The head of a thread, if it has one whose id can be read.
fn head(db: &Connection, thread: &str) -> Result<Option<CheckpointId>, Error> {
    match read::head(db, thread, "") {
        Err(Error::Codec(_)) => Ok(None),
        found => found,
    }
}

fn keep(db: &Connection, info: &ThreadInfo) -> rusqlite::Result<()> {
    let thread = &info.thread;
    let sql = "UPDATE superstep_threads SET verdict = ?2 WHERE thread_id = ?1";
    db.prepare_cached(sql)?.execute(params![thread, info.verdict().as_str()])?;
    let mut tags: Vec<_> = info.metadata.iter().flat_map(wire::tags).collect();
    tags.sort();
    let mut known = db
        .prepare_cached("SELECT name, value FROM superstep_tags WHERE thread_id = ?1 ORDER BY 1")?;
    let known: Vec<(String, String)> = known
        .query_map([thread], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    if known == tags {
        return Ok(());
    }
    db.prepare_cached("DELETE FROM superstep_tags WHERE thread_id = ?1")?.execute([thread])?;
    let sql = "INSERT INTO superstep_tags (thread_id, name, value, moment) \
               SELECT thread_id, ?2, ?3, moment FROM superstep_threads WHERE thread_id = ?1";
    let mut insert = db.prepare_cached(sql)?;
    tags.iter().try_for_each(|(name, value)| insert.execute(params![thread, name, value]).map(drop))
}

/// The condition of a statement that finds candidates.
enum Wanted {
    /// Threads with a verdict, or without one.
    With(&'static str),
    /// Threads with one of these verdicts and a tag.
    Tagged(Vec<&'static str>, String, String),
}

impl Wanted {
    /// Everything that may match, in statements each of which walks along an index.
    fn of(query: &ThreadQuery) -> Vec<Self> {
        let tag = query.metadata.iter().find_map(|(key, value)| wire::tag(key, value));
        let admitted = || {
            let admitted = Verdict::all().filter(|verdict| query.admits(*verdict));
            admitted.map(Verdict::as_str)
        };
        let unsettled = Self::With("");
        match tag {
            // A thread that cannot be read may have no tags.
            Some((name, value)) => {
                let unreadable = Verdict::UNREADABLE.as_str();
                let readable = admitted().filter(|word| *word != unreadable).collect();
                vec![unsettled, Self::With(unreadable), Self::Tagged(readable, name, value)]
            }
            None => [unsettled].into_iter().chain(admitted().map(Self::With)).collect(),
        }
    }

    /// The statement, with places for where to begin and then for [`params`](Self::params).
    fn sql(&self, after: bool) -> String {
        let (from, at, condition) = match self {
            Self::With(_) => ("superstep_threads t", "t", "t.verdict = ?3".to_owned()),
            Self::Tagged(verdicts, ..) => {
                let verdicts: Vec<_> = verdicts.iter().map(|word| format!("'{word}'")).collect();
                let verdicts = verdicts.join(", ");
                (
                    "superstep_tags g CROSS JOIN superstep_threads t ON t.thread_id = g.thread_id",
                    "g",
                    format!("g.name = ?3 AND g.value = ?4 AND t.verdict IN ({verdicts})"),
                )
            }
        };
        let after = match after {
            true => "AND moment <= ?1 AND (head < ?1 OR head = ?1 AND thread_id > ?2)",
            false => "AND ?1 = ?2",
        };
        format!(
            "SELECT {at}.thread_id AS thread_id, (
                SELECT max(checkpoint_id) FROM checkpoints c
                WHERE c.thread_id = {at}.thread_id AND checkpoint_ns = ''
            ) AS head, t.verdict FROM {from} WHERE {condition} {}
            ORDER BY {at}.moment DESC, head DESC, {at}.thread_id",
            after
                .replace("moment", &format!("{at}.moment"))
                .replace("thread_id", &format!("{at}.thread_id"))
        )
    }

    fn params(&self) -> Vec<&dyn ToSql> {
        match self {
            Self::With(verdict) => vec![verdict],
            Self::Tagged(_, name, value) => vec![name, value],
        }
    }
}

/// For a file without our list: a look at every checkpoint.
const WALKED: &str = "SELECT thread_id, head, '' FROM (
        SELECT thread_id, max(checkpoint_id) AS head FROM checkpoints WHERE checkpoint_ns = '' GROUP BY thread_id
    ) WHERE (?3 = 0 OR head < ?1 OR head = ?1 AND thread_id > ?2) ORDER BY head DESC, thread_id";

/// The next threads that may match, one more than fit on a page. What has no id that we could name is left out.
fn candidates(
    db: &Connection,
    is_kept: bool,
    query: &ThreadQuery,
    after: Option<&ThreadCursor>,
) -> rusqlite::Result<Vec<Candidate>> {
    let head = after.map(|after| after.head.to_string()).unwrap_or_default();
    let thread = after.map(|after| after.thread.clone()).unwrap_or_default();
    let count = query.limit.saturating_add(1);
    if !is_kept {
        return fetch(db, WALKED, params![head, thread, after.is_some()], count);
    }
    let mut found = Vec::new();
    for wanted in Wanted::of(query) {
        let mut params: Vec<&dyn ToSql> = vec![&head, &thread];
        params.extend(wanted.params());
        found.extend(fetch(db, &wanted.sql(after.is_some()), &params, count)?);
    }
    found.sort_by(|a, b| b.head.cmp(&a.head).then_with(|| a.thread.cmp(&b.thread)));
    found.truncate(count);
    Ok(found)
}

fn fetch(
    db: &Connection,
    sql: &str,
    params: &[&dyn ToSql],
    count: usize,
) -> rusqlite::Result<Vec<Candidate>> {
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while found.len() < count {
        let Some(row) = rows.next()? else { break };
        let Some(Ok(head)) = row.get::<_, Option<String>>(1)?.map(|head| head.parse()) else {
            continue;
        };
        let verdict = Verdict::from_word(row.get_ref(2)?.as_str()?);
        found.push(Candidate { thread: row.get(0)?, head, verdict });
    }
    Ok(found)
}

fn info(db: &Connection, candidate: Candidate) -> Result<ThreadInfo, Error> {
    let Candidate { thread, head, verdict } = candidate;
    if let Some(verdict) = verdict.filter(|verdict| !verdict.has_questions)
        && let Some(status) = verdict.status
        && let Ok(metadata) = metadata(db, &thread, head)?
    {
        let metadata = Some(metadata);
        return Ok(ThreadInfo {
            thread,
            head,
            metadata,
            status: Some(status),
            pending: Vec::new(),
            damage: None,
        });
    }
    match read::get(db, &thread, "", Some(head)) {
        Ok(Some(stored)) => Ok(ThreadInfo::of(stored)),
        Err(error @ Error::Codec(_)) => {
            let metadata = metadata(db, &thread, head)?.ok();
            Ok(ThreadInfo::damaged(thread, head, metadata, &error))
        }
        Ok(None) => {
            let error = Error::codec("the checkpoint is not stored");
            Ok(ThreadInfo::damaged(thread, head, None, &error))
        }
        Err(error) => Err(error),
    }
}

/// The metadata of a checkpoint. The inner error is damage.
fn metadata(
    db: &Connection,
    thread: &str,
    id: CheckpointId,
) -> Result<Result<Metadata, Error>, Error> {
    let what = || format!("reading the head of thread `{thread}`");
    let sql = "SELECT metadata FROM checkpoints \
               WHERE thread_id = ?1 AND checkpoint_ns = '' AND checkpoint_id = ?2";
    let mut statement = db.prepare_cached(sql).during(what())?;
    let bytes = statement.query_row(params![thread, id.to_string()], |row| {
        Ok(row.get_ref(0)?.as_bytes_or_null().ok().flatten().map(<[u8]>::to_vec))
    });
    let bytes = bytes.optional().during(what())?.flatten();
    Ok(wire::metadata_from_json(&bytes.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use superstep_checkpoint::ThreadStatus;

    use super::*;
    use crate::options::SqliteOptions;

    /// A page costs a page: no statement looks at all threads, or sorts more than those of one moment.
    #[test]
    fn every_filter_walks_along_an_index() {
        let db = Connection::open_in_memory().expect("a database");
        schema::set_up(&db, "memory", &SqliteOptions::default()).expect("tables");
        let every = ThreadQuery::new(10);
        let queries = [
            (every.clone(), "superstep_threads_by_verdict"),
            (every.clone().status(ThreadStatus::Failed), "superstep_threads_by_verdict"),
            (every.clone().questions(true), "superstep_threads_by_verdict"),
            (every.clone().metadata("user", "ada"), "superstep_tags_by_value"),
            (every.status(ThreadStatus::Done).metadata("user", "ada"), "superstep_tags_by_value"),
        ];
        for (query, index) in queries {
            for after in [true, false] {
                let wanted = Wanted::of(&query);
                let last = wanted.last().expect("a statement");
                let plan = plan(&db, &last.sql(after), last.params().len() + 2);
                assert!(plan[0].contains(index), "{query:?}: {plan:?}");
                let sorts = plan.iter().filter(|step| step.contains("TEMP B-TREE"));
                for step in sorts {
                    assert!(step.contains("LAST") || step.contains("RIGHT PART"), "{plan:?}");
                }
                assert!(!plan.iter().skip(1).any(|step| step.starts_with("SCAN")), "{plan:?}");
            }
        }
    }

    fn plan(db: &Connection, sql: &str, params: usize) -> Vec<String> {
        let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("SQL");
        let params = vec![""; params];
        let steps = statement
            .query_map(rusqlite::params_from_iter(params), |row| row.get(3))
            .expect("a plan");
        steps.collect::<Result<_, _>>().expect("texts")
    }
}
