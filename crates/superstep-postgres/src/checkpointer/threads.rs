//! Lists threads, the most recently changed first.

use std::sync::Arc;

use superstep_checkpoint::{
    CheckpointId, Error, Metadata, Stored, ThreadCursor, ThreadInfo, ThreadPage, ThreadQuery,
    Verdict, wire,
};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::read::{self, column, whole_checkpoints};
use super::verdicts;
use crate::db::{Db, Statement};

/// How the threads of a database are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    /// By our table next to LangGraph's. The cost depends on the size of the page. Verdicts about
    /// heads are cached there.
    Kept,
    /// By the same table, read-only.
    Read,
    /// By going from one to the next, and sorting: it costs what there are of threads, though not of checkpoints. For a
    /// database that was not ours to change.
    Walked,
}

/// The names of all threads, found by going from one to the next.
macro_rules! names_of_threads {
    () => {
        "WITH RECURSIVE names(thread_id) AS (
            (SELECT thread_id FROM checkpoints ORDER BY thread_id LIMIT 1)
            UNION ALL
            SELECT (SELECT c.thread_id FROM checkpoints c WHERE c.thread_id > n.thread_id ORDER BY c.thread_id LIMIT 1)
            FROM names n WHERE n.thread_id IS NOT NULL
        )"
    };
}
pub(super) use names_of_threads;

/// The head of a thread, given its name.
macro_rules! head_of {
    ($thread:literal) => {
        concat!(
            "(SELECT c.checkpoint_id AS head FROM checkpoints c WHERE c.thread_id = ",
            $thread,
            " AND c.checkpoint_ns = '' ORDER BY c.checkpoint_id DESC LIMIT 1)"
        )
    };
}
pub(super) use head_of;

/// The heads of threads ($1), in full.
pub(super) const HEADS: &str = concat!(
    "WITH c AS (
        SELECT k.nth, c.* FROM unnest($1::text[]) WITH ORDINALITY AS k(thread, nth) CROSS JOIN LATERAL (
            SELECT * FROM checkpoints WHERE thread_id = k.thread AND checkpoint_ns = ''
            ORDER BY checkpoint_id DESC LIMIT 1
        ) c
    ) ",
    whole_checkpoints!(of any format)
);

/// The threads that may belong to a page, each with what the list says of it.
const KEPT: &str = concat!(
    "SELECT t.thread_id, t.moment, t.verdict, h.head FROM superstep_threads t CROSS JOIN LATERAL ",
    head_of!("t.thread_id"),
    " h"
);

const TAGGED: &str = concat!(
    "SELECT g.thread_id, g.moment, t.verdict, h.head FROM superstep_tags g
        JOIN superstep_threads t ON t.thread_id = g.thread_id CROSS JOIN LATERAL ",
    head_of!("g.thread_id"),
    " h"
);

const WALKED: &str = concat!(
    "SELECT n.thread_id, ''::text COLLATE \"C\" AS moment, ''::text AS verdict, h.head FROM names n CROSS JOIN LATERAL ",
    head_of!("n.thread_id"),
    " h"
);

/// The query of the list.
struct Wanted {
    /// The verdicts of threads that may match, and the empty one of those that have to be looked at.
    words: Vec<&'static str>,
    /// The metadata of heads, and the possible verdicts of threads with a tag.
    tag: Option<(String, String, Vec<&'static str>)>,
}

impl Wanted {
    fn of(query: &ThreadQuery) -> Self {
        let admitted = Verdict::all().filter(|verdict| query.admits(*verdict));
        let (readable, unreadable): (Vec<_>, Vec<_>) =
            admitted.partition(|verdict| verdict.status.is_some());
        let words = |verdicts: Vec<Verdict>| verdicts.into_iter().map(Verdict::as_str);
        let unsettled = [""].into_iter().chain(words(unreadable));
        let tag = query.metadata.iter().find_map(|(key, value)| wire::tag(key, value));
        match tag {
            Some((name, value)) => Self {
                words: unsettled.collect(),
                tag: Some((name, value, words(readable).collect())),
            },
            None => Self { words: unsettled.chain(words(readable)).collect(), tag: None },
        }
    }

    /// The page that begins after a head ($2) and a thread ($3), or the first one. Each part of the search gives no more than
    /// a page and walks along an index for that.
    fn sql(&self, listing: Listing, is_first: bool) -> String {
        let order = |at: &str, head: &str| {
            format!(
                "ORDER BY {at}.moment DESC, {head}.head DESC, {at}.thread_id COLLATE \"C\" LIMIT $1"
            )
        };
        let part = |from: &str, at: &str, condition: &str| {
            let after = match is_first {
                true => "$2::text IS NULL AND $3::text IS NULL".to_owned(),
                false => format!(
                    "{at}.moment <= $2 AND (h.head < $2 OR h.head = $2 AND {at}.thread_id COLLATE \"C\" > $3)"
                ),
            };
            format!("{from} WHERE {after} {condition} {}", order(at, "h"))
        };
        let (names, heads) = if listing == Listing::Walked {
            // All of the threads have to be looked at.
            let walked = part(&format!("SELECT * FROM ({WALKED}) h"), "h", "");
            (concat!(names_of_threads!(), ","), walked)
        } else {
            let each = part(KEPT, "t", "AND t.verdict = w.word COLLATE \"C\"");
            let each = format!(
                "SELECT p.* FROM unnest($4::text[]) AS w(word) CROSS JOIN LATERAL ({each}) p"
            );
            let condition = "AND g.name = $5 AND g.value = $6 AND t.verdict = ANY($7)";
            let tagged = self.tag.as_ref().map(|_| part(TAGGED, "g", condition));
            ("WITH", tagged.map_or(each.clone(), |tagged| format!("{each} UNION ALL ({tagged})")))
        };
        format!(
            "{names} heads AS ({heads}), page AS (SELECT * FROM heads {})
            SELECT p.thread_id, p.head, p.verdict, c.metadata::text AS metadata
            FROM page p
            JOIN checkpoints c ON c.thread_id = p.thread_id AND c.checkpoint_ns = '' AND c.checkpoint_id = p.head
            ORDER BY p.head DESC, p.thread_id COLLATE \"C\"",
            order("heads", "heads")
        )
    }
}

/// A thread that may belong to a page.
struct Candidate {
    thread: Arc<str>,
    head: CheckpointId,
    verdict: Option<Verdict>,
    metadata: Result<Metadata, Error>,
}

pub(super) async fn threads(
    db: &Db,
    listing: Listing,
    query: ThreadQuery,
) -> Result<ThreadPage, Error> {
    let mut page = ThreadPage::default();
    if query.limit == 0 {
        return Ok(page);
    }
    let wanted = Wanted::of(&query);
    let mut after = query.after.clone();
    loop {
        let found = candidates(db, listing, &wanted, query.limit, after.as_ref()).await?;
        after =
            found.last().map(|last| ThreadCursor { head: last.head, thread: last.thread.clone() });
        let is_end = found.len() <= query.limit;
        let unsettled = found.iter().filter(|candidate| candidate.verdict.is_none());
        let unsettled: Vec<Arc<str>> =
            unsettled.map(|candidate| candidate.thread.clone()).collect();
        let infos = infos(db, found).await?;
        if listing == Listing::Kept {
            verdicts::settle(db, &unsettled).await;
        }
        for info in infos {
            if query.matches(&info) && !page.add(info, query.limit) {
                return Ok(page);
            }
        }
        if is_end {
            return Ok(page);
        }
    }
}

/// The next threads that may match, one more than fit on a page.
async fn candidates(
    db: &Db,
    listing: Listing,
    wanted: &Wanted,
    limit: usize,
    after: Option<&ThreadCursor>,
) -> Result<Vec<Candidate>, Error> {
    #[expect(clippy::disallowed_methods, reason = "no table has more rows")]
    let limit = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let head = after.map(|after| after.head.to_string());
    let thread = after.map(|after| &*after.thread);
    let sql = wanted.sql(listing, after.is_none());
    let mut statement = Statement::new(&sql).bind(&limit, Type::INT8).text(&head).text(&thread);
    if listing != Listing::Walked {
        statement = statement.texts(&wanted.words);
    }
    if let Some((name, value, words)) = wanted.tag.as_ref().filter(|_| listing != Listing::Walked) {
        statement = statement.text(name).text(value).texts(words);
    }
    let rows =
        db.read(statement).await.map_err(|failure| failure.told(|| "list threads".to_owned()))?;
    rows.iter().map(candidate).collect()
}

fn candidate(row: &Row) -> Result<Candidate, Error> {
    let thread: &str = column(row, "thread_id")?;
    let head: &str = column(row, "head")?;
    Ok(Candidate {
        thread: thread.into(),
        head: head.parse().map_err(|error| wire::damaged(thread, "", head, &error))?,
        verdict: Verdict::from_word(column(row, "verdict")?),
        metadata: wire::metadata_from_json(column::<&str>(row, "metadata")?.as_bytes()),
    })
}

/// The information about threads. Reads the heads of those that have questions, or no verdict, in
/// full.
async fn infos(db: &Db, candidates: Vec<Candidate>) -> Result<Vec<ThreadInfo>, Error> {
    let is_known = |candidate: &Candidate| {
        let known = |verdict: Verdict| verdict.status.is_some() && !verdict.has_questions;
        candidate.verdict.is_some_and(known) && candidate.metadata.is_ok()
    };
    let unknown = candidates.iter().filter(|candidate| !is_known(candidate));
    let unknown: Vec<&str> = unknown.map(|candidate| &*candidate.thread).collect();
    let mut heads = read_heads(db, &unknown).await?.into_iter();
    let mut infos = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        if !is_known(&candidate) {
            // A thread that was deleted meanwhile is left out.
            if let Some(Some(head)) = heads.next() {
                infos.push(info(candidate.thread, candidate.head, candidate.metadata.ok(), head));
            }
            continue;
        }
        infos.push(ThreadInfo {
            thread: candidate.thread,
            head: candidate.head,
            metadata: candidate.metadata.ok(),
            status: candidate.verdict.and_then(|verdict| verdict.status),
            pending: Vec::new(),
            damage: None,
        });
    }
    Ok(infos)
}

pub(super) fn info(
    thread: Arc<str>,
    head: CheckpointId,
    metadata: Option<Metadata>,
    stored: Result<Stored, Error>,
) -> ThreadInfo {
    match stored {
        Ok(stored) => ThreadInfo::of(stored),
        Err(error) => ThreadInfo::damaged(thread, head, metadata, &error),
    }
}

type Heads = Vec<Option<Result<Stored, Error>>>;

async fn read_heads(db: &Db, threads: &[&str]) -> Result<Heads, Error> {
    if threads.is_empty() {
        return Ok(Vec::new());
    }
    let rows = db.read(Statement::new(HEADS).texts(&threads)).await;
    let rows = rows.map_err(|failure| failure.told(|| "read the heads of threads".to_owned()))?;
    in_order(&rows, threads.len())
}

/// The heads in the rows of [`HEADS`], in the order in which they were asked for.
pub(super) fn in_order(rows: &[Row], count: usize) -> Result<Heads, Error> {
    let mut heads: Heads = Vec::new();
    heads.resize_with(count, || None);
    for (nth, stored) in read::each(rows)? {
        let place = nth
            .checked_sub(1)
            .and_then(|nth| usize::try_from(nth).ok())
            .and_then(|nth| heads.get_mut(nth));
        if let Some(place) = place {
            *place = Some(stored);
        }
    }
    Ok(heads)
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]
mod tests {
    use superstep_checkpoint::ThreadStatus;
    use tokio_postgres::NoTls;
    use tokio_postgres::types::FromSql;

    use super::*;
    use crate::checkpointer::schema;
    use crate::options::Options;

    /// A page costs a page: with 100,000 threads, no filter reads more rows of the list than a few pages have.
    #[tokio::test]
    async fn every_filter_walks_along_an_index() {
        let server = superstep_testdb::server_url();
        let name = format!("superstep_{}", uuid::Uuid::new_v4().simple());
        let (admin, connection) = tokio_postgres::connect(&server, NoTls).await.unwrap();
        tokio::spawn(connection);
        admin.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let (place, options) = server.split_once('?').unwrap_or((&server, ""));
        let (host, _) = place.rsplit_once('/').unwrap();
        let db = Db::new(&Options::from(&*format!("{host}/{name}?{options}"))).unwrap();
        schema::prepare(&db).await.unwrap();
        let client = db.connect().await.map_err(|_| "no connection").unwrap();
        let fill = "INSERT INTO checkpoints (thread_id, checkpoint_id, checkpoint, metadata)
                SELECT 't' || n, '1f0' || lpad(to_hex(n), 5, '0') || '-0000-6000-8001-000000000000', '{\"v\": 4}', '{}'
                FROM generate_series(1, 100000) n;
            UPDATE superstep_threads SET verdict =
                CASE substr(thread_id, 2)::int % 1000 WHEN 0 THEN 'failed' WHEN 1 THEN 'waiting' ELSE 'done' END;
            INSERT INTO superstep_tags SELECT thread_id, 'user', '\"u' || substr(thread_id, 2)::int % 100 || '\"', moment
                FROM superstep_threads;
            ANALYZE";
        client.batch_execute(fill).await.unwrap();
        let every = ThreadQuery::new(20);
        let queries = [
            every.clone(),
            every.clone().status(ThreadStatus::Failed),
            every.clone().questions(true),
            every.clone().status(ThreadStatus::Done).questions(false),
            every.clone().metadata("user", "u7"),
            every.status(ThreadStatus::Done).metadata("user", "u7"),
        ];
        for query in queries {
            for is_first in [true, false] {
                let wanted = Wanted::of(&query);
                let explain = "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON)";
                let sql = format!("{explain} {}", wanted.sql(Listing::Kept, is_first));
                let head = (!is_first).then_some("1f00c350-0000-6000-8001-000000000000");
                let thread = head.map(|_| "t50000");
                let mut statement =
                    Statement::new(&sql).bind(&21_i64, Type::INT8).text(&head).text(&thread);
                statement = statement.texts(&wanted.words);
                if let Some((name, value, words)) = &wanted.tag {
                    statement = statement.text(name).text(value).texts(words);
                }
                let rows = client.query_typed(&sql, &statement.params).await.unwrap();
                let Plain(plan) = rows[0].get(0);
                let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
                let read = rows_read(&plan[0]["Plan"]);
                assert!((20.0..1000.0).contains(&read), "{read} rows for {query:?}: {plan:#}");
            }
        }
        drop((client, db));
        admin.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)")).await.unwrap();
    }

    /// JSON as the text it is sent as.
    struct Plain(String);

    impl<'a> FromSql<'a> for Plain {
        fn from_sql(
            _: &Type,
            raw: &'a [u8],
        ) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
            Ok(Self(std::str::from_utf8(raw)?.to_owned()))
        }

        fn accepts(kind: &Type) -> bool {
            *kind == Type::JSON
        }
    }

    /// How many rows the scans of a plan have read, those included that a filter took out.
    fn rows_read(node: &serde_json::Value) -> f64 {
        let number = |name: &str| node[name].as_f64().unwrap_or_default();
        let loops = number("Actual Loops");
        let own = match node["Relation Name"].as_str() {
            Some("superstep_threads" | "superstep_tags") => {
                let removed =
                    number("Rows Removed by Filter") + number("Rows Removed by Index Recheck");
                (number("Actual Rows") + removed) * loops
            }
            _ => 0.0,
        };
        let inside = node["Plans"].as_array().into_iter().flatten();
        own + inside.map(rows_read).sum::<f64>()
    }
}
